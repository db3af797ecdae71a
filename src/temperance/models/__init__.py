"""Models: a loss, a prior, and the risk curve of any plan."""

from temperance.models.full_covariance_logistic import FullCovarianceLogistic
from temperance.models.gaussian_linear import GaussianLinear
from temperance.models.gaussian_mean import GaussianMean
from temperance.models.jaakkola_logistic import JaakkolaLogistic
from temperance.models.laplace_logistic import LaplaceLogistic
from temperance.models.mean_field_logistic import MeanFieldLogistic
from temperance.models.normal_inverse_gamma import NormalInverseGammaLinear
from temperance.models.polynomial import Polynomial

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
