r"""Risk and divergence of a mean-field posterior or a mixture of them, for a certificate.

The share of rows that a draw misclassifies has no closed form.  Its mean over m independent pairs
of opposite draws is r; with probability 1 - spent the expectation is at most the largest R with

    kl(r || R) <= ln(1 / spent) / m        (Chernoff; Langford and Caruana 2001).
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from temperance.models.neural.mean_field import MeanField
from temperance.models.neural.network import on_device
from temperance.models.neural.posterior import NeuralMixture, NeuralPosterior
from temperance.protocols import Certified
from temperance.uncertainty.certificate import largest_risk

PAIRS = 1000
AT_ONCE = 20  # pairs
SPENT = 0.1  # share of delta


def certified_risk(
    posterior: NeuralPosterior | NeuralMixture, X: Any, y: Any, loss: str, delta: float
) -> Certified:
    """Return an upper bound on the risk on the rows, and on the divergence from the prior."""
    parts = [(1.0, posterior)] if isinstance(posterior, NeuralPosterior) else posterior.weighted
    first = parts[0][1]
    network, method = first.network, first.method
    if not isinstance(method, MeanField) or not network.loss.classes:
        raise ValueError(
            "a certificate needs posterior='mean-field' and loss='softmax' or 'logistic', got "
            f"{method!r} and {type(network.loss).__name__}"
        )
    if loss != "zero-one":
        raise ValueError(f"loss must be 'zero-one' for a network, got {loss!r}")
    rows, labels = on_device((X, y))
    spent = SPENT * delta
    risk = kl = 0.0
    # The divergence is convex: that of a mixture is at most the mean of those of its parts.
    for weight, part in parts:
        risk += weight * largest_on_rows(part, rows, labels, spent / len(parts))
        kl += weight * divergence(part.variables)
    few = jax.tree.map(lambda leaf: leaf[:1], rows)
    outputs = jax.eval_shape(lambda theta: network.outputs(theta, few), first.task.prior.mean)
    classes = int(np.prod(outputs.shape[1:]))
    return Certified(risk, kl, max(classes, 2), spent)


def largest_on_rows(posterior: NeuralPosterior, rows: Any, labels: Any, spent: float) -> float:
    """Return a number that the risk of a draw on the rows exceeds with this probability."""
    network, prior = posterior.network, posterior.task.prior

    @jax.jit
    def wrong_shares(key: Any) -> Any:
        def share(u: Any) -> Any:
            return network.loss.wrong(network.outputs(prior.theta(u), rows), labels).mean()

        draws = posterior.method.draws(posterior.variables, key, 2 * AT_ONCE)
        return jax.lax.map(share, draws)

    # Other draws than those of forecasts, which may have chosen beta.
    keys = jax.random.split(jax.random.fold_in(jax.random.key(posterior.seed), 1), PAIRS // AT_ONCE)
    shares = np.array([np.asarray(wrong_shares(key)) for key in keys])
    return largest_risk(float(shares.mean()), float(np.log(1 / spent)) / PAIRS)


def divergence(variables: Any) -> float:
    """Return KL(N(m, s^2) || N(0, I)), in double precision."""
    mean, log_scale = (np.asarray(variables[name], dtype=float) for name in ("mean", "log_scale"))
    return float(0.5 * (mean**2 + np.expm1(2 * log_scale)).sum() - log_scale.sum())
