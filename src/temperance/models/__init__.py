"""Models: a loss, a prior, and the risk curve of any plan."""

from typing import TYPE_CHECKING, Any

from temperance.models.full_covariance_logistic import FullCovarianceLogistic
from temperance.models.gaussian_linear import GaussianLinear
from temperance.models.gaussian_mean import GaussianMean
from temperance.models.jaakkola_logistic import JaakkolaLogistic
from temperance.models.laplace_logistic import LaplaceLogistic
from temperance.models.mean_field_logistic import MeanFieldLogistic
from temperance.models.normal_inverse_gamma import NormalInverseGammaLinear
from temperance.models.polynomial import Polynomial

if TYPE_CHECKING:
    from temperance.models.gibbs_model import GibbsModel as GibbsModel

__all__ = [
    "FullCovarianceLogistic",
    "GaussianLinear",
    "GaussianMean",
    "JaakkolaLogistic",
    "LaplaceLogistic",
    "MeanFieldLogistic",
    "NormalInverseGammaLinear",
    "Polynomial",
]

# JAX takes seconds to import and is an extra: it waits until one of these is asked for.
SAMPLED = ("GibbsModel",)


def __getattr__(name: str) -> Any:
    """Look up the model that needs JAX when it is asked for."""
    if name in SAMPLED:
        from temperance.models.gibbs_model import GibbsModel

        return GibbsModel
    raise AttributeError(f"module 'temperance.models' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *SAMPLED])
