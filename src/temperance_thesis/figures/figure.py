"""What a figure is: a table first, a picture of that table second, and both as files."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temperance.app.files import write_whole
from temperance.datasets import AS_STATED, VERSIONS, Version
from temperance.study.plan import Comparison
from temperance.validation import one_of, whole
from temperance_thesis.figures.style import paper, text_for

DOTS_PER_INCH = 200


@dataclass(frozen=True)
class Figure:
    """One figure or table of the thesis.

    Parameters
    ----------
    label : str
        Its label in the thesis, without ``fig:``.
    title : str
        What it shows, in one line.
    columns : tuple of str
        The columns of its table.
    versions : tuple of str
        The versions of the setting that differ: the text's and the published code's, or the
        text's alone where both mean the same.
    table : callable
        ``table(repeats, seed, version, compare)`` computes the data frame.
    draw : callable
        ``draw(table)`` draws it; nothing but the table decides the picture.
    needs : callable
        ``needs(seed, version)`` lists the comparisons that the table asks for.
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
        """Compute the table that the picture is drawn from.

        Parameters
        ----------
        repeats : int
            Number of data sets, where the figure is about repetitions.
        seed : int
            The same seed gives the same table.
        version : {"as-stated", "as-coded"}
            The setting of the text or of the published code; both give the same table where
            ``versions`` names one only.
        compare : callable, optional
            Runs comparisons of strategies; :func:`temperance.study.compare` unless given.  Pass
            one with a store, so that figures of the same setting share its results.

        Returns
        -------
        pandas.DataFrame
        """
        whole("repeats", repeats, 1)
        whole("seed", seed, 0)
        one_of("version", version, VERSIONS)
        if compare is None:
            from temperance.study import compare
        computed = self.version(version)
        found = self.table(repeats, seed, computed, compare)
        if len(self.versions) > 1:
            found = found.assign(version=computed)
        if "repetition" in self.columns:
            # Whole numbers in the file, although some rows have none.
            found = found.assign(repetition=found.repetition.astype("Int64"))
        return found[list(self.columns)]

    def version(self, version: Version) -> Version:
        """Return the version that stands for this one: where they do not differ, the only one."""
        return version if version in self.versions else self.versions[0]

    def comparisons(self, seed: int = 0, version: Version = AS_STATED) -> list[Comparison]:
        """Return the comparisons that :meth:`compute` will ask for."""
        return self.needs(seed, self.version(version))

    def plot(self, table: Any) -> Any:
        """Draw a table, computed or read from its file; returns a matplotlib figure."""
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
        """Name of its files, with the version where there are two."""
        return self.label if len(self.versions) == 1 else f"{self.label}-{version}"


def save(figure: Figure, table: Any, directory: Path, version: Version = AS_STATED) -> list[Path]:
    """Write the table as CSV and its picture as PNG and SVG, each there whole or not at all.

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
    """Return the bytes of a picture: the same for the same picture, and self-contained."""
    buffer = io.BytesIO()
    svg = extension == "svg"
    metadata = dict.fromkeys(("Creator", "Date", "Format", "Type")) if svg else {"Software": None}
    with paper():
        text_for(picture.get_figwidth())
        picture.savefig(buffer, format=extension, dpi=DOTS_PER_INCH, metadata=metadata)
    if not svg:
        return buffer.getvalue()
    # The document type points to a file on the web, which no reader of the picture needs.
    return re.sub(rb"<!DOCTYPE.*?>\s*", b"", buffer.getvalue(), count=1, flags=re.DOTALL)
