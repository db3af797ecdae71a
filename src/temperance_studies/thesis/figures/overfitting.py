r"""overfit_example: generalisation against empirical error over alpha/n, linear n = d = 40.

The generalisation errors of other data sets are drawn faintly: the location of the minimum depends
on the data.
"""

from __future__ import annotations

from typing import Any

from temperance_studies.settings import VERSIONS, Version
from temperance_studies.thesis.constant import without_constant
from temperance_studies.thesis.figures.drawing import risk_curves
from temperance_studies.thesis.figures.figure import Figure
from temperance_studies.thesis.figures.notes import linear_notes
from temperance_studies.thesis.figures.performance import COLUMNS, curves, data_set
from temperance_studies.thesis.figures.style import (
    BLACK,
    GENERALISATION,
    GREY,
    NARROW,
    canvas,
    headed,
    legend_below,
)

SETTING = "linear-40-40-8"
AT_MOST = 30


def table(repeats: int, seed: int, version: Version, compare: Any) -> Any:
    """Return both curves of every data set, Bayes, and the best beta of the first."""
    import pandas as pd

    from temperance_studies.settings import best_beta, true_risk
    from temperance_studies.thesis.settings import thesis_settings

    setting = thesis_settings(version, seed)[SETTING]
    data = [data_set(setting, repetition, seed) for repetition in range(min(repeats, AT_MOST))]
    parts = [curves(SETTING, setting, each, repetition) for repetition, each in enumerate(data)]
    X, y = data[0]
    for strategy, beta in (("bayes", 1.0), ("oracle", best_beta(setting, X, y))):
        risk = without_constant(setting, true_risk(setting, X, y, beta * len(y)))
        row = {"part": "choice", "setting": SETTING, "strategy": strategy, "repetition": 0}
        parts.append(pd.DataFrame([{**row, "beta": beta, "risk": risk}]))
    return pd.concat(parts, ignore_index=True)


def draw(table: Any) -> Any:
    """Draw both curves of the first data set, and the others' generalisation errors behind."""
    from matplotlib.lines import Line2D

    figure = canvas(NARROW, 3.5)
    ax = figure.subplots()
    others = table[(table.part == "generalisation") & (table.repetition > 0)]
    for _, curve in others.groupby("repetition"):
        ax.plot(curve.beta, curve.risk, color=GENERALISATION, alpha=0.15, linewidth=0.8, zorder=1)
    risk_curves(ax, table[table.repetition == 0])
    note = linear_notes(8)[table.version.iloc[0]]
    headed(figure, "The empirical error always falls: n = d = 40, σ² = 8", note)
    mark: dict[str, Any] = {"linestyle": "none", "markersize": 7}
    handles = [
        *ax.get_legend_handles_labels()[0],
        Line2D([], [], marker="*", color=BLACK, label=r"best $\beta$", **mark),
        Line2D([], [], marker="s", color=GREY, label=r"Bayes, $\beta = 1$", **mark),
    ]
    legend_below(figure, handles, 2)
    return figure


FIGURE = Figure(
    label="overfit_example",
    title="Generalisation against empirical error over α/n, linear regression n = d = 40, σ² = 8",
    columns=COLUMNS,
    versions=VERSIONS,
    table=table,
    draw=draw,
)
