"""Models: a loss, a prior, and the risk curve of any plan."""

from temperance.models.gaussian_linear import GaussianLinear
from temperance.models.gaussian_mean import GaussianMean
from temperance.models.normal_inverse_gamma import NormalInverseGammaLinear
from temperance.models.polynomial import Polynomial

__all__ = ["GaussianLinear", "GaussianMean", "NormalInverseGammaLinear", "Polynomial"]
