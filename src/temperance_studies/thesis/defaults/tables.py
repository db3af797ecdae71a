r"""The tables of the study of the default strategy: pure functions of its summaries."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from temperance_studies.study.ratios import geometric_mean
from temperance_studies.study.summary import CLEAR
from temperance_studies.thesis.verdicts.markdown import table

if TYPE_CHECKING:
    import pandas as pd

GROUPS = {"thesis": "thesis", "other": "other", "stress": "stress"}
CANDIDATE, INCUMBENT = "reference risk", "10-fold, beta"
# Largest mean ratio and largest worst ratio of a default strategy in a family of models.
MOST_MEAN, MOST_WORST = 0.15, 1.5
# Marks of the default of forecasts: mean ratio of linear and of logistic models; nats a row.
MOST_LINEAR, MOST_LOGISTIC = 0.20, 0.80
MOST_LOSS, HARMLESS = 0.015, 0.01
UNSEEN = "unseen"
MOST_BEHIND = 0.05  # share of the settings in which it may be clearly worse than ten folds
FAMILIES = {
    "known variance": ("GaussianLinear", "GaussianMean", "Polynomial"),
    "unknown variance": ("NormalInverseGammaLinear",),
}
SHOWN = {
    "naive": "naive",
    "sample splitting, beta": "split",
    "SafeBayes, beta": "SafeBayes",
    "10-fold, beta": "10-fold",
    "leave-one-out, beta": "leave-one-out",
    "bootstrap, 200 draws": "bootstrap",
    CANDIDATE: CANDIDATE,
    "reference risk, no veto": "no veto",
}
COPIED = ("10-fold, beta", "leave-one-out, beta", CANDIDATE, "reference risk, copies apart")


def regression_tables(summary: pd.DataFrame) -> dict[str, str]:
    """Return the tables of the regressions, by their names on the page."""
    judged = summary[summary["group"].isin(GROUPS)]
    copies = summary[~summary["group"].isin(GROUPS)]
    return {
        "regressions": _measured(summary),
        "strategies": _overall(judged),
        "families": families(judged, (CANDIDATE, INCUMBENT)),
        **{f"{group} settings": _by_setting(judged, group) for group in GROUPS},
        "copies": _ratios(copies, {name: name for name in COPIED}),
    }


def classification_tables(summary: pd.DataFrame) -> dict[str, str]:
    """Return the tables of the classifications."""
    names = [name for name in summary["strategy"].unique() if name != "Bayes"]
    lines = []
    for name in names:
        part = summary[summary["strategy"] == name]
        lines.append([name, *_counts(part), _milliseconds(part)])
    header = ["strategy", "excess risk, Bayes = 1", "worst", "better", "worse", "ms"]
    return {
        "classifications measured": _measured(summary),
        "classifications": table(header, lines),
        "classification settings": _ratios(summary, {name: name for name in names}),
    }


def real_tables(summary: pd.DataFrame) -> dict[str, str]:
    """Return the table of real data: gains over Bayes on held-out rows, for each risk."""
    names = [name for name in summary["strategy"].unique() if name != "bayes"]
    header = ["model", "case", *(f"{words}: {name}" for words, *_ in _JUDGED for name in names)]
    lines = []
    for (model, case), part in summary.groupby(["model", "case"], sort=False):
        own = part.set_index(["risk", "strategy"])
        cells = [
            _gain(own.loc[risk, name], measure) for _, risk, measure in _JUDGED for name in names
        ]
        lines.append([str(model), str(case), *cells])
    return {"real data": table(header, lines)}


def predictive_tables(summary: pd.DataFrame) -> dict[str, str]:
    """Return the table of the predictive risk: every strategy in every family of models."""
    names = [name for name in summary["strategy"].unique() if name != "Bayes"]
    return {"predictive measured": _measured(summary), "predictive": families(summary, names)}


def forecast_tables(summary: pd.DataFrame) -> dict[str, str]:
    """Return the tables of the default of forecasts: its marks, and every setting."""
    return {
        "forecasts measured": _measured(summary),
        "forecast marks": forecast_marks(summary),
        "forecast settings": _forecast_settings(summary),
    }


def forecast_marks(summary: pd.DataFrame) -> str:
    """Return what is asked of the default of forecasts, and what it does.

    For all settings, and for those that no search has seen.
    """
    header, unseen = ["what", "mark", "all settings"], summary["group"].str.startswith(UNSEEN)
    if not unseen.any():
        return table(header, _forecast_marks(summary))
    lines = [
        [*asked, found, of_unseen]
        for (*asked, found), (*_, of_unseen) in zip(
            _forecast_marks(summary), _forecast_marks(summary[unseen]), strict=True
        )
    ]
    return table([*header, "unseen ones"], lines)


def _forecast_marks(summary: pd.DataFrame) -> list[list[str]]:
    stacking, folds = (
        summary[summary["strategy"] == name].set_index("setting")
        for name in ("stacking", "10-fold")
    )
    logistic = stacking["model"].str.contains("Logistic")
    lines = []
    for words, part, most in (
        ("linear", stacking[~logistic], MOST_LINEAR),
        ("logistic", stacking[logistic], MOST_LOGISTIC),
    ):
        rows = folds.loc[part.index]
        found = f"{_mean(part):.2f} (10-fold {_mean(rows):.2f})"
        lines.append([f"excess risk, Bayes = 1, {words}", f"at most {most:.2f}", found])
    largest = stacking["difference"].idxmax()
    loss = (
        f"{stacking['difference'].max():.4f} ({largest}), 10-fold {folds['difference'].max():.4f}"
    )
    lines.append(["largest mean loss against Bayes, nats", f"at most {MOST_LOSS:.3f}", loss])
    for words, part in (("", stacking), (": 10-fold", folds)):
        clear = part[part["difference"] - CLEAR * part["standard_error"] > HARMLESS]
        mark = "" if words else "0"
        name = f"settings clearly worse than Bayes by more than {HARMLESS:.2f}{words}"
        lines.append([name, mark, str(len(clear))])
    count = len(stacking)
    behind, ahead = (int(stacking[f"{kind}_than_folds"].sum()) for kind in ("worse", "better"))
    found = f"{behind} of {count}, clearly better in {ahead}"
    lines.append(["settings clearly worse than 10-fold", f"at most {MOST_BEHIND:.0%}", found])
    return lines


def _forecast_settings(summary: pd.DataFrame) -> str:
    """Return gains over Bayes in nats, setting by setting."""
    lines = []
    for name, part in summary.groupby("setting", sort=False):
        own = part.set_index("strategy")
        cells = [_nats(own.loc[each]) for each in ("10-fold", "stacking")]
        lines.append(
            [
                str(name),
                f"{own.loc['Bayes', 'median_best_beta']:.2f}",
                f"{own.loc['Bayes', 'mean_excess']:.4f}",
                f"{own.loc['stacking', 'median_beta']:.2f}",
                *cells,
            ]
        )
    header = ["setting", "median best beta", "excess of Bayes", "median beta of stacking"]
    return table([*header, "gain of 10-fold", "gain of stacking"], lines)


def _nats(line: Any) -> str:
    mean, error = -line["difference"], line["standard_error"]
    return _bold(f"{mean:+.4f} ± {error:.4f}".replace("-", "−"), mean < -CLEAR * error)


def families(summary: pd.DataFrame, candidates: Iterable[str] = (CANDIDATE,)) -> str:
    """Return for each family of models whether a candidate may be its default, as a table."""
    lines = []
    for name, (family, models) in itertools.product(candidates, FAMILIES.items()):
        part = summary[summary["model"].isin(models) & (summary["strategy"] == name)]
        if len(part):
            passed = "yes" if fit_for_default(part) else "no"
            lines.append([name, family, str(len(part)), *_counts(part), passed])
    header = ["strategy", "model", "settings", "excess risk, Bayes = 1", "worst", "better", "worse"]
    return table([*header, "fit to be the default"], lines)


def fit_for_default(part: pd.DataFrame) -> bool:
    """Return whether a strategy has a small mean ratio, no clear loss and no large ratio."""
    return bool(
        _mean(part) <= MOST_MEAN and not part["worse"].any() and part["ratio"].max() <= MOST_WORST
    )


def _measured(summary: pd.DataFrame) -> str:
    """Return how many settings and data sets were used, as text."""
    return f"{summary['setting'].nunique()} settings, {summary['repeats'].min()} data sets of each:"


def _overall(summary: pd.DataFrame) -> str:
    lines = []
    for name, part in summary.groupby("strategy", sort=False):
        if name == "reference risk, copies apart":  # there are no copies in these settings
            continue
        means = [f"{_mean(part[part['group'] == group]):.2f}" for group in GROUPS]
        lines.append([str(name), *means, *_counts(part), _milliseconds(part)])
    return table(["strategy", *GROUPS.values(), "all", "worst", "better", "worse", "ms"], lines)


def _by_setting(summary: pd.DataFrame, group: str) -> str:
    return _ratios(summary[summary["group"] == group], SHOWN)


def _ratios(summary: pd.DataFrame, shown: dict[str, str]) -> str:
    """Return one line per setting: the excess relative to Bayes', bold if clearly larger."""
    lines = []
    for setting, part in summary.groupby("setting", sort=False):
        own = part.set_index("strategy")
        bayes = own.loc["Bayes"]
        cells = [_bold(f"{own.loc[k]['ratio']:.2f}", own.loc[k]["worse"]) for k in shown]
        best, excess = bayes["median_best_beta"], bayes["mean_excess"]
        lines.append([str(setting), f"{best:.2f}", f"{excess:.3g}", *cells])
    return table(["setting", "median best beta", "excess of Bayes", *shown.values()], lines)


def _counts(part: pd.DataFrame) -> list[str]:
    return [
        f"{_mean(part):.2f}",
        f"{part['ratio'].max():.2f}",
        str(int(part["better"].sum())),
        str(int(part["worse"].sum())),
    ]


def _mean(part: pd.DataFrame) -> float:
    return geometric_mean(part["ratio"])


def _milliseconds(part: pd.DataFrame) -> str:
    return f"{1000 * part['seconds'].mean():.1f}"


# What is measured, on which choices, and its column in the summary.
_JUDGED = (("Gibbs risk", "gibbs", "gibbs_gain"), ("log score", "predictive", "gain"))


def _gain(line: Any, measure: str) -> str:
    mean, error = line[measure], line[f"{measure}_error"]
    return _bold(f"{mean:+.3f} ± {error:.3f}".replace("-", "−"), mean < -CLEAR * error)


def _bold(words: str, clear: bool) -> str:
    return f"**{words}**" if clear else words
