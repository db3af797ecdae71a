"""What is stored of a calibration with an estimator: its numbers, its table and its posterior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NoReturn, cast

from temperance.calibration import Calibration
from temperance.data import Array, Data


def without_data(calibration: Calibration) -> Calibration:
    """Return a calibration with the same posterior and table, without the training data."""
    table, rate = calibration.table, calibration.rate
    stored = replace(
        calibration,
        data=cast(Data, AbsentData(calibration.data.size)),
        table=None if table is None else table.kept(),
        rate=None if rate is None else replace(rate, interval=None),
    )
    # Cached properties: their values are stored under their names.
    names = ("posterior", "beta_range", "bayes_risk", "_risk", "_gain")
    vars(stored).update({name: getattr(calibration, name) for name in names})
    return stored


@dataclass(frozen=True, eq=False)
class StoredChoice:
    """What a file stores of a calibration: the chosen beta and its posterior."""

    beta: float
    posterior: Any

    def posterior_at(self, beta: float) -> NoReturn:
        """Raise an error: the posterior at another beta needs the data."""
        _refuse()

    def certificate(self, *_: Any, **__: Any) -> NoReturn:
        """Raise an error: a certificate needs the data."""
        _refuse()


@dataclass(frozen=True)
class AbsentData:
    """Data of which only the number of observations is known; the rest raises an error."""

    size: float

    def __len__(self) -> int:
        """Raise an error: the number of rows is not known."""
        _refuse()

    @property
    def X(self) -> Array:
        """Raise an error: there are no inputs."""
        _refuse()

    @property
    def y(self) -> Array:
        """Raise an error: there are no responses."""
        _refuse()

    @property
    def weights(self) -> Array:
        """Raise an error: there are no weights."""
        _refuse()


def _refuse(*_: Any) -> NoReturn:
    raise ValueError(
        "the training data are needed for this, and were not stored with the estimator; fit with "
        "keep_data=True to store them"
    )
