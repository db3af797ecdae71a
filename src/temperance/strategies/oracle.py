r"""Oracle: test on fresh data, which only a simulation has."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from temperance.checks import as_data
from temperance.data import Data
from temperance.plans import AnyPlan
from temperance.strategies.selection import PlanStrategy, stacked_data


@dataclass(frozen=True, eq=False)
class Oracle(PlanStrategy):
    r"""Train on all rows, test on new data: the curve R(alpha) itself, for simulations.

    Parameters
    ----------
    X_test, y_test : arrays of shape (m, d) and (m,)
    weights : array of shape (m,), optional
    """

    X_test: ArrayLike | None = field(repr=False)
    y_test: ArrayLike = field(repr=False)
    weights: ArrayLike | None = field(default=None, repr=False)

    def planned(self, data: Data, rng: np.random.Generator) -> tuple[Data, AnyPlan]:
        """Return all rows with a plan that trains on the data and tests on the fresh rows."""
        try:
            fresh = as_data(self.X_test, self.y_test, self.weights)
        except ValueError as error:
            raise ValueError(f"Oracle's test data: {error}") from None
        if fresh.X.shape[1] != data.X.shape[1]:
            raise ValueError(
                f"X_test must have {data.X.shape[1]} columns like X, got {fresh.X.shape[1]}"
            )
        return stacked_data(data, fresh)
