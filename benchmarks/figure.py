"""A picture of the results: times over those of the alternatives."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402

from benchmarks.record import Results  # noqa: E402

TITLES = {
    "regressor": "Regression",
    "classifier": "Classification",
    "linear": "Linear models",
    "logistic": "Logistic models",
    "safe-bayes": "SafeBayes",
}
COLOURS = ("#1f5fa8", "#c8501e", "#2f8f5b", "#8c4fa8", "#b08a00")
MARKERS = "osD^v"


def draw(results: Results, path: Path) -> None:
    """Draw a panel for each section, a line for each work and a mark for each size."""
    # In lines of text: room for the works, and for the legend of sizes beside them.
    heights = [max(len(_works(results, each)), 0.8 * len(_sizes(results, each))) for each in TITLES]
    figure, panels = plt.subplots(
        len(TITLES),
        figsize=(9, 0.22 * sum(heights) + 0.4 * len(TITLES) + 0.5),
        sharex=True,
        height_ratios=heights,
        layout="constrained",
    )
    for ax, section, height in zip(panels, TITLES, heights, strict=True):
        _panel(ax, results, section, height)
    panels[-1].set_xlabel("time / time of the alternative: left of 1 is faster", fontsize=9)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _panel(ax: Axes, results: Results, section: str, height: float) -> None:
    works, records = _works(results, section), results.of(section)
    for size, colour, marker in zip(_sizes(results, section), COLOURS, MARKERS, strict=False):
        ratios = {each.work: results.ratio(each) for each in records if each.size == size}
        found = [ratios.get(work) for work in works]
        ax.plot(found, range(len(works)), marker, color=colour, ms=5, label=size, clip_on=False)
    for at in range(len(works)):
        ax.axhline(at, color="#e6e6e6", lw=0.6, zorder=0)
    ax.axvline(1.0, color="#8a8a8a", lw=0.9, zorder=0)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(
        lambda value, _: f"{value:g}" if value >= 1 else f"1/{1 / value:g}"
    )
    middle = (len(works) - 1) / 2
    ax.set_ylim(middle + height / 2, middle - height / 2)
    ax.set_yticks(range(len(works)), works)
    ax.tick_params(which="both", length=0, labelsize=8)
    besides = dict.fromkeys(each.beside for each in records if each.beside)
    ax.set_title(f"{TITLES[section]}, beside {' or '.join(besides)}", fontsize=9, loc="left")
    ax.legend(fontsize=7.5, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    ax.grid(axis="x", color="#e6e6e6", lw=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)


def _works(results: Results, section: str) -> list[str]:
    return list(dict.fromkeys(each.work for each in results.of(section) if each.beside))


def _sizes(results: Results, section: str) -> list[str]:
    return list(dict.fromkeys(each.size for each in results.of(section)))
