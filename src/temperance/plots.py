"""Plots of results: one function per kind of plot; each takes axes and returns them."""

from __future__ import annotations

from typing import Any

import numpy as np

from temperance.calibration import Calibration
from temperance.data import Array
from temperance.rules import BetaWeights

# Okabe and Ito's colours, which are distinct for colour-blind readers and in print.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#6E6E6E"
NEAR_ZERO = 0.005  # share of the upper bound below which a choice is drawn on a logarithmic axis
SMALL = 0.1  # share below which it is drawn on an axis of square roots
POINTS, FEWER_POINTS = 201, 61
ERRORS_SHOWN = 25  # betas at which the Monte Carlo error of a curve is computed
LEAST_SHOWN = 0.01  # weight of a beta in a mixture
MOST_TICKS = 12
BARS = 0.4  # height of a bar of weight 1, relative to that of the picture


def plot_calibration(calibration: Calibration, ax: Any = None, points: int | None = None) -> Any:
    """Draw the risk curve within the bounds, and mark the choice and, for a likelihood, Bayes.

    The axis is one of square roots, or logarithmic, if the choice would otherwise be too close to
    its left end.  A curve from draws has a band of two Monte Carlo errors.  Other valleys of the
    curve are marked if the ridge before them is more than noise.  Of a mixture the weights are
    bars at their betas, and its risk is a line.

    Parameters
    ----------
    calibration : Calibration
    ax : matplotlib axes, optional
        Axes to draw on; by default those of a new figure.
    points : int, optional
        Number of betas at which the curve is drawn; by default 201, or 61 of a curve from draws.

    Returns
    -------
    The axes.
    """
    if calibration.table is None:
        name = type(calibration.strategy).__name__
        raise ValueError(f"there is no risk curve to plot: {name} estimates none")
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'temperance[plot]'") from None
    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    lower, upper = calibration.bounds
    points = points or (POINTS if calibration.table.error is None else FEWER_POINTS)
    weights = calibration.weights
    if weights is not None:
        betas = np.geomspace(weights.betas[0], weights.betas[-1], points)
        ax.set_xscale("log")
        ticks = weights.betas[:: 1 + len(weights.betas) // MOST_TICKS]
        ax.set_xticks(ticks, [f"{tick:.2g}" for tick in ticks])
        ax.set_xticks([], minor=True)
    elif 0 < calibration.beta < NEAR_ZERO * upper:
        betas = np.geomspace(max(lower, 1e-2 * calibration.beta), upper, points)
        ax.set_xscale("log")
    else:
        # More points near the lower bound, where curves are steep.
        betas = lower + (upper - lower) * np.linspace(0.0, 1.0, points) ** 2
        if 0 < calibration.beta < SMALL * upper:
            ax.set_xscale("function", functions=(_root, np.square))
            ticks = _even_squares(upper)
            ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    values = calibration.curve(betas)
    band = _band(calibration, betas)
    if band.any():
        ax.fill_between(
            betas, values - band, values + band, color=BLUE, alpha=0.2, linewidth=0, zorder=1,
            label="± 2 Monte Carlo errors",
        )  # fmt: skip
    if weights is None:
        noise = _noise(calibration, band)
        for beta, risk in second_valleys(betas, values, calibration.beta, noise):
            label = f"second valley: β = {beta:.3g}, risk higher by {risk - calibration.risk:.2g}"
            ax.plot(beta, risk, "o", markerfacecolor="none", color=ORANGE, zorder=3, label=label)
    ax.plot(betas, values, color=BLUE, linewidth=2, zorder=2)
    if _has_bayes(calibration):
        ax.axvline(1.0, color=GREY, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        ax.plot(1.0, calibration.bayes_risk, "s", color=GREY, zorder=3, label="Bayes: β = 1")
    low, high = calibration.beta_range or (calibration.beta, calibration.beta)
    if high > low:
        label = f"not told apart: {low:.2g} to {high:.2g}"
        ax.axvspan(low, high, color=ORANGE, alpha=0.12, linewidth=0, zorder=0, label=label)
    if weights is not None:
        _bars(weights, ax)
        ax.axhline(calibration.risk, color=ORANGE, linewidth=1, zorder=2)
    chosen = "choice" if weights is None else "mixture, median"
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
        label=f"{chosen}: β = {calibration.beta:.3g} (± standard error)",
    )
    ax.set_ylim(*_risk_limits(calibration, values))
    of_each = "exponent on each observation's likelihood"
    ax.set_xlabel(f"β = α / n, {of_each if calibration.likelihood else 'weight of each loss'}")
    ax.set_ylabel(f"estimated {calibration.kind} risk")
    names = (type(part).__name__ for part in (calibration.model, calibration.strategy))
    ax.set_title(", ".join(names), loc="left", fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)
    ax.margins(x=0.02 if weights is None else 0.04)
    ax.legend(facecolor="white", framealpha=0.8, edgecolor="none")
    return ax


def _bars(weights: BetaWeights, ax: Any) -> None:
    """Draw the weights of betas that have any as bars from below, with their percentages."""
    shown = weights.weights > LEAST_SHOWN
    heights = ax.get_xaxis_transform()
    for beta, weight in zip(weights.betas[shown], weights.weights[shown], strict=True):
        ax.vlines(
            beta,
            0,
            BARS * weight,
            transform=heights,
            color=ORANGE,
            alpha=0.5,
            linewidth=9,
            zorder=1,
        )
        ax.text(
            beta, BARS * weight, f"{weight:.0%}", transform=heights,
            ha="center", va="bottom", fontsize="small", zorder=5,
        )  # fmt: skip


def second_valleys(
    betas: Array, values: Array, chosen: float, noise: float
) -> list[tuple[float, float]]:
    """Return other local minima (beta, risk), behind ridges higher than the noise above them."""
    found = []
    at = int(np.argmin(np.abs(betas - chosen)))
    for i in range(1, len(values) - 1):
        if not values[i] < values[i - 1] or not values[i] <= values[i + 1]:
            continue
        between = values[min(i, at) : max(i, at) + 1]
        if i != at and between.max() - max(values[i], values[at]) > noise:
            found.append((float(betas[i]), float(values[i])))
    return found


def _band(calibration: Calibration, betas: Array) -> Array:
    """Return two Monte Carlo errors at each beta; 0 for exact curves, or if they are infinite."""
    error = calibration.table.error if calibration.table is not None else None
    if error is None:
        return np.zeros(len(betas))
    some = betas[np.linspace(0, len(betas) - 1, ERRORS_SHOWN).astype(int)]
    errors = error(some)
    return np.interp(betas, some, np.where(np.isfinite(errors), 2 * errors, 0.0))


def _noise(calibration: Calibration, band: Array) -> float:
    error = calibration.standard_error
    return max(float(band.max()), 0.05 * error if np.isfinite(error) else 0.0)


def _even_squares(upper: float) -> Array:
    """Return round betas whose square roots are about evenly apart."""
    shares = (0.0, 1 / 30, 0.1, 1 / 3, 2 / 3)
    return np.unique([*(float(f"{upper * share:.1g}") for share in shares), upper])


def _root(beta: Array) -> Array:
    return np.sqrt(np.maximum(beta, 0.0))


def _has_bayes(calibration: Calibration) -> bool:
    """Return whether Bayes lies within the bounds."""
    return calibration.likelihood and calibration.bounds[0] <= 1 <= calibration.bounds[1]


def _risk_limits(calibration: Calibration, values: Array) -> tuple[float, float]:
    """Return limits of the risk axis that leave out the steep start of a curve."""
    error = calibration.standard_error if np.isfinite(calibration.standard_error) else 0.0
    low = min(float(values.min()), calibration.risk - error)
    high = max(float(np.quantile(values, 0.85)), calibration.risk + error)
    if _has_bayes(calibration):
        high = max(high, calibration.bayes_risk)
    height = high - low
    highest = float(values.max())
    top = highest if highest < low + 3 * height else low + 1.5 * height
    return low - 0.08 * (top - low), top + 0.05 * (top - low)
