"""Rules for the learning rate: information, sandwich, coverage; choices without a risk curve."""

import pickle
import warnings

import numpy as np
import pytest
from scenarios import HIERARCHICAL, LINEAR, LOGISTIC, data_for, gaussian_data, table_of
from scipy import optimize, special, stats

from temperance import calibrate, losses, models, strategies
from temperance.data import Data
from temperance.messages import BoundWarning, PriorWarning
from temperance.models.glm.information import bandwidth
from temperance.plans import joined_rows
from temperance.strategies import (
    RATES,
    Coarsened,
    Coverage,
    FisherInformation,
    FittedCoverage,
    PriorInformation,
    SafeBayes,
    Sandwich,
)
from temperance.strategies.coverage import resampled
from temperance.strategies.rate import by_size, jackknife_range
from temperance.uncertainty.information import Units, rates_by_direction

MODELS = LINEAR | {name: LOGISTIC[name] for name in LOGISTIC if name != "backprop"}
MODELS |= HIERARCHICAL
FAR = (0.0, 1e6)


def scattered(n=60, seed=0, weights=True):
    """Return rows with noise of standard deviation |x|, an intercept and weights."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.standard_normal((n, 3))])
    y = X @ [1.0, 2.0, 0.0, -1.0] + np.abs(X[:, 1]) * rng.standard_normal(n)
    w = rng.integers(1, 4, n).astype(float) if weights else np.ones(n)
    return Data(X, y, w)


def labelled(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.standard_normal((n, 2))])
    y = (rng.random(n) < special.expit(X @ [0.3, 1.0, -0.5])).astype(float)
    return Data(X, y, rng.integers(1, 4, n).astype(float))


CASES = {
    "known": (models.GaussianLinear(2.0, 0.3, [1.0, 2.0, 3.0, 4.0]), scattered()),
    "unknown": (models.NormalInverseGammaLinear(2.0, 3.0, 0.1, 5.0), scattered()),
    "laplace": (models.LaplaceLogistic(0.1, [1.0, 2.0, 3.0]), labelled()),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def chosen(model, data, strategy, **options):
    options = {"bounds": FAR, "weights": data.weights} | options
    return calibrate(model, data.X, data.y, strategy, **options)


def row_losses(model, data, theta):
    """Return the loss of each row; coefficients alone where the variance is fitted."""
    if isinstance(model, models.NormalInverseGammaLinear | models.HierarchicalLinear):
        best = np.linalg.lstsq(
            np.sqrt(data.weights)[:, None] * data.X, np.sqrt(data.weights) * data.y
        )[0]
        s2 = np.average((data.y - data.X @ best) ** 2, weights=data.weights)
        return (data.y - data.X @ theta) ** 2 / (2 * s2)
    return model.loss(theta[None], data.X, data.y)[0]


def naive_information(model, data, theta, step=1e-4):
    """Return scores and curvature by finite differences of the losses."""
    p = len(theta)
    up, down = (
        [row_losses(model, data, theta + move) for move in sign * step * np.eye(p)]
        for sign in (1, -1)
    )
    scores = (np.array(up) - np.array(down)).T / (2 * step)

    def mean(at):
        return np.average(row_losses(model, data, at), weights=data.weights)

    e = step * np.eye(p)
    J = np.array(
        [
            [
                (
                    mean(theta + a + b)
                    - mean(theta + a - b)
                    - mean(theta - a + b)
                    + mean(theta - a - b)
                )
                / (4 * step**2)
                for a in e
            ]
            for b in e
        ]
    )
    return scores, J


def matrices(model, data):
    """Return the minimiser, J and I, the last by a plain sum."""
    found = model.information(data)
    w = data.weights
    return found, found.curvature, (found.scores.T * w) @ found.scores / w.sum()


class TestInformation:
    @pytest.mark.parametrize("name", MODELS)
    def test_is_that_of_the_losses(self, name):
        model, data = MODELS[name], data_for(name)
        found = model.information(data)
        scores, J = naive_information(model, data, found.minimiser)
        np.testing.assert_allclose(found.scores, scores, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(found.curvature, J, rtol=1e-5, atol=1e-6)
        # The prior does not enter: the weighted scores cancel.
        size = np.abs(found.scores).max()
        np.testing.assert_allclose(data.weights @ found.scores, 0.0, atol=1e-9 * size)

    @pytest.mark.parametrize("name", MODELS)
    def test_weights_are_copies(self, name):
        model, data = MODELS[name], data_for(name)
        times = np.random.default_rng(0).integers(1, 4, len(data))
        weighted = model.information(Data(data.X, data.y, times.astype(float)))
        n = int(times.sum())
        copies = Data(np.repeat(data.X, times, 0), np.repeat(data.y, times), np.ones(n))
        repeated = model.information(copies)
        np.testing.assert_allclose(weighted.minimiser, repeated.minimiser, rtol=1e-9)
        np.testing.assert_allclose(weighted.curvature, repeated.curvature, rtol=1e-9)
        np.testing.assert_allclose(
            np.repeat(weighted.scores, times, axis=0), repeated.scores, rtol=1e-7, atol=1e-10
        )

    def test_covariances_are_those_of_statsmodels(self):
        sm = pytest.importorskip("statsmodels.api")
        data = scattered(weights=False)
        for model in (models.GaussianLinear(3.0), models.NormalInverseGammaLinear()):
            calibration = calibrate(model, data.X, data.y, "bayes")
            fitted = sm.OLS(data.y, data.X).fit(cov_type="HC0")
            np.testing.assert_allclose(calibration.sandwich().mean, fitted.params)
            np.testing.assert_allclose(calibration.sandwich().cov, fitted.cov_params(), rtol=1e-9)
            groups = np.arange(60) // 2
            clusters = sm.OLS(data.y, data.X).fit(
                cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False}
            )
            np.testing.assert_allclose(
                calibration.sandwich(groups).cov, clusters.cov_params(), rtol=1e-9
            )
        data = labelled()
        calibration = calibrate(models.LaplaceLogistic(), data.X, data.y, Sandwich())
        fitted = sm.Logit(data.y, data.X).fit(disp=0, cov_type="HC0", tol=1e-12)
        np.testing.assert_allclose(calibration.sandwich().cov, fitted.cov_params(), rtol=1e-7)
        assert calibration.sandwich().predict(data.X).shape == (80,)
        # The rate itself, from statsmodels' covariances.
        plain = sm.Logit(data.y, data.X).fit(disp=0, tol=1e-12).cov_params()
        rate = 3 / np.trace(np.linalg.solve(plain, fitted.cov_params()))
        assert calibration.beta == pytest.approx(rate, rel=1e-7)


class TestAnyLoss:
    """Losses of a linear predictor other than the logistic one."""

    CASES = {
        "squared": losses.Squared(0.7),
        "huber": losses.Huber(0.6),
        "expectile": losses.Expectile(0.8),
        "student-t": losses.StudentT(4.0, 0.6),
        "tukey": losses.Tukey(3.0),
        "poisson": losses.Poisson(),
        "negative binomial": losses.NegativeBinomial(1.5),
        "probit": losses.Probit(),
    }

    @staticmethod
    def data_of(loss, n=60):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, 3))
        u = X @ [1.0, 0.5, -0.5]
        y = u + 0.5 * rng.standard_t(3, n)
        if loss.binary:
            y = (y > 0).astype(float)
        elif loss.likelihood and loss.discrete:
            y = rng.poisson(np.exp(0.5 * u)).astype(float)
        return Data(X, y, rng.integers(1, 4, n).astype(float))

    @pytest.mark.parametrize("name", CASES)
    def test_information(self, name):
        loss = self.CASES[name]
        model, data = models.GibbsLinear(loss, prior_cov=3.0), self.data_of(loss)
        found = model.information(data)
        assert np.abs(data.weights @ found.scores).max() < 1e-7 * np.abs(found.scores).max()

        def mean(theta):
            return np.average(loss.value(data.X @ theta, data.y), weights=data.weights)

        best = optimize.minimize(mean, found.minimiser, method="Nelder-Mead")
        assert best.fun >= mean(found.minimiser) - 1e-9
        if name not in ("huber", "expectile", "tukey"):  # whose second derivatives jump
            scores, J = naive_information(model, data, found.minimiser)
            np.testing.assert_allclose(found.scores, scores, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(found.curvature, J, rtol=1e-4, atol=1e-5)

    def test_squares_are_those_of_the_linear_model(self):
        data = scattered()
        other = models.GibbsLinear(losses.Squared(2.0), prior_cov=3.0)
        for strategy in (Sandwich(), FisherInformation(), Coverage(n_draws=100)):
            linear = chosen(models.GaussianLinear(2.0, prior_cov=3.0), data, strategy).beta
            assert chosen(other, data, strategy).beta == pytest.approx(linear, rel=1e-5)

    def test_offsets_are_added(self):
        data = self.data_of(losses.Poisson())
        rng = np.random.default_rng(1)
        exposure = rng.uniform(1.0, 3.0, len(data))
        model = models.GibbsLinear(losses.Poisson(), offset=3)
        rows = Data(np.column_stack([data.X, np.log(exposure)]), data.y, data.weights)
        found = model.information(rows)
        u = data.X @ found.minimiser + np.log(exposure)
        np.testing.assert_allclose(found.scores, (np.exp(u) - data.y)[:, None] * data.X)

    @pytest.mark.parametrize("quantile", [0.5, 0.8])
    def test_pinball_is_the_kernel_estimate_of_powell(self, quantile):
        data = self.data_of(losses.Pinball(), 200)
        X = np.column_stack([np.ones(200), data.X])
        found = models.GibbsLinear(losses.Pinball(quantile)).information(
            Data(X, data.y, data.weights)
        )
        residual = data.y - X @ found.minimiser
        below = np.average(residual < 0, weights=data.weights)
        assert below == pytest.approx(quantile, abs=0.02)
        h = bandwidth(-residual, data.weights, 1 - below)
        kernel = 0.75 * np.maximum(1 - (residual / h) ** 2, 0.0) / h  # Epanechnikov's
        J = (X.T * (data.weights * kernel)) @ X / data.size
        np.testing.assert_allclose(found.curvature, J, rtol=1e-9)
        np.testing.assert_allclose(found.scores, ((residual < 0) - quantile)[:, None] * X)

    def test_bandwidth_is_that_of_hall_and_sheather(self):
        statsmodels = pytest.importorskip("statsmodels.regression.quantile_regression")
        for shift in (0.0, 0.8):
            e = np.random.default_rng(0).standard_normal(4000) - shift
            q = np.mean(e < 0)
            width = statsmodels.hall_sheather(4000, q)
            low, high = np.quantile(e, [0.25, 0.75])
            scale = min(e.std(), (high - low) / 1.34)
            expected = scale * (stats.norm.ppf(q + width) - stats.norm.ppf(q - width))
            assert bandwidth(e, np.ones(4000), q) == pytest.approx(expected, rel=1e-3)

    @pytest.mark.parametrize("loss", [losses.Pinball(0.7), losses.Hinge()])
    def test_rates_of_losses_with_kinks(self, loss):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((150, 2))
        y = X[:, 0] + rng.standard_normal(150)
        if loss.binary:
            y = (y > 0).astype(float)
        model = models.GibbsLinear(loss, prior_cov=10.0)
        rates = [
            calibrate(model, X, y, strategy, bounds=FAR).beta
            for strategy in (Sandwich(), Coverage(n_draws=50))
        ]
        assert 0.2 < rates[0] / rates[1] < 5.0
        if isinstance(loss, losses.Pinball):  # ten times the units, a tenth of the rate
            scaled = calibrate(model, X, 10 * y, Sandwich(), bounds=FAR).beta
            assert scaled == pytest.approx(rates[0] / 10, rel=1e-6)

    def test_prior_information_needs_a_law_of_responses(self):
        loss = losses.Huber(0.6)
        with pytest.raises(ValueError, match="needs a model with prior_information"):
            chosen(models.GibbsLinear(loss), self.data_of(loss), PriorInformation())


class TestFormulae:
    def test_sandwich(self, case):
        model, data = case
        _, J, I = matrices(model, data)  # noqa: E741
        p = len(J)
        trace = p / np.trace(np.linalg.solve(J, I))
        determinant = (np.linalg.det(J) / np.linalg.det(I)) ** (1 / p)
        assert chosen(model, data, Sandwich()).beta == pytest.approx(trace)
        assert chosen(model, data, Sandwich("determinant")).beta == pytest.approx(determinant)

    def test_trace_is_the_projection_of_the_sandwich(self, case):
        """KL(N(0, V) | N(0, J^-1 / (beta n))) is smallest there."""
        model, data = case
        _, J, I = matrices(model, data)  # noqa: E741
        V = np.linalg.solve(J, np.linalg.solve(J, I).T)
        best = chosen(model, data, Sandwich()).beta

        def divergence(beta):
            return np.trace(beta * J @ V) - np.linalg.slogdet(beta * J)[1]

        for other in (0.99 * best, 1.01 * best):
            assert divergence(best) < divergence(other)

    def test_fisher(self, case):
        model, data = case
        found, J, I = matrices(model, data)  # noqa: E741
        C = np.diag(found.prior_root)
        J, I = C @ J @ C, C @ I @ C  # noqa: E741
        rate = np.trace(J @ np.linalg.inv(I) @ J.T) / np.trace(J)
        assert chosen(model, data, FisherInformation()).beta == pytest.approx(rate)

    def test_fisher_takes_a_prior_with_correlations(self):
        cov = np.array([[2.0, 0.5, 0.0, 0.0], [0.5, 1.0, 0.0, 0.0], [0, 0, 1, 0.3], [0, 0, 0.3, 1]])
        data, C = scattered(), np.linalg.cholesky(cov)
        model = models.GaussianLinear(prior_cov=cov)
        _, J, I = matrices(model, data)  # noqa: E741
        J, I = C.T @ J @ C, C.T @ I @ C  # noqa: E741
        rate = np.trace(J @ np.linalg.inv(I) @ J.T) / np.trace(J)
        assert chosen(model, data, FisherInformation()).beta == pytest.approx(rate)

    def test_prior_information(self, case):
        """D by draws from the prior, and of responses from the fitted model."""
        model, data = case
        found = model.information(data)
        rng = np.random.default_rng(1)
        draws = 40_000
        theta = model.prior(data.X.shape[1]).mean + found.prior_root * rng.standard_normal(
            (draws, data.X.shape[1])
        )
        u, fitted = data.X @ theta.T, data.X @ found.minimiser
        lengths = ((data.X * found.prior_root) ** 2).sum(axis=1)
        if isinstance(model, models.LaplaceLogistic):
            p = special.expit(fitted)
            squares = [(special.expit(u) - y) ** 2 for y in (0.0, 1.0)]
            zero, one = (lengths * each.mean(axis=1) for each in squares)
            expected, observed = (1 - p) * zero + p * one, np.where(data.y == 1, one, zero)
        else:
            s2 = np.average((data.y - fitted) ** 2, weights=data.weights)
            s2 = getattr(model, "noise_variance", s2)
            observed = lengths * ((u - data.y[:, None]) ** 2).mean(axis=1) / s2**2
            expected = lengths * (((u - fitted[:, None]) ** 2).mean(axis=1) + s2) / s2**2
        rate = np.sqrt(np.average(expected, weights=data.weights))
        rate /= np.sqrt(np.average(observed, weights=data.weights))
        assert chosen(model, data, PriorInformation()).beta == pytest.approx(rate, rel=0.01)
        # Negative control: without the prior's part the rate is another.
        if isinstance(model, models.GaussianLinear):
            without = np.sqrt(s2 / np.average((data.y - fitted) ** 2, weights=data.weights))
            assert abs(without - rate) > 0.03

    def test_prior_information_tends_to_one_under_wide_priors(self):
        data = scattered()
        rates = [
            chosen(models.GaussianLinear(9.0, prior_cov=v), data, PriorInformation()).beta
            for v in (1.0, 1e2, 1e6)
        ]
        assert rates[0] > rates[1] > rates[2] == pytest.approx(1.0, abs=1e-4)

    def test_fitted_coverage_minimises_the_loss_of_qgam(self, case):
        model, data = case
        found, J, I = matrices(model, data)  # noqa: E741
        n, Z = data.size, data.X
        P0 = np.diag(1 / found.prior_root**2)

        def loss(beta):
            P = np.linalg.inv(beta * n * J + P0)
            V = beta**2 * n * P @ I @ P
            post, sand = (np.einsum("ij,jk,ik->i", Z, S, Z) for S in (P, V))
            return np.average(np.sqrt(sand / post + np.log(post / sand)), weights=data.weights)

        best = chosen(model, data, FittedCoverage()).beta
        grid = best * np.geomspace(0.05, 20, 401)
        assert loss(best) <= min(map(loss, grid)) + 1e-12
        assert loss(best) < min(loss(0.98 * best), loss(1.02 * best))

    def test_coarsened(self):
        data = scattered()
        model = models.GaussianLinear()
        assert chosen(model, data, Coarsened(7.0)).beta == 7 / (7 + data.size)

    def test_groups_sum_scores(self, case):
        model, data = case
        groups = np.random.default_rng(2).integers(0, 30, len(data))
        found, J, _ = matrices(model, data)
        sums = np.zeros((30, len(J)))
        for g, w, s in zip(groups, data.weights, found.scores, strict=True):
            sums[g] += w * s
        I = sums.T @ sums / data.size  # noqa: E741
        rate = len(J) / np.trace(np.linalg.solve(J, I))
        assert chosen(model, data, Sandwich(groups=groups)).beta == pytest.approx(rate)
        assert chosen(model, data, Sandwich()).beta != pytest.approx(rate, rel=0.01)

    def test_rates_by_direction_and_what_is_printed(self):
        """Directions whose noise differs tenfold: no single rate fits."""
        rng = np.random.default_rng(0)
        X = np.zeros((200, 2))
        X[:100, 0] = X[100:, 1] = 1.0
        y = rng.standard_normal(200) * np.repeat([1.0, np.sqrt(10)], 100)
        model = models.GaussianLinear(prior_cov=100.0)
        calibration = calibrate(model, X, y, Sandwich(), bounds=FAR)
        expected = np.sort([1 / y[:100].var(), 1 / y[100:].var()])
        np.testing.assert_allclose(calibration.rate.by_direction, expected)
        assert calibration.beta == pytest.approx(2 / (1 / expected).sum())
        assert "by direction: no single beta fits all" in repr(calibration)
        assert "by direction" in repr(calibrate(model, X, y, FisherInformation(), bounds=FAR))
        y[100:] /= np.sqrt(10)
        assert "by direction" not in repr(calibrate(model, X, y, Sandwich()))

    def test_range_is_the_jackknife_of_the_logarithm(self):
        model, data = CASES["known"]
        units = Units(data)
        strategy = Sandwich()
        # A row of weight k is k observations, of which some may be left out.
        observations = np.repeat(np.arange(60), data.weights.astype(int))
        order = np.random.default_rng(0).permutation(observations)
        logs = []
        for block in np.array_split(order, 20):
            left = data.weights - np.bincount(block, minlength=60)
            part = Data(data.X[left > 0], data.y[left > 0], left[left > 0])
            logs.append(np.log(chosen(model, part, strategy).beta))
        error = np.sqrt(19 / 20 * ((logs - np.mean(logs)) ** 2).sum())
        beta = strategy.value(model, units)
        low, high = jackknife_range(strategy, model, units)
        assert (low, high) == pytest.approx((beta * np.exp(-2 * error), beta * np.exp(2 * error)))

    @pytest.mark.slow
    def test_range_covers_the_rate_of_many_rows(self):
        model = models.GaussianLinear()
        true = chosen(model, scattered(400_000, 1, weights=False), Sandwich()).beta
        inside = [
            low < true < high
            for seed in range(100)
            for low, high in [chosen(model, scattered(400, seed, False), Sandwich()).beta_range]
        ]
        assert np.mean(inside) > 0.8


class TestCoverage:
    @pytest.mark.parametrize("name", CASES)
    def test_levels_are_those_of_each_posterior(self, name):
        model, data = CASES[name]
        weights = resampled(Units(data), 5, np.random.default_rng(0))
        theta = model.information(data).minimiser
        levels = model.credible_levels(data, weights, theta)
        p = len(theta)
        for beta in (0.3, 2.0):
            naive = []
            for w in weights:
                posterior = model.posterior(data.X, data.y, beta * w.sum(), w)
                d = posterior.root.squared_distances((theta - posterior.mean)[None])[0]
                if name == "unknown":
                    a, b = posterior.a, posterior.b
                    naive.append(stats.f.cdf(d / p * a / b, p, 2 * a))
                else:
                    naive.append(stats.chi2.cdf(d, p))
            np.testing.assert_allclose(levels(beta), naive, rtol=1e-6)

    @pytest.mark.parametrize("name", ["jaakkola", "full", "mean-field"])
    def test_levels_of_other_approximations(self, name):
        model, data = LOGISTIC[name], data_for(name)
        weights = resampled(Units(data), 4, np.random.default_rng(0))
        theta = np.array([0.2, 0.1, -0.3])
        found = model.credible_levels(data, weights, theta)(0.7)
        for level, w in zip(found, weights, strict=True):
            posterior = model.posterior(data.X, data.y, 0.7 * w.sum(), w)
            d = posterior.root.squared_distances((theta - posterior.mean)[None])[0]
            assert level == pytest.approx(stats.chi2.cdf(d, 3), rel=1e-6)

    def test_share_of_resamples_is_the_level(self, case):
        model, data = case
        strategy = Coverage(level=0.9, n_draws=200)
        beta = chosen(model, data, strategy, seed=3).beta
        rows = by_size(joined_rows(data))
        weights = resampled(Units(rows), 200, np.random.default_rng(3))
        levels = model.credible_levels(rows, weights, model.information(rows).minimiser)
        assert np.mean(levels(beta) <= 0.9) >= 0.9 > np.mean(levels(1.001 * beta) <= 0.9)

    def test_flat_priors_have_a_closed_form(self):
        """beta = chi2 / quantile of (th_hat - th_b)' P_b (th_hat - th_b)."""
        data = scattered(weights=False)
        model = models.GaussianLinear(prior_cov=1e8)
        beta = chosen(model, data, Coverage(), seed=0).beta
        rows = by_size(joined_rows(data))
        X, y = rows.X, rows.y
        best = np.linalg.lstsq(X, y)[0]
        distances = []
        for c in resampled(Units(Data(X, y, np.ones(60))), 400, np.random.default_rng(0)):
            P = (X.T * c) @ X
            step = best - np.linalg.solve(P, X.T @ (c * y))
            distances.append(step @ P @ step)
        quantile = np.quantile(distances, 0.95, method="inverted_cdf")
        assert beta == pytest.approx(stats.chi2.ppf(0.95, 4) / quantile, rel=2e-4)

    def test_groups_are_resampled_together(self):
        data = scattered(90, weights=False)
        groups = np.arange(90) // 3
        weights = resampled(Units(data, groups), 6, np.random.default_rng(0))
        assert (weights[:, ::3] == weights[:, 1::3]).all() and (weights.sum(axis=1) == 90).all()
        # Rows tripled: with groups the rate is a third, about.
        X, y = np.repeat(data.X, 3, axis=0), np.repeat(data.y, 3)
        apart = Data(X + 0.0, y + 1e-9 * np.arange(270), np.ones(270))  # no copies
        model = models.GaussianLinear(prior_cov=100.0)
        labels = np.repeat(np.arange(90), 3)
        alone = chosen(model, data, Coverage(), seed=1).beta
        without = chosen(model, apart, Coverage(), seed=1).beta
        together = chosen(model, apart, Coverage(groups=labels), seed=1).beta
        assert without == pytest.approx(alone, rel=0.2)
        assert together == pytest.approx(alone / 3, rel=0.2)

    def test_without_a_minimiser_the_posterior_mean_is_covered(self):
        data = gaussian_data(12, 20)
        model = models.GaussianLinear(prior_cov=0.3)
        calibration = chosen(model, data, Coverage(n_draws=100), weights=None, bounds=(0, 1e3))
        assert "posterior mean" in calibration.where and calibration.beta_range is None
        rows = Data(np.array([[-1.0], [1.0], [2.0]]), np.array([0.0, 1.0, 1.0]), np.ones(3))
        separable = chosen(models.LaplaceLogistic(), rows, Coverage(n_draws=50), bounds=(0, 1e3))
        assert "posterior mean" in separable.where

    def test_the_range_is_that_of_the_resampling(self):
        data = scattered(weights=False)
        model = models.GaussianLinear(prior_cov=100.0)
        exact = chosen(model, data, Coverage(n_draws=10_000)).beta
        ranges = [chosen(model, data, Coverage(), seed=seed).beta_range for seed in range(40)]
        assert 0.85 <= np.mean([low <= exact <= high for low, high in ranges])
        # Negative control: a quarter of the width would not do.
        narrow = [(low + (high - low) * 3 / 8, high - (high - low) * 3 / 8) for low, high in ranges]
        assert np.mean([low <= exact <= high for low, high in narrow]) < 0.6

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", [0, 1])
    def test_robbins_and_monro_end_where_bisection_does(self, seed):
        """Syring and Martin's algorithm 1: one more set of resamples at every step."""
        data = scattered(80, seed, weights=False)
        model, rng = models.GaussianLinear(prior_cov=100.0), np.random.default_rng(seed)
        theta = model.information(data).minimiser
        log_beta, path = 0.0, []
        for t in range(1, 1501):
            weights = resampled(Units(data), 100, rng)
            share = np.mean(model.credible_levels(data, weights, theta)(np.exp(log_beta)) <= 0.95)
            log_beta += 3.0 * t**-0.51 * (share - 0.95)
            path.append(log_beta)
        stochastic = np.exp(np.mean(path[500:]))
        found = chosen(model, data, Coverage(n_draws=4000), seed=seed)
        assert stochastic == pytest.approx(found.beta, rel=0.04)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("n", "expected"), [(50, (0.75, 0.85, 0.94)), (400, (0.80, 0.94, 0.95))]
    )
    def test_joint_sets_cover(self, n, expected):
        """Noise of standard deviation |x_1|: sets of four coefficients by Bayes and two rates."""
        repeats, theta = 400, np.array([1.0, -1.0, 0.5, 0.0])
        model = models.NormalInverseGammaLinear(a=1.001, b=1e-3, prior_cov=1e4)
        covered = np.zeros((repeats, 3))
        for r in range(repeats):
            rng = np.random.default_rng([n, r])
            X = rng.standard_normal((n, 4))
            y = X @ theta + np.abs(X[:, 0]) * rng.standard_normal(n)
            for j, rule in enumerate(("bayes", "sandwich", "coverage")):
                found = calibrate(model, X, y, rule, bounds=(0, 30)).posterior
                d = found.root.squared_distances((theta - found.mean)[None])[0]
                covered[r, j] = d / 4 * found.a / found.b <= stats.f.ppf(0.95, 4, 2 * found.a)
        shares = covered.mean(axis=0)
        errors = 4 * np.sqrt(np.array(expected) * (1 - np.array(expected)) / repeats)
        assert (np.abs(shares - expected) < errors).all(), shares
        assert shares[0] < shares[2] - 0.08  # negative control: Bayes does not cover


class TestInvariances:
    @pytest.mark.parametrize("name", RATES)
    def test_copies_and_order_do_not_matter(self, case, name):
        model, data = case
        strategy = Coverage(n_draws=60) if name == "coverage" else strategies.strategy_named(name)
        beta = chosen(model, data, strategy).beta
        times = data.weights.astype(int)
        order = np.random.default_rng(5).permutation(times.sum())
        X, y = np.repeat(data.X, times, 0)[order], np.repeat(data.y, times)[order]
        copies = Data(X, y, np.ones(len(y)))
        assert chosen(model, copies, strategy).beta == pytest.approx(beta, rel=1e-9)

    @pytest.mark.parametrize("name", RATES)
    def test_units_of_columns_do_not_matter(self, name):
        """With the prior in the same units; the rules without a prior need not even that."""
        units = np.array([1.0, 1e3, 1e-4, 7.0])
        data = scattered()
        other = Data(data.X / units, data.y, data.weights)
        beta = chosen(models.GaussianLinear(2.0, prior_cov=np.full(4, 3.0)), data, name).beta
        same = models.GaussianLinear(2.0, prior_cov=3.0 * units**2)
        assert chosen(same, other, name).beta == pytest.approx(beta, rel=1e-6)
        if name == "coverage":
            return
        with pytest.warns(PriorWarning, match="coefficient 1, which"):
            plain = chosen(models.GaussianLinear(2.0, prior_cov=3.0), other, name).beta
        if name == "sandwich":
            assert plain == pytest.approx(beta, rel=1e-8)
        else:
            assert plain != pytest.approx(beta, rel=1e-8)

    def test_scaled_losses_have_scaled_rates(self):
        data = scattered()
        rates = [chosen(models.GaussianLinear(s2), data, Sandwich()).beta for s2 in (1.0, 5.0)]
        assert rates[1] == pytest.approx(5 * rates[0])


class TestSafeBayes:
    """Sums of a plain loop over prefixes."""

    @pytest.mark.parametrize("in_model", [False, True])
    @pytest.mark.parametrize("loss", ["log", "square"])
    @pytest.mark.parametrize("name", ["linear", "unknown variance"])
    @pytest.mark.parametrize("stride", [None, 3])
    def test_curve_is_the_loop(self, name, loss, in_model, stride):
        model, data = LINEAR[name], gaussian_data(25)
        strategy = SafeBayes(loss=loss, in_model=in_model, stride=stride)
        known = isinstance(model, models.GaussianLinear)
        plan = strategy.plan(data, np.random.default_rng(0))
        curve = table_of(model, data, plan, strategy.score(model, "gibbs"))
        for beta in (0.05, 1.3):
            total = 0.0
            for t in range(1 if stride is None else 3, 25):
                seen = 3 * (t // 3) if stride else t
                w = np.where(np.arange(25) < seen, data.weights, 0.0)
                posterior = model.posterior(data.X, data.y, beta * w.sum(), w)
                mean, v = posterior.linear_predictor(data.X[t : t + 1])
                e2, v = (data.y[t] - mean[0]) ** 2, v[0]
                if known:
                    s2 = model.noise_variance
                    squares = e2 if in_model else e2 + v
                    constant = 0.5 * np.log(2 * np.pi * s2)
                    each = squares if loss == "square" else squares / (2 * s2) + constant
                else:
                    s2 = posterior.b / (posterior.a - 1)
                    if loss == "square":
                        each = e2 if in_model else e2 + s2 * v
                    elif in_model:
                        each = 0.5 * (e2 / s2 + np.log(2 * np.pi * s2))
                    else:
                        a, b = posterior.a, posterior.b
                        each = 0.5 * (a / b * e2 + v + np.log(b) - special.digamma(a))
                        each += 0.5 * np.log(2 * np.pi)
                total += data.weights[t] * each
            tested = data.weights[1 if stride is None else 3 :].sum()
            assert curve(beta) == pytest.approx(total / tested, rel=1e-9)
        step = 1e-6
        slope = (curve(0.4 + step) - curve(0.4 - step)) / (2 * step)
        assert curve(0.4, derivative=True)[1] == pytest.approx(slope, rel=1e-6)

    def test_the_choice_is_the_minimum(self):
        data = gaussian_data(25)
        for options in ({"loss": "square"}, {"in_model": True}):
            model = LINEAR["unknown variance"]
            rule, bounds = SafeBayes(**options), (0.01, 4)
            result = calibrate(model, data.X, data.y, rule, bounds=bounds, risk="gibbs")
            assert result.risk <= result.curve(np.linspace(0.01, 4, 50)).min() + 1e-9
            assert result.risk == pytest.approx(result.curve(result.beta))

    @pytest.mark.parametrize(
        ("model", "options", "message"),
        [
            (
                models.LaplaceLogistic(),
                {},
                r"SafeBayes\(loss='square', in_model=False\) needs a linear model of a given "
                "prior, got LaplaceLogistic",
            ),
            (
                models.GaussianLinear(),
                {"risk": "predictive"},
                "has a loss of its own: risk must be 'gibbs'",
            ),
            (
                models.NormalInverseGammaLinear(a=1.0),
                {},
                "a must be above 1 for the posterior mean of the noise variance, got 1.0",
            ),
        ],
    )
    def test_what_it_cannot_do_gets_one_line(self, model, options, message):
        data = labelled()
        with pytest.raises(ValueError, match=message) as error:
            calibrate(
                model, data.X, data.y, SafeBayes(loss="square"), **{"risk": "gibbs"} | options
            )
        assert "\n" not in str(error.value)

    def test_bad_options(self):
        with pytest.raises(ValueError, match="loss must be one of 'log', 'square', got 'absolute'"):
            SafeBayes(loss="absolute")
        with pytest.raises(ValueError, match="in_model must be one of False, True, got 'yes'"):
            SafeBayes(in_model="yes")


class TestFailures:
    def refused(self, message, model, data, strategy, **options):
        with pytest.raises(ValueError, match=message) as error:
            chosen(model, data, strategy, **options)
        assert "\n" not in str(error.value)

    def test_separable_classes(self):
        X = np.column_stack([np.ones(30), np.linspace(-1, 1, 30)])
        for gap in (0.0, 0.5):  # separated, and separated but for a tie
            y = (X[:, 1] > 0).astype(float)
            rows = Data(np.r_[X, [[1.0, gap - 0.5]]], np.r_[y, 0.0], np.ones(31))
            if gap:
                rows = Data(np.r_[rows.X, [[1.0, 0.0]] * 2], np.r_[rows.y, 0.0, 1.0], np.ones(33))
            self.refused(
                "y must have a minimiser of its mean loss without the prior, got none: X separates "
                "the classes",
                models.LaplaceLogistic(),
                rows,
                Sandwich(),
            )

    def test_as_many_columns_as_rows(self):
        for model in (models.GaussianLinear(), models.NormalInverseGammaLinear()):
            for n in (12, 20):
                self.refused(
                    f"X must have fewer columns than rows .* got 20 columns and {n} rows; use "
                    r"Coverage\(\)",
                    model,
                    gaussian_data(n, 20),
                    Sandwich(),
                )

    def test_dependent_columns(self):
        data = scattered()
        X = np.column_stack([data.X, data.X[:, 1] - 2 * data.X[:, 2]])
        self.refused(
            "linearly independent columns .* got column 4 that depends",
            models.GaussianLinear(),
            Data(X, data.y, data.weights),
            FisherInformation(),
        )
        X[:, 2] = 0.0
        self.refused(
            "got column 2 that",
            models.GaussianLinear(),
            Data(X, data.y, data.weights),
            FisherInformation(),
        )

    def test_exact_fits(self):
        data = scattered()
        exact = Data(data.X, data.X[:, 1], data.weights)
        self.refused(
            "y must not be fitted exactly", models.NormalInverseGammaLinear(), exact, Sandwich()
        )
        zero = Data(data.X, np.zeros(60), data.weights)
        self.refused("needs scores that vary", models.GaussianLinear(), zero, Sandwich())

    def test_few_groups(self):
        data = scattered()
        groups = np.arange(60) % 19
        for strategy in (Sandwich(groups=groups), Coverage(groups=groups)):
            self.refused(
                "groups must hold at least 20 groups .* got 19",
                models.GaussianLinear(),
                data,
                strategy,
            )
        self.refused(
            r"groups must have shape \(60,\)",
            models.GaussianLinear(),
            data,
            Sandwich(groups=groups[:-1]),
        )
        # More columns than groups: I is singular.
        wide = gaussian_data(200, 30)
        groups = np.arange(200) % 25
        for strategy in (FisherInformation(groups), Sandwich("determinant", groups)):
            self.refused("vary in all directions", models.GaussianLinear(), wide, strategy)

    @pytest.mark.parametrize("name", RATES)
    def test_models_without_it(self, name):
        rng = np.random.default_rng(0)
        X, y = rng.standard_normal((30, 2)), np.arange(30) % 3
        data = Data(X, y.astype(float), np.ones(30))
        message = "needs a model with .* got SoftmaxLogistic"
        self.refused(message, models.SoftmaxLogistic(), data, name)

    @pytest.mark.parametrize("name", ["fisher-information", "fitted-coverage", "coverage"])
    def test_a_prior_without_a_fixed_covariance(self, name):
        data = scattered()
        model = models.HierarchicalLinear()
        self.refused("got HierarchicalLinear; give prior_scale a number", model, data, name)
        assert chosen(model, data, "sandwich").beta > 0

    def test_a_prior_that_excludes_the_minimiser(self):
        """No beta covers it: the posterior mean is covered instead, and beyond bounds nothing."""
        data = scattered()
        tight = models.GaussianLinear(prior_mean=100.0, prior_cov=0.01)
        found = chosen(tight, data, Coverage(n_draws=50), bounds=(0, 1e8))
        assert "posterior mean" in found.where and found.beta_range is None
        self.refused(
            r"bounds must hold a beta whose credible sets cover in 95% of the resamples, got none",
            tight,
            data,
            Coverage(n_draws=50),
            bounds=(1e6, 1e8),
        )

    def test_options(self):
        for bad in (
            lambda: Sandwich("mean"),
            lambda: Coverage(level=1.0),
            lambda: Coverage(n_draws=10),
            lambda: Coarsened(0.0),
        ):
            with pytest.raises(ValueError, match=r"must (be|lie)"):
                bad()

    def test_rates_outside_the_bounds(self):
        data = scattered()
        model = models.GaussianLinear(1e3)
        with pytest.warns(BoundWarning, match="Sandwich gives beta = .* not inside the bounds"):
            calibration = chosen(model, data, Sandwich(), bounds=(0, 3))
        assert calibration.at_bound and calibration.beta == 3 < calibration.rate.value
        assert "at the bound of [0, 3]" in calibration.where
        with pytest.warns(BoundWarning, match="Coverage finds no beta inside the bounds"):
            assert chosen(model, data, Coverage(), bounds=(0, 3)).beta == 3


class TestStrongPriors:
    @pytest.mark.parametrize("name", ["sandwich", "fisher-information", "prior-information"])
    @pytest.mark.parametrize("mean", [0.0, np.array([1.0, 2.0, 0.0, -1.0])], ids=["far", "near"])
    def test_said_where_the_posterior_depends_on_them(self, name, mean):
        """Against the closed form; the mean near the minimiser leaves the covariance alone."""
        data, seen = scattered(), set()
        for prior_cov in 10.0 ** np.arange(-6, 5):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = models.GaussianLinear(2.0, mean, prior_cov)
                found = chosen(model, data, name)
                target = found.sandwich(correction="HC0")
            flat = np.linalg.inv(found.beta / 2.0 * (data.X.T * data.weights) @ data.X)
            moved = np.abs(found.posterior.mean - target.mean) / target.std
            kept = found.posterior.std / np.sqrt(np.diag(flat))
            strong = bool((moved > 1).any() or (kept < 0.5).any())
            assert [each.category for each in caught] == [PriorWarning] * strong
            assert ("but the prior is not weak" in str(found)) == strong
            seen.add(strong)
        assert seen == {True, False}

    def test_the_default_prior_on_raw_columns(self):
        rng = np.random.default_rng(0)
        income = rng.gamma(3.0, 300.0, 200)
        food = 80 + 0.5 * income + 0.1 * income * rng.standard_normal(200)
        Z = np.column_stack([np.ones(200), income])
        message = r"prior is not weak .* coefficient 0, which Sandwich .* larger prior_cov"
        with pytest.warns(PriorWarning, match=message):
            narrow = calibrate(models.GibbsLinear(losses.Pinball(0.5)), Z, food, Sandwich())
        wide = calibrate(
            models.GibbsLinear(losses.Pinball(0.5), prior_cov=1e6), Z, food, Sandwich()
        )
        away = np.abs(np.array([narrow.posterior.mean, wide.posterior.mean]) - wide.sandwich().mean)
        assert (away[0] > wide.sandwich().std).all() and (away[1] < wide.sandwich().std).all()


class TestWithoutACurve:
    """Everything that reads a curve bears that there is none."""

    @pytest.fixture
    def calibration(self):
        data = scattered()
        return chosen(models.GaussianLinear(), data, Sandwich())

    def test_numbers(self, calibration):
        assert calibration.table is None
        for read in (lambda: calibration.curve(1.0), lambda: calibration.losses):
            with pytest.raises(ValueError, match="Sandwich has no (risk curve|losses of held-out)"):
                read()
        for value in (calibration.risk, calibration.bayes_risk, calibration.gain):
            assert np.isnan(value)
        assert np.isnan(calibration.standard_error) and np.isnan(calibration.gain_standard_error)
        assert calibration.versus_bayes == "no risk curve"
        low, high = calibration.beta_range
        assert low < calibration.beta < high
        assert calibration.posterior.mean.shape == (4,)

    def test_printing(self, calibration):
        lines = repr(calibration).splitlines()
        assert lines[0] == f"Calibration of GaussianLinear by {Sandwich()!r}"
        assert [line.split()[0] for line in lines[1:4]] == ["beta", "range", "rule"]
        assert "nan" not in repr(calibration)
        coarse = chosen(models.GaussianLinear(), scattered(), Coarsened(5.0))
        assert coarse.beta_range is None and "range" not in repr(coarse)

    def test_plot_is_refused_in_one_line(self, calibration):
        with pytest.raises(ValueError, match="Sandwich.* no risk curve|no risk curve.* Sandwich"):
            calibration.plot()

    @pytest.mark.parametrize("keep_data", [False, True])
    def test_stored_estimators(self, keep_data):
        from temperance import GibbsRegressor

        data = scattered()
        fitted = GibbsRegressor(strategy="sandwich", keep_data=keep_data).fit(data.X[:, 1:], data.y)
        again = pickle.loads(pickle.dumps(fitted))
        assert repr(again.calibration_) == repr(fitted.calibration_)
        assert again.calibration_.beta_range == fitted.calibration_.beta_range

    def test_groups_of_estimators(self):
        from temperance import GibbsRegressor

        data = scattered()
        groups = [f"group {i}" for i in np.arange(60) // 2]
        for strategy in ("coverage", Sandwich()):
            model = GibbsRegressor(strategy=strategy, prior_scale=1.0)
            alone, grouped = (
                model.fit(data.X[:, 1:], data.y, groups=each).inverse_temperature_
                for each in (None, groups)
            )
            assert alone != grouped

    def test_sentences(self, calibration):
        from temperance.app.explanation import explain

        text = explain(calibration)
        assert "was not chosen by risk" in text and "no single β" in text

    def test_assessed_by_folds(self, calibration):
        from temperance.strategies.rate import assessed

        known = assessed(calibration)
        assert known.beta == calibration.beta and np.isfinite(known.risk)
        assert known.beta_range == calibration.beta_range
        assert "rule" in repr(known) and "risk" in repr(known)
        assert assessed(known) is known

    @pytest.mark.parametrize("words", [(), ("--json",)])
    def test_command_report_and_saved_choice(self, words, tmp_path, monkeypatch, capsys):
        import json
        import sys

        pd = pytest.importorskip("pandas")
        pytest.importorskip("typer")
        from temperance.app.cli import main

        data = scattered()
        frame = pd.DataFrame(data.X[:, 1:], columns=list("abc")).assign(y=data.y)
        frame.to_csv(tmp_path / "data.csv", index=False)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("COLUMNS", "300")
        monkeypatch.setattr("temperance.app.cli.trials.NAMES", ("bayes",))
        monkeypatch.setattr("temperance.app.cli.trials.N_HELD_OUT_FOLDS", 2)
        command = ["temperance", "calibrate", "data.csv", "--target", "y", "-s", "sandwich"]
        command += ["--report", "page.html", "--save", "choice.json", "--compare", *words]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as left:
            main()
        out = capsys.readouterr().out
        assert left.value.code == 0
        assert (tmp_path / "page.html").stat().st_size > 10_000
        if words:
            result = json.loads(out)["results"][0]
            assert result["risk"] is None and result["beta"] > 0 and result["beta_range"][0] > 0
        else:
            assert "sandwich" in out and "nan" not in out
        from temperance.app.saved import choice

        assert choice.read(tmp_path / "choice.json").fitted.calibration_.beta > 0


class TestTargetOfEstimators:
    def test_coefficients_are_chosen_by_coverage(self):
        from temperance import GibbsClassifier, GibbsRegressor

        data, groups = scattered(), np.arange(60) // 2
        regressor = GibbsRegressor(target="coefficients")
        assert regressor.usual_strategy() == Coverage()
        known = regressor.fit(data.X[:, 1:], data.y).calibration_
        assert known.strategy == Coverage() and known.bounds == (0.0, 100.0)
        assert isinstance(known.model, models.NormalInverseGammaLinear)
        assert regressor.fit(data.X[:, 1:], data.y, groups=groups).calibration_.beta != known.beta
        other = GibbsRegressor(target="coefficients", strategy="sandwich").fit(
            data.X[:, 1:], data.y
        )
        assert other.calibration_.strategy == Sandwich()
        labels = labelled()
        classifier = GibbsClassifier(posterior="laplace", target="coefficients")
        chosen_by = classifier.fit(labels.X[:, 1:], labels.y).calibration_.strategy
        assert chosen_by == Sandwich(correction="HC3")
        apart = (labels.X[:, 1] > 0).astype(float)  # no minimiser without the prior
        assert classifier.fit(labels.X[:, 1:], apart).calibration_.strategy == Coverage()
        with pytest.raises(ValueError, match="got SoftmaxLogistic$"):
            classifier.fit(labels.X[:, 1:], np.arange(80) % 3)

    @pytest.mark.slow
    def test_intervals_of_coefficients_cover(self):
        from temperance import GibbsRegressor

        theta, covered = np.array([1.0, -1.0, 0.5, 0.0, 0.0]), {"coefficients": [], "draws": []}
        for r in range(200):
            rng = np.random.default_rng([100, r])
            X = rng.standard_normal((100, 5))
            y = 2 + X @ theta + rng.standard_normal(100)
            for target, found in covered.items():
                low, high = (
                    GibbsRegressor(target=target).fit(X, y).coefficients().interval().T[:, 1:]
                )
                found.append(np.mean((low < theta) & (theta < high)))
        assert np.mean(covered["coefficients"]) == pytest.approx(0.95, abs=0.02)
        assert np.mean(covered["draws"]) < 0.85  # negative control


def test_rates_are_generalised_eigenvalues():
    from scipy import linalg

    model, data = CASES["known"]
    found, J, I = matrices(model, data)  # noqa: E741
    expected = np.sort(linalg.eigvals(J, I).real)
    np.testing.assert_allclose(rates_by_direction(found, Units(data)), expected)


def test_sandwich_posterior_needs_information():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 2)), np.arange(30) % 3
    with pytest.raises(ValueError, match="the sandwich needs a model with information"):
        calibrate(models.SoftmaxLogistic(), X, y, "bayes").sandwich()
