r"""Risks of linear models straight from their equations, in decimals of many digits.

Observations are taken one after the other: with weight u = beta w, error e = y - z'm and spread
v = z'Sz,

    m += S z e / (s2/u + v),    S -= S zz'S / (s2/u + v),    Q += e^2 / (s2/u + v),

which is P = S0^-1 + sum u zz'/s2, m = P^-1 (S0^-1 mu0 + sum u z y / s2) and, for an unknown
variance (s2 = 1 above), b = b0 + Q/2.  The cancellation is paid for by digits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from typing import Any

import mpmath
import numpy as np

from temperance import models
from temperance.data import Data, Risk
from temperance.plans import Pairs

Decimals = Any  # numpy array of Decimal
DIGITS, MANY_DIGITS = 120, 1500  # the latter where scales are 1e±150
EXACT = np.vectorize(Decimal, otypes=[object])
HALF = Decimal("0.5")
PI = Decimal("3.14159265358979323846264338327950288419716939937510")


@dataclass(frozen=True, eq=False)
class Inputs:
    """What the risk is a function of, as doubles."""

    Z: Any
    y: Any
    train: Any  # exponents per unit of beta, (pairs, n)
    test: Any  # (pairs, n)
    mean: Any
    cov: Any
    noise: float
    moved: Any = None  # responses as they are tested, if otherwise than trained on

    @property
    def tested(self) -> Any:
        """Responses that predictions are compared with."""
        return self.y if self.moved is None else self.moved

    def perturbed(self, rng: np.random.Generator, size: float = 1.1e-16) -> Inputs:
        """Return all numbers with relative changes of about one unit of rounding, as decimals.

        A response that is tested has one of its own: its prediction is no less rounded.  Responses
        are held by their distance from what the prior mean predicts: they are as rounded as that.
        """

        def moved(part: Any) -> Any:
            factor = 1 + EXACT(size * rng.uniform(-1, 1, np.shape(part)))
            return EXACT(part) * factor

        far = size * np.abs(self.Z @ np.broadcast_to(self.mean, self.Z.shape[1]))

        def responses() -> Any:
            return moved(self.y) + EXACT(far * rng.uniform(-1, 1, np.shape(self.y)))

        cov = moved(self.cov)
        if np.ndim(cov) == 2:
            cov = np.tril(cov) + np.tril(cov, -1).T
        return replace(
            self, Z=moved(self.Z), y=responses(), mean=moved(self.mean), cov=cov,
            train=moved(self.train), noise=moved(np.array([self.noise]))[0], moved=responses(),
        )  # fmt: skip


def inputs_of(model: Any, data: Data, plan: Pairs) -> Inputs:
    """Read the model's own attributes; of its code only the design is used."""
    Z = model.design(data.X)
    d = Z.shape[1]
    cov = model.prior_cov
    if cov is None:  # of Polynomial
        cov = 0.5 ** np.arange(d)
    cov = np.asarray(cov, dtype=float)
    matrix = cov if cov.ndim == 2 else np.diag(np.full(d, cov))
    return Inputs(
        Z, data.y, plan.likelihood_weights, plan.test, np.full(d, np.asarray(model.prior_mean)),
        matrix, float(getattr(model, "noise_variance", 1.0)),
    )  # fmt: skip


def plain_risk(
    model: Any, inputs: Inputs, beta: float, risk: Risk, digits: int = DIGITS
) -> tuple[float, float]:
    """Return the risk, and the mean of the absolute values of the terms it is made of."""
    with localcontext() as context, mpmath.workdps(40):
        context.prec, context.Emin, context.Emax = digits, -(10**8), 10**8
        Z, y, mean, cov = (EXACT(part) for part in (inputs.Z, inputs.y, inputs.mean, inputs.cov))
        compared = EXACT(inputs.tested)
        noise, at = Decimal(inputs.noise), Decimal(beta)
        total, size, tested = Decimal(0), Decimal(0), Decimal(0)
        for train, test in zip(inputs.train, inputs.test, strict=True):
            m, S, Q, weight = _posterior(Z, y, at * EXACT(train), mean, cov, noise)
            for i in np.flatnonzero(test):
                k = S @ Z[i]
                error, spread = compared[i] - Z[i] @ m, Z[i] @ k
                terms = _terms(model, error, spread, noise, Q, weight, risk)
                share = Decimal(test[i])
                total += share * sum(terms)
                size += share * sum(abs(term) for term in terms)
                tested += share
        return float(total / tested), float(size / tested)


def _posterior(Z: Decimals, y: Decimals, exponents: Decimals, m: Decimals, S: Decimals, noise: Any):
    Q, weight = Decimal(0), Decimal(0)
    for z, response, exponent in zip(Z, y, exponents, strict=True):
        if not exponent:
            continue
        k = S @ z
        error, total = response - z @ m, noise / exponent + z @ k
        m, S = m + k * (error / total), S - np.multiply.outer(k, k / total)
        Q, weight = Q + error * error / total, weight + exponent
    return m, S, Q, weight


def _terms(model: Any, error: Any, spread: Any, noise: Any, Q: Any, weight: Any, risk: Risk) -> Any:
    if not isinstance(model, models.NormalInverseGammaLinear):
        constant = HALF * (2 * PI * noise).ln()
        if risk == "gibbs":
            return [error * error / (2 * noise), spread / (2 * noise), constant]
        return [HALF * error * error / (noise + spread), HALF * (1 + spread / noise).ln(), constant]
    a, b = Decimal(model.a) + weight / 2, Decimal(model.b) + Q / 2
    if risk == "gibbs":
        digamma = Decimal(str(mpmath.digamma(mpmath.mpf(str(a)))))
        return [
            HALF * a / b * error * error, HALF * spread, HALF * b.ln(), -HALF * digamma,
            HALF * Decimal(str(mpmath.log(2 * mpmath.pi))),
        ]  # fmt: skip
    # Student-t of 2a degrees of freedom and squared scale (b/a)(1 + v).
    wide = 2 * b * (1 + spread)
    shape = mpmath.mpf(str(a))
    # Digits enough for the difference of two large numbers.
    with mpmath.workdps(40 + 2 * max(0, int(mpmath.log10(shape + 10)))):
        ratio = Decimal(str(mpmath.loggamma(shape) - mpmath.loggamma(shape + mpmath.mpf(1) / 2)))
    return [
        ratio, HALF * wide.ln(), HALF * Decimal(str(mpmath.log(mpmath.pi))),
        (a + HALF) * (1 + error * error / wide).ln(),
    ]  # fmt: skip
