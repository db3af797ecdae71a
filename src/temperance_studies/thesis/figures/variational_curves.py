r"""SVI_vs_EM: risk curves of two variational posteriors of the same data.

Jaakkola's posterior and the mean-field posterior to which Bayes by Backprop converges, n = 50,
d = 30.  Both curves are by quadrature, so they have no Monte Carlo noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from temperance_studies.settings import VERSIONS, Version
from temperance_studies.thesis.figures.drawing import readable
from temperance_studies.thesis.figures.figure import Figure
from temperance_studies.thesis.figures.notes import LOGISTIC_NOTES
from temperance_studies.thesis.figures.performance import BOUND, COLUMNS, curves, data_set
from temperance_studies.thesis.figures.style import (
    BETA_SHORT,
    BLUE,
    GREY,
    VERMILION,
    WIDE,
    canvas,
    headed,
    legend_below,
)

LOOKS = {
    "logistic-jaakkola": ("Jaakkola", VERMILION, (0, (4, 2)), "o"),
    "logistic-mean-field": ("mean-field (Bayes by Backprop)", BLUE, "-", "s"),
}
BETAS = BOUND * np.linspace(0.0, 1.0, 61) ** 1.5


def table(repeats: int, seed: int, version: Version, compare: Any) -> Any:
    """Return both curves of both posteriors on one data set, and the minima of R."""
    import pandas as pd

    from temperance_studies.settings import best_beta, true_risk
    from temperance_studies.thesis.settings import thesis_settings

    settings = thesis_settings(version, seed)
    # One data set for both, so that the curves are comparable.
    data = data_set(settings["logistic-mean-field"], 0, seed)
    parts = []
    for name in LOOKS:
        setting = settings[name]
        parts.append(curves(name, setting, data, 0, BETAS))
        beta = best_beta(setting, *data)
        row = {"part": "choice", "setting": name, "strategy": "oracle", "repetition": 0}
        risk = true_risk(setting, *data, beta * len(data[1]))
        parts.append(pd.DataFrame([{**row, "beta": beta, "risk": risk}]))
    return pd.concat(parts, ignore_index=True)


def draw(table: Any) -> Any:
    """Draw empirical errors on the left, generalisation errors with their minima on the right."""
    from matplotlib.lines import Line2D

    figure = canvas(WIDE, 4.0)
    panels = dict(zip(("empirical", "generalisation"), figure.subplots(1, 2), strict=True))
    handles = []
    for name, (words, colour, dashes, marker) in LOOKS.items():
        line: dict[str, Any] = {"color": colour, "linestyle": dashes, "linewidth": 2}
        mark: dict[str, Any] = {"marker": marker, "markersize": 8, "markeredgecolor": "white"}
        own_rows = table[table.setting == name]
        for part, ax in panels.items():
            rows = own_rows[own_rows.part == part].sort_values("beta")
            ax.plot(rows.beta, rows.risk, **line)
        best = own_rows[own_rows.part == "choice"].iloc[0]
        panels["generalisation"].plot(
            best.beta, best.risk, color=colour, clip_on=False, zorder=5, **mark
        )
        handles.append(Line2D([], [], label=f"{words}, minimum at {best.beta:.2f}", **line, **mark))
    for part, ax in panels.items():
        ax.axvline(1.0, color=GREY, linewidth=0.8, zorder=0)
        ax.set_title(f"{part} error")
        ax.set_xlim(0, float(table.beta.max()) * 1.02)
        ax.set_xlabel(BETA_SHORT)
    panels["empirical"].set_ylabel("risk, nats")
    shown_names = table[table.part == "empirical"].risk
    readable(panels["empirical"].yaxis, shown_names.min(), shown_names.max())
    right = panels["generalisation"]
    rows = table[table.part == "generalisation"]
    # The prior's risk would compress the rest of the axis.
    low, high = rows.risk.min(), rows.risk[rows.beta > 0.3].max()
    right.set_ylim(low - 0.08 * (high - low), high)
    note = LOGISTIC_NOTES[table.version.iloc[0]]
    headed(figure, "Two variational posteriors, n = 50, d = 30", note)
    legend_below(figure, handles, 1)
    return figure


FIGURE = Figure(
    label="SVI_vs_EM",
    title="Empirical and generalisation error over α/n, Jaakkola and mean-field, n = 50, d = 30",
    columns=COLUMNS,
    versions=VERSIONS,
    table=table,
    draw=draw,
)
