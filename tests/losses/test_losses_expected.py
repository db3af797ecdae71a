"""Expectations of losses and predictive densities: exact numbers, laws, extremes."""

from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar

import mpmath
import numpy as np
import pytest
from losses_in_many_digits import (
    CASES,
    exact_at,
    exact_expectations,
    exact_log_predictive,
    points,
    read_table,
)

from temperance.losses import (
    Expectile,
    Hinge,
    Huber,
    Logistic,
    Loss,
    NegativeBinomial,
    Pinball,
    Poisson,
    Predictor,
    Probit,
    Squared,
    StudentT,
    Tukey,
    predictive,
    quadrature,
)

ACCURACY = 1e-10
TABLE = {name: list(rows) for name, rows in groupby(read_table(), key=lambda row: row[0])}
LIKELIHOODS = [name for name, (loss, _) in CASES.items() if loss.likelihood]


@dataclass(frozen=True)
class LogCosh(Loss):
    """A loss of somebody else: log cosh(u - y), with the expectations of the base class."""

    name: ClassVar[str] = "log-cosh loss"

    def value(self, u, y):
        r = np.abs(u - y)
        return r + np.log1p(np.exp(-2 * r)) - np.log(2)

    def derivatives(self, u, y):
        slope = np.tanh(u - y)
        return slope, 1 - slope**2, -2 * slope * (1 - slope**2)

    def bends(self, y):
        return y, np.full_like(y, np.pi / 2)


@dataclass(frozen=True)
class Laplace(Pinball):
    """Minus the log density exp(-|u - y| / 2) / 4: a likelihood with a kink."""

    likelihood: ClassVar[bool] = True
    expected = Loss.expected
    partials = Loss.partials

    def value(self, u, y):
        return super().value(u, y) + np.log(4.0)


LOG_COSH = (lambda loss, u, y: mpmath.log(mpmath.cosh(u - y)), lambda loss, y: ((y, 1.5),))
LAPLACE = (lambda loss, u, y: abs(y - u) / 2 + mpmath.log(4), lambda loss, y: ((y, 0),))


def errors(values, exact):
    """Return errors relative to the value, or to one."""
    exact = np.array([float(each) for each in exact])
    return np.abs(np.array(values) - exact) / np.maximum(1, np.abs(exact))


def numbers(loss, y, is_predictive, mean, deviation):
    at = np.array(mean), np.array(deviation**2), np.array(y)
    if is_predictive:
        return loss.log_predictive(*at)
    return loss.expected(*at), *loss.partials(*at)


@pytest.mark.parametrize("name", CASES)
def test_expectations_are_exact(name):
    """L, its derivatives, log E exp(-l) and its derivatives: against fifty digits."""
    loss, y = CASES[name]
    assert [tuple(row[1:4]) for row in TABLE[name]] == list(points(name))
    for _, is_predictive, mean, deviation, exact in TABLE[name]:
        found = errors(numbers(loss, y, is_predictive, mean, deviation), exact)
        assert found.max() < ACCURACY, (mean, deviation, found)


@pytest.mark.parametrize("name", CASES)
def test_rows_at_once_are_the_rows_one_by_one(name):
    """Means and variances (m, n) with responses (n,), as the approximations ask."""
    loss, y = CASES[name]
    mean = np.array([[-4.0, 0.1, 0.5], [2.0, 30.0, 1.5]])
    variance = np.array([[1e-8, 0.3, 2.0], [0.0, 9.0, 40.0]])
    every = np.full(3, y)
    together = [loss.expected(mean, variance, every), *loss.partials(mean, variance, every)]
    alone = [
        [loss.expected(m, v, every), *loss.partials(m, v, every)]
        for m, v in zip(mean, variance, strict=True)
    ]
    assert {each.shape for each in together} == {(2, 3)}
    for both, one, two in zip(together, *alone, strict=True):
        np.testing.assert_allclose(both, [one, two], rtol=1e-13, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_table_is_exact(name):
    for _, *point, exact in TABLE[name]:
        assert exact == pytest.approx(exact_at(name, *point), rel=1e-14, abs=1e-300)


@pytest.mark.parametrize("name", ["t4", "negative binomial 7", "Huber"])
def test_the_table_is_exact_here_and_there(name):
    _, *point, exact = TABLE[name][8]
    assert exact == pytest.approx(exact_at(name, *point), rel=1e-14, abs=1e-300)


@pytest.mark.parametrize(("mean", "deviation"), [(0.4, 1e-6), (-2.0, 0.7), (50.0, 30.0)])
def test_the_defaults_serve_a_loss_of_somebody_else(mean, deviation):
    exact = exact_expectations(LogCosh(), mean, deviation**2, 0.5, LOG_COSH)
    assert errors(numbers(LogCosh(), 0.5, False, mean, deviation), exact).max() < ACCURACY


@pytest.mark.parametrize(("mean", "deviation"), [(0.4, 1e-3), (-2.0, 0.7), (50.0, 30.0)])
def test_the_defaults_serve_a_likelihood_with_a_kink(mean, deviation):
    loss = Laplace(0.5)
    exact = exact_log_predictive(loss, mean, deviation**2, 0.5, LAPLACE)
    assert errors(numbers(loss, 0.5, True, mean, deviation), exact).max() < ACCURACY


def test_both_peaks_of_a_predictive_density_count():
    """A response that noise with heavy tails explains as well as the Gaussian does."""
    loss = StudentT(4.0, 1e-3)
    exact = exact_log_predictive(loss, 10.5, 1.05**2, 0.5)
    assert errors(numbers(loss, 0.5, True, 10.5, 1.05), exact).max() < ACCURACY


@pytest.mark.parametrize("name", ["squared", "pinball", "expectile", "Huber", "hinge 1", "t4"])
def test_quadrature_agrees_with_closed_forms(name):
    """At kinks, too: what the derivatives of a step are is never asked for."""
    loss, y = CASES[name]
    mean, deviation = np.linspace(-9, 9, 13)[:, None], np.geomspace(1e-5, 50, 12)
    at = mean, deviation**2, np.array(y)
    closed = [loss.expected(*at), *loss.partials(*at)]
    general = [Loss.expected(loss, *at), *Loss.partials(loss, *at)]
    for one, two in zip(closed, general, strict=True):
        np.testing.assert_allclose(
            two / np.maximum(1, np.abs(one)),
            one / np.maximum(1, np.abs(one)),
            rtol=0,
            atol=ACCURACY,
        )


@pytest.mark.parametrize("name", ["squared", "probit 0", "probit 1"])
def test_predictive_quadrature_agrees_with_closed_forms(name):
    loss, y = CASES[name]
    mean, deviation = np.linspace(-20, 20, 9)[:, None], np.append(0, np.geomspace(1e-6, 50, 12))
    at = mean, deviation**2, np.array(y)
    closed, general = loss.log_predictive(*at), Loss.log_predictive(loss, *at)
    for one, two in zip(closed, general, strict=True):
        size = np.maximum(1, np.abs(one))
        np.testing.assert_allclose(two / size, one / size, rtol=0, atol=ACCURACY)


@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_finite_differences(name):
    loss, y = CASES[name]
    u = np.array([-3.1, -0.7, 0.2, 0.9, 1.6, 4.3, 9.2])
    step = 1e-5
    first, second, third = loss.derivatives(u, np.full_like(u, y))
    above, below = u + step, u - step
    slopes = [
        (loss.value(above, y) - loss.value(below, y)) / (2 * step),
        *(
            (a - b) / (2 * step)
            for a, b in zip(loss.derivatives(above, y), loss.derivatives(below, y), strict=True)
        ),
    ]
    for exact, slope in zip((first, second, third), slopes, strict=False):
        size = 1 + max(np.abs(exact).max(), 1e-3 * np.abs(loss.value(u, y)).max())
        np.testing.assert_allclose(slope / size, exact / size, rtol=0, atol=3e-8)


@pytest.mark.parametrize("name", CASES)
def test_no_variance_leaves_the_loss_itself(name):
    loss, y = CASES[name]
    u = np.array([-8.0, -0.3, 0.0, 1.9, 30.0])
    every, none = np.full_like(u, y), np.zeros_like(u)
    first, second, third = loss.derivatives(u, every)
    psi = loss.partials(u, none, every)
    pairs = [
        (loss.expected(u, none, every), loss.value(u, every)),
        (psi.mean, first),
        (psi.variance, second / 2),
        (psi.mean_mean, second),
        (psi.mean_variance, third / 2),
    ]
    if loss.likelihood:
        log, by_mean, by_variance = loss.log_predictive(u, none, every)
        pairs += [(log, -loss.value(u, every)), (by_mean, -first)]
        pairs += [(by_variance, (first**2 - second) / 2)]
    for found, exact in pairs:
        np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_risks_and_forces_are_made_of_these(name):
    loss, y = CASES[name]
    mean, variance = np.array([-1.0, 0.7, 2.0]), np.array([0.2, 1.0, 5.0])
    moved = Predictor(mean, variance, np.array([1.0, -2.0, 0.3]), np.array([0.5, 0.1, -3.0]))
    every, step = np.full(3, y), 1e-5
    risks = ["gibbs", "predictive"] if loss.likelihood else ["gibbs"]
    for risk in risks:
        value, slope = loss.risk(moved, every, risk)
        ahead, behind = (
            loss.risk(
                moved._replace(
                    mean=mean + side * moved.d_mean, variance=variance + side * moved.d_variance
                ),
                every,
                risk,
            )[0]
            for side in (step, -step)
        )
        size = 1 + np.abs(slope) + 1e-3 * np.abs(value)
        np.testing.assert_allclose((ahead - behind) / (2 * step) / size, slope / size, atol=3e-8)
    psi, forces = loss.partials(mean, variance, every), loss.forces(mean, variance, every)
    np.testing.assert_allclose(forces.pull, psi.mean, rtol=1e-12)
    np.testing.assert_allclose(forces.hessian, psi.mean_mean, rtol=1e-12)
    np.testing.assert_allclose(forces.curvature, 2 * psi.variance, rtol=1e-12)


def test_blocks_do_not_matter(monkeypatch):
    """Small blocks leave every row in its place."""
    mean, variance = np.linspace(-9, 9, 60).reshape(3, 20), np.geomspace(1e-3, 1e3, 20)
    y = np.linspace(-1, 1, 20)
    loss = StudentT(4.0, 1.0)
    found = [loss.expected(mean, variance, y), *Loss.partials(loss, mean, variance, y)]
    found += loss.log_predictive(mean, variance, y)
    for module in (quadrature, predictive):
        monkeypatch.setattr(module, "BLOCK", 700)
    again = [loss.expected(mean, variance, y), *Loss.partials(loss, mean, variance, y)]
    again += loss.log_predictive(mean, variance, y)
    for one, two in zip(found, again, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-11, atol=1e-13)


def test_rates_too_large_are_infinite():
    """Without a warning; derivatives stay finite, so that products with them do."""
    loss, y = Poisson(), np.array([0.0, 3.0])
    assert np.isposinf(loss.expected(np.full(2, 10.0), np.full(2, 1e4), y)).all()
    slope = loss.partials(np.full(2, 800.0), np.zeros(2), y).mean
    assert np.all((slope > 1e100) & np.isfinite(slope))


@pytest.mark.parametrize("loss", [LogCosh(), Probit(), StudentT(3.0, 1.0), NegativeBinomial(2.0)])
def test_variances_that_are_no_numbers_are_refused(loss):
    with pytest.raises(np.linalg.LinAlgError, match="not finite"):
        loss.partials(np.zeros(2), np.array([1.0, np.inf]), np.ones(2))


@pytest.mark.parametrize("count", [0.0, 1.0, 40.0, 1e6])
def test_rows_of_counts_keep_their_digits(count):
    """The least loss of a count is log(2 pi y) / 2, however many digits log y! has."""
    at = np.log(np.maximum(count, 1.0))
    with mpmath.workdps(40):
        log = mpmath.log(mpmath.mpf(max(count, 1)))
        exact = mpmath.exp(log) - count * log + mpmath.loggamma(count + 1)
    assert float(Poisson().value(at, np.array(count))) == pytest.approx(float(exact), abs=1e-13)


@pytest.mark.parametrize(
    "loss", [Expectile(0.3), Pinball(0.3), Huber(0.7), Hinge(), Tukey(2.0), LogCosh()]
)
def test_what_is_no_likelihood_has_no_predictive_density(loss):
    moved = Predictor(*np.zeros((4, 2)))
    with pytest.raises(
        ValueError, match=rf"risk must be 'gibbs' for the {loss.name}.*'predictive'"
    ):
        loss.risk(moved, np.ones(2), "predictive")


def test_jensen():
    """-log E exp(-l) is at most E l, and less where the loss is not constant."""
    for name in LIKELIHOODS:
        loss, y = CASES[name]
        mean, variance = np.array([-2.0, 0.3, 1.1]), np.array([0.04, 1.0, 3.0])
        every = np.full(3, y)
        gap = loss.expected(mean, variance, every) + loss.log_predictive(mean, variance, every)[0]
        assert (gap > 1e-7).all(), name


def test_only_logistic_has_a_rough_version():
    assert Logistic().roughly() == Logistic(rough=True)
    assert Squared(2.0).roughly() == Squared(2.0)
