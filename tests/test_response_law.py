"""Forecasts of responses whose predictor is Gaussian."""

import numpy as np
import pytest
from scipy import optimize, stats

from temperance import losses
from temperance.posteriors import ResponseLaw

LIKELIHOODS = {
    "Poisson": losses.Poisson(),
    "negative binomial": losses.NegativeBinomial(1.5),
    "Student-t": losses.StudentT(4.0, 0.6),
}
LOCATION, SCALE = np.array([[0.3, 1.5], [0.9, 1.0]]), np.array([[0.2, 0.6], [0.4, 0.1]])
WEIGHTS = np.array([0.3, 0.7])


def law_of(name):
    return ResponseLaw(LIKELIHOODS[name], WEIGHTS, LOCATION, SCALE)


def draws(name, size=200_000):
    rng = np.random.default_rng(0)
    part = rng.choice(2, size, p=WEIGHTS)
    u = LOCATION[part] + SCALE[part] * rng.standard_normal((size, 2))
    return LIKELIHOODS[name].sample(u, rng)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_moments_and_probabilities_are_those_of_draws(name):
    law, drawn = law_of(name), draws(name)
    error = drawn.std(axis=0) / np.sqrt(len(drawn))
    assert np.all(np.abs(law.mean - drawn.mean(axis=0)) < 4 * error)
    np.testing.assert_allclose(law.std, drawn.std(axis=0), rtol=0.05)
    for value in (0.0, 1.0, 4.0):
        np.testing.assert_allclose(law.cdf(value), (drawn <= value).mean(axis=0), atol=0.005)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_quantiles_invert_the_probabilities(name):
    law, q = law_of(name), np.array([0.05, 0.5, 0.975])
    found = law.quantile(q)
    reached = np.array([law.cdf(each) for each in found])
    if LIKELIHOODS[name].discrete:  # the first whole number that reaches q
        below = np.array([law.cdf(each - 1) for each in found])
        assert np.all((below < q[:, None]) & (q[:, None] <= reached))
    else:
        np.testing.assert_allclose(reached, np.repeat(q[:, None], 2, axis=1), atol=1e-9)
    np.testing.assert_allclose(law.interval(0.9), law.quantile([0.05, 0.95]).T, rtol=1e-12)


@pytest.mark.parametrize("df", [1.5, 4.0, 30.0])
@pytest.mark.parametrize("spread", [0.01, 0.3, 1.5])  # of predictors, in scales of the noise
def test_student_quantiles_are_those_of_a_search_at_finer_nodes(df, spread):
    scale, z = 0.6, np.linspace(-8.0, 8.0, 801)
    shares = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()
    location = np.array([[0.3, 1e4, -50.0], [0.9, 1e4 + 3.0, 0.0]])
    spreads = scale * np.array([[1.0, 0.5, 0.2], [0.3, 1.0, 1.0]]) * spread
    law = ResponseLaw(losses.StudentT(df, scale), WEIGHTS, location, spreads)
    q = np.array([1e-6, 0.025, 0.5, 0.975, 1 - 1e-6])
    found = law.quantile(q)
    for row in range(3):
        u = location[:, row, None] + z * spreads[:, row, None]

        def excess(value, level, u=u):
            return WEIGHTS @ (stats.t.cdf((value - u) / scale, df) @ shares) - level

        width = 1e3 if df > 2 else 1e5
        exact = [
            optimize.brentq(excess, u.min() - width, u.max() + width, (level,), xtol=1e-12)
            for level in q
        ]
        unit = np.maximum(scale, np.abs(np.array(exact) - law.mean[row]))
        np.testing.assert_allclose((found[:, row] - exact) / unit, 0.0, atol=1e-8)
        np.testing.assert_allclose((found[1:4, row] - exact[1:4]) / unit[1:4], 0.0, atol=1e-9)


def test_a_loss_with_closed_forms_need_not_say_where_it_bends():
    class Closed(losses.StudentT):
        bends = losses.Loss.bends

    laws = [
        ResponseLaw(each(4.0, 0.6), WEIGHTS, LOCATION, 0.1 * SCALE)
        for each in (Closed, losses.StudentT)
    ]
    found, expected = (law.quantile([0.025, 0.5]) for law in laws)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_student_quantiles_need_few_probabilities(monkeypatch):
    asked, cdf = [], ResponseLaw.cdf
    monkeypatch.setattr(ResponseLaw, "cdf", lambda law, v: asked.append(v) or cdf(law, v))
    law_of("Student-t").quantile([1e-6, 0.025, 0.5, 0.975, 1 - 1e-6])
    assert len(asked) <= 10


@pytest.mark.parametrize("name", ["Poisson", "negative binomial"])
def test_probabilities_of_counts_sum_to_those_of_at_most(name):
    law = law_of(name)
    masses = np.exp([law.log_density(float(k)) for k in range(8)])
    np.testing.assert_allclose(masses.sum(axis=0), law.cdf(7.0), rtol=1e-6)


def test_mixtures_of_laws_are_mixtures():
    one, two = (
        ResponseLaw(losses.Poisson(), np.ones(1), LOCATION[[k]], SCALE[[k]]) for k in (0, 1)
    )
    mixed = one.mixed(WEIGHTS, [two])
    np.testing.assert_allclose(mixed.cdf(2.0), WEIGHTS @ [one.cdf(2.0), two.cdf(2.0)])
