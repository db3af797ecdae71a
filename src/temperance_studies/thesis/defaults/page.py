r"""Which strategy should be the default: the study behind ``docs/evidence-defaults.md``.

python -m temperance_studies.thesis.defaults.page --repeats 400 --jobs 16 --out docs
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from temperance.app.files import write_whole
from temperance.data import Risk
from temperance.protocols import Strategy
from temperance.strategies import (
    Bayes,
    Bootstrap,
    KFold,
    LeaveOneOut,
    Naive,
    ReferenceRisk,
    SafeBayes,
    SampleSplitting,
    Stacking,
)
from temperance_studies.study.compare import compare
from temperance_studies.study.strategies import Choice
from temperance_studies.study.summary import by_setting
from temperance_studies.thesis.defaults import settings as default_settings
from temperance_studies.thesis.defaults.fresh import (
    fresh_classifications,
    fresh_regressions,
    unseen_classifications,
    unseen_regressions,
)
from temperance_studies.thesis.defaults.tables import (
    classification_tables,
    forecast_tables,
    predictive_tables,
    real_tables,
    regression_tables,
)
from temperance_studies.thesis.real_data.page import filled
from temperance_studies.thesis.real_data.splits import CASES, REGRESSIONS, splits
from temperance_studies.thesis.real_data.summary import by_case

if TYPE_CHECKING:
    import pandas as pd

SEED = 141421

STRATEGIES: dict[str, Strategy] = {
    "Bayes": Bayes(),
    "naive": Naive(),
    "sample splitting, alpha": SampleSplitting(transfer="alpha"),
    "sample splitting, beta": SampleSplitting(),
    "both directions, alpha": SampleSplitting(transfer="alpha", both_directions=True),
    "both directions, beta": SampleSplitting(both_directions=True),
    "SafeBayes, alpha": SafeBayes(transfer="alpha"),
    "SafeBayes, beta": SafeBayes(),
    "5-fold, alpha": KFold(5, transfer="alpha"),
    "5-fold, beta": KFold(5),
    "10-fold, alpha": KFold(transfer="alpha"),
    "10-fold, beta": KFold(),
    "leave-one-out, alpha": LeaveOneOut(transfer="alpha"),
    "leave-one-out, beta": LeaveOneOut(),
    "bootstrap, 200 draws": Bootstrap(n_draws=200),
    "out-of-bag, 200 draws": Bootstrap(n_draws=200, out_of_bag=True),
    "reference risk": ReferenceRisk(),
    "reference risk, no veto": ReferenceRisk(veto=None),
    "reference risk, copies apart": ReferenceRisk(duplicates="apart"),
}
LOGISTIC_STRATEGIES: dict[str, Strategy] = {"Bayes": Bayes(), "10-fold, beta": KFold()}


def ten_folds(setting: Any) -> KFold:
    """Return ten folds, or one for each row where there are fewer."""
    return KFold(min(10, setting.n))


FORECASTS: dict[str, Choice] = {
    "Bayes": Bayes(),
    "10-fold": ten_folds,
    "stacking": Stacking(),
}
PREDICTIVE = ("Bayes", "10-fold, beta", "leave-one-out, beta", "reference risk")
REAL_STRATEGIES: dict[str, Strategy] = {
    "bayes": Bayes(),
    "10-fold": KFold(),
    "leave-one-out": LeaveOneOut(),
    "reference risk": ReferenceRisk(),
    "no veto": ReferenceRisk(veto=None),
}


PAGE = "evidence-defaults.md"


class Part(NamedTuple):
    """One part of the study: settings, strategies, and the tables made from its summary."""

    groups: Mapping[str, default_settings.Group]
    strategies: Mapping[str, Choice]
    tables: Callable[[Any], dict[str, str]]
    page: str = PAGE
    risk: Risk = "gibbs"


SIMULATIONS = {
    "regressions": Part(default_settings.REGRESSIONS, STRATEGIES, regression_tables),
    "predictive": Part(
        default_settings.WITHOUT_COPIES,
        {name: STRATEGIES[name] for name in PREDICTIVE},
        predictive_tables,
        risk="predictive",
    ),
    "forecasts": Part(
        {
            **default_settings.WITHOUT_COPIES,
            "new": fresh_regressions,
            **default_settings.CLASSIFICATIONS,
            "new logistic": fresh_classifications,
            "unseen": unseen_regressions,
            "unseen logistic": unseen_classifications,
        },
        FORECASTS,
        forecast_tables,
        risk="predictive",
    ),
    "classifications": Part(
        default_settings.CLASSIFICATIONS, LOGISTIC_STRATEGIES, classification_tables
    ),
}
REAL = "real-data"
PARTS = (*SIMULATIONS, REAL)


def main(words: Sequence[str] | None = None) -> None:
    """Run or resume the study, and write its summaries and the tables of its page."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--repeats", type=int, default=400, help="data sets of each setting")
    parser.add_argument("--splits", type=int, default=25, help="splits of each real data set")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--jobs", type=int, default=-1, help="workers, -1 for one on each core")
    parser.add_argument("--out", type=Path, default=Path("docs"), help="folder of the files")
    parser.add_argument(
        "--store", type=Path, help="folder of the SQLite files, by default that of the files"
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument(
        "--redraw", action="store_true", help="take the numbers from the CSV files in the folder"
    )
    arguments = parser.parse_args(words)
    if min(arguments.repeats, arguments.splits) < 2:
        parser.error("--repeats and --splits must be at least 2")
    store = arguments.store or arguments.out
    for folder in (arguments.out, store):
        folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    if not arguments.redraw:
        for part in arguments.parts:
            numbers = _measured(
                part, arguments.repeats, arguments.splits, arguments.seed, arguments.jobs, store
            )
            content = numbers.to_csv(index=False, float_format="%.6g", lineterminator="\n")
            write_whole(arguments.out / f"default-{part}.csv", content)
    # Always from the files, so that page and files cannot disagree.
    _write_page(arguments.out, arguments.parts)
    print(f"{time.perf_counter() - began:.0f} s")


def _measured(
    part: str, repeats: int, n_splits: int, seed: int, jobs: int, store: Path
) -> pd.DataFrame:
    if part == REAL:
        cases = [case for case in CASES if case.model in REGRESSIONS]
        return by_case(splits(cases, REAL_STRATEGIES, n_splits, seed, jobs))
    simulation = SIMULATIONS[part]
    found = {group: settings() for group, settings in simulation.groups.items()}
    settings = {name: each for members in found.values() for name, each in members.items()}
    path = store / f"default-{part}.sqlite"
    table = compare(
        settings, simulation.strategies, repeats, seed, jobs, store=path, risk=simulation.risk
    )
    summary = by_setting(table, baseline="Bayes")
    if part == "forecasts":
        beside_folds = by_setting(table, baseline="10-fold")
        for kind in ("worse", "better"):
            summary[f"{kind}_than_folds"] = beside_folds[kind]
    group = {name: label for label, members in found.items() for name in members}
    family = {name: type(each.model).__name__ for name, each in settings.items()}
    summary.insert(0, "group", summary["setting"].map(group))
    summary.insert(2, "model", summary["setting"].map(family))
    return summary


def _write_page(out: Path, parts: Sequence[str]) -> None:
    import pandas as pd

    for part in parts:
        tables = real_tables if part == REAL else SIMULATIONS[part].tables
        contents = tables(pd.read_csv(out / f"default-{part}.csv"))
        page = out / (PAGE if part == REAL else SIMULATIONS[part].page)
        if page.exists():
            write_whole(page, filled(page.read_text(encoding="utf-8"), contents))
        else:
            print("\n\n".join(contents.values()))


if __name__ == "__main__":
    main()
