r"""Linear regression with truths that mostly violate the model's assumptions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from temperance import models
from temperance.checks import one_of
from temperance.data import Array
from temperance.protocols import Model
from temperance_studies.settings.noise import Noise
from temperance_studies.settings.settings import Rows, Version, frozen
from temperance_studies.thesis.inputs import GaussianRows, Inputs

STORED_AS = "temperance.datasets.stress"  # module path that studies store

COEFFICIENTS = ("normal", "sparse", "shifted")
SPARSE, SPARSE_SIZE, SHIFT = 3, 3.0, 2.0


@dataclass(frozen=True)
class StressSetting:
    r"""Linear regression whose inputs, coefficients, mean and noise may all violate assumptions.

    .. math:: y = z'\theta + c\,q(z) + \varepsilon, \qquad q(z) = (z_2^2 - 1) / \sqrt 2

    Parameters
    ----------
    label : str
        Short description of the setting.
    n, d : int
        Rows and columns.
    noise : Noise
        True distribution of the noise.
    variance : float or None
        The noise variance that the model assumes; ``None`` if the model infers it.
    inputs : Inputs
    coefficients : {"normal", "sparse", "shifted"}
        Drawn from N(0, 1); three 3s and zeros; or drawn from N(2, 1), with the prior N(0, 1).
    bend : float
        The factor c of the nonlinear part, in standard deviations; for Gaussian inputs of scale 1.
    easy : bool
        Whether half of the rows have z = 0 and y = 0, and the others all the noise.
    copies : int
        Number of copies of each drawn row in the data.
    seed : int
        Seed of theta, which is the same for all data sets.

    Examples
    --------
    >>> from temperance_studies.settings import GaussianNoise
    >>> setting = StressSetting("easy half", 20, 5, GaussianNoise(2.0), 1.0, easy=True)
    >>> X, y = setting.draw(np.random.default_rng(0))
    >>> X.shape, int((y == 0).sum())
    ((20, 5), 11)
    """

    label: str
    n: int
    d: int
    noise: Noise
    variance: float | None = None
    inputs: Inputs = GaussianRows()
    coefficients: Literal["normal", "sparse", "shifted"] = "normal"
    bend: float = 0.0
    easy: bool = False
    copies: int = 1
    seed: int = 0
    version: Version = "as-stated"

    def __post_init__(self) -> None:
        """Refuse unknown coefficients, and inputs without known moments."""
        one_of("coefficients", self.coefficients, COEFFICIENTS)
        if self.bend and self.inputs != GaussianRows():
            raise ValueError(f"inputs must be GaussianRows() with a bend, got {self.inputs!r}")

    @property
    def name(self) -> str:
        """Short description of the setting."""
        return self.label

    @property
    def exact(self) -> bool:
        """Whether the population has exactly the true second moments: True."""
        return True

    @property
    def model(self) -> Model:
        """The model that is calibrated."""
        if self.variance is None:
            return models.NormalInverseGammaLinear()
        return models.GaussianLinear(noise_variance=self.variance)

    @property
    def theta(self) -> Array:
        """The true coefficients."""
        if self.coefficients == "sparse":
            return SPARSE_SIZE * (np.arange(self.d) < SPARSE)
        shift = SHIFT if self.coefficients == "shifted" else 0.0
        return shift + np.random.default_rng(self.seed).standard_normal(self.d)

    @property
    def population(self) -> Rows:
        """D + 1 rows with the second moments of (z, y)."""
        return _second_moment_rows(self)

    def draw(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return a random data set (X, y)."""
        m = self.n // self.copies
        Z = self.inputs.draw(rng, m, self.d)
        y = Z @ self.theta + self.noise.draw(rng, m)
        if self.bend:
            y += self.bend * (Z[:, 1] ** 2 - 1) / np.sqrt(2)
        if self.easy:
            hard = rng.random(m) < 0.5
            Z, y = Z * hard[:, None], y * hard
        return np.tile(Z, (self.copies, 1)), np.tile(y, self.copies)


@cache
def _second_moment_rows(setting: StressSetting) -> tuple[Array, Array, Array]:
    # q(z) has mean 0 and variance 1, and is uncorrelated with Gaussian z.
    square = setting.inputs.second_moment(setting.d)
    cross = square @ setting.theta
    moment = np.block([[square, cross[:, None]], [cross, setting.theta @ cross]])
    moment[-1, -1] += setting.noise.variance + setting.bend**2
    rows = np.sqrt(len(moment)) * np.linalg.cholesky(moment * (0.5 if setting.easy else 1.0)).T
    X, y, weights = frozen(rows[:, :-1].copy(), rows[:, -1].copy(), np.ones(len(rows)))
    return X, y, weights
