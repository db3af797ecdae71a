"""What of a calibration is stored with an estimator: its numbers and its posterior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NoReturn, cast

from temperance.calibration import Calibration, KnownErrors
from temperance.curves import RiskCurve
from temperance.types import Array, Data


def without_data(calibration: Calibration) -> Calibration:
    """Return the same numbers and posterior, without rows and without what is computed of them."""
    stored = replace(
        calibration,
        data=cast(Data, AbsentData(calibration.data.size)),
        errors=KnownErrors(calibration.standard_error, calibration.gain_standard_error),
        curve=RiskCurve(_refuse, _refuse, calibration.curve.method),
    )
    # Both are computed when first asked for, and then remembered under these names.
    vars(stored).update(bayes_risk=calibration.bayes_risk, posterior=calibration.posterior)
    return stored


@dataclass(frozen=True)
class AbsentData:
    """Data of which only the number of observations is known."""

    size: float

    @property
    def X(self) -> Array:
        """No inputs."""
        _refuse()

    @property
    def y(self) -> Array:
        """No responses."""
        _refuse()

    @property
    def weights(self) -> Array:
        """No weights."""
        _refuse()


def _refuse(*_: Any) -> NoReturn:
    raise ValueError(
        "the training data are needed for this, and were not stored with the estimator; fit with "
        "keep_data=True to store them"
    )
