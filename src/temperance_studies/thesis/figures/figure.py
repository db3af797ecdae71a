"""Definition of a figure: a table, a picture drawn from that table, and both as files."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temperance.app.files import write_whole
from temperance.checks import one_of, whole
from temperance_studies.settings import AS_STATED, VERSIONS, Version
from temperance_studies.study.plan import Comparison
from temperance_studies.thesis.figures.style import paper, text_for

DOTS_PER_INCH = 200


@dataclass(frozen=True)
class Figure:
    """One figure or table of the thesis.

    Parameters
    ----------
    label : str
        Its label in the thesis, without ``fig:``.
    title : str
        Description of the figure, in one line.
    columns : tuple of str
        The columns of its table.
    versions : tuple of str
        The versions of the setting that differ: the text's and the published code's, or only the
        text's if both are the same.
    table : callable
        ``table(repeats, seed, version, compare)`` computes the data frame.
    draw : callable
        ``draw(table)`` draws it; the picture depends on the table only.
    needs : callable
        ``needs(seed, version)`` lists the comparisons that the table uses.
    """

    label: str
    title: str
    columns: tuple[str, ...]
    versions: tuple[Version, ...]
    table: Callable[[int, int, Version, Any], Any] = field(repr=False)
    draw: Callable[[Any], Any] = field(repr=False)
    needs: Callable[[int, Version], list[Comparison]] = field(
        default=lambda seed, version: [], repr=False
    )

    def compute(
        self, repeats: int = 30, seed: int = 0, version: Version = AS_STATED, compare: Any = None
    ) -> Any:
        """Return the table from which the picture is drawn.

        Parameters
        ----------
        repeats : int
            Number of data sets, if the figure shows repetitions.
        seed : int
            The same seed gives the same table.
        version : {"as-stated", "as-coded"}
            The setting of the text or of the published code; both give the same table if
            ``versions`` has only one.
        compare : callable, optional
            Runs comparisons of strategies; :func:`temperance_studies.study.compare` unless given.
            Pass one with a store, so that figures of the same setting share its results.

        Returns
        -------
        pandas.DataFrame
        """
        whole("repeats", repeats, 1)
        whole("seed", seed, 0)
        one_of("version", version, VERSIONS)
        if compare is None:
            from temperance_studies.study import compare
        computed = self.version(version)
        found = self.table(repeats, seed, computed, compare)
        if len(self.versions) > 1:
            found = found.assign(version=computed)
        if "repetition" in self.columns:
            # Integers in the file, although some rows have none.
            found = found.assign(repetition=found.repetition.astype("Int64"))
        return found[list(self.columns)]

    def version(self, version: Version) -> Version:
        """Return this version, or the only one if versions do not differ."""
        return version if version in self.versions else self.versions[0]

    def comparisons(self, seed: int = 0, version: Version = AS_STATED) -> list[Comparison]:
        """Return the comparisons that :meth:`compute` uses."""
        return self.needs(seed, self.version(version))

    def plot(self, table: Any) -> Any:
        """Return a matplotlib figure of a table, computed or read from its file."""
        missing = [name for name in self.columns if name not in table.columns]
        if missing:
            raise ValueError(
                f"table must have the columns of {self.label}, got none named {missing}"
            )
        if table.empty:
            raise ValueError(f"table must have rows, got none for {self.label}")
        with paper():
            return self.draw(table)

    def stem(self, version: Version = AS_STATED) -> str:
        """Return the name of its files, with the version if there are two."""
        return self.label if len(self.versions) == 1 else f"{self.label}-{version}"


def save(figure: Figure, table: Any, directory: Path, version: Version = AS_STATED) -> list[Path]:
    """Write the table as CSV and its picture as PNG and SVG, each atomically.

    Returns
    -------
    list of Path
        The three files.
    """
    one_of("version", version, VERSIONS)
    picture = figure.plot(table)
    contents = {
        "csv": table.to_csv(index=False, lineterminator="\n").encode(),
        "png": rendered(picture, "png"),
        "svg": rendered(picture, "svg"),
    }
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for extension, content in contents.items():
        path = directory / f"{figure.stem(version)}.{extension}"
        write_whole(path, content)
        written.append(path)
    return written


def rendered(picture: Any, extension: str) -> bytes:
    """Return the bytes of a picture; equal pictures give equal bytes, without references."""
    buffer = io.BytesIO()
    svg = extension == "svg"
    metadata = dict.fromkeys(("Creator", "Date", "Format", "Type")) if svg else {"Software": None}
    with paper():
        text_for(picture.get_figwidth())
        picture.savefig(buffer, format=extension, dpi=DOTS_PER_INCH, metadata=metadata)
    if not svg:
        return buffer.getvalue()
    # The document type refers to a file on the web, which is not needed.
    return re.sub(rb"<!DOCTYPE.*?>\s*", b"", buffer.getvalue(), count=1, flags=re.DOTALL)
