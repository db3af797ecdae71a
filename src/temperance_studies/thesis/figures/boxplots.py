r"""Boxplots of the strategies' risks, over repetitions.

boxplots_example and linreg1_boxplot show one setting; linreg2_all_graphs and logreg_boxplots show
several side by side, with the names of the strategies shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from temperance_studies.settings import VERSIONS, Version
from temperance_studies.thesis.figures.covariance_rule import covariance_rule
from temperance_studies.thesis.figures.drawing import boxes, least_handle, mean_handle
from temperance_studies.thesis.figures.figure import Figure
from temperance_studies.thesis.figures.notes import LOGISTIC_NOTES, UNKNOWN_NOTES, linear_notes
from temperance_studies.thesis.figures.performance import (
    COLUMNS,
    OF_THE_THESIS,
    ORACLE,
    comparisons_in,
    performance,
)
from temperance_studies.thesis.figures.style import NARROW, WIDE, canvas, headed, legend_below

LINEAR = "linear-40-40-8"
UNKNOWN = {
    "unknown-gaussian": "Gaussian noise",
    "unknown-mixture": "mixture noise",
    "unknown-uniform": "uniform noise",
}
LOGISTIC = {"logistic-jaakkola": "Jaakkola", "logistic-mean-field": "mean-field"}
# In place of R(alpha*) the thesis has R at the zero of its covariance formula.
COVARIANCE = {"covariance": covariance_rule}
RISK = r"generalisation error $R(\hat\alpha)$"


def _compute(settings: tuple[str, ...], extra: dict[str, Any] | None = None) -> Any:
    def table(repeats: int, seed: int, version: Version, compare: Any) -> Any:
        return performance(settings, repeats, seed, version, compare, extra)

    return table


def _compute_example(repeats: int, seed: int, version: Version, compare: Any) -> Any:
    found = performance((LINEAR,), repeats, seed, version, compare)
    return found[found.strategy.isin((*OF_THE_THESIS, ORACLE)) | (found.part == "least")]


def _draw_one(title: str, notes: Mapping[Version, str]) -> Any:
    def draw(table: Any) -> Any:
        figure = canvas(NARROW, 1.15 + 0.27 * table.strategy.nunique())
        ax = boxes(figure.subplots(), table)
        ax.set_xlabel(RISK)
        headed(figure, title, notes[table.version.iloc[0]])
        legend_below(figure, [least_handle(), mean_handle()], 2)
        return figure

    return draw


def _draw_several(title: str, panels: dict[str, str], notes: Mapping[Version, str]) -> Any:
    def draw(table: Any) -> Any:
        present = {name: words for name, words in panels.items() if (table.setting == name).any()}
        figure = canvas(WIDE, 1.85 + 0.33 * table.strategy.nunique())
        axes = figure.subplots(1, len(present), sharey=True, squeeze=False)[0]
        for ax, (name, words) in zip(axes, present.items(), strict=True):
            boxes(ax, table[table.setting == name])
            ax.set_title(words)
            ax.set_xlabel(r"risk $R(\hat\alpha)$")
        headed(figure, title, notes[table.version.iloc[0]])
        legend_below(figure, [least_handle(), mean_handle()], 2)
        return figure

    return draw


EXAMPLE = Figure(
    label="boxplots_example",
    title="Risk of the thesis' strategies, linear regression n = d = 40, σ² = 8",
    columns=COLUMNS,
    versions=VERSIONS,
    table=_compute_example,
    draw=_draw_one("Linear regression, n = d = 40, σ² = 8", linear_notes(8)),
    needs=comparisons_in((LINEAR,)),
)
LINEAR_REGRESSION = Figure(
    label="linreg1_boxplot",
    title="Risk of the thesis' strategies and ours, linear regression n = d = 40, σ² = 8",
    columns=COLUMNS,
    versions=VERSIONS,
    table=_compute((LINEAR,)),
    draw=_draw_one("Linear regression, n = d = 40, σ² = 8", linear_notes(8)),
    needs=comparisons_in((LINEAR,)),
)
UNKNOWN_VARIANCE = Figure(
    label="linreg2_all_graphs",
    title="Risk with unknown variance, n = 60, d = 40: Gaussian, mixture and uniform noise",
    columns=COLUMNS,
    versions=VERSIONS,
    table=_compute(tuple(UNKNOWN)),
    draw=_draw_several("Unknown variance, n = 60, d = 40", UNKNOWN, UNKNOWN_NOTES),
    needs=comparisons_in(tuple(UNKNOWN)),
)
LOGISTIC_REGRESSION = Figure(
    label="logreg_boxplots",
    title="Risk in logistic regression, n = 50, d = 30: Jaakkola and mean-field",
    columns=COLUMNS,
    versions=VERSIONS,
    table=_compute(tuple(LOGISTIC), COVARIANCE),
    draw=_draw_several("Logistic regression, n = 50, d = 30", LOGISTIC, LOGISTIC_NOTES),
    needs=comparisons_in(tuple(LOGISTIC), COVARIANCE),
)
