"""What somebody who adds a model or a strategy imports, in one place.

>>> from temperance.extend import CurveStrategy, Data, Pairs, RiskCurve
"""

from temperance.calibration import Calibration, Rate
from temperance.checks import as_data, as_inputs, non_negative, one_of, positive, whole
from temperance.curves import RiskCurve, curve_of_losses
from temperance.data import Array, Data, Risk
from temperance.plans import AnyPlan, Folds, LeaveOneOut, Pairs, PrefixPlan, Transfer
from temperance.protocols import (
    ChecksData,
    CountsParameters,
    HasCredibleLevels,
    HasInformation,
    HasNoiseVariance,
    HasOtherLosses,
    HasPreferences,
    HasPriorInformation,
    HasReference,
    Information,
    Model,
    NoMinimiserError,
    Posterior,
    Preferences,
    SamplingModel,
    Strategy,
)
from temperance.search.minimise import Minimum
from temperance.strategies.rate import RateStrategy
from temperance.strategies.selection import CurveStrategy, conclude
from temperance.uncertainty.standard_errors import mean_and_error

__all__ = [
    "AnyPlan",
    "Array",
    "Calibration",
    "ChecksData",
    "CountsParameters",
    "CurveStrategy",
    "Data",
    "Folds",
    "HasCredibleLevels",
    "HasInformation",
    "HasNoiseVariance",
    "HasOtherLosses",
    "HasPreferences",
    "HasPriorInformation",
    "HasReference",
    "Information",
    "LeaveOneOut",
    "Minimum",
    "Model",
    "NoMinimiserError",
    "Rate",
    "RateStrategy",
    "Pairs",
    "Posterior",
    "Preferences",
    "PrefixPlan",
    "Risk",
    "RiskCurve",
    "SamplingModel",
    "Strategy",
    "Transfer",
    "as_data",
    "as_inputs",
    "conclude",
    "curve_of_losses",
    "mean_and_error",
    "non_negative",
    "one_of",
    "positive",
    "whole",
]
