"""Reference risk: every formula against dense matrices, grids and Monte Carlo; then the rule."""

import warnings

import numpy as np
import pytest
from scenarios import RISKS, covariance, gaussian_data
from scipy import stats
from temperance.models.linear.fast import leave_one_out
from temperance.strategies.reference import linear, new_rows, row_basis, scales
from temperance.strategies.reference.deletions import Deletions
from temperance.strategies.reference.new_rows import (
    careful_intensity,
    deletions_for,
    left_out_intensity,
    noise_at_leverage,
    shrinkage_intensity,
)
from temperance.strategies.reference.seen import observed_rows
from temperance.strategies.reference.strategy import HasReference
from temperance.uncertainty.standard_errors import error_inflation, mean_and_error

from temperance import calibrate, models, strategies
from temperance.data import Data
from temperance.messages import BoundWarning, TemperanceWarning
from temperance.plans import LeaveOneOut
from temperance.strategies import KFold, LeaveOneOut, ReferenceRisk
from temperance_studies.thesis.defaults.rivals import FirstDescribed

KNOWN = models.GaussianLinear(2.0, 0.3, covariance(3))
UNKNOWN = models.NormalInverseGammaLinear(2.0, 3.0, [0.1, -0.2, 0.3], covariance(3))
BETAS = np.array([0.0, 0.02, 0.4, 1.0, 2.8])


def observed(Z, y, counts=None):
    """Rows that were seen under a standard normal prior and unit noise."""
    prior = models.GaussianLinear().prior(Z.shape[1])
    return observed_rows(Z, y, np.ones(len(Z)) if counts is None else counts, prior)


def problem(model, n=14, d=3, seed=0):
    """Data, counts other than one, and the model with a prior of d columns."""
    data = gaussian_data(n, d, seed)
    if d != 3:
        model = type(model)(prior_mean=0.2, prior_cov=covariance(d))
    return model, data, np.random.default_rng(seed + 1).uniform(0.4, 3.0, n)


class Naive:
    """The reference by dense matrices, in the notation of the documentation."""

    def __init__(self, model, data, counts):
        known = isinstance(model, models.GaussianLinear)
        scale = np.sqrt(model.noise_variance) if known else 1.0
        self.known, self.model, self.data = known, model, data
        self.Z, y = model.design(data.X) / scale, data.y / scale
        prior = model.prior(self.Z.shape[1])
        root = np.diag(prior.root) if prior.root.ndim == 1 else prior.root
        self.S0, self.mu0 = root @ root.T, prior.mean
        self.r, self.counts, self.n = y - self.Z @ self.mu0, counts, counts.sum()
        spread = 1.5 if known else 1.5 * np.sqrt(2)
        while True:
            self.weigh(spread)
            log_s, log_kappa = self.weight @ np.log([self.noise, self.kappa]).T
            far = max(log_s, log_s + log_kappa) / 2.5 if known else 0.0
            if far <= spread:
                break
            spread = max(far, 1.1 * spread)

    def weigh(self, spread):
        """Weights of kappa on the grid that was used, E[s | kappa], from dense determinants."""
        rows = np.column_stack([self.Z @ np.linalg.cholesky(self.S0), self.r])
        used = self.scales(rows, spread)
        self.kappa = used.kappa
        K = self.Z @ self.S0 @ self.Z.T
        root = np.sqrt(self.counts)
        weight, noise = [], []
        for kappa in self.kappa:
            M = np.eye(len(K)) + kappa * root[:, None] * K * root
            Q = (root * self.r) @ np.linalg.solve(M, root * self.r)
            log_det = np.linalg.slogdet(M)[1]
            if self.known:
                log_s = np.linspace(-40, 20, 60001)
                height = (
                    -self.n / 2 * log_s
                    - Q / 2 * np.exp(-log_s)
                    - log_s**2 / (2 * spread**2)
                    - (log_s + np.log(kappa)) ** 2 / (2 * spread**2)
                )
                top = height.max()
                density = np.exp(height - top)
                weight.append(top + np.log(density.sum()) - log_det / 2)
                noise.append(density @ np.exp(log_s) / density.sum())
            else:
                weight.append(
                    -self.n / 2 * np.log(Q) - log_det / 2 - np.log(kappa) ** 2 / (2 * spread**2)
                )
                noise.append(Q / (self.n - 2))
        weight = np.exp(np.array(weight) - max(weight))
        self.weight, self.noise = weight / weight.sum(), np.array(noise)

    def scales(self, rows, spread):
        scale_prior = (scales.AroundKnownVariance if self.known else scales.UnknownVariance)(spread)
        root = np.sqrt(self.counts)
        left, sigma, _ = np.linalg.svd(root[:, None] * rows[:, :-1], full_matrices=False)
        g = left.T @ (root * rows[:, -1])
        rest = max(float((root * rows[:, -1]) @ (root * rows[:, -1]) - g @ g), 0.0)
        return scales._weighed(scales.Spectrum(sigma**2, g, rest, self.n), scale_prior)

    def coefficients(self, kappa, phi=1.0):
        """Mean of theta - mu0 and covariance / s at phi / kappa."""
        P = phi / kappa * np.linalg.inv(self.S0) + (self.Z.T * self.counts) @ self.Z
        S = np.linalg.inv(P)
        return S @ (self.Z.T @ (self.counts * self.r)), phi * S

    def residuals(self):
        """Squared residuals / (1 - leverage), and leverages, at each kappa.

        By rows, M^-1 with M = I + kappa W^1/2 K W^1/2: there are no differences of near-equals
        where rows are fewer than columns.
        """
        root, K = np.sqrt(self.counts), self.Z @ self.S0 @ self.Z.T
        for kappa in self.kappa:
            inverse = np.linalg.inv(np.eye(len(K)) + kappa * root[:, None] * K * root)
            h = (1 - np.diag(inverse)) / self.counts
            if self.Z.shape[0] > self.Z.shape[1]:
                S = self.coefficients(kappa)[1]
                np.testing.assert_allclose(h, np.einsum("ij,jk,ik->i", self.Z, S, self.Z))
            kept = np.where(self.counts < 1, np.diag(inverse), 1 - h)
            yield (inverse @ (root * self.r) / root) ** 2 / kept, h

    def phi(self):
        total = 0.0
        for (square, h), weight, noise in zip(
            self.residuals(), self.weight, self.noise, strict=True
        ):
            total += weight * np.log(self.counts * h @ square / (self.counts @ h * noise))
        return np.exp(total)

    def predictive(self, beta):
        """Loss of two-point responses at the rows seen and along the axes."""
        phi, w, d = self.phi(), self.weight, self.Z.shape[1]
        rho, share = self.intensity(), self.counts / self.n
        fits = [self.coefficients(kappa, phi) for kappa in self.kappa]
        mbar = sum(wk * m for wk, (m, _) in zip(w, fits, strict=True))
        cov = sum(
            wk * (s * S + np.outer(m - mbar, m - mbar))
            for wk, s, (m, S) in zip(w, self.noise, fits, strict=True)
        )
        z = np.vstack([self.Z, np.diag(np.sqrt(d * (share @ self.Z**2)))])
        own = sum(wk * square for wk, (square, _) in zip(w, self.residuals(), strict=True))
        noise = np.r_[own * (w @ self.noise) / (share @ own), np.full(d, w @ self.noise)]
        P = np.linalg.inv(self.S0) + beta * (self.Z.T * self.data.weights) @ self.Z
        V = np.linalg.inv(P)
        M = V @ (beta * self.Z.T @ (self.data.weights * self.r))
        v = np.einsum("ij,jk,ik->i", z, V, z)
        spread = np.sqrt(np.einsum("ij,jk,ik->i", z, cov, z) + noise)
        error = z @ (mbar - M) + np.array([[-1.0], [1.0]]) * spread
        if self.known:
            loss = 0.5 * (error**2 / (1 + v) + np.log(1 + v))
        else:
            a = self.model.a + beta * self.data.size / 2
            b = self.model.b + (beta * self.data.weights @ self.r**2 - M @ P @ M) / 2
            loss = -stats.t.logpdf(error, df=2 * a, scale=np.sqrt(b / a * (1 + v)))
        return loss.mean(axis=0) @ np.r_[(1 - rho) * share, np.full(d, rho / d)]

    def second_moment(self):
        A = (self.Z.T * self.counts) @ self.Z / self.n
        return A + self.intensity() * (np.diag(np.diag(A)) - A)

    def intensity(self):
        """Least squares over three scales, each row deleted for real; no more than Ledoit-Wolf."""
        A = (self.Z.T * self.counts) @ self.Z / self.n
        gap, wanted = [], []
        for kappa in (0.1, 1.0, 10.0):
            prior = np.linalg.inv(self.S0) / kappa
            V = np.linalg.inv(prior + (self.Z.T * self.counts) @ self.Z)
            left_out = 0.0
            for i, z in enumerate(self.Z):
                others = self.counts.copy()
                others[i] -= min(others[i], 1.0)
                left = np.linalg.inv(prior + (self.Z.T * others) @ self.Z)
                left_out += self.counts[i] / self.n * (z @ left @ z)
            gap.append(np.trace((np.diag(np.diag(A)) - A) @ V))
            wanted.append(left_out - np.trace(A @ V))
        least = np.linalg.lstsq(np.array(gap)[:, None], np.array(wanted))[0][0]
        return min(np.clip(least, 0.0, 1.0), shrinkage_intensity(self.Z, self.counts))

    def curve(self, beta):
        """Step 4: the first bracket, the trace, and the losses of each noise."""
        A, phi, w = self.second_moment(), self.phi(), self.weight
        fits = [self.coefficients(kappa, phi) for kappa in self.kappa]
        mbar = sum(wk * m for wk, (m, _) in zip(w, fits, strict=True))
        P = np.linalg.inv(self.S0) + beta * (self.Z.T * self.data.weights) @ self.Z
        V = np.linalg.inv(P)
        M = V @ (beta * self.Z.T @ (self.data.weights * self.r))
        D = mbar - M
        first = D @ A @ D + w @ self.noise
        for wk, s, (m, S) in zip(w, self.noise, fits, strict=True):
            first += wk * (s * np.trace(A @ S) + (m - mbar) @ A @ (m - mbar))
        if self.known:
            return (first + np.trace(A @ V)) / 2
        a = self.model.a + beta * self.data.size / 2
        misfit = beta * self.data.weights @ self.r**2 - M @ P @ M
        b = self.model.b + misfit / 2
        from scipy.special import digamma

        return 0.5 * (np.trace(A @ V) + a / b * first + np.log(b) - digamma(a) + np.log(2 * np.pi))


SHAPES = [(14, 3), (9, 9), (6, 11), (30, 2)]


@pytest.mark.parametrize("n, d", SHAPES)
@pytest.mark.parametrize("base", [KNOWN, UNKNOWN], ids=["known", "unknown"])
class TestFormulae:
    def test_the_curve_is_that_of_dense_matrices(self, base, n, d):
        model, data, counts = problem(base, n, d)
        curve = model.reference_curve(data, counts)
        naive = Naive(model, data, counts)
        np.testing.assert_allclose(curve(BETAS), [naive.curve(b) for b in BETAS], rtol=1e-7)

    def test_the_predictive_curve_is_that_of_dense_matrices(self, base, n, d):
        model, data, counts = problem(base, n, d)
        curve = model.reference_curve(data, counts, "predictive")
        naive = Naive(model, data, counts)
        np.testing.assert_allclose(curve(BETAS), [naive.predictive(b) for b in BETAS], rtol=1e-7)

    @pytest.mark.parametrize("risk", RISKS)
    def test_slopes_are_finite_differences(self, base, n, d, risk):
        model, data, counts = problem(base, n, d)
        curve = model.reference_curve(data, counts, risk)
        beta = BETAS[1:]
        step = 1e-5 * beta
        differences = (curve(beta + step) - curve(beta - step)) / (2 * step)
        _, slope = curve(beta, derivative=True)
        np.testing.assert_allclose(slope, differences, rtol=1e-5, atol=1e-7 * np.abs(slope).max())


class NaiveFirstForm(Naive):
    """Ledoit and Wolf's intensity, and the deviation of one scale for unknown variance."""

    def weigh(self, spread):
        super().weigh(1.5)

    def intensity(self):
        return shrinkage_intensity(self.Z, self.counts)


@pytest.mark.parametrize("n, d", [(14, 3), (9, 9)])
@pytest.mark.parametrize("base", [KNOWN, UNKNOWN], ids=["known", "unknown"])
def test_the_first_form_is_that_of_dense_matrices(base, n, d):
    model, data, counts = problem(base, n, d)
    curve = FirstDescribed().reference(model, data, counts, "gibbs")
    naive = NaiveFirstForm(model, data, counts)
    np.testing.assert_allclose(curve(BETAS), [naive.curve(beta) for beta in BETAS], rtol=1e-7)


@pytest.mark.parametrize("base", [KNOWN, UNKNOWN], ids=["known", "unknown"])
def test_the_scales_are_a_posterior_of_free_scales(base):
    """A grid over both scales with the density of y itself knows no eigenbasis."""
    model, data, _ = problem(base)
    naive = Naive(model, data, np.ones(len(data)))
    K = naive.Z @ naive.S0 @ naive.Z.T
    log_s, log_kappa = np.linspace(-6, 9, 151), np.log(naive.kappa)[::2]
    total, mean_s, mean_theta = 0.0, 0.0, 0.0
    for lk in log_kappa:
        m, _ = naive.coefficients(np.exp(lk))
        for ls in log_s:
            cov = np.exp(ls) * (np.eye(len(K)) + np.exp(lk) * K)
            height = stats.multivariate_normal.logpdf(naive.r, np.zeros(len(K)), cov)
            if naive.known:
                height += stats.norm.logpdf([ls, ls + lk], scale=1.5).sum()
            else:
                height += stats.norm.logpdf(lk, scale=1.5 * np.sqrt(2))
            weight = np.exp(height)
            total += weight
            mean_s += weight * np.exp(ls)
            mean_theta += weight * m
    assert mean_s / total == pytest.approx(naive.weight @ naive.noise, rel=2e-3)
    expected = sum(
        w * naive.coefficients(k)[0] for w, k in zip(naive.weight, naive.kappa, strict=True)
    )
    np.testing.assert_allclose(mean_theta / total, expected, rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("base", [KNOWN, UNKNOWN], ids=["known", "unknown"])
def test_the_curve_is_the_mean_loss_of_draws(base):
    model, data, counts = problem(base, 14, 3, seed=4)
    naive = Naive(model, data, counts)
    rng, size, beta = np.random.default_rng(0), 200_000, 0.7
    phi = naive.phi()
    drawn = rng.choice(len(naive.kappa), size=size, p=naive.weight)
    fits = [naive.coefficients(kappa, phi) for kappa in naive.kappa]
    means = np.array([m for m, _ in fits])
    roots = np.array(
        [np.linalg.cholesky(s * S) for s, (_, S) in zip(naive.noise, fits, strict=True)]
    )
    theta = means[drawn] + np.einsum("nij,nj->ni", roots[drawn], rng.standard_normal((size, 3)))
    z = rng.standard_normal((size, 3)) @ np.linalg.cholesky(naive.second_moment()).T
    noise = np.sqrt(naive.noise[drawn]) * rng.standard_normal(size)
    unit = np.sqrt(model.noise_variance) if naive.known else 1.0
    y = unit * ((z * (naive.mu0 + theta)).sum(axis=1) + noise)
    posterior = model.posterior(data.X, data.y, beta * data.size, data.weights)
    draws = posterior.sample(size, rng)
    variance = model.noise_variance if naive.known else draws[:, 3]
    loss = (y - unit * (z * draws[:, :3]).sum(axis=1)) ** 2 / (2 * variance)
    if not naive.known:
        loss += np.log(2 * np.pi * variance) / 2
    error = loss.std() / np.sqrt(size)
    curve = model.reference_curve(data, counts)
    assert abs(loss.mean() - curve(beta)) < 4 * error
    assert abs(loss.mean() - curve(0.2)) > 8 * error  # another posterior has another risk


@pytest.mark.parametrize("base", [KNOWN, UNKNOWN], ids=["known", "unknown"])
def test_predictive_risk_is_below_gibbs_risk(base):
    model, data, counts = problem(base)
    gibbs, predictive = (model.reference_curve(data, counts, risk)(BETAS) for risk in RISKS)
    assert np.all(predictive < gibbs)


def test_predictive_risk_of_a_mean_is_exact():
    """One column of ones leaves nothing to approximate: the loss is quadratic in y."""
    model, data = models.GaussianMean(1.5, 0.2, 0.7), gaussian_data()
    counts = np.ones(len(data))
    naive = Naive(models.GaussianLinear(1.5, 0.2, 0.7), Data(np.ones((14, 1)), *_yw(data)), counts)
    for beta in BETAS:
        square = 2 * naive.curve(beta)
        variance = 1 / (1 / 0.7 + beta * data.size / 1.5) / 1.5
        expected = 0.5 * ((square - variance) / (1 + variance) + np.log1p(variance))
        assert model.reference_curve(data, counts, "predictive")(beta) == pytest.approx(expected)


def _yw(data):
    return data.y, data.weights


def test_shrinkage_is_that_of_every_pair_of_columns():
    rng = np.random.default_rng(2)
    Z, counts = rng.standard_normal((60, 4)) @ covariance(4), rng.integers(1, 4, 60)
    X = np.repeat(Z, counts, axis=0)
    X = X / np.sqrt((X**2).mean(axis=0))
    top = bottom = 0.0
    for i in range(4):
        for j in range(4):
            if i != j:
                product = X[:, i] * X[:, j]
                top += product.var() / len(X)
                bottom += product.mean() ** 2
    assert 0 < top / bottom < 1
    assert shrinkage_intensity(Z, counts.astype(float)) == pytest.approx(top / bottom)
    assert shrinkage_intensity(Z * [1, 5, 0.1, 2], counts.astype(float)) == pytest.approx(
        top / bottom
    )


def test_shrinkage_keeps_to_its_ends():
    assert shrinkage_intensity(np.ones((5, 1)), np.ones(5)) == 0.0
    assert shrinkage_intensity(np.zeros((5, 2)), np.ones(5)) == 0.0
    assert shrinkage_intensity(np.eye(5), np.ones(5)) == 0.0
    for seed in range(20):  # a constant and an input that was centred
        x = np.random.default_rng(seed).exponential(size=50)
        Z = np.column_stack([np.ones(50), (x - x.mean()) / x.std()])
        assert shrinkage_intensity(Z, np.ones(50)) == 0.0
    wide = np.random.default_rng(0).standard_normal((10, 40))
    assert 0.5 < shrinkage_intensity(wide, np.ones(10)) <= 1.0
    tall = np.random.default_rng(0).standard_normal((5000, 2)) @ [[1, 1], [0, 0.1]]
    assert shrinkage_intensity(tall, np.ones(5000)) < 0.01


def test_rows_left_out_decide_how_far_to_shrink():
    rng = np.random.default_rng(0)

    def intensities(Z):
        ones = np.ones(len(Z))
        axes = np.diag(np.sqrt(Z.shape[1] * (Z**2).mean(axis=0)))
        y = rng.standard_normal(len(Z))
        deletions = Deletions(observed(Z, y), 0.1, 10.0, 3)
        found = careful_intensity(deletions, axes, np.zeros(Z.shape[1]))
        naive = Naive(models.GaussianLinear(), Data(Z, y, ones), ones)
        assert found == pytest.approx(naive.intensity())
        return found, shrinkage_intensity(Z, ones)

    # Independent columns: rows left out are like Ledoit and Wolf's.
    careful, plain = intensities(rng.standard_normal((100, 60)))
    assert careful == pytest.approx(plain, abs=0.15)
    # Columns that nearly repeat each other: rows along the axes are like no row there is.
    X = rng.standard_normal((100, 3))
    twins = np.column_stack(
        [X @ rng.standard_normal(3) + 0.1 * e for e in np.eye(20) @ rng.standard_normal((20, 100))]
    )
    careful, plain = intensities(twins)
    assert careful < 0.5 * plain


def test_shrinkage_for_rows_left_out_keeps_to_its_ends():
    one = np.ones(3)
    assert left_out_intensity(one, 3 * one, 2 * one) == pytest.approx(0.5)
    assert left_out_intensity(one, 3 * one, 0.5 * one) == 0.0
    assert left_out_intensity(one, 3 * one, 9 * one) == 1.0
    assert left_out_intensity(one, one, 9 * one) == 1.0


def test_rows_in_parts_are_the_rows_as_a_whole(monkeypatch):
    data = regression(n=50, d=4)
    # Columns so much alike that rows left out decide.
    Z = data.X[:, :1] + 0.1 * data.X
    axes = np.diag(np.sqrt(4 * (Z**2).mean(axis=0)))

    def careful():
        return careful_intensity(Deletions(observed(Z, data.y), 0.1, 10.0, 3), axes, np.zeros(4))

    whole = KNOWN_PLAIN.reference_curve(data, data.weights)(BETAS)
    at_once = careful()
    assert 0 < at_once < shrinkage_intensity(Z, data.weights)
    monkeypatch.setattr(row_basis, "CACHED", 100)
    monkeypatch.setattr(new_rows, "CACHED", 100)
    monkeypatch.setattr(leave_one_out, "CACHED", 100)
    assert len(list(observed(Z, data.y).basis.parts(4))) == 5
    assert careful() == pytest.approx(at_once, rel=1e-12)
    np.testing.assert_allclose(
        KNOWN_PLAIN.reference_curve(data, data.weights)(BETAS), whole, rtol=1e-12
    )


def test_tall_rows_are_neither_decomposed_nor_tested_one_by_one(shortcuts, monkeypatch):
    data, sizes = regression(n=200, d=4), []
    original = np.linalg.svd
    monkeypatch.setattr(
        np.linalg, "svd", lambda a, *more, **k: sizes.append(a.shape) or original(a, *more, **k)
    )
    for counts, shapes in ((data.weights, []), (2 * data.weights, [(4, 4)])):
        rows = observed(data.X, data.y, counts)
        found = scales.likely_scales(rows.spectrum, scales.AroundKnownVariance())
        arguments = (deletions_for(rows, found), found, counts)
        fresh, _ = linear.reference_rows(*arguments, "gibbs")
        assert sizes == shapes and len(fresh) == 5 + 2 * (4 + 4)
    fresh, _ = linear.reference_rows(*arguments, "predictive")
    assert len(fresh) == 200 + 2 * (200 + 4)


@pytest.mark.parametrize("shape", [(20, 7), (10, 14)])
def test_one_huge_column_spoils_no_other(shape):
    """Differences of squares would: one part in 1e16 of 1e18 is no small variance."""
    data = regression(n=shape[0], d=shape[1])
    found = []
    for size in (1e6, 1e9):
        X = data.X.copy()
        X[:, 3] *= size
        curve = KNOWN_PLAIN.reference_curve(Data(X, data.y, data.weights), data.weights)
        found.append(curve(BETAS[1:]))
    np.testing.assert_allclose(*found, rtol=1e-5)


def test_a_vague_prior_is_like_a_vaguer_one():
    data = regression(n=30, d=7)
    found = [
        models.GaussianLinear(1.0, prior_cov=size).reference_curve(data, data.weights)(1.0)
        for size in (1e10, 1e16)
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-3)


def test_units_that_are_far_off_do_not_drag_the_reference_with_them(monkeypatch):
    data = regression(n=40, d=20, noise=1.0)

    def chosen():
        scaled = [Data(data.X, u * data.y, data.weights) for u in (100.0, 1000.0, 1e6)]
        return [select(KNOWN_PLAIN, each, ReferenceRisk(veto=None)).beta for each in scaled]

    near, far, farther = chosen()
    assert near == pytest.approx(far, rel=0.25) and far == pytest.approx(farther, rel=0.25)
    monkeypatch.setattr(scales, "MOST_DEVIATIONS", np.inf)
    near, far, farther = chosen()
    assert far < 0.1 * near


def test_leverage_correction_sees_noise_that_grows_with_leverage():
    rng = np.random.default_rng(0)
    Z = np.column_stack([np.ones(400), rng.standard_normal(400)])
    scale_prior = scales.UnknownVariance()
    for power, low, high in ((0.0, 0.8, 1.25), (1.0, 1.5, 4.0)):
        r = rng.standard_normal(400) * np.abs(Z[:, 1]) ** power
        rows = observed(Z, r)
        found = scales.likely_scales(rows.spectrum, scale_prior)
        phi = noise_at_leverage(deletions_for(rows, found), found)
        assert low < phi < high


def select(model, data, strategy=None, bounds=(0.0, 3.0), risk="gibbs"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundWarning)
        rule = ReferenceRisk() if strategy is None else strategy
        return calibrate(
            model, data.X, data.y, rule, bounds=bounds, risk=risk, weights=data.weights
        )


def summary(calibration):
    names = ("beta", "risk", "bayes_risk", "standard_error", "gain_standard_error")
    return [getattr(calibration, name) for name in names]


def regression(seed=0, n=40, d=20, noise=3.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return Data(X, X[:, 0] + noise * rng.standard_normal(n), np.ones(n))


class TestLaws:
    @pytest.mark.parametrize("duplicates", ["auto", "together", "apart"])
    @pytest.mark.parametrize("base", [KNOWN, UNKNOWN], ids=["known", "unknown"])
    def test_weight_k_is_k_copies(self, base, duplicates):
        data = gaussian_data()
        counts = np.random.default_rng(0).integers(1, 4, 14)
        rule = ReferenceRisk(duplicates=duplicates)
        weighted = select(base, Data(data.X, data.y, counts.astype(float)), rule)
        copied = Data(
            *(np.repeat(p, counts, axis=0) for p in (data.X, data.y)), np.ones(counts.sum())
        )
        np.testing.assert_allclose(
            summary(select(base, copied, rule)), summary(weighted), rtol=1e-6
        )

    @pytest.mark.parametrize("base", [KNOWN, UNKNOWN], ids=["known", "unknown"])
    def test_the_order_of_rows_plays_no_part(self, base):
        data, order = gaussian_data(), np.random.default_rng(1).permutation(14)
        mixed = Data(data.X[order], data.y[order], data.weights[order])
        np.testing.assert_allclose(
            summary(select(base, mixed)), summary(select(base, data)), rtol=1e-12
        )

    def test_units_play_no_part(self):
        data, c, columns = regression(), 7.0, np.geomspace(0.1, 10, 20)
        model = models.GaussianLinear(2.0, 0.1, 1.5)
        scaled = models.GaussianLinear(2.0 * c**2, 0.1 * c / columns, 1.5 * c**2 / columns**2)
        other = Data(data.X * columns, data.y * c, data.weights)
        first, second = select(model, data), select(scaled, other)
        np.testing.assert_allclose(summary(second), summary(first), rtol=1e-6)

    def test_a_shift_of_prior_and_response_plays_no_part(self):
        data = regression()
        moved = Data(data.X, data.y + data.X @ np.full(20, 0.5), data.weights)
        first = select(UNKNOWN_PLAIN, data)
        second = select(models.NormalInverseGammaLinear(prior_mean=0.5), moved)
        np.testing.assert_allclose(summary(second), summary(first), rtol=1e-6)

    def test_seeds_play_no_part(self):
        data = regression(n=30, d=30, noise=8.0)
        found = {
            calibrate(SMALL_VARIANCE, data.X, data.y, "reference-risk", seed=seed).beta
            for seed in (0, 1, None)
        }
        assert len(found) == 1

    def test_copies_of_all_rows_are_noticed(self):
        """Twice the rows twice: the posterior must count each half as much, no more is known."""
        data = regression(n=30, d=30, noise=8.0)
        twice = Data(np.tile(data.X, (2, 1)), np.tile(data.y, 2), np.ones(60))
        once = select(SMALL_VARIANCE, data)
        both = select(SMALL_VARIANCE, twice)
        assert 0.05 < once.beta < 1
        assert both.beta == pytest.approx(once.beta / 2, rel=1e-6)
        apart = select(SMALL_VARIANCE, twice, ReferenceRisk(duplicates="apart"))
        assert apart.beta > 1.2 * both.beta


KNOWN_PLAIN, UNKNOWN_PLAIN = models.GaussianLinear(0.1), models.NormalInverseGammaLinear()
SMALL_VARIANCE = models.GaussianLinear(8.0)


class TestRule:
    @pytest.mark.parametrize("risk", RISKS)
    @pytest.mark.parametrize("model", [KNOWN_PLAIN, UNKNOWN_PLAIN], ids=["known", "unknown"])
    def test_without_veto_it_is_the_minimum_of_the_reference(self, model, risk):
        data = regression()
        found = select(model, data, ReferenceRisk(veto=None), risk=risk)
        curve = model.reference_curve(data, data.weights, risk)
        grid = np.linspace(0, 3, 3001)
        assert found.risk == pytest.approx(found.curve(found.beta), rel=1e-12)
        assert found.risk <= curve(grid).min() + 1e-9
        assert found.bayes_risk == pytest.approx(curve(1.0))
        assert np.isnan(found.standard_error)
        assert "reference model with free scales" in repr(found)

    @pytest.mark.parametrize("model", [KNOWN_PLAIN, UNKNOWN_PLAIN], ids=["known", "unknown"])
    def test_errors_are_those_of_leave_one_out(self, model):
        data = regression()
        found = select(model, data)
        curve = model.risk_curve(data, LeaveOneOut(data.weights))
        loss, share = curve.rows(found.beta)
        bayes, _ = curve.rows(1.0)
        inflation = error_inflation(model, data, found.beta)
        assert inflation > 1.5
        expected = inflation * mean_and_error(loss, share, share)[1]
        assert found.standard_error == pytest.approx(expected)
        expected = inflation * mean_and_error(bayes - loss, share, share)[1]
        assert found.gain_standard_error == pytest.approx(expected)
        assert found.risk == pytest.approx(model.reference_curve(data, data.weights)(found.beta))

    @pytest.mark.parametrize("seed", range(6))
    @pytest.mark.parametrize("veto", [0.1, 0.5, 2.0])
    @pytest.mark.slow
    def test_the_veto_takes_the_closest_that_leave_one_out_tolerates(self, seed, veto):
        data = regression(seed, n=16, d=12, noise=2.0)
        model = models.GaussianLinear(1.0)
        free = select(model, data, ReferenceRisk(veto=None)).beta
        found = select(model, data, ReferenceRisk(veto=veto))
        curve = model.risk_curve(data, LeaveOneOut(data.weights))
        least = select(model, data, LeaveOneOut()).beta
        base, share = curve.rows(least)

        def excess(beta):
            difference, error = mean_and_error(curve.rows(beta)[0] - base, share, data.weights)
            return difference - veto * error

        grid = np.concatenate([np.geomspace(1e-5, 3, 4000), [least]])
        tolerated = np.array([excess(beta) <= 0 for beta in grid])
        distance = np.abs(np.log(grid / free))
        assert excess(found.beta) <= 1e-12
        assert abs(np.log(found.beta / free)) <= distance[tolerated].min() + 1e-9

    def test_the_veto_is_heard(self):
        """A tenth of a standard error forces leave-one-out's choice in at least one data set."""
        moved = 0
        for seed in range(6):
            data = regression(seed, n=16, d=12, noise=2.0)
            free, bound = (
                select(models.GaussianLinear(1.0), data, ReferenceRisk(veto=veto)).beta
                for veto in (None, 0.1)
            )
            moved += free != bound
        assert moved > 2

    @pytest.mark.parametrize("bounds", [(0.0, 3.0), (0.3, 0.9), (1.0, 20.0)])
    def test_the_choice_keeps_to_the_bounds(self, bounds):
        for seed in range(4):
            found = select(KNOWN_PLAIN, regression(seed), ReferenceRisk(veto=0.2), bounds)
            assert bounds[0] <= found.beta <= bounds[1]
            assert found.at_bound == (found.beta in bounds)

    def test_a_bound_is_warned_of(self):
        data = regression(noise=0.1)
        with pytest.warns(BoundWarning, match="upper bound"):
            calibrate(
                models.GaussianLinear(9.0), data.X, data.y, ReferenceRisk(), risk="predictive"
            )

    @pytest.mark.parametrize("veto", [2.0, None])
    def test_results_can_be_sent_to_other_processes(self, veto):
        import pickle

        found = select(KNOWN_PLAIN, regression(), ReferenceRisk(veto))
        again = pickle.loads(pickle.dumps(found))
        np.testing.assert_array_equal(summary(again), summary(found))
        assert again.curve(0.3) == found.curve(0.3)

    def test_presets(self):
        rng = np.random.default_rng(0)
        y = 1 + rng.standard_normal(30)
        mean = calibrate(models.GaussianMean(0.02, 0.0, 0.1), None, y, ReferenceRisk())
        x = rng.uniform(-1, 1, 30)
        curve = calibrate(models.Polynomial(8, 0.01), x, x**2 + y, ReferenceRisk())
        assert 0 < mean.beta <= 3 and 0 < curve.beta < 0.5

    @pytest.mark.parametrize("model", [KNOWN_PLAIN, UNKNOWN_PLAIN], ids=["known", "unknown"])
    @pytest.mark.parametrize("case", ["response 0", "inputs 0", "huge", "collinear", "fitted"])
    def test_strange_data(self, model, case):
        data = regression()
        X, y = data.X.copy(), data.y.copy()
        if case == "response 0":
            y[:] = 0
        elif case == "inputs 0":
            X[:] = 0
        elif case == "huge":
            y *= 1e6
        elif case == "collinear":
            X[:, 1:] = X[:, :1]
        else:
            y = X @ np.ones(20)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TemperanceWarning)
            found = calibrate(model, X, y, ReferenceRisk())
        assert 0 <= found.beta <= 3 and np.isfinite(found.risk)

    @pytest.mark.parametrize("n", [2, 3])
    def test_few_rows(self, n):
        data = regression(n=n)
        assert 0 <= select(KNOWN_PLAIN, data).beta <= 3
        if n == 3:
            assert 0 <= select(UNKNOWN_PLAIN, data).beta <= 3


class TestRefusals:
    def test_models_without_a_reference(self):
        model = models.LaplaceLogistic()
        assert not isinstance(model, HasReference)
        with pytest.raises(ValueError, match=r"a reference .* got LaplaceLogistic; use KFold"):
            calibrate(model, [[1.0], [2.0], [3.0]], [0, 1, 1], ReferenceRisk())

    @pytest.mark.parametrize(
        "options, message",
        [
            ({"veto": 0.0}, "veto must be positive, got 0.0"),
            ({"veto": -1.0}, "veto must be positive, got -1.0"),
            ({"duplicates": "both"}, "duplicates must be one of"),
        ],
    )
    def test_options(self, options, message):
        with pytest.raises(ValueError, match=message):
            ReferenceRisk(**options)

    def test_draws(self):
        data = regression()
        with pytest.raises(ValueError, match="optimiser must be 'deterministic'"):
            calibrate(KNOWN_PLAIN, data.X, data.y, ReferenceRisk(), optimiser="stochastic")

    def test_too_few_rows(self):
        with pytest.raises(ValueError, match="at least 2 distinct rows .* veto, got 1"):
            calibrate(KNOWN_PLAIN, [[1.0], [1.0]], [2.0, 2.0], ReferenceRisk())
        with pytest.raises(ValueError, match="must hold more than 2 .* got 2"):
            calibrate(UNKNOWN_PLAIN, [[1.0], [2.0]], [2.0, 2.0], ReferenceRisk())


def test_its_name_stands_for_it():
    assert strategies.strategy_named("reference-risk") == ReferenceRisk()
    assert strategies.strategy_named("reference-risk", veto=None) == ReferenceRisk(None)
    with pytest.raises(ValueError, match="did you mean 'reference-risk'"):
        strategies.strategy_named("referencerisk")


@pytest.mark.slow
def test_it_beats_ten_folds_where_the_variance_is_far_too_small():
    """The setting n = d = 40 with variance 64 in place of 8, paired over data sets."""
    from temperance_studies.study import compare
    from temperance_studies.thesis.settings import thesis_settings

    setting = thesis_settings("as-coded")["linear-40-40-8"]
    table = compare([setting], {"k": KFold(), "r": ReferenceRisk()}, 60, seed=11, n_jobs=1)
    excess = table.pivot(index="repetition", columns="strategy", values="excess")
    difference = excess["k"] - excess["r"]
    assert difference.mean() > 2 * difference.std() / np.sqrt(60)


def test_responses_without_noise_of_any_weight_have_a_reference():
    strategy = strategies.ReferenceRisk(veto=None, duplicates="apart")
    found = calibrate(models.GaussianMean(), None, np.zeros(9), strategy, weights=[1e8] * 9)
    assert np.isfinite(found.risk)
