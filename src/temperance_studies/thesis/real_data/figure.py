"""Real data: gains of each strategy over Bayes on held-out rows, and coverage of intervals."""

from __future__ import annotations

import io
from typing import Any

from temperance_studies.thesis.figures.figure import DOTS_PER_INCH
from temperance_studies.thesis.figures.style import GREY, STRATEGIES, Look, look, paper

COLUMNS = ("model", "case", "risk", "strategy", "gain", "gain_error", "coverage")
HEADINGS = {
    "known variance": "Regression, noise variance guessed",
    "unknown variance": "Regression, noise variance inferred",
    "Laplace": "Classification, Laplace",
    "mean-field": "Classification, mean-field",
    "full covariance": "Classification, full covariance",
}
SHOWN = ("naive", "sample-splitting", "safe-bayes", "bootstrap", "k-fold", "leave-one-out")
WIDTH = 11.0
LINE = 0.34  # inches between two cases
SMALL = 0.01  # gains below it, in nats, are on a linear scale
NOMINAL = 0.95
TEXT = 10.0


def picture(summary: Any) -> bytes:
    """Return the picture as PNG; equal tables give equal bytes."""
    import matplotlib

    with paper():
        matplotlib.rcParams["font.size"] = TEXT
        buffer = io.BytesIO()
        draw(summary).savefig(buffer, dpi=DOTS_PER_INCH * 0.75, metadata={"Software": None})
    return buffer.getvalue()


def draw(summary: Any) -> Any:
    """Draw the table of :func:`~temperance_studies.thesis.real_data.summary.by_case` as a figure.

    The picture depends on the table only, which may be read from its CSV file.
    """
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    missing = [name for name in COLUMNS if name not in summary.columns]
    if missing:
        raise ValueError(f"summary must have the columns of real data, got none named {missing}")
    if summary.empty:
        raise ValueError("summary must have rows, got none")
    with paper():
        matplotlib.rcParams["font.size"] = TEXT
        places, headings = _places(summary)
        last = max(places.values())
        figure = Figure(
            figsize=(WIDTH, 1.6 + LINE * (last + 1)),
            layout=ConstrainedLayoutEngine(wspace=0.04),
            facecolor="white",
        )
        by_predictive, by_gibbs, covered = figure.subplots(
            1, 3, sharey=True, width_ratios=(1.0, 1.0, 0.8)
        )
        for ax, risk, title in (
            (by_predictive, "predictive", "Gain, β by the predictive risk"),
            (by_gibbs, "gibbs", "Gain, β by the Gibbs risk"),
        ):
            _gains(ax, summary[summary.risk == risk], places)
            ax.set_title(f"{title}\n")
        low, high = (summary.gain - 2 * summary.gain_error, summary.gain + 2 * summary.gain_error)
        for ax in (by_predictive, by_gibbs):
            ax.set_xlim(1.2 * min(low.min(), -SMALL), 1.2 * max(high.max(), SMALL))
        _coverage(covered, summary[summary.risk == "predictive"], places)
        by_predictive.set_yticks(list(places.values()), [case for _, case in places])
        by_predictive.set_ylim(last + 0.7, -1.3)
        for y, words in headings.items():
            by_predictive.annotate(
                words,
                (0, y),
                xycoords=("axes fraction", "data"),
                xytext=(-6, 0),
                textcoords="offset points",
                ha="right",
                va="center",
                fontweight="bold",
                annotation_clip=False,
            )
        _legend(covered)
        figure.suptitle(
            "Real data: what tempering gains on rows held out",
            x=0.012,
            ha="left",
            fontsize="x-large",
            fontweight="bold",
        )
    return figure


def _places(summary: Any) -> tuple[dict[tuple[str, str], float], dict[float, str]]:
    """Return the height of each case, those of a model below its heading."""
    places: dict[tuple[str, str], float] = {}
    headings: dict[float, str] = {}
    y, before = -1.6, None
    for model, case in summary[["model", "case"]].drop_duplicates().itertuples(index=False):
        if model != before:
            y += 1.0 if before is None else 1.2
            headings[y] = HEADINGS.get(model, model)
            before = model
        y += 1.0
        places[model, case] = y
    return places, headings


def _gains(ax: Any, table: Any, places: dict[tuple[str, str], float]) -> None:
    from matplotlib.ticker import FixedLocator

    _marks(ax, table, places, "gain", "gain_error")
    ax.axvspan(-SMALL, SMALL, color="#F0F0F0", linewidth=0, zorder=0)
    ax.axvline(0.0, color=GREY, linewidth=1.4, zorder=1)
    ax.set_xscale("symlog", linthresh=SMALL, linscale=0.8)
    ax.xaxis.set_major_locator(FixedLocator([-1, -0.1, -0.01, 0, 0.01, 0.1, 1]))
    ax.xaxis.set_minor_locator(FixedLocator([]))
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:+g}".replace("-", "−") if x else "0")
    ax.annotate(
        "◂ worse    Bayes    better ▸",
        (0.0, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(0, 4),
        textcoords="offset points",
        ha="center",
        color=GREY,
    )
    ax.set_xlabel("gain in log score, nats per row")


def _coverage(ax: Any, table: Any, places: dict[tuple[str, str], float]) -> None:
    from matplotlib.ticker import MultipleLocator

    regressions = table[table.coverage.notna()]
    _marks(ax, regressions, places, "coverage", None)
    for line in regressions[regressions.strategy == "bayes"].itertuples():
        y = places[line.model, line.case]
        ax.plot([line.coverage] * 2, [y - 0.4, y + 0.4], color=GREY, linewidth=2.2, zorder=2)
    if len(regressions):
        ends = [y for (model, _), y in places.items() if model in set(regressions.model)]
        ax.plot([NOMINAL] * 2, [min(ends) - 0.6, max(ends) + 0.6], color="black", linewidth=1.0)
    ax.set_title("Coverage of 95 % intervals\n")
    ax.set_xlabel("β by the predictive risk")
    ax.xaxis.set_major_locator(MultipleLocator(0.1, offset=0.05))
    ax.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.0f} %")


def _marks(
    ax: Any, table: Any, places: dict[tuple[str, str], float], value: str, error: str | None
) -> None:
    present = [name for name in SHOWN if (table.strategy == name).any()]
    for i, name in enumerate(present):
        style, own = _look(name), table[table.strategy == name]
        # Strategies of a case are drawn slightly above each other.
        shift = 0.66 * (i / max(len(present) - 1, 1) - 0.5)
        heights = [places[each] + shift for each in zip(own.model, own.case, strict=True)]
        ax.errorbar(
            own[value],
            heights,
            xerr=None if error is None else 2 * own[error],
            fmt=style.marker,
            color=style.colour,
            markersize=4.6,
            markeredgecolor="white",
            markeredgewidth=0.4,
            elinewidth=1.1,
            zorder=3 + (name == "k-fold"),
        )
    for each in set(zip(table.model, table.case, strict=True)):
        ax.axhline(places[each] + 0.5, color="#E8E8E8", linewidth=0.6, zorder=0)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def _legend(ax: Any) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [],
            [],
            color=style.colour,
            marker=style.marker,
            linestyle="none",
            label=style.name.partition(",")[0],  # here all keep beta
        )
        for style in map(_look, SHOWN)
    ]
    handles.append(Line2D([], [], color=GREY, linewidth=2.2, label="Bayes, β = 1"))
    ax.legend(
        handles=handles,
        loc="lower left",
        title="bars: 2 standard errors\ngrey band: less than 0.01",
        alignment="left",
    )


def _look(strategy: str) -> Look:
    """Return the style of a strategy; those that keep beta look like those that keep alpha."""
    return look(strategy if strategy in STRATEGIES else f"{strategy}, alpha")
