r"""Boxplots over repetitions above the risk curves of one data set.

linreg1_additional_plots1 to 4 are the extreme cases of linear regression, gaussian_plots is the
Gaussian mean.
"""

from __future__ import annotations

from typing import Any

from temperance_studies.settings import VERSIONS, Version
from temperance_studies.thesis.figures.drawing import boxes, least_handle, mean_handle, risk_curves
from temperance_studies.thesis.figures.figure import Figure
from temperance_studies.thesis.figures.notes import linear_notes
from temperance_studies.thesis.figures.performance import (
    COLUMNS,
    comparisons_in,
    first_curves,
    performance,
)
from temperance_studies.thesis.figures.style import NARROW, canvas, headed, legend_below


def _figure(label: str, setting: str, words: str, title: str, variance: float) -> Figure:
    def table(repeats: int, seed: int, version: Version, compare: Any) -> Any:
        import pandas as pd

        risks = performance((setting,), repeats, seed, version, compare)
        return pd.concat([risks, first_curves(setting, risks, seed, version)], ignore_index=True)

    def draw(table: Any) -> Any:
        figure = canvas(NARROW, 5.6)
        above, below = figure.subplots(2, 1, height_ratios=(1.15, 1.0))
        boxes(above, table)
        above.set_title(f"{table.repetition.nunique()} data sets")
        above.set_xlabel(r"generalisation error $R(\hat\alpha)$")
        risk_curves(below, table)
        below.set_title("one of them: the choices, piled up where equal")
        headed(figure, title, linear_notes(variance)[table.version.iloc[0]])
        handles = [least_handle(), mean_handle(), *below.get_legend_handles_labels()[0]]
        legend_below(figure, handles, 2)
        return figure

    return Figure(
        label=label,
        title=f"Risks and curves, {words}",
        columns=COLUMNS,
        versions=VERSIONS,
        table=table,
        draw=draw,
        needs=comparisons_in((setting,)),
    )


def _linear(number: int, n: int, d: int, variance: str, words: str) -> Figure:
    case = f"n = {n}, d = {d}, σ² = {variance}"
    return _figure(
        f"linreg1_additional_plots{number}",
        f"linear-{n}-{d}-{variance}",
        f"linear regression {case}: {words}",
        f"Linear regression, {case}",
        float(variance),
    )


ADDITIONAL = (
    _linear(1, 100, 20, "4", "low noise, many observations"),
    _linear(2, 100, 20, "20", "high noise, many observations"),
    _linear(3, 40, 40, "16", "high noise, few observations"),
    _linear(4, 16, 40, "0.2", "low noise, few observations"),
)
GAUSSIAN_MEAN = _figure(
    "gaussian_plots",
    "mean-40-4",
    "Gaussian mean n = 40, σ² = 4",
    "Gaussian mean, n = 40, σ² = 4",
    4.0,
)
