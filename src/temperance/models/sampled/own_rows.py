"""Rows that a model carries: images, sequences or pytrees, which no matrix X can hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.checks import shown
from temperance.data import Array, Data


class OwnRows:
    """Base of models that contain their data: ``calibrate(model, model.X, model.y)``.

    ``model.X`` are the indices of the rows.  They distinguish rows with the same response, and the
    model can identify its rows after a strategy has sorted, dropped or repeated them.
    """

    @property
    def y(self) -> Array:
        """Observed responses (n,); the row indices if a row has several."""
        raise NotImplementedError(f"{type(self).__name__} must say what it observed")

    @property
    def X(self) -> Array:
        """Row indices, (n, 1)."""
        return np.arange(float(len(self.y)))[:, None]

    def index(self, data: Data) -> NDArray[np.intp]:
        """Return the indices of the model's rows in the data; refuse data that are not its own."""
        name, numbers = type(self).__name__, self.X[:, 0]
        if data.X.shape[1] != 1 or not np.isin(data.X, numbers).all():
            raise ValueError(
                f"X must be model.X, the numbers of the {len(numbers)} rows that {name} carries, "
                f"got {'None' if data.X.shape[1] == 0 else f'shape {data.X.shape}'}"
            )
        index = data.X[:, 0].astype(int)
        differs = np.flatnonzero(data.y != self.y[index])
        if len(differs):
            i = int(differs[0])
            raise ValueError(
                f"y must be model.y, what {name} carries, got {float(data.y[i])!r} for "
                f"{float(self.y[index[i]])!r} in row {index[i]}"
            )
        return index


class MayCarryRows(OwnRows):
    """Base of models of X and y that take rows of any shape as ``data=(X, y)``.

    X and y are arrays, or pytrees of arrays, with n rows each.  Integers stay integers.
    """

    data: tuple[Any, Any] | None

    @property
    def y(self) -> Array:
        """Responses (n,) as floats; the row indices if they are no vector of numbers."""
        if self.data is None:
            raise ValueError(f"data must be given for {type(self).__name__} to carry rows")
        response = self.data[1]
        if (
            isinstance(response, np.ndarray)
            and response.ndim == 1
            and response.dtype.kind in "biuf"
        ):
            return response.astype(float)
        return np.arange(float(rows_in(self.data)))

    def rows(self, data: Data) -> tuple[Any, Any]:
        """Return X and y as the model's function takes them."""
        if self.data is None:
            return data.X, data.y
        import jax

        index = self.index(data)
        X, y = jax.tree.map(lambda part: part[index], self.data)
        return X, y


def rows_in(tree: Any) -> int:
    """Return the number of rows of a pytree of arrays."""
    import jax

    return len(jax.tree.leaves(tree)[0])


def as_rows_of(data: Any) -> tuple[Any, Any] | None:
    """Return (X, y) with leaves as arrays; refuse leaves with other numbers of rows."""
    if data is None:
        return None
    import jax

    if not isinstance(data, tuple) or len(data) != 2:
        raise ValueError(f"data must be a pair (X, y), got {shown(data)}")
    X, y = jax.tree.map(np.asarray, data)
    shapes = [part.shape for part in jax.tree.leaves((X, y))]
    if not shapes or () in shapes or len({shape[0] for shape in shapes}) > 1:
        raise ValueError(f"data must have the same rows in X and y, got shapes {shown(shapes)}")
    return X, y
