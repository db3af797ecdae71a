r"""The tables of ``docs/real-data.md``, and the command that computes them and draws the figure.

python -m temperance_studies.thesis.real_data.page --repeats 25 --seed 0 --out docs
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temperance.app.files import write_whole
from temperance_studies.study.summary import CLEAR
from temperance_studies.thesis.real_data.splits import REGRESSIONS, splits
from temperance_studies.thesis.real_data.summary import by_case, overall

if TYPE_CHECKING:
    import pandas as pd

NAMES = {
    "bayes": "Bayes",
    "naive": "naive",
    "sample-splitting": "sample splitting",
    "safe-bayes": "SafeBayes",
    "bootstrap": "bootstrap",
    "k-fold": "10-fold",
    "leave-one-out": "leave-one-out",
}


def tables(summary: pd.DataFrame) -> dict[str, str]:
    """Return the tables of the page in Markdown, by their names on the page."""
    regressions = summary[summary["model"].isin(REGRESSIONS)]
    classes = summary[~summary["model"].isin(REGRESSIONS)]
    return {
        "overall": _overall(summary),
        "log score": _gains(summary, "predictive", "gain"),
        "gibbs risk": _gains(summary, "gibbs", "gibbs_gain"),
        "gibbs log score": _gains(summary, "gibbs", "gain"),
        "coverage": _by_strategy(regressions, _coverage, list(NAMES)),
        "classes": _classes(classes),
        "regressions": _by_strategy(
            regressions[regressions["risk"] == "predictive"], _log_score, list(NAMES)
        ),
    }


def filled(page: str, contents: dict[str, str]) -> str:
    """Return a page with tables inserted between the comments that name them."""
    for name, table in contents.items():
        marks = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page, found = marks.subn(rf"\g<1>{table}\n\g<2>", page)
        if found != 1:
            raise ValueError(f"page must have one place for the table {name!r}, got {found}")
    return page


def main(words: Sequence[str] | None = None) -> None:
    """Run the study, then write its summary, its figure and the tables of its page."""
    import pandas as pd

    from temperance_studies.thesis.real_data import figure as real_data

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--repeats", type=int, default=25, help="splits of each case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=-1, help="workers, -1 for one on each core")
    parser.add_argument("--out", type=Path, default=Path("docs"), help="folder of the files")
    parser.add_argument(
        "--redraw", action="store_true", help="take the numbers from real-data.csv in the folder"
    )
    arguments = parser.parse_args(words)
    arguments.out.mkdir(parents=True, exist_ok=True)
    began, numbers = time.perf_counter(), arguments.out / "real-data.csv"
    if not arguments.redraw:
        summary = by_case(
            splits(repeats=arguments.repeats, seed=arguments.seed, n_jobs=arguments.jobs)
        )
        write_whole(numbers, summary.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
    # Always from the file, so that page, picture and file cannot disagree.
    summary = pd.read_csv(numbers)
    write_whole(arguments.out / "real-data.png", real_data.picture(summary))
    page, contents = arguments.out / "real-data.md", tables(summary)
    if page.exists():
        write_whole(page, filled(page.read_text(encoding="utf-8"), contents))
    else:
        print("\n\n".join(contents.values()))
    print(f"{time.perf_counter() - began:.0f} s")


def _overall(summary: pd.DataFrame) -> str:
    header = ["chosen by", "judged by", "strategy", "better", "worse", "median gain", "worst gain"]
    lines = [[*header, "where"]]
    for risk, measure, judge in (
        ("predictive", "gain", "log score"),
        ("gibbs", "gibbs_gain", "Gibbs risk"),
        ("gibbs", "gain", "log score"),
    ):
        found = overall(summary, measure)  # type: ignore[arg-type]
        for line in found[found["risk"] == risk].to_dict("records"):
            where = f"{line['worst_case']}; {line['worst_model']}"
            counts = [str(line["better"]), str(line["worse"])]
            gains = [_signed(line["median"]), _signed(line["least"])]
            lines.append([_CHOSEN[risk], judge, NAMES[line["strategy"]], *counts, *gains, where])
    return _markdown(lines)


def _gains(summary: pd.DataFrame, risk: str, measure: str) -> str:
    def cell(part: Any) -> str:
        mean, error = part[measure], part[f"{measure}_error"]
        words = f"{_signed(mean)} ± {error:.3f}"
        return f"**{words}**" if mean < -CLEAR * error else words

    chosen = [name for name in NAMES if name != "bayes"]
    return _by_strategy(summary[summary["risk"] == risk], cell, chosen)


def _coverage(part: Any) -> str:
    return f"{100 * part['coverage']:.0f}"


def _log_score(part: Any) -> str:
    return _signed(part["log_score"])


def _by_strategy(summary: pd.DataFrame, cell: Callable[[Any], str], strategies: list[str]) -> str:
    """Return a table with a line for each case and a column for each strategy, risk by risk."""
    lines = [["model", "case", *(NAMES[name] for name in strategies)]]
    for (model, case), part in summary.groupby(["model", "case"], sort=False):
        cells = []
        for name in strategies:
            own = part[part["strategy"] == name].sort_values("risk", ascending=False)
            words = [cell(line) for line in own.to_dict("records")]
            cells.append(" / ".join(words[:1] if name == "bayes" else words))
        lines.append([str(model), str(case), *cells])
    return _markdown(lines)


def _classes(summary: pd.DataFrame) -> str:
    lines = [["model", "case", "test rows"]]
    lines[0] += [f"{NAMES[name]}: {what}" for name in ("bayes", "k-fold") for what in _CLASS_WORDS]
    for (model, case), part in summary.groupby(["model", "case"], sort=False):
        line = [str(model), str(case), str(part["test"].iloc[0])]
        for name in ("bayes", "k-fold"):
            own = part[part["strategy"] == name].sort_values("risk", ascending=False)
            risks = own.to_dict("records")[: 1 if name == "bayes" else None]
            line.append(" / ".join(_signed(each["log_score"]) for each in risks))
            line.append(" / ".join(f"{100 * each['right']:.1f}" for each in risks))
            line.append(" / ".join(f"{100 * each['calibration_error']:.1f}" for each in risks))
        lines.append(line)
    return _markdown(lines)


_CHOSEN = {"predictive": "predictive risk", "gibbs": "Gibbs risk"}
_CLASS_WORDS = ("log score", "right, %", "calibration error, %")


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def _markdown(lines: list[list[str]]) -> str:
    rule = ["---"] * len(lines[0])
    return "\n".join("| " + " | ".join(line) + " |" for line in [lines[0], rule, *lines[1:]])


if __name__ == "__main__":
    main()
