r"""polyreg_intro and polyreg_plots: predictions of an overconfident polynomial at three betas.

f(x) = x^2 + 5 on [-1, 1], n = 30, 12 columns; the model assumes a noise variance of .01.  The data
set is the one in which sample splitting makes its median choice over all repetitions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from temperance.data import Array
from temperance_studies.settings import VERSIONS, Version
from temperance_studies.thesis.figures.drawing import DASHES, band, boxes, least_handle, mean_handle
from temperance_studies.thesis.figures.figure import Figure
from temperance_studies.thesis.figures.notes import POLYNOMIAL_NOTES
from temperance_studies.thesis.figures.performance import comparisons_in, data_set, performance
from temperance_studies.thesis.figures.style import (
    BLACK,
    GREY,
    VERMILION,
    WIDE,
    canvas,
    headed,
    legend_below,
    look,
)

SETTING = "polynomial"
COLUMNS = (
    "version",
    "part",
    "setting",
    "strategy",
    "repetition",
    "beta",
    "risk",
    "x",
    "mean",
    "deviation",
)
GRID = np.linspace(-2.5, 2.5, 201)
LIMITS = (-2.0, 16.0)
SPLITTING, BAYES, MLE = "sample-splitting, alpha", "bayes", "MLE"
INTRO, ALL = (SPLITTING, BAYES), (SPLITTING, BAYES, MLE)


def predictive(model: Any, X: Array, y: Array, beta: float, at: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation at some inputs; for infinite beta least squares."""
    if np.isfinite(beta):
        return model.posterior(X, y, beta * len(y)).predict(at)
    best = np.linalg.lstsq(model.design(X), y, rcond=None)[0]
    return model.design(at) @ best, np.full(len(at), np.sqrt(model.noise_variance))


def _compute(choices: tuple[str, ...]) -> Any:
    def table(repeats: int, seed: int, version: Version, compare: Any) -> Any:
        import pandas as pd

        from temperance_studies.thesis.settings import thesis_settings

        setting = thesis_settings(version, seed)[SETTING]
        risks = performance((SETTING,), repeats, seed, version, compare)
        split = risks[risks.strategy == SPLITTING].sort_values(["beta", "repetition"])
        typical = split.iloc[(len(split) - 1) // 2]
        X, y = data_set(setting, int(typical.repetition), seed)
        betas = {SPLITTING: float(typical.beta), BAYES: 1.0, MLE: np.inf}
        same = {"setting": SETTING, "repetition": int(typical.repetition)}
        parts = [
            risks,
            pd.DataFrame({"part": "observation", "x": np.ravel(X), "mean": y, **same}),
            pd.DataFrame({"part": "truth", "x": GRID, "mean": GRID**2 + 5, **same}),
        ]
        for name in choices:
            mean, deviation = predictive(setting.model, X, y, betas[name], GRID)
            fit = {"x": GRID, "mean": mean, "deviation": deviation}
            row = {"part": "band", "strategy": name, "beta": betas[name], **same}
            parts.append(pd.DataFrame({**row, **fit}))
        return pd.concat(parts, ignore_index=True)

    return table


def _panel(ax: Any, table: Any, name: str) -> None:
    rows = table[(table.part != "band") | (table.strategy == name)]
    beta = float(rows.beta[rows.part == "band"].iloc[0])
    at = f"β = {beta:.2g}" if np.isfinite(beta) else "β → ∞"
    band(ax, rows, BLACK if name == MLE else look(name).colour, LIMITS)
    words = MLE if name == MLE else look(name).name.removeprefix("sample ")
    ax.set_title(f"{words}, {at}")
    ax.set_xticks([-2, -1, 0, 1, 2])
    ax.set_xlabel("x")


def draw_intro(table: Any) -> Any:
    """Draw sample splitting on the left, Bayes on the right."""
    figure = canvas(WIDE, 4.0)
    axes = figure.subplots(1, 2, sharey=True)
    for ax, name in zip(axes, INTRO, strict=True):
        _panel(ax, table, name)
    axes[0].set_ylabel("y")
    note = POLYNOMIAL_NOTES[table.version.iloc[0]]
    headed(figure, "A polynomial that believes σ² = 0.01", note)
    legend_below(figure, _handles(), 2)
    return figure


def draw_all(table: Any) -> Any:
    """Draw boxplots, then the three predictive distributions."""
    figure = canvas(WIDE, 7.2)
    (first, second), (third, fourth) = figure.subplots(2, 2)
    boxes(first, table)
    first.set_title(f"{table.repetition[table.part == 'risk'].nunique()} data sets")
    first.set_xlabel(r"risk $R(\hat\alpha)$")
    for ax, name in zip((second, third, fourth), ALL, strict=True):
        _panel(ax, table, name)
        ax.set_ylabel("y")
    note = POLYNOMIAL_NOTES[table.version.iloc[0]]
    headed(figure, "A polynomial that believes σ² = 0.01", note)
    legend_below(figure, [*_handles(), least_handle(), mean_handle()], 2)
    return figure


def _handles() -> list[Any]:
    """Return legend entries in grey, since each panel has its own colour."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    return [
        Line2D([], [], color=GREY, linewidth=1.8, label="predictive mean"),
        Patch(facecolor=GREY, alpha=0.3, label="± 2 standard deviations"),
        Line2D([], [], color=BLACK, linewidth=1.2, linestyle=DASHES, label="truth"),
        Line2D([], [], color=VERMILION, marker=".", linestyle="none", label="observations"),
    ]


INTRODUCTION = Figure(
    label="polyreg_intro",
    title="Predictive mean and 2-sd band of the polynomial at the split's choice and at Bayes",
    columns=COLUMNS,
    versions=VERSIONS,
    table=_compute(INTRO),
    draw=draw_intro,
    needs=comparisons_in((SETTING,)),
)
PLOTS = Figure(
    label="polyreg_plots",
    title="Polynomial regression: risks, and predictives at the split's choice, Bayes and α → ∞",
    columns=COLUMNS,
    versions=VERSIONS,
    table=_compute(ALL),
    draw=draw_all,
    needs=comparisons_in((SETTING,)),
)
