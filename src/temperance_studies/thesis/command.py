"""``temperance reproduce``: compute the thesis' figures, and verdicts on its claims."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from temperance.app.cli.console import Output, one_line_errors, one_line_warnings
from temperance.app.cli.options import (
    refuse_unwritable,
    refuse_unwritable_directory,
    whole_number,
)

if TYPE_CHECKING:
    from temperance_studies.settings import Version
    from temperance_studies.thesis.comparisons import StoredStudy

# Enough to show the effect of the two versions on the thesis' figures.
SHOWN = ("overfit_example", "linreg1_boxplot", "polyreg_plots", "logreg_boxplots")

VersionName = Literal["as-stated", "as-coded", "both"]


def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FIGURE]...", help="Labels of figures; --list shows them."),
    ] = None,
    all_figures: Annotated[bool, typer.Option("--all", help="All figures.")] = False,
    list_figures: Annotated[
        bool, typer.Option("--list", help="List the figures and stop.")
    ] = False,
    verdicts: Annotated[
        bool, typer.Option("--verdicts", help="Judge the thesis' claims, on a page of their own.")
    ] = False,
    repeats: Annotated[int, whole_number("Data sets of each setting.", least=2)] = 30,
    version: Annotated[
        VersionName,
        typer.Option(help="The settings of the thesis' text, of its published code, or both."),
    ] = "both",
    out: Annotated[
        Path, typer.Option(help="Directory for pictures, tables and the store of results.")
    ] = Path("reproduction"),
    page: Annotated[
        Path | None,
        typer.Option(help="File of the verdicts.", show_default="OUT/reproduction.md"),
    ] = None,
    seed: Annotated[int, whole_number("Seed of all random numbers.", least=0)] = 0,
    jobs: Annotated[int, whole_number("Number of workers; -1 for one on each core.")] = -1,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Reproduce the figures of the thesis, and judge its claims.

    Each figure is drawn from a table; tables (CSV) and pictures (PNG, SVG) are
    written to the same directory. Results are stored as they come: after an
    interruption the same command continues where it stopped. On a terminal one
    bar shows the progress of the whole run.

    The thesis: L. Perrotta, Practical calibration of the temperature parameter
    in Gibbs posteriors, 2020, arXiv:2004.10522.
    """
    with one_line_errors(debug), one_line_warnings():
        console = Output()
        if list_figures:
            console.print(_listed())
            return
        labels = _labels(figures or [], all_figures, verdicts)
        if verdicts and version != "both":
            raise ValueError("--verdicts judges both versions; leave --version out")
        if jobs == 0:
            raise ValueError("--jobs must be a number of workers, -1 for one on each core, got 0")
        if page is not None and not verdicts:
            raise ValueError(f"--page {page} is the file of the verdicts; ask for --verdicts too")
        _make_directory(out)
        file = page or out / "reproduction.md"
        if verdicts:
            refuse_unwritable("--page", file)
        clock = Clock(console)
        drawn = _drawn(labels, _versions(version))
        compare, data_sets = _compared(drawn, verdicts, repeats, seed, out, jobs, clock)
        _draw(drawn, repeats, seed, out, jobs, compare, clock)
        if verdicts:
            words = ["--all"] if all_figures else labels
            words = [*words, "--verdicts", "--repeats", str(repeats)]
            words += ["--seed", str(seed), "--jobs", str(jobs)]
            words += ["--out", str(out), *(["--page", str(page)] if page else [])]
            command = shlex.join(["temperance", "reproduce", *words])
            pictures = _pictures(out, file.parent)
            _judge(file, repeats, seed, compare, clock, jobs, command, data_sets, pictures)


def _make_directory(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = str(error.strerror).lower()
        raise ValueError(f"--out must name a directory, {out} cannot be made: {why}") from None
    refuse_unwritable_directory(f"--out {out}", out)


class Clock:
    """Measures the time of each piece of work, prints and stores it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.seconds: dict[str, float] = {}

    def timed(self, name: str, work: Callable[[], Any]) -> Any:
        """Return the result of some work; print its name and its seconds."""
        began = time.perf_counter()
        result = work()
        self.seconds[name] = time.perf_counter() - began
        self.say(name, self.seconds[name])
        return result

    def say(self, name: str, seconds: float) -> None:
        """Print a line about a part of a larger piece of work."""
        self._console.print(f"{seconds:7.1f} s  {escape(name)}")


def _listed() -> Grid:
    from temperance_studies.thesis.figures import FIGURES

    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("figure", "what it shows", "versions"):
        grid.add_column(heading)
    for figure in FIGURES.values():
        grid.add_row(figure.label, escape(figure.title), ", ".join(figure.versions))
    return grid


def _labels(requested: list[str], all_figures: bool, verdicts: bool) -> list[str]:
    from difflib import get_close_matches

    from temperance_studies.thesis.figures import FIGURES

    for label in requested:
        if label not in FIGURES:
            near = get_close_matches(label, FIGURES, n=1)
            hint = f"; did you mean {near[0]}?" if near else "; --list shows all"
            raise ValueError(f"there is no figure {label!r}{hint}")
    if not (requested or all_figures or verdicts):
        raise ValueError("name a figure, or give --all, --verdicts or --list")
    return list(FIGURES) if all_figures else requested


def _versions(version: VersionName) -> tuple[Version, ...]:
    return ("as-stated", "as-coded") if version == "both" else (version,)


def _drawn(labels: list[str], versions: tuple[Version, ...]) -> list[tuple[Any, Any]]:
    """Return figures with versions; if these do not differ, one picture for both."""
    from temperance_studies.thesis.figures import FIGURES

    pairs = [
        (figure, figure.version(version))
        for figure in (FIGURES[label] for label in labels)
        for version in versions
    ]
    return [pair for i, pair in enumerate(pairs) if pair not in pairs[:i]]


def _compared(
    drawn: list[tuple[Any, Any]],
    judged: bool,
    repeats: int,
    seed: int,
    out: Path,
    jobs: int,
    clock: Clock,
) -> tuple[StoredStudy, dict[str, tuple[int, int]]]:
    """Run all comparisons of figures and verdicts before any is drawn or evaluated."""
    from temperance_studies.thesis import verdicts
    from temperance_studies.thesis.comparisons import StoredStudy

    study = StoredStudy(out / "results", jobs)
    requested = [each for figure, version in drawn for each in figure.comparisons(seed, version)]
    requested += verdicts.planned(seed) if judged else []
    if not requested:
        return study, {}
    return study, clock.timed("comparisons", lambda: study.run(requested, repeats, seed))


def _draw(
    drawn: list[tuple[Any, Any]],
    repeats: int,
    seed: int,
    out: Path,
    jobs: int,
    compare: Callable[..., Any],
    clock: Clock,
) -> None:
    from joblib import Parallel, delayed  # type: ignore[import-untyped]

    def tables() -> Iterator[Any]:
        for figure, version in drawn:
            table = figure.compute(repeats, seed, version, compare)
            yield delayed(_saved)(figure.label, table, out, version)

    def work() -> None:
        workers = jobs if len(drawn) > 1 else 1
        for name, seconds in Parallel(n_jobs=workers, return_as="generator")(tables()):
            clock.say(name, seconds)

    if drawn:
        clock.timed("figures", work)


def _saved(label: str, table: Any, out: Path, version: Any) -> tuple[str, float]:
    """Draw and write one figure; return its name and its seconds."""
    from temperance_studies.thesis.figures import FIGURES, save

    began = time.perf_counter()
    save(FIGURES[label], table, out, version)
    return FIGURES[label].stem(version), time.perf_counter() - began


def _judge(
    page: Path,
    repeats: int,
    seed: int,
    compare: Callable[..., Any],
    clock: Clock,
    jobs: int,
    command: str,
    data_sets: dict[str, tuple[int, int]],
    pictures: str,
) -> None:
    from joblib import effective_n_jobs, parallel_config

    from temperance.app.files import write_whole
    from temperance_studies.thesis import verdicts

    with parallel_config(n_jobs=jobs):
        found = clock.timed("verdicts", lambda: verdicts.evidence(compare, repeats, seed))
    run = verdicts.Run(command, effective_n_jobs(jobs), clock.seconds, data_sets)
    write_whole(page, verdicts.page(found, run) + pictures)


def _pictures(out: Path, beside: Path) -> str:
    """Return Markdown that shows some of the figures, for a page at ``beside``."""
    from temperance_studies.thesis.figures import FIGURES

    shown = [
        (FIGURES[label].title, out / f"{label}-{version}.png")
        for label in SHOWN
        for version in FIGURES[label].versions
    ]
    lines = [
        f"![{title}]({Path(os.path.relpath(path, beside)).as_posix()})\n"
        for title, path in shown
        if path.exists()
    ]
    return "\n".join(["\n## Some of the figures\n", *lines]) if lines else ""
