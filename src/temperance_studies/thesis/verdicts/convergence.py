r"""Accuracy of five EM steps and of two hundred stochastic steps."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from temperance import models
from temperance.data import Array
from temperance_studies.settings import AS_STATED
from temperance_studies.thesis.figures.trajectories import STEPS, backprop
from temperance_studies.thesis.verdicts.variational import JAAKKOLA

if TYPE_CHECKING:
    from temperance_studies.thesis.verdicts.evidence import Evidence

DATA_SETS = 20
BETAS = (1.0, 3.0)
EM_STEPS = (5, 30)  # in the text and in the published code
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclass(frozen=True, eq=False)
class Convergence:
    """Arrays over data sets.

    Parameters
    ----------
    em_error : arrays by (steps, beta)
        Relative error of Jaakkola's posterior mean.
    elbo_gap : arrays by beta
        Difference of the negative ELBO to its minimum after the stochastic steps, in nats.
    prior_mean : array
        Root mean square of the posterior mean after the stochastic steps at beta = 0, where the
        optimum is zero and each deviation is one.
    seconds_ratio : array
        Seconds of 200 stochastic steps relative to 5 steps of EM.
    """

    em_error: dict[tuple[int, float], Array]
    elbo_gap: dict[float, Array]
    prior_mean: Array
    seconds_ratio: Array


def convergence(evidence: Evidence) -> Convergence:
    """Return the results on up to twenty data sets of the logistic setting of the text."""
    data = evidence.data(AS_STATED, JAAKKOLA, min(evidence.repeats, DATA_SETS))
    em_error: dict[tuple[int, float], list[float]] = {(s, b): [] for s in EM_STEPS for b in BETAS}
    gap: dict[float, list[float]] = {beta: [] for beta in BETAS}
    prior_mean, ratio = [], []
    for repetition, (Z, y) in enumerate(data):
        rng = np.random.default_rng([evidence.seed, repetition, STEPS])
        start = np.abs(rng.standard_normal(len(y)))
        for beta in BETAS:
            converged = models.JaakkolaLogistic().posterior(Z, y, len(y) * beta).mean
            for steps in EM_STEPS:
                error = em(Z, y, beta, start, steps) - converged
                em_error[steps, beta].append(
                    float(np.linalg.norm(error) / np.linalg.norm(converged))
                )
            best = models.MeanFieldLogistic().posterior(Z, y, len(y) * beta)
            reached = backprop(Z, beta, repetition).posterior(Z, y, len(y) * beta)
            gap[beta].append(
                negative_elbo(Z, y, beta, reached.mean, reached.std)
                - negative_elbo(Z, y, beta, best.mean, best.std)
            )
        at_prior = backprop(Z, 0.0, repetition).posterior(Z, y, 0.0).mean
        prior_mean.append(float(np.sqrt(np.mean(at_prior**2))))
        began = time.perf_counter()
        backprop(Z, 1.0, repetition).posterior(Z, y, float(len(y)))
        between = time.perf_counter()
        em(Z, y, 1.0, start, EM_STEPS[0])
        ratio.append((between - began) / (time.perf_counter() - between))
    return Convergence(
        {key: np.array(values) for key, values in em_error.items()},
        {key: np.array(values) for key, values in gap.items()},
        np.array(prior_mean),
        np.array(ratio),
    )


def em(Z: Array, y: Array, beta: float, lam: Array, steps: int) -> Array:
    """Return the mean after this many steps of Jaakkola's EM for the prior N(0, I)."""
    for _ in range(steps):
        S = np.linalg.inv(np.eye(Z.shape[1]) + 2 * beta * (Z.T * lam) @ Z)
        m = S @ ((y - 0.5) @ Z) * beta
        v = np.sqrt(((Z @ (S + np.outer(m, m))) * Z).sum(axis=1))
        lam = (expit(v) - 0.5) / (2 * v)
    return m


def negative_elbo(Z: Array, y: Array, beta: float, m: Array, s: Array) -> float:
    """Return E_q[log q - log prior + beta sum of losses] of N(m, diag s^2), up to a constant."""
    mean, deviation = Z @ m, np.sqrt(Z**2 @ s**2)
    softplus = np.logaddexp(0.0, mean[:, None] + deviation[:, None] * NODES) @ WEIGHTS
    return float(beta * (softplus - y * mean).sum() + (m @ m + s @ s) / 2 - np.log(s).sum())
