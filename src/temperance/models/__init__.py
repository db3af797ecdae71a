"""Models: a loss, a prior, and the risk curve of any plan."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from temperance.models.full_covariance_logistic import FullCovarianceLogistic
from temperance.models.gaussian_linear import GaussianLinear
from temperance.models.gaussian_mean import GaussianMean
from temperance.models.hierarchical_linear import HierarchicalLinear
from temperance.models.jaakkola_logistic import JaakkolaLogistic
from temperance.models.laplace_logistic import LaplaceLogistic
from temperance.models.mean_field_logistic import MeanFieldLogistic
from temperance.models.normal_inverse_gamma import NormalInverseGammaLinear
from temperance.models.polynomial import Polynomial
from temperance.models.softmax_logistic import SoftmaxLogistic

if TYPE_CHECKING:
    from temperance.models.gibbs_model import GibbsModel as GibbsModel
    from temperance.models.numpyro_model import NumPyroModel as NumPyroModel
    from temperance.models.pymc_model import PyMCModel as PyMCModel
    from temperance.models.stan_model import StanModel as StanModel

__all__ = [
    "FullCovarianceLogistic",
    "GaussianLinear",
    "GaussianMean",
    "HierarchicalLinear",
    "JaakkolaLogistic",
    "LaplaceLogistic",
    "MeanFieldLogistic",
    "NormalInverseGammaLinear",
    "Polynomial",
    "SoftmaxLogistic",
]

# Models that need an extra wait until they are asked for.
LAZY = {
    "GibbsModel": "gibbs_model",
    "NumPyroModel": "numpyro_model",
    "PyMCModel": "pymc_model",
    "StanModel": "stan_model",
}


def __getattr__(name: str) -> Any:
    """Look up a model that needs an extra when it is asked for."""
    if name in LAZY:
        return getattr(import_module(f"temperance.models.{LAZY[name]}"), name)
    raise AttributeError(f"module 'temperance.models' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *LAZY})
