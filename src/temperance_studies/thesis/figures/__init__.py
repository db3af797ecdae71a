r"""The thesis' figures: each is computed as a table, and then drawn from it.

>>> list(FIGURES)[:3]
['joyplot_linreg1', 'overfit_example', 'polyreg_intro']
"""

from temperance_studies.thesis.figures import (
    boxplots,
    boxplots_and_curves,
    joyplot,
    overfitting,
    polynomial_bands,
    table_backbone,
    trajectories,
    variational_curves,
)
from temperance_studies.thesis.figures.figure import Figure, save

__all__ = ["FIGURES", "Figure", "save"]

FIGURES: dict[str, Figure] = {
    figure.label: figure
    for figure in (
        joyplot.FIGURE,
        overfitting.FIGURE,
        polynomial_bands.INTRODUCTION,
        polynomial_bands.PLOTS,
        boxplots.EXAMPLE,
        boxplots.LINEAR_REGRESSION,
        *boxplots_and_curves.ADDITIONAL,
        boxplots_and_curves.GAUSSIAN_MEAN,
        boxplots.UNKNOWN_VARIANCE,
        variational_curves.FIGURE,
        boxplots.LOGISTIC_REGRESSION,
        trajectories.FIGURE,
        table_backbone.FIGURE,
    )
}
