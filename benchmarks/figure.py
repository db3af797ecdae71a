"""Pictures of the results: ratios beside their aims, growth beside theory."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402

from benchmarks.growth import slope  # noqa: E402
from benchmarks.record import Record, Results  # noqa: E402

BLUE, ORANGE, GREY = "#1f5fa8", "#c8501e", "#8a8a8a"
COLOURS = ("#1f5fa8", "#c8501e", "#2f8f5b", "#8c4fa8", "#b08a00", "#555555", "#2a9db5")


def draw_ratios(results: Results, path: Path) -> None:
    """Draw each measurement as its time over that of the alternative, grouped by alternative."""
    groups: dict[str, list[Record]] = {}
    for record in results.records:
        if record.ratio is not None and record.section not in ("threads", "from disk"):
            groups.setdefault(record.beside, []).append(record)
    if not groups:
        return
    lines = sum(len(group) + 1.6 for group in groups.values())
    figure, ax = plt.subplots(figsize=(9, 0.19 * lines + 1.0))
    at, ticks, labels = 0.0, [], []
    for beside, group in groups.items():
        ax.text(-0.01, at, f"beside {beside}", transform=ax.get_yaxis_transform(), ha="right",
                va="center", fontsize=8.5, fontweight="bold")  # fmt: skip
        for record in group:
            at += 1
            colour = ORANGE if record.met is False else BLUE
            ax.plot([record.ratio, 1.0], [at, at], color=colour, lw=1.2, alpha=0.35)
            ax.plot(record.ratio, at, "o", color=colour, ms=4.5)
            if record.aim is not None:
                ax.plot(record.aim, at, "|", color="black", ms=8, mew=1.4)
            ticks.append(at)
            labels.append(f"{record.work}, {record.case.replace(' x ', ' × ')}")
        at += 1.6
    ax.set_xscale("log")
    ax.axvline(1.0, color=GREY, lw=0.8)
    ax.set_yticks(ticks, labels, fontsize=7.5)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(at - 0.6, -1)
    ax.set_xlabel("time of the calibration / time of the alternative")
    ax.grid(axis="x", color="#e6e6e6", lw=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.set_title(
        "One calibration beside what it replaces: left of 1 is faster; bars mark aims",
        fontsize=10, loc="right",
    )  # fmt: skip
    figure.savefig(path, dpi=130, bbox_inches="tight")
    plt.close(figure)


def draw_growth(results: Results, path: Path) -> None:
    """Draw time and peak memory over rows and columns, with fitted slopes."""
    labels = {
        "rows": "rows, at 20 columns",
        "columns": "columns, at 4000 rows",
        "rows, mean-field": "rows of a logistic model, at 10 columns",
    }
    found = {axis: results.of(f"growth in {axis}") for axis in labels}
    if not found["rows"]:
        return
    panels = [
        (axis, what) for what in ("seconds", "peak") for axis, records in found.items() if records
    ]
    across = len(panels) // 2
    figure, axes = plt.subplots(2, across, figsize=(4.5 * across, 6.6), layout="constrained")
    works = dict.fromkeys(record.work for records in found.values() for record in records)
    colours = dict(zip(works, COLOURS, strict=False))
    for ax, (axis, what) in zip(axes.flat, panels, strict=True):
        _growth(ax, found[axis], what, colours)
        ax.set_xlabel(labels[axis])
        ax.set_ylabel("seconds" if what == "seconds" else "peak memory, MB")
        _reference(ax, 2.0 if axis == "columns" else 1.0)
    figure.suptitle("How calibration grows; slopes of the upper half in brackets", fontsize=11)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _growth(ax: Axes, records: list[Record], what: str, colours: dict[str, str]) -> None:
    for work in dict.fromkeys(record.work for record in records):
        points = [record for record in records if record.work == work]
        values = [each.ours if what == "seconds" else each.numbers["peak"] / 1e6 for each in points]
        label = f"{work} ({slope(points, what):.2f})" if len(points) > 1 else work
        ax.loglog([each.numbers["at"] for each in points], values, "o-", ms=3.5, lw=1.3,
                  color=colours[work], label=label)  # fmt: skip
    sizes = sorted({int(record.numbers["at"]) for record in records})
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=8)
    ax.minorticks_off()
    low, high = ax.get_ylim()
    # Room for the slope of theory below, and for the legend.
    ax.set_ylim(low / (high / low) ** 0.15, high * (high / low) ** 0.35)
    ax.legend(fontsize=7.5, frameon=False, loc="upper left", ncols=2)
    ax.grid(color="#ebebeb", lw=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _reference(ax: Axes, exponent: float) -> None:
    """Draw the slope of theory below the lines."""
    low, high = ax.get_xlim()
    bottom = ax.get_ylim()[0]
    ends = [low * (high / low) ** share for share in (0.55, 0.95)]
    heights = [bottom * 1.25 * (end / ends[0]) ** exponent for end in ends]
    ax.plot(ends, heights, color=GREY, lw=1, ls="--")
    ax.annotate(f"slope {exponent:g}", (ends[1], heights[1]), fontsize=7.5, color=GREY,
                ha="right", va="bottom")  # fmt: skip
