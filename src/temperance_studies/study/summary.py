r"""Summaries of a comparison: pure functions of its table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from temperance_studies.study.ratios import geometric_mean, ratio

if TYPE_CHECKING:
    import pandas as pd

CLEAR = 2.0  # standard errors by which a difference counts as clear


def by_setting(table: pd.DataFrame, baseline: str = "bayes") -> pd.DataFrame:
    """Summarise each strategy in each setting, relative to a baseline on the same data.

    Parameters
    ----------
    table : DataFrame
        From :func:`temperance_studies.study.compare`; at least two repetitions.
    baseline : str
        Name of the strategy to compare with.

    Returns
    -------
    DataFrame
        One row for each setting and strategy: ``repeats``, ``median_beta``, ``median_best_beta``,
        ``mean_excess``, its ``ratio`` to the baseline's (1 where both are 0), the mean
        ``difference`` from it with its ``standard_error``, paired over data sets, whether that is
        ``better`` or ``worse`` by more than two standard errors, and the mean of ``seconds``.
    """
    import pandas as pd

    _refuse(table, baseline)
    lines = []
    for setting, part in table.groupby("setting", sort=False):
        excess = part.pivot(index="repetition", columns="strategy", values="excess")
        if len(excess) < 2 or excess.isna().to_numpy().any():
            raise ValueError(
                f"table must have at least 2 repetitions of {setting!r} with all its strategies"
            )
        reference = excess[baseline]
        for strategy, own in part.groupby("strategy", sort=False):
            difference = excess[strategy] - reference
            mean = float(difference.mean())
            error = float(difference.std(ddof=1) / np.sqrt(len(difference)))
            lines.append(
                {
                    "setting": setting,
                    "strategy": strategy,
                    "repeats": len(own),
                    "median_beta": own["beta"].median(),
                    "median_best_beta": own["best_beta"].median(),
                    "mean_excess": own["excess"].mean(),
                    "ratio": ratio(float(own["excess"].mean()), float(reference.mean())),
                    "difference": mean,
                    "standard_error": error,
                    "better": mean < -CLEAR * error,
                    "worse": mean > CLEAR * error,
                    "seconds": own["seconds"].mean(),
                }
            )
    return pd.DataFrame(lines)


def overall(table: pd.DataFrame, baseline: str = "bayes") -> pd.DataFrame:
    """Summarise each strategy over all settings.

    Parameters
    ----------
    table, baseline
        As in :func:`by_setting`.

    Returns
    -------
    DataFrame
        One row for each strategy: ``settings``; ``ratio``, the geometric mean over settings of the
        mean excess relative to the baseline's, where less than .01 counts as .01 and more than
        100 as 100; ``wins`` and ``losses``, settings where it is clearly better or worse;
        ``worst_ratio`` and ``worst_setting``; the mean of ``seconds``.
    """
    import pandas as pd

    lines = []
    for strategy, part in by_setting(table, baseline).groupby("strategy", sort=False):
        worst = part.loc[part["ratio"].idxmax()]
        lines.append(
            {
                "strategy": strategy,
                "settings": len(part),
                "ratio": geometric_mean(part["ratio"]),
                "wins": int(part["better"].sum()),
                "losses": int(part["worse"].sum()),
                "worst_ratio": float(worst["ratio"]),
                "worst_setting": worst["setting"],
                "seconds": part["seconds"].mean(),
            }
        )
    return pd.DataFrame(lines)


def coverage_by_setting(table: pd.DataFrame) -> pd.DataFrame:
    """Summarise the coverage of each strategy in each setting.

    Parameters
    ----------
    table : DataFrame
        From :func:`temperance_studies.study.compare` with ``measure="coverage"``.

    Returns
    -------
    DataFrame
        One row for each setting and strategy: ``repeats``, ``median_beta``; ``joint``, the share of
        data sets whose joint set covers; ``single``, that of the intervals, averaged over the
        coefficients, and ``lowest`` and ``highest`` of any coefficient; the mean ``length`` of the
        intervals; the mean of ``seconds``.
    """
    import pandas as pd

    if "covered" not in table.columns:
        raise ValueError("table must come from compare(..., measure='coverage'), got one of risks")
    lines = []
    for (setting, strategy), own in table.groupby(["setting", "strategy"], sort=False):
        each = np.array([[int(digit) for digit in row] for row in own["covered"]]).mean(axis=0)
        lines.append(
            {
                "setting": setting,
                "strategy": strategy,
                "repeats": len(own),
                "median_beta": own["beta"].median(),
                "joint": own["joint"].mean(),
                "single": each.mean(),
                "lowest": each.min(),
                "highest": each.max(),
                "length": own["length"].mean(),
                "seconds": own["seconds"].mean(),
            }
        )
    return pd.DataFrame(lines)


def _refuse(table: pd.DataFrame, baseline: str) -> None:
    if "excess" not in table.columns:
        raise ValueError(
            "table must come from compare(..., measure='risk'), got one of coverage; "
            "coverage_by_setting sums it up"
        )
    for setting, part in table.groupby("setting", sort=False):
        if baseline not in set(part["strategy"]):
            raise ValueError(
                f"baseline must be a strategy of every setting, got {baseline!r}, which "
                f"{setting!r} lacks"
            )
