r"""Risks of regressions that average over scales of their prior, in decimals of many digits.

For each scale k the slopes have the prior variance s2 k^2, and a level, at the centre of the
training rows, has a flat prior: rows and responses are taken about their means, the level's
variance is s2 / (beta W), and W - 1 observations are left for the noise.  The evidence weighs the
scales: with Q and the spreads v of :mod:`.plain_linear`, taken one row after the other, it is

    log Z_k = -sum log(1 + u v / s2) / 2 - Q / 2,    or with -(a + w/2) log(b + Q/2) at the end

for an unknown variance, of w = beta W or beta (W - 1).  The risk is the average of the scales'
losses, or of their densities.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import mpmath
import numpy as np

from temperance import models
from temperance.data import Data, Risk
from temperance.plans import Pairs

from .plain_linear import DIGITS, EXACT, HALF, Inputs, _posterior, _terms

LEAST = Decimal("1e-8")  # beta, where a level has a flat prior


def inputs_of(model: models.HierarchicalLinear, data: Data, plan: Pairs) -> Inputs:
    """Read the model's own attributes; the scales are where other models have a covariance."""
    noise = 1.0 if model.noise_variance is None else float(model.noise_variance)
    scales = np.asarray(model.scales, dtype=float)
    return Inputs(
        data.X, data.y, plan.likelihood_weights, plan.test, np.zeros(1), scales, noise
    )  # fmt: skip


def plain_risk(
    model: models.HierarchicalLinear,
    inputs: Inputs,
    beta: float,
    risk: Risk,
    digits: int = DIGITS,
) -> tuple[float, float]:
    """Return the risk, and the mean of the absolute values of the terms it is made of."""
    known = model.noise_variance is not None
    alone: Any = (
        models.GaussianLinear() if known else models.NormalInverseGammaLinear(model.a, model.b)
    )
    with localcontext() as context, mpmath.workdps(40):
        context.prec, context.Emin, context.Emax = digits, -(10**8), 10**8
        X, y, scales = (EXACT(part) for part in (inputs.Z, inputs.y, inputs.cov))
        compared = EXACT(inputs.tested)
        noise, at = Decimal(inputs.noise), Decimal(beta)
        total, sizes_of_all, tested = Decimal(0), Decimal(0), Decimal(0)
        for weights, test in zip(inputs.train, inputs.test, strict=True):
            train = EXACT(weights)
            size, level, mean = train.sum(), Decimal(0), Decimal(0)
            Z, freedom = X, size
            if model.intercept:
                at = max(at, LEAST)
                Z, mean = X[:, 1:] - (train @ X[:, 1:]) / size, (train @ y) / size
                level, freedom = noise / (at * size), max(size - 1, Decimal(0))
            fits = [
                _fit(model, Z, y - mean, at * train, scale, noise, at * freedom) for scale in scales
            ]
            highest = max(evidence for evidence, *_ in fits)
            shares = [evidence - highest for evidence, *_ in fits]  # in logarithms
            whole = sum(share.exp() for share in shares).ln()
            for i in np.flatnonzero(test):
                losses, sizes = [], []
                for _, m, S, Q, weight in fits:
                    error, spread = compared[i] - mean, level
                    if len(m):
                        error, spread = error - Z[i] @ m, spread + Z[i] @ S @ Z[i]
                    terms = _terms(alone, error, spread, noise, Q, weight, risk)
                    losses.append(sum(terms))
                    sizes.append(sum(abs(term) for term in terms))
                logs = shares
                if risk == "predictive":
                    logs = [share - loss for share, loss in zip(shares, losses, strict=True)]
                top = max(logs)
                counts = [(each - top).exp() for each in logs]
                counts = [each / sum(counts) for each in counts]
                if risk == "predictive":
                    loss = whole - top - sum((each - top).exp() for each in logs).ln()
                else:
                    loss = sum(c * each for c, each in zip(counts, losses, strict=True))
                share = Decimal(test[i])
                total += share * loss
                sizes_of_all += share * sum(c * each for c, each in zip(counts, sizes, strict=True))
                tested += share
        return float(total / tested), float(sizes_of_all / tested)


def _fit(
    model: Any, Z: Any, y: Any, exponents: Any, scale: Any, noise: Any, weight: Any
) -> tuple[Any, ...]:
    """Return the log evidence of a scale and the posterior of the slopes under it."""
    S = np.diag(np.full(Z.shape[1], noise * scale * scale))
    m = EXACT(np.zeros(len(S)))
    # One row after the other: the determinant is a product over rows.
    log_determinant, Q = Decimal(0), Decimal(0)
    for z, response, exponent in zip(Z, y, exponents, strict=True):
        if not exponent:
            continue
        if not len(z):
            Q += exponent * response * response / noise
            continue
        log_determinant += (1 + exponent * (z @ S @ z) / noise).ln()
        m, S, more, _ = _posterior(z[None], np.array([response]), [exponent], m, S, noise)
        Q += more
    evidence = -HALF * log_determinant
    if model.noise_variance is None:
        evidence -= (Decimal(model.a) + weight / 2) * (Decimal(model.b) + Q / 2).ln()
    else:
        evidence -= Q / 2
    return evidence, m, S, Q, weight
