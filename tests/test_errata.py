"""What the thesis and its published code say, what is right, and how far apart the two are.

One test for each entry of docs/errata.md, in the same order.  A test shows that the library agrees
with independent evidence and that the thesis does not.  The bold numbers of an entry are checked
here, to one unit of the last decimal shown: ``stated`` refuses a number that the page does not
show, and a page that shows one that the test does not compute.
"""

import re
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.linalg import inv, norm
from scipy import integrate, optimize, special, stats
from scipy.special import expit
from sklearn.datasets import make_classification

import temperance
from temperance import models, strategies
from temperance.checks import as_data
from temperance.plans import Pairs
from temperance.rules import minimum

# The thesis' risk is that of draws.
calibrate = partial(temperance.calibrate, risk="gibbs")
expected_risk = partial(temperance.expected_risk, risk="gibbs")
BOUNDS = (0.0, 3.0)

ENTRIES = (
    (Path(__file__).parents[1] / "docs" / "errata.md").read_text(encoding="utf-8").split("\n### ")
)[1:]
BOLD = re.compile(r"\*\*(-?\d[\d.]*)\*\*")
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@pytest.fixture
def stated(request):
    """Compare numbers with those in bold in this test's entry, all of them."""
    (entry,) = (each for each in ENTRIES if f"`{request.node.name}`" in each)
    shown, seen = set(BOLD.findall(entry)), set()

    def check(text, value):
        assert text in shown, f"the page does not show {text} for {value!r}"
        decimals = len(text.partition(".")[2])
        tolerance = 10.0**-decimals if decimals else 0.0
        assert value == pytest.approx(float(text), rel=0, abs=tolerance)
        seen.add(text)

    yield check
    assert seen == shown


class Estimate(NamedTuple):
    """A Monte Carlo mean and its standard error."""

    mean: float
    error: float

    def away(self, value):
        """Distance to a value in standard errors."""
        return abs(self.mean - value) / self.error


def estimate(samples):
    return Estimate(np.mean(samples), np.std(samples, ddof=1) / np.sqrt(len(samples)))


def linear_data(rng, n, d, noise_variance, scale=1.0, theta=None):
    """Draw rows of the thesis' linear regression: an intercept and Gaussian inputs and noise."""
    theta = rng.standard_normal(d) if theta is None else theta
    Z = scale * rng.standard_normal((n, d))
    Z[:, 0] = 1.0
    return Z, Z @ theta + np.sqrt(noise_variance) * rng.standard_normal(n)


def logistic_data(seed, n=50, d=30, fresh=0):
    """Draw the thesis' logistic setting at input scale 0.5, and fresh rows of the same source."""
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal(d)
    Z = 0.5 * rng.standard_normal((n + fresh, d))
    y = (rng.random(n + fresh) < expit(Z @ theta)).astype(float)
    return (Z[:n], y[:n]), (Z[n:], y[n:])


def textbook_gaussian(Z, y, alpha, s2):
    """Mean and covariance of the known-variance posterior for the prior N(0, I)."""
    S = inv(alpha / (s2 * len(y)) * Z.T @ Z + np.eye(Z.shape[1]))
    return S @ Z.T @ y * alpha / (s2 * len(y)), S


def textbook_nig(Z, y, alpha, a=2.0, b=2.0):
    """Mean, scale, shape and rate of the unknown-variance posterior for the prior NIG(0, I)."""
    S = inv(alpha / len(y) * Z.T @ Z + np.eye(Z.shape[1]))
    m = S @ Z.T @ y * alpha / len(y)
    return m, S, a + alpha / 2, b + (alpha / len(y) * y @ y - m @ inv(S) @ m) / 2


def nig_draws(rng, size, m, S, a, b):
    s2 = b / rng.gamma(a, size=size)
    standard = rng.standard_normal((size, len(m))) @ np.linalg.cholesky(S).T
    return m + np.sqrt(s2)[:, None] * standard, s2


def negative_elbo(Z, y, beta, m, s, prior_sign=1.0):
    """E_q[log q - log prior + beta sum of losses] of N(m, diag s^2), up to a constant."""
    mean, deviation = Z @ m, np.sqrt(Z**2 @ s**2)
    softplus = np.logaddexp(0.0, mean[:, None] + deviation[:, None] * NODES) @ WEIGHTS
    return beta * (softplus - y * mean).sum() + prior_sign * (m @ m + s @ s) / 2 - np.log(s).sum()


def test_every_entry_has_its_test_and_every_test_its_entry():
    named = [re.findall(r"`(test_\w+)`", entry) for entry in ENTRIES]
    here = [name for name in globals() if name.startswith("test_") and "every" not in name]
    assert named == [[name] for name in here]


# The text


def test_moments_of_the_normal_inverse_gamma(stated):
    rng = np.random.default_rng(1)
    Z, y = linear_data(rng, n=20, d=6, noise_variance=3.5, theta=np.full(6, -1.5))
    d, alpha = Z.shape[1], 20.0
    m, S, a, b = textbook_nig(Z, y, alpha)
    theta, s2 = nig_draws(rng, 1_000_000, m, S, a, b)
    G = Z.T @ Z

    first = estimate(theta[:, 0] / s2)
    thesis_first = m[0] * special.poch(a, (d - 1) / 2) / b ** ((d - 1) / 2)
    assert first.away(m[0] * a / b) < 4 < 100 < first.away(thesis_first)
    stated("-0.560", first.mean), stated("-0.561", m[0] * a / b), stated("-0.117", thesis_first)

    second = estimate(np.einsum("ij,jk,ik->i", theta, G, theta) / s2)
    thesis_second = (
        special.poch(a, (d - 1) / 2) / b ** ((d - 1) / 2) * np.trace(G @ S)
        + special.poch(a, (d - 3) / 2) / b ** ((d - 3) / 2) * m @ G @ m
    )
    right_second = np.trace(G @ S) + a / b * m @ G @ m
    assert second.away(right_second) < 4 < 100 < second.away(thesis_second)
    stated("52.45", second.mean), stated("52.47", right_second), stated("27.71", thesis_second)

    # Both moments enter the risk.
    part = slice(100_000)
    squares = ((y - theta[part] @ Z.T) ** 2).mean(axis=1)
    risk = estimate((squares / s2[part] + np.log(2 * np.pi * s2[part])) / 2)
    library = expected_risk(models.NormalInverseGammaLinear(), (Z, y), (Z, y), alpha)
    thesis_cross = y @ Z @ m * thesis_first / m[0]
    thesis = (a / b * y @ y - 2 * thesis_cross + thesis_second) / (2 * len(y))
    thesis += (np.log(b) - special.digamma(a) + np.log(2 * np.pi)) / 2
    assert risk.away(library) < 4 < 100 < risk.away(thesis)
    stated("2.084", risk.mean), stated("2.084", library), stated("3.534", thesis)


def test_safe_bayes_term_of_the_normal_inverse_gamma(stated):
    rng = np.random.default_rng(2)
    Z, y = linear_data(rng, n=20, d=4, noise_variance=2.0)
    n, alpha = len(y), 20.0
    sampled, inside, outside, of_the_first = [], 0.0, 0.0, 0.0
    b_first = textbook_nig(Z[:1], y[:1], alpha)[3]
    for t in range(1, n):
        m, S, a, b = textbook_nig(Z[:t], y[:t], alpha)
        square, spread = (y[t] - Z[t] @ m) ** 2, Z[t] @ S @ Z[t]
        logarithm = (np.log(b) - special.digamma(a)) / 2
        outside += a / (2 * b) * square + spread / 2 + logarithm
        inside += a / (2 * b) * (square + spread) + logarithm
        of_the_first += a / (2 * b_first) * (square + spread) + logarithm
        theta, s2 = nig_draws(rng, 20_000, m, S, a, b)
        sampled.append((y[t] - theta @ Z[t]) ** 2 / (2 * s2) + np.log(s2) / 2)
    evidence = estimate(np.sum(sampled, axis=0))

    data = as_data(Z, y)
    plan = strategies.SafeBayes(transfer="alpha").plan(data, rng)
    curve = models.NormalInverseGammaLinear().held_out(data, plan, "gibbs", BOUNDS)
    library = (n - 1) * (curve(alpha / n) - np.log(2 * np.pi) / 2)
    assert library == pytest.approx(outside)
    assert evidence.away(library) < 4
    assert evidence.away(inside) > 20 and evidence.away(of_the_first) > 20
    stated("32.32", evidence.mean), stated("32.25", library)
    stated("35.33", inside), stated("81.34", of_the_first)


def test_loss_constant_of_unknown_variance(stated):
    rng = np.random.default_rng(3)
    Z, y = linear_data(rng, n=20, d=2, noise_variance=2.0)
    n, alpha = len(y), 10.0
    model = models.NormalInverseGammaLinear()
    s2 = np.linspace(0.5, 4.0, 50)
    theta = rng.standard_normal((50, 2))
    draws = np.column_stack([theta, s2])
    density = stats.norm.logpdf(y, theta @ Z.T, np.sqrt(s2)[:, None])
    np.testing.assert_allclose(model.loss(draws, Z, y), -density)

    log_prior = stats.invgamma.logpdf(s2, 2, scale=2) + stats.norm.logpdf(
        theta, 0, np.sqrt(s2)[:, None]
    ).sum(axis=1)
    square = ((y - theta @ Z.T) ** 2).mean(axis=1) / (2 * s2)

    def unexplained(constant):
        """Spread of log posterior + alpha r_n - log prior, which ought to be one number."""
        risk = square + constant * np.log(2 * np.pi * s2)
        return np.ptp(model.posterior(Z, y, alpha).log_prob(draws) + alpha * risk - log_prior)

    assert unexplained(1 / 2) < 1e-10
    stated("197.5", unexplained(n / 2))


def test_limit_of_the_normal_inverse_gamma(stated):
    rng = np.random.default_rng(4)
    Z, y = linear_data(rng, n=60, d=5, noise_variance=3.5)
    fit = Z @ np.linalg.lstsq(Z, y)[0]
    model = models.NormalInverseGammaLinear()
    precision, risk = {}, {}
    for stretch in (1.0, 2.0):
        # The same least squares, residuals twice as large.
        stretched = fit + stretch * (y - fit)
        s2 = np.mean((stretched - fit) ** 2)
        posterior = model.posterior(Z, stretched, alpha=1e12)
        precision[stretch] = posterior.a / posterior.b
        risk[stretch] = expected_risk(model, (Z, stretched), (Z, stretched), 1e12)
        assert (
            np.abs(Z @ posterior.mean - fit).max() < 1e-8 and np.abs(posterior.scale).max() < 1e-9
        )
        assert posterior.sample(10_000, rng)[:, -1] == pytest.approx(np.full(10_000, s2), rel=1e-4)
        assert precision[stretch] == pytest.approx(1 / s2, rel=1e-8)
        assert risk[stretch] == pytest.approx(0.5 + np.log(2 * np.pi * s2) / 2, rel=1e-8)
    stated("0.4181", precision[1.0]), stated("0.1045", precision[2.0])
    stated("1.8550", risk[1.0]), stated("2.5482", risk[2.0])


def test_signs_of_bayes_by_backprop(stated):
    rng = np.random.default_rng(5)
    Z = rng.standard_normal((30, 3))
    y = (rng.random(30) < expit(Z @ np.array([1.0, -1.0, 0.5]))).astype(float)
    posterior = models.MeanFieldLogistic().posterior(Z, y, alpha=30.0)

    def objective(x, prior_sign=1.0):
        return negative_elbo(Z, y, 1.0, x[:3], np.exp(x[3:]), prior_sign)

    best = optimize.minimize(objective, np.zeros(6), tol=1e-8)
    np.testing.assert_allclose(posterior.mean, best.x[:3], atol=1e-5)
    np.testing.assert_allclose(posterior.std, np.exp(best.x[3:]), atol=1e-5)

    # The reparametrised gradient in the mean, at N(m, I).
    m = np.array([1.0, -0.5, 0.5])
    theta = m + rng.standard_normal((100_000, 3))
    pull = (expit(theta @ Z.T) - y) @ Z
    slope = optimize.approx_fprime(np.concatenate([m, np.zeros(3)]), objective, 1e-6)[0]
    right, thesis = (estimate((pull + sign * theta)[:, 0]) for sign in (1.0, -1.0))
    assert right.away(slope) < 4 < 100 < thesis.away(slope)
    stated("-1.348", slope), stated("-1.346", right.mean), stated("-3.349", thesis.mean)

    # The thesis' objective has no minimum: it falls without bound as the mean grows.
    far = [objective(np.concatenate([100.0**k * m, np.zeros(3)]), -1.0) for k in range(4)]
    assert np.all(np.diff(far) < 0) and far[-1] < -1e10

    # At the optimum the gradient vanishes: subtracting it stays, assigning it goes to the prior.
    gradient = optimize.approx_fprime(best.x, objective, 1e-6)[:3]
    assert norm(best.x[:3] - 0.1 * gradient - posterior.mean) < 1e-4
    assert norm(0.1 * gradient) < 1e-4 < 1 < norm(posterior.mean)


def test_sign_of_the_gaussian_mean(stated):
    x = np.random.default_rng(6).normal(1.0, 1.0, size=20)
    model, alpha = models.GaussianMean(noise_variance=1.0), 5.0
    theta = np.array([[-1.0], [0.5]])
    loss = model.loss(theta, np.ones((20, 1)), x)
    np.testing.assert_allclose(loss, -stats.norm.logpdf(x, theta))

    def mean_within(limit, sign):
        """Mean of theta under exp(-alpha r_n) pi_0 cut off at +- limit."""

        def density(at):
            return np.exp(-sign * alpha * np.mean((x - at) ** 2) / 2 - at**2 / 2)

        moments = [
            integrate.quad(lambda at, k=k: at**k * density(at), -limit, limit, limit=200)[0]
            for k in (0, 1)
        ]
        return moments[1] / moments[0]

    mean = model.posterior(None, x, alpha).mean[0]
    assert mean == pytest.approx(alpha / (1 + alpha) * x.mean())
    assert mean_within(5.0, 1.0) == pytest.approx(mean) == pytest.approx(mean_within(10.0, 1.0))
    # With the thesis' sign the mass sits at whatever limit there is, away from the data.
    assert mean_within(5.0, -1.0) < -4.5 and mean_within(10.0, -1.0) < -9.5
    stated("1.220", mean)
    stated("-4.963", mean_within(5.0, -1.0)), stated("-9.979", mean_within(10.0, -1.0))


def test_noise_has_mean_zero(stated):
    theta, n = 1.5, 40_000
    rng = np.random.default_rng(7)
    error = 1 / np.sqrt(n)
    model = models.GaussianMean(noise_variance=1.0)
    located = {
        mean: model.posterior(None, theta + rng.normal(mean, 1.0, n), alpha=float(n)).mean[0]
        for mean in (0.0, theta)
    }
    assert abs(located[0.0] - theta) < 4 * error
    assert abs(located[theta] - 2 * theta) < 4 * error < 100 * error < located[theta] - theta
    stated("1.492", located[0.0]), stated("3.005", located[theta])


def test_bootstrap_gradient(stated):
    rng = np.random.default_rng(8)
    Z, y = linear_data(rng, n=20, d=10, noise_variance=9.0)
    (n, d), alpha, model = Z.shape, 20.0, models.GaussianLinear(noise_variance=1.0)

    def slope(train, test):
        """Return the derivative of the risk by the thesis' own dmu and dS, which are right."""
        (U, u), (V, v) = train, test
        m, S = textbook_gaussian(U, u, alpha, 1.0)
        dm, dS = S @ U.T @ (u - U @ m) / n, -S @ U.T @ U @ S / n
        return (-2 * (v - V @ m) @ V @ dm + np.trace(V.T @ V @ dS)) / (2 * n)

    data = as_data(Z, y)
    plan = strategies.Bootstrap(n_draws=1000).plan(data, rng)
    resampled = [np.repeat(np.arange(n), counts.astype(int)) for counts in plan.train]
    right = estimate([slope((Z[b], y[b]), (Z, y)) for b in resampled])
    swapped = estimate([slope((Z, y), (Z[b], y[b])) for b in resampled])
    library = model.held_out(data, plan, "gibbs", BOUNDS)(alpha / n, derivative=True)[1] / n
    naive = expected_risk(model, (Z, y), (Z, y), alpha, derivative=True)[1]
    assert library == pytest.approx(right.mean, rel=1e-9)
    # On average over resamples the printed formula is the naive strategy.
    assert swapped.away(naive) < 4 < 10 < swapped.away(library)
    assert swapped.mean < 0 < library
    (
        stated("4.60", 1e3 * library),
        stated("-17.55", 1e3 * swapped.mean),
        stated("-17.37", 1e3 * naive),
    )

    # Psi_MC: r_n(theta_i) does not depend on alpha, its posterior does.
    b = resampled[0]
    m, S = textbook_gaussian(Z[b], y[b], alpha, 1.0)
    theta = m + rng.standard_normal((1000, 1000, d)) @ np.linalg.cholesky(S).T
    trained = ((y[b] - theta @ Z[b].T) ** 2).mean(axis=2) / 2
    tested = ((y - theta @ Z.T) ** 2).mean(axis=2) / 2
    centred = trained - trained.mean(axis=1, keepdims=True)
    psi = estimate(-(centred * tested).sum(axis=1) / 999)
    exact = expected_risk(model, (Z[b], y[b]), (Z, y), alpha, derivative=True)[1]
    assert psi.away(exact) < 4 < 10 < psi.away(0.0)
    stated("2.24", 1e3 * psi.mean), stated("1.89", 1e3 * exact)


def test_degree_of_the_polynomial(stated):
    x = np.linspace(-1.0, 1.0, 201)
    design = models.Polynomial(n_powers=12).design(x)
    residual = {
        degree: norm(x**degree - design @ np.linalg.lstsq(design, x**degree)[0])
        for degree in (11, 12)
    }
    stated("12", design.shape[1])
    assert residual[11] < 1e-10 < 1e-3 < residual[12]


# The published code


def test_ridgeline_takes_a_deviation(stated):
    rng = np.random.default_rng(16)
    n, s2 = 50, 10.0
    y = 1.0 + np.sqrt(s2) * rng.standard_normal(n)
    model = models.GaussianMean(noise_variance=s2)

    def deviation(alpha):
        """Compute that of exp(-alpha r_n) pi_0 by numerical integration."""
        centre = y.mean()

        def moment(power):
            def integrand(theta):
                fit = np.mean((y - theta) ** 2) - np.mean((y - centre) ** 2)
                return theta**power * np.exp(-alpha * fit / (2 * s2) - theta**2 / 2)

            return integrate.quad(integrand, -6.0, 6.0, points=[centre], limit=200)[0]

        mean = moment(1) / moment(0)
        return np.sqrt(moment(2) / moment(0) - mean**2)

    drawn = {}
    for beta in (0.0, 1.0, 4.0):
        variance = model.posterior(None, y, beta * n).cov[0, 0]
        assert deviation(beta * n) == pytest.approx(np.sqrt(variance))
        # scipy's density takes a deviation; the code gives it the variance.
        peak = stats.norm.pdf(0.0, 0.0, variance) * np.sqrt(2 * np.pi)
        drawn[beta] = 1 / peak
    assert drawn[0.0] == pytest.approx(1.0)
    stated("0.408", deviation(n)), stated("0.167", drawn[1.0])
    stated("0.218", deviation(4 * n)), stated("0.048", drawn[4.0])
    held = 2 * stats.norm.cdf(1.959964 * drawn[1.0] / deviation(n)) - 1
    stated("57.6", 100 * held)


@pytest.mark.filterwarnings("ignore::temperance.messages.BoundWarning")
def test_sigma_is_a_variance_or_a_standard_deviation(stated):
    def best_betas(n, d, s2, noise_variance, repetitions=200):
        rng = np.random.default_rng(9)
        betas = np.empty(repetitions)
        for i in range(repetitions):
            theta = rng.standard_normal(d)
            Z, y = linear_data(rng, n, d, noise_variance, theta=theta)
            # Fresh inputs have second moment I, as these d rows do: R(alpha) in closed form.
            oracle = strategies.Oracle(np.sqrt(d) * np.eye(d), np.sqrt(d) * theta)
            betas[i] = calibrate(models.GaussianLinear(noise_variance=s2), Z, y, oracle).beta
        return betas

    as_stated, as_coded = best_betas(40, 40, 8.0, 8.0), best_betas(40, 40, 8.0, 64.0)
    stated("2.80", np.median(as_stated)), stated("47.5", 100 * np.mean(as_stated == 3))
    stated("99.5", 100 * np.mean(as_stated > 1)), stated("0.26", np.median(as_coded))
    assert as_coded.max() < 1.5
    as_stated, as_coded = best_betas(100, 20, 20.0, 20.0), best_betas(100, 20, 20.0, 400.0)
    stated("94.5", 100 * np.mean(as_stated == 3)), stated("0.09", np.median(as_coded))
    assert as_coded.max() < 1.5


def test_mixture_noise_is_not_a_sum(stated):
    rng = np.random.default_rng(10)
    n, s2, delta2, p = 1_000_000, 12.0, 0.1, 0.5
    narrow, wide = (rng.normal(0.0, np.sqrt(v), n) for v in (delta2, s2))
    summed = p * narrow + (1 - p) * wide
    mixed = np.where(rng.random(n) < p, narrow, wide)
    # The standard error of a Gaussian sample's kurtosis is sqrt(24 / n).
    kurtosis = {"sum": stats.kurtosis(summed) + 3, "mixture": stats.kurtosis(mixed) + 3}
    expected = 3 * (p * delta2**2 + (1 - p) * s2**2) / (p * delta2 + (1 - p) * s2) ** 2
    assert abs(kurtosis["sum"] - 3) < 4 * np.sqrt(24 / n)
    assert kurtosis["mixture"] == pytest.approx(expected, rel=0.01)
    stated("3.00", kurtosis["sum"]), stated("5.88", kurtosis["mixture"])
    stated("3.02", summed.var()), stated("6.05", mixed.var())


def test_least_risk_is_no_coefficient(stated):
    model, m, d, s2 = models.NormalInverseGammaLinear(), 5000, 40, 3.5

    def test_rows(seed):
        Z, y = linear_data(np.random.default_rng(seed), m, d, noise_variance=s2, scale=0.5)
        return Z, y, np.linalg.lstsq(Z, y)[0]

    lines = [test_rows(seed)[2].min() for seed in range(20)]
    Z, y, best = test_rows(0)
    variance = np.mean((y - Z @ best) ** 2)
    right = 0.5 + np.log(2 * np.pi * variance) / 2

    def risk(theta, variance):
        return model.loss(np.append(theta, variance)[None], Z, y).mean()

    # The minimum over the variance by search, and over the coefficients by its gradient.
    found = optimize.minimize_scalar(lambda v: risk(best, v), bounds=(1, 10), method="bounded")
    assert found.fun == pytest.approx(right) == pytest.approx(risk(best, variance))
    assert norm(optimize.approx_fprime(best, lambda theta: risk(theta, variance), 1e-6)) < 1e-4
    # It is the entropy of the noise, but for chance and d fitted coefficients.
    entropy = np.log(2 * np.pi * np.e * s2) / 2
    error = np.sqrt(0.5 / m)
    assert abs(right + d / (2 * m) - entropy) < 4 * error < 100 * error < abs(lines[0] - entropy)
    stated("2.050", right), stated("-2.42", lines[0])
    stated("-3.08", min(lines)), stated("-1.11", max(lines))


def test_safe_bayes_skips_no_row(stated):
    rng = np.random.default_rng(11)
    n, alpha, model = 40, 40.0, models.GaussianLinear(noise_variance=8.0)
    skipping = Pairs(np.tri(n, k=-1)[1 : n - 1], np.eye(n)[2:], float(n), "alpha")

    def criterion(Z, y, ahead):
        """Mean loss of row t + ahead given rows 0 .. t - 1, over t."""
        losses = []
        for t in range(1, n - ahead):
            m, S = textbook_gaussian(Z[:t], y[:t], alpha, 8.0)
            z = Z[t + ahead]
            losses.append(((y[t + ahead] - z @ m) ** 2 + z @ S @ z) / 16)
        return np.mean(losses)

    values, choices = np.empty((2, 20, 2))
    for i in range(20):
        Z, y = linear_data(rng, n, d=40, noise_variance=8.0)
        data = as_data(Z, y)
        one_step = strategies.SafeBayes(transfer="alpha").plan(data, rng)
        for ahead, plan in enumerate((one_step, skipping)):
            curve = model.held_out(data, plan, "gibbs", BOUNDS)
            values[i, ahead] = curve(alpha / n) - np.log(2 * np.pi * 8.0) / 2
            assert values[i, ahead] == pytest.approx(criterion(Z, y, ahead))
            choices[i, ahead] = minimum(curve, BOUNDS).beta
    stated("2.916", values[0, 0]), stated("3.067", values[0, 1])
    stated("0.109", np.abs(values[:, 0] - values[:, 1]).mean())
    stated("6", np.sum(np.abs(choices[:, 0] - choices[:, 1]) > 0.1))


@pytest.mark.filterwarnings("ignore::temperance.messages.BoundWarning")
def test_stochastic_gradients_stop_short(stated):
    def descend(slope, n, rate=2.0):
        """Follow 299 steps at the published rate: from Bayes, 3 n rate / sqrt(i)."""
        alpha = float(n)
        for i in range(1, 300):
            alpha = np.clip(alpha - 3 * n * rate / np.sqrt(i) * slope(alpha), 0.0, 3.0 * n)
        return alpha / n

    rng = np.random.default_rng(12)
    data = linear_data(rng, n=60, d=40, noise_variance=3.5, scale=0.5)
    model = models.NormalInverseGammaLinear()
    assert calibrate(model, *data, "naive").beta == 3.0

    def exact(alpha):
        return expected_risk(model, data, data, alpha, derivative=True)[1]

    def noisy(alpha):
        draws = np.column_stack(nig_draws(rng, 20, *textbook_nig(*data, alpha)))
        return -np.var(model.loss(draws, *data).mean(axis=1))

    stated("1.76", descend(exact, 60)), stated("1.74", descend(noisy, 60))

    labelled, _ = logistic_data(0)
    logistic = models.MeanFieldLogistic()
    assert calibrate(logistic, *labelled, "naive").beta == 3.0
    grid = np.linspace(50.0, 150.0, 51)
    slopes = expected_risk(logistic, labelled, labelled, grid, derivative=True)[1]

    def interpolated(alpha):
        return np.interp(alpha, grid, slopes)

    stated("1.60", descend(interpolated, 50)), stated("3.00", descend(interpolated, 50, rate=50.0))


def test_five_em_steps(stated):
    def em(Z, y, beta, lam, steps):
        for _ in range(steps):
            S = inv(np.eye(Z.shape[1]) + 2 * beta * (Z.T * lam) @ Z)
            m = S @ ((y - 0.5) @ Z) * beta
            v = np.sqrt(((Z @ (S + np.outer(m, m))) * Z).sum(axis=1))
            lam = (expit(v) - 0.5) / (2 * v)
        return m

    for beta, after_5 in ((1.0, "2.4"), (3.0, "11.4")):
        error = {5: [], 30: []}
        for seed in range(20):
            (Z, y), _ = logistic_data(seed)
            converged = models.JaakkolaLogistic().posterior(Z, y, 50 * beta).mean
            lam = np.abs(np.random.default_rng(seed).standard_normal(50))
            for steps, errors in error.items():
                errors.append(norm(em(Z, y, beta, lam, steps) - converged) / norm(converged))
        stated(after_5, 100 * np.median(error[5]))
        assert np.max(error[30]) < 1e-4 < np.min(error[5])


def test_two_hundred_backprop_steps(stated):
    def gap(seed, beta):
        (Z, y), _ = logistic_data(seed)
        # The library divides the rate by this bound on the curvature; the code's was 0.2.
        curvature = 1 + beta * np.linalg.eigvalsh(Z.T @ Z)[-1] / 4
        coded = models.MeanFieldLogistic(method="sgd", steps=199, rate=0.2 * curvature, seed=seed)
        reached, best = (
            negative_elbo(Z, y, beta, fit.mean, fit.std)
            for fit in (each.posterior(Z, y, 50 * beta) for each in (coded, deterministic))
        )
        return reached - best

    deterministic = models.MeanFieldLogistic()
    gaps = np.array([[gap(seed, beta) for seed in range(20)] for beta in (1.0, 3.0)])
    assert gaps.min() > 0.1
    stated("0.44", np.median(gaps[0])), stated("1.00", np.median(gaps[1]))


def test_logistic_test_set(stated):
    model, n, m = models.JaakkolaLogistic(), 100, 1000
    shape = {"n_features": 2, "n_informative": 2, "n_redundant": 0, "n_clusters_per_class": 2}
    same, another = np.empty((2, 20))
    for seed in range(20):
        Z, y = make_classification(n + m, flip_y=0.1, random_state=seed, **shape)
        train = (Z[:n], y[:n])
        same[seed] = expected_risk(model, train, (Z[n:], y[n:]), float(n))
        second_call = make_classification(m, random_state=1000 + seed, **shape)
        another[seed] = expected_risk(model, train, second_call, float(n))
    stated("0.374", same.mean()), stated("0.732", another.mean())
    assert same.max() < np.log(2)
    stated("9", np.sum(another > np.log(2)))

    # A test set of another input scale alone moves the risk, too.
    train, (Z, y) = logistic_data(0, fresh=10_000)
    rng = np.random.default_rng(13)
    theta = np.random.default_rng(0).standard_normal(30)
    wider = 2 * Z, (rng.random(10_000) < expit(2 * Z @ theta)).astype(float)
    stated("0.851", expected_risk(model, train, (Z, y), 50.0))
    stated("1.248", expected_risk(model, train, wider, 50.0))


def test_prior_of_the_jaakkola_posterior(stated):
    def em(Z, y, variance, steps=400):
        lam = np.full(len(y), 0.1)
        for _ in range(steps):
            S = inv(np.eye(Z.shape[1]) / variance + 2 * (Z.T * lam) @ Z)
            m = S @ ((y - 0.5) @ Z)
            v = np.sqrt(((Z @ (S + np.outer(m, m))) * Z).sum(axis=1))
            lam = (expit(v) - 0.5) / (2 * v)
        return m

    compared = {
        "stated": models.JaakkolaLogistic(),
        "coded": models.JaakkolaLogistic(prior_cov=20.0),
        "mean-field": models.MeanFieldLogistic(),
    }
    new, seen = ({name: np.empty(10) for name in compared} for _ in range(2))
    for seed in range(10):
        train, fresh = logistic_data(seed, fresh=1000)
        for name, model in compared.items():
            new[name][seed] = expected_risk(model, train, fresh, 50.0)
            seen[name][seed] = expected_risk(model, train, train, 50.0)
        if seed < 3:
            for name, variance in (("stated", 1.0), ("coded", 20.0)):
                mean = compared[name].posterior(*train, 50.0).mean
                np.testing.assert_allclose(em(*train, variance), mean, rtol=1e-4, atol=1e-4)
    stated("0.828", new["stated"].mean()), stated("1.994", new["coded"].mean())
    stated("0.832", new["mean-field"].mean())
    # With the same prior the two are close, with the code's Jaakkola's is far above in every one.
    same = estimate(new["stated"] - new["mean-field"])
    other = estimate(new["coded"] - new["mean-field"])
    assert same.away(0.0) < 4 < 10 < other.away(0.0)
    assert np.min(new["coded"] - new["mean-field"]) > 0.5
    stated("0.39", seen["stated"].mean()), stated("0.13", seen["coded"].mean())
    stated("0.42", seen["mean-field"].mean())


@pytest.mark.slow
def test_covariance_is_no_gradient_of_variational_posteriors(stated):
    def slope(model, train, test, beta, **options):
        alpha = beta * len(train[1])
        return expected_risk(model, train, test, alpha, derivative=True, **options)[1]

    def covariance(model, train, test, beta, **options):
        options = {"gradient": "covariance", "n_draws": 4000, **options}
        return slope(model, train, test, beta, **options)

    def sampled(model, data):
        return estimate([covariance(model, data, data, 1.0, seed=seed) for seed in range(10)])

    def zero(derivative):
        """Find where a derivative vanishes in [0.1, 8], or the end that it points to."""
        return 8.0 if derivative(8.0) < 0 else optimize.brentq(derivative, 0.1, 8.0, xtol=0.01)

    regression = linear_data(np.random.default_rng(14), n=60, d=10, noise_variance=3.5)
    for model in (models.GaussianLinear(noise_variance=3.5), models.NormalInverseGammaLinear()):
        assert sampled(model, regression).away(slope(model, regression, regression, 1.0)) < 4

    for model, error, chosen, optimal, chosen_to_3, optimal_to_3 in (
        (models.MeanFieldLogistic(), "0.43", "4.3", "2.4", "2.92", "2.27"),
        (models.JaakkolaLogistic(), "0.15", "2.9", "2.5", "2.49", "2.34"),
    ):
        errors, found, best = [], [], []
        for seed in range(5):
            train, fresh = logistic_data(seed, fresh=400)
            exact = slope(model, train, train, 1.0)
            around = expected_risk(model, train, train, np.array([49.99, 50.01]))
            assert exact == pytest.approx(np.diff(around)[0] / 0.02, rel=1e-5)
            evidence = sampled(model, train)
            assert evidence.away(exact) > 10
            errors.append(abs(evidence.mean - exact) / abs(exact))
            for derivative, choices in ((covariance, found), (slope, best)):
                choices.append(zero(partial(derivative, model, train, fresh)))
        stated(error, np.mean(errors))
        stated(chosen, np.mean(found)), stated(optimal, np.mean(best))
        # Within the thesis' bounds the upper one hides part of the difference.
        clipped = np.minimum([found, best], 3.0).mean(axis=1)
        stated(chosen_to_3, clipped[0]), stated(optimal_to_3, clipped[1])
