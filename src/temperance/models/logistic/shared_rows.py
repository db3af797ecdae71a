r"""Many systems over the same rows, which are held once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from temperance.models.logistic.system import Rows
from temperance.types import Array


@dataclass(frozen=True, eq=False)
class SharedRows(Rows):
    """The first rows of others, under weights of their own."""

    whole: Rows

    @cached_property
    def squares(self) -> Array:
        """Z^2 elementwise, a view."""
        return self.whole.squares[: len(self.Z)]


def shared_rows(whole: Rows, end: int, weights: Array) -> SharedRows:
    """Return views of the rows before ``end`` with these weights, (m, end)."""
    return SharedRows(whole.Z[:end], whole.offset[:end], whole.y[:end], weights, whole)
