r"""Many systems over the same rows, which are held once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from temperance.data import Array
from temperance.models.glm.rows import Rows


@dataclass(frozen=True, eq=False)
class SharedRows(Rows):
    """Neighbours among other rows, under weights of their own."""

    whole: Rows
    which: slice

    @cached_property
    def squares(self) -> Array:
        """Z^2 elementwise, a view."""
        return self.whole.squares[self.which]

    @cached_property
    def kernel(self) -> Array:
        """Inner products of the rows, a view."""
        return self.whole.kernel[self.which, self.which]

    @cached_property
    def lengths(self) -> Array:
        """Squared lengths of the rows, a view."""
        return self.whole.lengths[self.which]

    @cached_property
    def axes(self) -> Array | None:
        """Those of all the rows."""
        return self.whole.axes

    @cached_property
    def turned(self) -> Rows:
        """The same rows along the axes, a view."""
        if self.axes is None:
            return self
        return shared_rows(self.whole.turned, self.which, self.weights)

    @cached_property
    def largest(self) -> Array:
        """Largest absolute value of each column, of all the rows."""
        return self.whole.largest


def shared_rows(whole: Rows, which: slice, weights: Array) -> SharedRows:
    """Return views of some rows with these weights, (m, rows)."""
    Z, offset, y = (part[which] for part in (whole.Z, whole.offset, whole.y))
    return SharedRows(Z, offset, y, weights, whole, which)
