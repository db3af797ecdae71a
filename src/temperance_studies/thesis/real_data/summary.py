r"""Summaries of the comparison on real data: pure functions of its table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from temperance.checks import one_of
from temperance_studies.study.summary import CLEAR

if TYPE_CHECKING:
    import pandas as pd


def by_case(table: pd.DataFrame) -> pd.DataFrame:
    """Summarise each strategy in each case: means over the splits, and errors of paired gains.

    The errors describe the variation between splits.  Splits share rows, so they are approximate,
    and they do not describe other data of the same kind.

    Parameters
    ----------
    table : DataFrame
        From :func:`temperance_studies.thesis.real_data.splits.splits`; at least two repetitions.

    Returns
    -------
    DataFrame
        One row for each case, risk and strategy, with the median of ``beta``, and the means of all
        other measures; ``gain_error`` and ``gibbs_gain_error`` are standard errors.
    """
    import pandas as pd

    lines = []
    for key, part in table.groupby(["model", "case", "risk", "strategy"], sort=False):
        if len(part) < 2:
            raise ValueError(f"table must have at least 2 repetitions of each case, got 1 of {key}")
        line: dict[str, Any] = dict(zip(("model", "case", "risk", "strategy"), key, strict=True))
        line |= {name: part[name].iloc[0] for name in ("train", "test")}
        line |= {"repeats": len(part), "beta": part["beta"].median()}
        for name in ("log_score", "gain", "gibbs_gain", "coverage", "right", "calibration_error"):
            line[name] = part[name].mean()
            if name.endswith("gain"):
                line[f"{name}_error"] = part[name].std(ddof=1) / np.sqrt(len(part))
        lines.append(line | {"seconds": part["seconds"].mean()})
    return pd.DataFrame(lines)


def overall(summary: pd.DataFrame, measure: Literal["gain", "gibbs_gain"]) -> pd.DataFrame:
    """Count for each risk and strategy where it is clearly better and clearly worse than Bayes.

    Parameters
    ----------
    summary : DataFrame
        From :func:`by_case`.
    measure : {"gain", "gibbs_gain"}

    Returns
    -------
    DataFrame
        One row for each risk and strategy: number of ``cases``, those ``better`` and ``worse`` by
        more than two standard errors, the mean and median gain, the least gain and its case.
    """
    import pandas as pd

    one_of("measure", measure, ("gain", "gibbs_gain"))
    lines = []
    tempered = summary[summary["strategy"] != "bayes"]
    for (risk, strategy), part in tempered.groupby(["risk", "strategy"], sort=False):
        worst = part.loc[part[measure].idxmin()]
        margin = CLEAR * part[f"{measure}_error"]
        lines.append(
            {
                "risk": risk,
                "strategy": strategy,
                "cases": len(part),
                "better": int((part[measure] > margin).sum()),
                "worse": int((part[measure] < -margin).sum()),
                "mean": part[measure].mean(),
                "median": part[measure].median(),
                "least": worst[measure],
                "worst_model": worst["model"],
                "worst_case": worst["case"],
            }
        )
    return pd.DataFrame(lines)
