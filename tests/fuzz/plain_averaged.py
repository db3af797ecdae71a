r"""Risks of regressions that average over scales of their prior, in decimals of many digits.

For each scale k the level at the centre of the training rows and the slopes have the prior
variances 10,000 s2 and s2 k^2.  The evidence weighs the scales: with Q and the spreads v of
:mod:`.plain_linear`, taken one row after the other, it is

    log Z_k = -sum log(1 + u v / s2) / 2 - Q / 2,    or with -(a + W/2) log(b + Q/2) at the end

for an unknown variance.  The risk is the average of the scales' losses, or of their densities.
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

LEVEL = Decimal(10_000)


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
        total, size, tested = Decimal(0), Decimal(0), Decimal(0)
        for weights, test in zip(inputs.train, inputs.test, strict=True):
            exponents = at * EXACT(weights)
            Z = X
            if model.intercept:
                train = EXACT(weights)
                centre = (train @ X[:, 1:]) / train.sum()
                Z = np.column_stack([X[:, :1], X[:, 1:] - centre])
            fits = [
                _fit(model, Z, y, exponents, scale, noise) for scale in scales
            ]  # fmt: skip
            highest = max(evidence for evidence, *_ in fits)
            shares = [evidence - highest for evidence, *_ in fits]  # in logarithms
            whole = sum(share.exp() for share in shares).ln()
            for i in np.flatnonzero(test):
                losses, sizes = [], []
                for _, m, S, Q, weight in fits:
                    error, spread = compared[i] - Z[i] @ m, Z[i] @ S @ Z[i]
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
                size += share * sum(c * each for c, each in zip(counts, sizes, strict=True))
                tested += share
        return float(total / tested), float(size / tested)


def _fit(model: Any, Z: Any, y: Any, exponents: Any, scale: Any, noise: Any) -> tuple[Any, ...]:
    """Return the log evidence of a scale and the posterior under it."""
    variances = np.full(Z.shape[1], noise * scale * scale)
    if model.intercept:
        variances[0] = noise * LEVEL
    S = np.diag(variances)
    mean = EXACT(np.zeros(len(variances)))
    # One row after the other: the determinant is a product over rows.
    log_determinant = Decimal(0)
    m, Q, weight = mean, Decimal(0), Decimal(0)
    for z, response, exponent in zip(Z, y, exponents, strict=True):
        if exponent:
            log_determinant += (1 + exponent * (z @ S @ z) / noise).ln()
            m, S, more, one = _posterior(z[None], np.array([response]), [exponent], m, S, noise)
            Q, weight = Q + more, weight + one
    evidence = -HALF * log_determinant
    if model.noise_variance is None:
        evidence -= (Decimal(model.a) + weight / 2) * (Decimal(model.b) + Q / 2).ln()
    else:
        evidence -= Q / 2
    return evidence, m, S, Q, weight
