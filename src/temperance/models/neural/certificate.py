r"""Risk and divergence of a mean-field posterior, for a certificate.

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
from temperance.models.neural.posterior import NeuralPosterior
from temperance.protocols import Certified
from temperance.uncertainty.certificate import largest_risk

PAIRS = 1000
AT_ONCE = 20  # pairs
SPENT = 0.1  # share of delta


def certified_risk(
    posterior: NeuralPosterior, X: Any, y: Any, loss: str, delta: float
) -> Certified:
    """Return an upper bound on the risk on the rows, and the divergence from the prior."""
    network, method, prior = posterior.network, posterior.method, posterior.task.prior
    if not isinstance(method, MeanField) or not network.loss.classes:
        raise ValueError(
            "a certificate needs posterior='mean-field' and loss='softmax' or 'logistic', got "
            f"{method!r} and {type(network.loss).__name__}"
        )
    if loss != "zero-one":
        raise ValueError(f"loss must be 'zero-one' for a network, got {loss!r}")
    rows, labels = on_device((X, y))

    @jax.jit
    def wrong_shares(key: Any) -> Any:
        def share(u: Any) -> Any:
            return network.loss.wrong(network.outputs(prior.theta(u), rows), labels).mean()

        return jax.lax.map(share, method.draws(posterior.variables, key, 2 * AT_ONCE))

    # Other draws than those of forecasts, which may have chosen beta.
    keys = jax.random.split(jax.random.fold_in(jax.random.key(posterior.seed), 1), PAIRS // AT_ONCE)
    shares = np.array([np.asarray(wrong_shares(key)) for key in keys])
    spent = SPENT * delta
    risk = largest_risk(float(shares.mean()), float(np.log(1 / spent)) / PAIRS)
    few = jax.tree.map(lambda part: part[:1], rows)
    outputs = jax.eval_shape(lambda theta: network.outputs(theta, few), prior.mean)
    classes = int(np.prod(outputs.shape[1:]))
    return Certified(risk, divergence(posterior.variables), max(classes, 2), spent)


def divergence(variables: Any) -> float:
    """Return KL(N(m, s^2) || N(0, I)), in double precision."""
    mean, log_scale = (np.asarray(variables[name], dtype=float) for name in ("mean", "log_scale"))
    return float(0.5 * (mean**2 + np.expm1(2 * log_scale)).sum() - log_scale.sum())
