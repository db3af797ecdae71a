"""Neural networks in JAX: every beta of a grid and every fold is trained side by side.

The kinds of posterior, with their settings, and those of training.
"""

from temperance.models.neural.ensemble import Ensemble
from temperance.models.neural.hmc import HMC
from temperance.models.neural.last_layer import LastLayerLaplace
from temperance.models.neural.mean_field import MeanField
from temperance.models.neural.training import Training

__all__ = ["HMC", "Ensemble", "LastLayerLaplace", "MeanField", "Training"]
