"""The losses of docs/add-a-loss.md, held to what the page asks of a loss."""

from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats

PAGE = Path(__file__).parents[2] / "docs" / "add-a-loss.md"


@pytest.fixture(scope="module")
def page():
    from test_docs import run_page

    return run_page(PAGE.read_text(), str(PAGE))


@pytest.fixture(params=["LogisticNoise", "Insensitive"])
def loss(page, request):
    return page[request.param](0.4)


def test_derivatives_are_finite_differences(loss):
    u, y, step = np.array([-3.0, 0.25, 0.7, 0.95, 2.0]), 0.6, 1e-6
    slope = (loss.value(u + step, y) - loss.value(u - step, y)) / (2 * step)
    first, second, third = loss.derivatives(u, y)
    ahead, behind = loss.derivatives(u + step, y), loss.derivatives(u - step, y)
    assert first == pytest.approx(slope, abs=1e-8)
    assert second == pytest.approx((ahead[0] - behind[0]) / (2 * step), abs=1e-7)
    assert third == pytest.approx((ahead[1] - behind[1]) / (2 * step), abs=1e-7)


@pytest.mark.parametrize("mean", [-4.0, 0.5])
@pytest.mark.parametrize("deviation", [0.01, 1.0, 10.0])
def test_expectations_are_integrals(loss, mean, deviation):
    y, at = 0.6, (np.array([mean]), np.array([deviation**2]), np.array([0.6]))
    kinks = np.unique(np.clip([0.2, 0.6, 1.0], mean - 9 * deviation, mean + 9 * deviation))

    def expect(function):
        def integrand(u):
            return function(u) * stats.norm.pdf(u, mean, deviation)

        ends = [mean - 10 * deviation, *kinks, mean, mean + 10 * deviation]
        ends = sorted(set(ends))
        return sum(
            integrate.quad(integrand, a, b, epsabs=1e-12)[0]
            for a, b in zip(ends, ends[1:], strict=False)
        )

    psi = loss.partials(*at)
    assert loss.expected(*at)[0] == pytest.approx(expect(lambda u: loss.value(u, y)), abs=1e-9)
    slope = expect(lambda u: loss.derivatives(u, y)[0])
    assert psi.mean[0] == pytest.approx(slope, abs=1e-9)
    second = expect(lambda u: loss.derivatives(u, y)[0] * (u - mean)) / deviation**2
    assert psi.mean_mean[0] == pytest.approx(second, rel=1e-7, abs=1e-8)
    if loss.likelihood:
        log = np.log(expect(lambda u: np.exp(-loss.value(u, y))))
        assert loss.log_predictive(*at)[0][0] == pytest.approx(log, abs=1e-9)


def test_the_likelihood_is_a_density(page):
    loss = page["LogisticNoise"](0.4)
    total = integrate.quad(lambda y: np.exp(-loss.value(1.3, y)), -40, 40, points=[1.3])[0]
    assert total == pytest.approx(1.0, abs=1e-9)
