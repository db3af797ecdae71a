r"""joyplot_linreg1: the alpha-posterior for increasing alpha/n, as a ridgeline plot.

One coefficient with the prior N(0, 1) and n = 50 observations.  The text does not give the noise or
the coefficient; here they are such that the effect of the prior is visible at beta = 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from temperance import models
from temperance_studies.settings import AS_STATED, Version
from temperance_studies.thesis.figures.figure import Figure
from temperance_studies.thesis.figures.style import (
    BLACK,
    GREY,
    NARROW,
    VERMILION,
    canvas,
    headed,
    legend_below,
)

OBSERVATIONS, TRUTH, NOISE_VARIANCE = 50, 1.0, 10.0
BETAS = np.linspace(0.0, 4.0, 21)
GRID = np.linspace(-2.2, 3.2, 271)
# Height of the tallest ridge, in steps between ridges.
OVERLAP = 4.5


def table(repeats: int, seed: int, version: Version, compare: Any) -> Any:
    """Return densities of the alpha-posterior for each beta, and the truth and the MLE."""
    import pandas as pd

    rng = np.random.default_rng([seed, OBSERVATIONS])
    y = TRUTH + np.sqrt(NOISE_VARIANCE) * rng.standard_normal(OBSERVATIONS)
    model: Any = models.GaussianMean(noise_variance=NOISE_VARIANCE)
    parts = []
    for beta in BETAS:
        density = np.exp(model.posterior(None, y, beta * OBSERVATIONS).log_prob(GRID[:, None]))
        parts.append(
            pd.DataFrame({"part": "density", "beta": beta, "theta": GRID, "density": density})
        )
    # The tempered mean for beta -> infinity is the maximum of the likelihood.
    marks = {"part": ["truth", "mle"], "theta": [TRUTH, y.mean()]}
    return pd.concat([*parts, pd.DataFrame(marks)], ignore_index=True)


def draw(table: Any) -> Any:
    """Draw one ridge for each beta, with the prior at the bottom."""
    import matplotlib
    from matplotlib.lines import Line2D

    figure = canvas(NARROW, 4.3)
    ax = figure.subplots()
    ridges = table[table.part == "density"]
    betas = np.sort(ridges.beta.unique())
    step = betas[1] - betas[0]
    height = OVERLAP * step / ridges.density.max()
    tones = matplotlib.colormaps["cividis"](np.linspace(0.15, 0.9, len(betas)))
    for beta, tone in zip(betas[::-1], tones[::-1], strict=True):
        ridge = ridges[ridges.beta == beta].sort_values("theta")
        top = beta + height * ridge.density
        bayes = bool(np.isclose(beta, 1.0))
        ax.fill_between(
            ridge.theta, beta, top, color=tone, alpha=0.85, linewidth=0, zorder=10 - beta
        )
        ax.plot(
            ridge.theta.where(ridge.density > 1e-3 * ridges.density.max()),
            top,
            color=BLACK if bayes else "white",
            linewidth=1.6 if bayes else 0.7,
            zorder=10 - beta,
        )
    truth, mle = (float(table.theta[table.part == part].iloc[0]) for part in ("truth", "mle"))
    top = betas[-1] + OVERLAP * step
    ax.vlines(truth, 0, top, color=BLACK, linewidth=1.3, zorder=20)
    ax.vlines(mle, 0, top, color=VERMILION, linewidth=1.3, linestyle=(0, (4, 2)), zorder=20)
    ax.set_xlim(ridges.theta.min(), ridges.theta.max())
    ax.set_ylim(-0.05, top * 1.01)
    ax.set_yticks(np.arange(0, betas[-1] + 0.5, 1.0))
    ax.set_yticklabels({0.0: "0, prior", 1.0: "1, Bayes"}.get(t, f"{t:g}") for t in ax.get_yticks())
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel("coefficient θ")
    ax.set_ylabel("β = α / n")
    ax.axhline(0, color=GREY, linewidth=0.8, zorder=20)
    handles = [
        Line2D([], [], color=BLACK, linewidth=1.3, label=f"true θ = {truth:g}"),
        Line2D([], [], color=VERMILION, linestyle=(0, (4, 2)), label=f"MLE = {mle:.2f}"),
    ]
    headed(figure, "The α-posterior, from the prior towards the MLE")
    legend_below(figure, handles, 2)
    return figure


FIGURE = Figure(
    label="joyplot_linreg1",
    title="The α-posterior narrows from the prior towards the MLE as α/n grows, d = 1, n = 50",
    columns=("part", "beta", "theta", "density"),
    versions=(AS_STATED,),
    table=table,
    draw=draw,
)
