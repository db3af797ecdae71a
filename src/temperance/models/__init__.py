"""Models: a loss, a prior, and the risk curve of any plan."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from temperance.linear.models import (
    GaussianLinear,
    GaussianMean,
    HierarchicalLinear,
    NormalInverseGammaLinear,
    Polynomial,
)
from temperance.models.glm.gibbs_linear import GibbsLinear
from temperance.models.glm.logistic import (
    FullCovarianceLogistic,
    JaakkolaLogistic,
    LaplaceLogistic,
    MeanFieldLogistic,
)
from temperance.models.glm.softmax.model import SoftmaxLogistic
from temperance.models.last_layer import LastLayer

if TYPE_CHECKING:
    from temperance.models.neural.model import NeuralNetwork as NeuralNetwork
    from temperance.models.sampled.gibbs_model import GibbsModel as GibbsModel
    from temperance.models.sampled.numpyro_model import NumPyroModel as NumPyroModel
    from temperance.models.sampled.pymc_model import PyMCModel as PyMCModel
    from temperance.models.sampled.stan_model import StanModel as StanModel

__all__ = [
    "FullCovarianceLogistic",
    "GaussianLinear",
    "GaussianMean",
    "GibbsLinear",
    "HierarchicalLinear",
    "JaakkolaLogistic",
    "LaplaceLogistic",
    "LastLayer",
    "MeanFieldLogistic",
    "NormalInverseGammaLinear",
    "Polynomial",
    "SoftmaxLogistic",
]

# Models with optional dependencies, imported on first use.
LAZY = {
    "GibbsModel": "sampled.gibbs_model",
    "NeuralNetwork": "neural.model",
    "NumPyroModel": "sampled.numpyro_model",
    "PyMCModel": "sampled.pymc_model",
    "StanModel": "sampled.stan_model",
}


def __getattr__(name: str) -> Any:
    """Import a model with optional dependencies on first use."""
    if name in LAZY:
        return getattr(import_module(f"temperance.models.{LAZY[name]}"), name)
    raise AttributeError(f"module 'temperance.models' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *LAZY})
