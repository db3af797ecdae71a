"""One function per kind of plot; each takes axes and returns them."""

from __future__ import annotations

from typing import Any

import numpy as np

from temperance_studies.thesis.figures.style import (
    BETA,
    EMPIRICAL,
    GENERALISATION,
    GREY,
    VERMILION,
    look,
    shown,
)

DASHES = (0, (4, 2.5))
# Markers closer than this, in units of beta, are stacked and not drawn over each other.
CLOSE = 0.09
# The minimal prediction error is drawn if its distance from the boxes is at most this many times
# the distance between their tenth and ninetieth percentile.
FAR = 2.5


def boxes(ax: Any, table: Any) -> Any:
    """Draw a box for each strategy: its risks over the repetitions, with their mean marked.

    Rows of part "risk" have strategy and risk, the one of part "least" the minimal prediction
    error.
    """
    risks = table[table.part == "risk"]
    names = shown(risks.strategy)
    for i, name in enumerate(names):
        style = look(name)
        values = risks.risk[risks.strategy == name].to_numpy()
        ax.boxplot(
            values,
            positions=[i],
            orientation="horizontal",
            widths=0.62,
            patch_artist=True,
            showmeans=True,
            manage_ticks=False,
            boxprops={
                "facecolor": _tint(style.colour, 0.08 if name == "oracle" else 0.3),
                "edgecolor": style.colour,
            },
            whiskerprops={"color": style.colour},
            capprops={"color": style.colour},
            medianprops={"color": style.colour, "linewidth": 1.8},
            flierprops={
                "marker": ".",
                "markersize": 3,
                "markerfacecolor": style.colour,
                "markeredgecolor": "none",
            },
            meanprops={
                "marker": style.marker,
                "markersize": 8 if name == "oracle" else 5.5,
                "markerfacecolor": style.colour,
                "markeredgecolor": "white",
                "markeredgewidth": 0.5,
            },
        )
    least = float(table.risk[table.part == "least"].iloc[0])
    low, high = float(risks.risk.min()), float(risks.risk.max())
    ax.set_yticks(range(len(names)), [look(name).name for name in names])
    ratios = readable(ax.xaxis, low, high)
    spread = float(np.subtract(*np.quantile(risks.risk, [0.9, 0.1])))
    near = 8 * least > low if ratios else low - least <= FAR * spread
    if near:
        ax.axvline(least, color=GREY, linewidth=1.2, linestyle=DASHES, zorder=0)
        ax.set_ylim(len(names) - 0.45, -0.55)
    else:
        # Including the line in the axis would compress all boxes.
        words = "0" if abs(least) < 1e-6 else f"{least:.2g}"
        ax.text(
            0.0,
            len(names) - 0.1,
            f"◂ min R(θ) = {words}",
            transform=ax.get_yaxis_transform(),
            color=GREY,
            fontsize="small",
            va="center",
        )
        ax.set_ylim(len(names) + 0.35, -0.55)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.grid(axis="x")
    ax.set_axisbelow(True)
    return ax


def risk_curves(ax: Any, table: Any, marked: bool = True) -> Any:
    """Draw generalisation and empirical error over beta, and the choices on the first.

    Rows of the parts "generalisation" and "empirical" have beta and risk; rows of part "choice"
    also a strategy.
    """
    curve = {}
    for part, colour, dashes in (
        ("generalisation", GENERALISATION, "-"),
        ("empirical", EMPIRICAL, DASHES),
    ):
        curve[part] = table[table.part == part].sort_values("beta")
        ax.plot(
            curve[part].beta,
            curve[part].risk,
            color=colour,
            linewidth=1.8,
            linestyle=dashes,
            label=f"{part} error",
        )
    true = curve["generalisation"]
    values = np.concatenate([part.risk for part in curve.values()])
    readable(ax.yaxis, float(values.min()), float(values.max()))
    if marked:
        choices = table[table.part == "choice"]
        pile(ax, choices, np.interp(choices.beta, true.beta, true.risk))
    ax.axvline(1.0, color=GREY, linewidth=0.8, zorder=0)
    ax.set_xlim(0.0, float(true.beta.max()) * 1.03)
    ax.set_xlabel(BETA)
    ax.set_ylabel("risk")
    return ax


def pile(ax: Any, choices: Any, heights: Any) -> Any:
    """Mark the choice of each strategy; those at nearly the same beta are stacked."""
    from matplotlib.transforms import ScaledTranslation

    ax.get_ylim()  # computes the limits needed by the transformations below
    placed: list[tuple[float, int]] = []
    table = choices.assign(height=heights)
    for name in shown(table.strategy)[::-1]:
        style = look(name)
        at = table[table.strategy == name].iloc[0]
        level = 1 + max((k for x, k in placed if abs(x - at.beta) < CLOSE), default=-1)
        placed.append((at.beta, level))
        # Towards the middle of the panel, so that no stack leaves it.
        _, share = ax.transAxes.inverted().transform(ax.transData.transform((0.5, at.height)))
        step = 7.5 if share < 0.5 else -7.5
        lift = ScaledTranslation(0, level * step / 72, ax.figure.dpi_scale_trans)
        ax.plot(
            at.beta,
            at.height,
            marker=style.marker,
            markersize=9 if style.marker == "*" else 6.5,
            color=style.colour,
            markeredgecolor="white",
            markeredgewidth=0.6,
            linestyle="none",
            transform=ax.transData + lift,
            clip_on=False,
            zorder=5,
        )
    return ax


def band(ax: Any, table: Any, colour: str, limits: tuple[float, float]) -> Any:
    """Draw a predictive mean with two standard deviations, the observations and the truth.

    Rows of part "band" have x, mean and deviation; of part "observation" and "truth" x and mean.
    """
    fit = table[table.part == "band"].sort_values("x")
    unique = table[table.part == "observation"]
    truth = table[table.part == "truth"].sort_values("x")
    # Far beyond the limits a polynomial exceeds what a renderer can draw.
    far = 10 * (limits[1] - limits[0])
    low, high = (
        np.clip(fit["mean"] + sign * 2 * fit.deviation, limits[0] - far, limits[1] + far)
        for sign in (-1, 1)
    )
    ax.axvspan(float(unique.x.min()), float(unique.x.max()), color="#F2F2F2", linewidth=0, zorder=0)
    ax.fill_between(fit.x, low, high, color=colour, alpha=0.3, linewidth=0)
    mean = np.clip(fit["mean"], limits[0] - far, limits[1] + far)
    ax.plot(fit.x, mean, color=colour, linewidth=1.8)
    ax.plot(truth.x, truth["mean"], color="black", linewidth=1.2, linestyle=DASHES)
    ax.plot(unique.x, unique["mean"], ".", color=VERMILION, markersize=5, markeredgecolor="none")
    ax.set_ylim(*limits)
    ax.set_xlim(float(fit.x.min()), float(fit.x.max()))
    return ax


def least_handle() -> Any:
    """Return the legend entry of the minimal prediction error."""
    from matplotlib.lines import Line2D

    return Line2D(
        [],
        [],
        color=GREY,
        linewidth=1.2,
        linestyle=DASHES,
        label="minimal prediction error, min R(θ)",
    )


def mean_handle() -> Any:
    """Return the legend entry of the markers in boxes."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=GREY, marker="o", markersize=5, linestyle="none", label="mean")


def readable(axis: Any, low: float, high: float) -> bool:
    """Set a logarithmic scale if the range is large; return whether it was set."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

    if not 0 < 8 * low < high:
        axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
        return False
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(LogLocator(subs=(1,) if high > 100 * low else (1, 2, 5)))
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    return True


def _tint(colour: str, strength: float) -> tuple[float, float, float, float]:
    from matplotlib.colors import to_rgba

    return to_rgba(colour, strength)
