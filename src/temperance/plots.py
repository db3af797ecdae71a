"""Pictures of results: one function per kind of plot, each takes axes and returns them."""

from __future__ import annotations

from typing import Any

import numpy as np

from temperance.calibration import Calibration

# Okabe and Ito's colours, told apart by colour-blind eyes and in print.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#6E6E6E"


def plot_calibration(calibration: Calibration, ax: Any = None, points: int = 201) -> Any:
    """Draw the risk curve over the bounds with the choice and Bayes marked.

    Parameters
    ----------
    calibration : Calibration
    ax : matplotlib axes, optional
        Where to draw; by default on a new figure.
    points : int
        Number of betas at which the curve is drawn.

    Returns
    -------
    The axes.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'temperance[plot]'") from None
    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    lower, upper = calibration.bounds
    betas = lower + (upper - lower) * np.linspace(0.0, 1.0, points) ** 2
    ax.plot(betas, calibration.curve(betas), color=BLUE, linewidth=2, zorder=2)
    ax.axvline(1.0, color=GREY, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    ax.plot(
        1.0, calibration.bayes_risk, "s", color=GREY, markersize=7, zorder=3, label="Bayes: β = 1"
    )
    error = calibration.standard_error
    ax.errorbar(
        calibration.beta,
        calibration.risk,
        yerr=error if np.isfinite(error) else None,
        fmt="o",
        color=ORANGE,
        markersize=8,
        capsize=4,
        zorder=4,
        label=f"choice: β = {calibration.beta:.3g} (± standard error)",
    )
    _limit_to_the_interesting(ax, calibration, betas)
    ax.set_xlabel("β = α / n, exponent on each observation's likelihood")
    ax.set_ylabel(f"estimated {calibration.kind} risk")
    ax.set_title(type(calibration.strategy).__name__, loc="left", fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)
    ax.margins(x=0.02)
    ax.legend(frameon=False)
    return ax


def _limit_to_the_interesting(ax: Any, calibration: Calibration, betas: Any) -> None:
    """Keep the steep start of a curve from flattening the rest."""
    values = calibration.curve(betas)
    error = calibration.standard_error if np.isfinite(calibration.standard_error) else 0.0
    low = min(values.min(), calibration.risk - error)
    shown = max(np.quantile(values, 0.85), calibration.bayes_risk, calibration.risk + error)
    if values.max() > low + 3 * (shown - low):
        ax.set_ylim(low - 0.08 * (shown - low), low + 1.5 * (shown - low))
