r"""The Gibbs risk of logistic regression on Gaussian inputs, by an integral.

For a posterior N(m, S) and inputs z = mu + L g with g ~ N(0, I), let X = z'theta.  With
log(1 + e^x) = x/2 + log(2 cosh(x/2)) and the Fourier transform of the second term,

    E log(1 + e^X) = E X / 2 + log 2 + ∫_0^∞ (1 - Re phi(w)) / (w sinh(pi w)) dw,

    phi(w) = E e^{iwX} = exp(iw mu'm - w^2 mu'S mu / 2 + b'A^-1 b / 2) / sqrt(det A),
    A = I + w^2 L'S L,   b = iw L'm - w^2 L'S mu,

and the risk is E log(1 + e^X) - E[y z]'m.  The integrand is smooth and decreases like e^{-pi w}.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance.data import Array
from temperance.quadrature import softplus_expectations

# Beyond 12 the weight 1 / (w sinh(pi w)) is below 1e-17.
NODES, STEPS = np.polynomial.legendre.leggauss(256)
FREQUENCIES = 6.0 * (1 + NODES)
KERNEL = 6.0 * STEPS / (FREQUENCIES * np.sinh(np.pi * FREQUENCIES))


@dataclass(frozen=True, eq=False)
class GaussianInputs:
    """Inputs drawn from a mixture of Gaussians, and their mean product with the label.

    Parameters
    ----------
    shares : array of shape (k,)
    means : array of shape (k, d)
    roots : array of shape (k, d, r)
        L with covariance L L'.
    label_product : array of shape (d,)
        E[y z].
    """

    shares: Array
    means: Array
    roots: Array
    label_product: Array

    def risk(self, mean: Array, cov: Array) -> float:
        """Return the Gibbs risk of the posterior N(mean, cov)."""
        softplus = sum(
            share * _expected_softplus(mean, cov, mu, root)
            for share, mu, root in zip(self.shares, self.means, self.roots, strict=True)
        )
        return float(softplus - self.label_product @ mean)

    def risk_of_draws(self, theta: Array) -> Array:
        """Return the risk R(theta) of each row of parameters (draws, d)."""
        total = -theta @ self.label_product
        for share, mu, root in zip(self.shares, self.means, self.roots, strict=True):
            variance = ((theta @ root) ** 2).sum(axis=1)
            total += share * softplus_expectations(theta @ mu, variance)[0]
        return total


def _expected_softplus(mean: Array, cov: Array, mu: Array, root: Array) -> float:
    spread, turn = np.linalg.eigh(root.T @ cov @ root)
    centre = turn.T @ (root.T @ mean)
    tilt = turn.T @ (root.T @ (cov @ mu))
    w = FREQUENCIES[:, None]
    eigenvalues = 1 + w**2 * np.maximum(spread, 0.0)
    b = 1j * w * centre - w**2 * tilt
    exponent = (
        1j * FREQUENCIES * (mu @ mean)
        - FREQUENCIES**2 * (mu @ cov @ mu) / 2
        + (b**2 / eigenvalues).sum(axis=1) / 2
        - np.log(eigenvalues).sum(axis=1) / 2
    )
    return float((mu @ mean) / 2 + np.log(2) + KERNEL @ (1 - np.exp(exponent).real))
