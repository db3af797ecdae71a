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
    """Return the table of the default of forecasts: what is asked of it, and what it does."""
    return {"forecasts measured": _measured(summary), "forecast marks": forecast_marks(summary)}


def forecast_marks(summary: pd.DataFrame) -> str:
    """Return marks of the default of forecasts in all settings, and in those no search has seen."""
    header = ["what", "mark", "10-fold", "stacking"]
    unseen = summary["group"].str.startswith(UNSEEN)
    if not unseen.any():
        return table(header, _forecast_marks(summary))
    apart = zip(_forecast_marks(summary), _forecast_marks(summary[unseen]), strict=True)
    lines = [[*every, own[-1]] for every, own in apart]
    return table([*header, "stacking, unseen"], lines)


def _forecast_marks(summary: pd.DataFrame) -> list[list[str]]:
    rules = {
        name: summary[summary["strategy"] == name].set_index("setting")
        for name in ("10-fold", "stacking")
    }
    logistic = rules["stacking"]["model"].str.contains("Logistic")
    ratios = [
        [f"excess risk, Bayes = 1, {words}", f"at most {most:.2f}"]
        + [f"{_mean(rule[part]):.2f}" for rule in rules.values()]
        for words, part, most in (
            ("linear", ~logistic, MOST_LINEAR),
            ("logistic", logistic, MOST_LOGISTIC),
        )
    ]
    loss = [f"{rule['difference'].max():.4f}" for rule in rules.values()]
    clear = [
        str(int((rule["difference"] - CLEAR * rule["standard_error"] > HARMLESS).sum()))
        for rule in rules.values()
    ]
    behind, ahead = (
        int(rules["stacking"][f"{kind}_than_folds"].sum()) for kind in ("worse", "better")
    )
    beside = f"{behind} of {len(logistic)}, clearly better in {ahead}"
    return [
        *ratios,
        ["largest mean loss against Bayes, nats", f"at most {MOST_LOSS:.3f}", *loss],
        [f"settings clearly worse than Bayes by more than {HARMLESS:.2f}", "0", *clear],
        ["settings clearly worse than 10-fold", f"at most {MOST_BEHIND:.0%}", "", beside],
    ]


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
