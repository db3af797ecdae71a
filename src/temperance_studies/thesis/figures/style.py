"""Style of the figures: sizes, colours, and a colour and marker for each strategy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

# Okabe and Ito's colours, which are distinct for colour-blind readers and in print.
BLACK, GREY = "#000000", "#6E6E6E"
ORANGE, SKY, GREEN, BLUE = "#E69F00", "#56B4E9", "#009E73", "#0072B2"
VERMILION, PURPLE = "#D55E00", "#CC79A7"
# An additional ninth colour, darker than the others.
BROWN = "#7A4A12"


class Look(NamedTuple):
    """Name, colour and marker of a strategy in all figures."""

    name: str
    colour: str
    marker: str


# By their names in studies.  From top to bottom: the thesis' five in its order, then ours, then the
# oracle, and the thesis' substitute for it.
STRATEGIES: dict[str, Look] = {
    "naive": Look("naive", VERMILION, "X"),
    "sample-splitting, alpha": Look("sample splitting", BLUE, "D"),
    "bootstrap": Look("bootstrap", ORANGE, "^"),
    "safe-bayes, alpha": Look("SafeBayes", GREEN, "v"),
    "bayes": Look("Bayes", GREY, "s"),
    "k-fold": Look("10-fold, holds β", PURPLE, "o"),
    "leave-one-out": Look("leave-one-out", SKY, "P"),
    "covariance": Look(r"covariance, $R(\tilde\alpha)$", BROWN, "d"),
    "oracle": Look(r"oracle, $R(\alpha^*)$", BLACK, "*"),
}
GENERALISATION, EMPIRICAL = BLUE, VERMILION

# Inches.  Reduced to a column of 8 cm, text is about 6 points high for either width.
NARROW, WIDE = 4.7, 6.3
TEXT = {NARROW: 9.0, WIDE: 11.5}

BETA = "β = α / n, exponent on each observation's likelihood"
BETA_SHORT = "β = α / n"


@contextmanager
def paper() -> Iterator[None]:
    """Return a context with the style of the figures; the user's settings are restored."""
    import matplotlib

    settings: dict[Any, Any] = {
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],
        "mathtext.fontset": "dejavusans",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlelocation": "left",
        "axes.titlesize": "medium",
        "axes.titleweight": "bold",
        "axes.labelsize": "medium",
        "axes.linewidth": 0.8,
        "axes.unicode_minus": True,
        "grid.color": "#DDDDDD",
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "legend.fontsize": "medium",
        "legend.handlelength": 2.2,
        "legend.borderaxespad": 0.0,
        "svg.fonttype": "path",
        # Fixed salt of the names of shapes in the file, which are random otherwise.
        "svg.hashsalt": "temperance",
    }
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings)
        yield


def text_for(width: float) -> None:
    """Set the text size for a width; to be used within :func:`paper`."""
    import matplotlib

    # Ticks are created when a figure is drawn, and use the size at that time.
    matplotlib.rcParams["font.size"] = TEXT[width]


def canvas(width: float, height: float) -> Any:
    """Return an empty figure of one of the two widths, with text to match.

    It is not registered with pyplot, so it need not be closed.
    """
    from matplotlib.figure import Figure

    text_for(width)
    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def look(strategy: str) -> Look:
    """Return name, colour and marker of a strategy."""
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy must be one of {', '.join(STRATEGIES)}, got {strategy!r}")
    return STRATEGIES[strategy]


def shown(strategies: Any) -> list[str]:
    """Return those strategies in the order of the figures."""
    present = set(strategies)
    unknown = present - set(STRATEGIES)
    if unknown:
        look(min(unknown))
    return [name for name in STRATEGIES if name in present]


def headed(figure: Any, title: str, note: str = "") -> None:
    """Add a left-aligned title to the figure, and a line of explanation below it."""
    from matplotlib.text import Annotation

    # The layout reserves space for the title only; its second line is empty, for the note.
    text = title + ("\n " if note else "")
    head = figure.suptitle(text, x=0.012, ha="left", fontsize="large", fontweight="bold")
    if note:
        below = Annotation(note, (0, 0), xycoords=head, va="bottom", color=GREY)
        figure.add_artist(below)


def legend_below(figure: Any, handles: list[Any], columns: int) -> None:
    """Add one legend below all panels, where it covers no data."""
    figure.legend(handles=handles, loc="outside lower left", ncols=columns, columnspacing=1.2)
