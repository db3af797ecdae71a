r"""alpha100: the steps of Bayes by Backprop, and the optimum that it approaches.

The means of the mean-field posterior of a logistic regression, n = 100, d = 20, at alpha/n = 0 and
1: 200 steps with the thesis' rate 0.2 / sqrt(t), one draw per step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from temperance import models
from temperance.data import Array
from temperance_studies.settings import AS_STATED, Version
from temperance_studies.thesis.figures.figure import Figure
from temperance_studies.thesis.figures.style import BLACK, WIDE, canvas, headed, legend_below

OBSERVATIONS, COLUMNS, SCALE = 100, 20, 0.5
BETAS = (0.0, 1.0)
STEPS, RATE = 200, 0.2


def data(seed: int) -> tuple[Array, Array]:
    """Return inputs and labels of a logistic model with intercept and theta ~ N(0, I)."""
    rng = np.random.default_rng([seed, OBSERVATIONS, COLUMNS])
    theta = rng.standard_normal(COLUMNS)
    inputs = SCALE * rng.standard_normal((OBSERVATIONS, COLUMNS - 1))
    X = np.column_stack([np.ones(OBSERVATIONS), inputs])
    return X, (rng.random(OBSERVATIONS) < expit(X @ theta)).astype(float)


def backprop(X: Array, beta: float, seed: int) -> models.MeanFieldLogistic:
    """Return the model with the step size 0.2 / sqrt(t).

    The library's rate is relative to the curvature 1 + beta lam_max(X'X) / 4, the thesis' is not.
    """
    curvature = 1 + beta * float(np.linalg.norm(X, 2)) ** 2 / 4
    return models.MeanFieldLogistic(method="sgd", steps=STEPS, rate=RATE * curvature, seed=seed)


def table(repeats: int, seed: int, version: Version, compare: Any) -> Any:
    """Return the mean of each component after each step, and its value at the optimum."""
    import pandas as pd

    X, y = data(seed)
    parts = []
    for beta in BETAS:
        alpha = beta * OBSERVATIONS
        means = backprop(X, beta, seed).trajectory(X, y, alpha)
        optimum = models.MeanFieldLogistic().posterior(X, y, alpha).mean
        step, component = np.indices(means.shape).reshape(2, -1)
        parts.append(
            pd.DataFrame(
                {
                    "beta": beta,
                    "step": step,
                    "component": component,
                    "mean": means.ravel(),
                    "optimum": optimum[component],
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def draw(table: Any) -> Any:
    """Draw a line for each component, dashes at its optimum; equal colours in both panels."""
    import matplotlib
    from matplotlib.lines import Line2D

    figure = canvas(WIDE, 3.9)
    betas = np.sort(table.beta.unique())
    panels = figure.subplots(1, len(betas), sharey=True, squeeze=False)[0]
    # Components are coloured by their optimum in the last panel.
    last = table[table.beta == betas[-1]].drop_duplicates("component").sort_values("optimum")
    tones = matplotlib.colormaps["cividis"](np.linspace(0.0, 0.92, len(last)))
    colour = dict(zip(last.component, tones, strict=True))
    for ax, beta in zip(panels, betas, strict=True):
        at_beta = table[table.beta == beta]
        steps = at_beta.step.max()
        for component, path in at_beta.groupby("component"):
            ax.plot(path.step, path["mean"], color=colour[component], linewidth=0.9)
            ax.plot(
                [steps * 1.02, steps * 1.12],
                [path.optimum.iloc[0]] * 2,
                color=colour[component],
                linewidth=2.2,
                solid_capstyle="butt",
            )
        ax.axvline(steps * 1.005, color=BLACK, linewidth=0.6)
        ax.set_title({0.0: "β = 0, the prior", 1.0: "β = 1, Bayes"}.get(beta, f"β = {beta:g}"))
        ax.set_xlim(0, steps * 1.13)
        ax.set_xticks(np.arange(0, steps + 1, 100))
        ax.set_xlabel("step")
    panels[0].set_ylabel("posterior mean, each component")
    headed(figure, "Bayes by Backprop on its way to the optimum")
    handles = [
        Line2D([], [], color=tones[len(tones) // 2], linewidth=0.9, label="stochastic steps"),
        Line2D([], [], color=tones[len(tones) // 2], linewidth=2.2, label="optimum"),
    ]
    legend_below(figure, handles, 2)
    return figure


FIGURE = Figure(
    label="alpha100",
    title="Bayes by Backprop: means over 200 steps and the optimum, n = 100, d = 20, α/n = 0 and 1",
    columns=("beta", "step", "component", "mean", "optimum"),
    versions=(AS_STATED,),
    table=table,
    draw=draw,
)
