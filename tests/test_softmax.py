"""Several classes at once: nodes, losses, equations, evidence, and what naming cannot change."""

import numpy as np
import pytest
from scenarios import RISKS, class_data, covariance, naive_curve, naive_softmax
from scipy import optimize, special, stats

from temperance import calibrate, expected_risk, models, strategies
from temperance.data import Data
from temperance.models.glm.softmax.fast import left_out
from temperance.models.glm.softmax.quadrature import (
    Logits,
    contrasts,
    differences,
    expected_losses,
    log_expected_softmax,
    nodes,
    symmetric_roots,
)
from temperance.models.glm.softmax.system import SoftmaxSystem, class_rows
from temperance.plans import LeaveOneOut


def gaussians(n_classes, spread=0.7, e=6, seed=0):
    """Means and covariances of contrasts, their derivatives, and labels."""
    rng = np.random.default_rng(seed)
    c = n_classes - 1
    roots = spread * rng.standard_normal((e, c, c)) / np.sqrt(c)
    change = rng.standard_normal((e, c, c))
    d_cov = change + change.swapaxes(1, 2)
    means, d_means = rng.standard_normal((2, e, c))
    logits = Logits(means, roots @ roots.swapaxes(1, 2) + 0.01 * np.eye(c), d_means, d_cov)
    return logits, rng.integers(0, n_classes, e)


class TestQuadrature:
    @pytest.mark.parametrize("dimension", [1, 2, 3, 9])
    def test_moments_of_nodes_are_those_of_a_standard_normal(self, dimension):
        points, weights = nodes(dimension)
        assert weights.sum() == pytest.approx(1)
        np.testing.assert_allclose(weights @ points, 0, atol=1e-12)
        np.testing.assert_allclose((points.T * weights) @ points, np.eye(dimension), atol=1e-12)

    @pytest.mark.parametrize("n_classes", [2, 3, 7])
    def test_contrasts_are_orthonormal_and_leave_out_a_common_shift(self, n_classes):
        C = contrasts(n_classes)
        np.testing.assert_allclose(C.T @ C, np.eye(n_classes - 1), atol=1e-14)
        np.testing.assert_allclose(C.sum(axis=0), 0, atol=1e-14)
        f = np.random.default_rng(0).standard_normal(n_classes)
        for label, D in enumerate(differences(n_classes)):
            np.testing.assert_allclose(D @ (C.T @ f), np.delete(f, label) - f[label])

    @pytest.mark.parametrize("risk", RISKS)
    def test_three_classes_against_an_adaptive_integral(self, risk):
        from scipy.integrate import dblquad

        logits, labels = gaussians(3, e=1)
        found, _ = expected_losses(logits, labels, 3, risk)
        C = contrasts(3)
        for mean, cov, label, value in zip(logits.mean, logits.cov, labels, found, strict=True):
            root = np.linalg.cholesky(cov)

            def at(b, a, mean=mean, root=root, label=label):
                log_p = special.log_softmax(C @ (mean + root @ [a, b]))[label]
                density = np.exp(-0.5 * (a * a + b * b)) / (2 * np.pi)
                return density * (-log_p if risk == "gibbs" else np.exp(log_p))

            total, _ = dblquad(at, -7, 7, -7, 7, epsabs=1e-9)
            expected = total if risk == "gibbs" else -np.log(total)
            assert value == pytest.approx(expected, abs=1e-8)

    @pytest.mark.parametrize("risk", RISKS)
    def test_many_classes_against_monte_carlo(self, risk):
        logits, labels = gaussians(6)
        found, _ = expected_losses(logits, labels, 6, risk)
        rng = np.random.default_rng(1)
        for i, label in enumerate(labels):
            draws = rng.multivariate_normal(logits.mean[i], logits.cov[i], 100_000)
            log_p = special.log_softmax(draws @ contrasts(6).T, axis=1)[:, label]
            sample = -log_p if risk == "gibbs" else np.exp(log_p)
            error = sample.std() / np.sqrt(len(sample)) / (1 if risk == "gibbs" else sample.mean())
            expected = sample.mean() if risk == "gibbs" else -np.log(sample.mean())
            assert abs(found[i] - expected) < 4 * error + 2e-3
            # Negative control: the loss at the mean is another number.
            plugged = -special.log_softmax(contrasts(6) @ logits.mean[i])[label]
            assert risk == "predictive" or abs(plugged - expected) > 4 * error + 2e-3

    @pytest.mark.parametrize("risk", RISKS)
    @pytest.mark.parametrize("n_classes", [2, 3, 5])
    def test_slopes_are_those_of_the_sums(self, n_classes, risk):
        logits, labels = gaussians(n_classes)
        _, slope = expected_losses(logits, labels, n_classes, risk)

        def at(t):
            moved = logits._replace(
                mean=logits.mean + t * logits.d_mean, cov=logits.cov + t * logits.d_cov
            )
            return expected_losses(moved, labels, n_classes, risk)[0]

        h = 1e-5
        np.testing.assert_allclose(slope, (at(h) - at(-h)) / (2 * h), rtol=1e-5, atol=1e-7)

    def test_tiny_losses_keep_their_digits(self):
        logits = Logits(*(np.zeros(shape) for shape in ((1, 2), (1, 2, 2)) * 2))
        far = 60.0 * contrasts(3)[1]
        for risk in RISKS:
            value, _ = expected_losses(logits._replace(mean=far[None]), np.array([1]), 3, risk)
            f = contrasts(3) @ far
            assert value[0] == pytest.approx(np.exp(f[0] - f[1]) + np.exp(f[2] - f[1]), rel=1e-9)

    def test_roots_of_nothing_are_nothing(self):
        root, d_root = symmetric_roots(np.zeros((1, 3, 3)), np.zeros((1, 3, 3)))
        assert not root.any() and not d_root.any()

    def test_probabilities_sum_to_one_and_are_those_of_the_predictive_risk(self):
        logits, labels = gaussians(4)
        logs = log_expected_softmax(logits.mean, logits.cov)
        np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-14)
        value, _ = expected_losses(logits, labels, 4, "predictive")
        np.testing.assert_allclose(-logs[np.arange(len(labels)), labels], value, rtol=1e-12)


class TestEquations:
    def test_the_mode_is_a_minimum_and_the_precision_its_curvature(self):
        data = class_data(20, 2, n_classes=4)
        rows = class_rows(data.X, data.y, data.weights[None], 4)
        system, beta = SoftmaxSystem(rows), 0.7
        posterior = models.SoftmaxLogistic().posterior(
            data.X, data.y, beta * data.size, data.weights
        )
        x = posterior.law.mean.ravel()

        def objective(v):
            return system.objective(v[None], beta)[0]

        found = optimize.minimize(objective, np.zeros(6), tol=1e-12)
        np.testing.assert_allclose(x, found.x, atol=1e-5)
        h, axes = 1e-4, np.eye(6)
        hessian = [
            [
                sum(s * t * objective(x + h * (s * a + t * b)) for s in (1, -1) for t in (1, -1))
                / (4 * h * h)
                for a in axes
            ]
            for b in axes
        ]
        precision = system.precision(system.probabilities(x[None]), beta)[0]
        np.testing.assert_allclose(precision, hessian, atol=1e-5)

    def test_the_precision_moves_as_differences_say(self):
        data = class_data(20, 2, n_classes=4)
        system = SoftmaxSystem(class_rows(data.X, data.y, data.weights[None], 4))
        rng = np.random.default_rng(0)
        x, tangent, beta, h = *rng.standard_normal((2, 1, 6)), 0.7, 1e-6

        def precision(t):
            return system.precision(system.probabilities(x + t * tangent), beta + t)

        found = system.law(x, tangent, beta).d_precision
        np.testing.assert_allclose(found, (precision(h) - precision(-h)) / (2 * h), atol=1e-7)

    @pytest.mark.parametrize("n_classes", [3, 5])
    def test_posterior_against_a_plain_newton_iteration_in_all_coefficients(self, n_classes):
        data, beta = class_data(25, 3, n_classes=n_classes), 1.3
        model = models.SoftmaxLogistic(covariance(3))
        posterior = model.posterior(data.X, data.y, beta * data.size, data.weights)
        mode, cov = naive_softmax(model, data, data.weights, beta)
        np.testing.assert_allclose(posterior.coefficients, mode, atol=1e-10)
        np.testing.assert_allclose(posterior.cov, cov, atol=1e-10)
        centre = np.eye(n_classes) - 1 / n_classes
        for k in range(n_classes):
            block = np.kron(centre[k], np.eye(3))
            np.testing.assert_allclose(posterior.of_class(k).cov, block @ cov @ block.T, atol=1e-10)

    @pytest.mark.parametrize("prior_cov", [0.7, covariance(9)], ids=["scalar", "matrix"])
    def test_more_columns_than_rows(self, prior_cov):
        data, beta = class_data(6, 9), 0.8
        model = models.SoftmaxLogistic(prior_cov)
        posterior = model.posterior(data.X, data.y, beta * data.size, data.weights)
        mode, cov = naive_softmax(model, data, data.weights, beta)
        np.testing.assert_allclose(posterior.coefficients, mode, atol=1e-10)
        np.testing.assert_allclose(posterior.cov, cov, atol=1e-10)
        block = np.kron((np.eye(3) - 1 / 3)[1], np.eye(9))
        np.testing.assert_allclose(posterior.of_class(1).cov, block @ cov @ block.T, atol=1e-10)
        new = np.random.default_rng(3).standard_normal((4, 9))
        for x, found in zip(new, posterior.logits(new)[1], strict=True):
            rows = np.kron(contrasts(3).T, x)
            np.testing.assert_allclose(found, rows @ cov @ rows.T, atol=1e-10)

    def test_the_posterior_of_few_rows_shows_none_of_them(self):
        data = class_data(6, 40)
        law = models.SoftmaxLogistic().posterior(data.X, data.y, 6.0).law
        cosines = data.X @ law.basis / np.linalg.norm(data.X, axis=1)[:, None]
        assert np.abs(cosines).max() < 0.95

    def test_draws_have_the_posterior_s_moments(self):
        data = class_data(25, 2)
        posterior = models.SoftmaxLogistic().posterior(data.X, data.y, 20.0)
        draws = posterior.sample(100_000, seed=0)
        np.testing.assert_allclose(draws.mean(axis=0), posterior.mean, atol=0.02)
        np.testing.assert_allclose(np.cov(draws.T), posterior.cov, atol=0.03)
        exact = stats.multivariate_normal(posterior.mean, posterior.cov).logpdf(draws[:3])
        np.testing.assert_allclose(posterior.log_prob(draws[:3]), exact)
        p = special.softmax(data.X[:2] @ draws.reshape(-1, 3, 2).swapaxes(1, 2), axis=2)
        np.testing.assert_allclose(posterior.predict(data.X[:2]), p.mean(axis=0), atol=0.004)


class TestTwoClasses:
    """Of two classes the difference of logits has twice the prior covariance of each."""

    @pytest.mark.filterwarnings("ignore::temperance.messages.BoundWarning")
    @pytest.mark.parametrize("risk", RISKS)
    def test_calibrations_agree(self, risk):
        data = class_data(40, 3, n_classes=2)
        several = models.SoftmaxLogistic(0.2 * covariance(3))
        two = models.LaplaceLogistic(prior_cov=0.4 * covariance(3))
        ours, theirs = (
            calibrate(model, data.X, data.y, strategies.KFold(5), risk=risk, bounds=(0, 30))
            for model in (several, two)
        )
        assert ours.beta == pytest.approx(theirs.beta, rel=1e-6)
        betas = np.array([0.0, 0.1, 1.0, 2.7])
        for one, other in zip(ours.curve(betas, True), theirs.curve(betas, True), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(
            ours.posterior.predict(data.X)[:, 1], theirs.posterior.predict(data.X), rtol=1e-8
        )

    def test_of_many_rows_each_left_out_by_a_newton_step(self):
        data = class_data(520, 3, n_classes=2)
        plan = LeaveOneOut(data.weights)
        for risk in RISKS:
            ours = models.SoftmaxLogistic(1.5).risk_curve(data, plan, risk)
            theirs = models.LaplaceLogistic(prior_cov=3.0).risk_curve(data, plan, risk)
            assert ours.method.endswith("rows left out by one Newton step")
            np.testing.assert_allclose(ours(1.0, True), theirs(1.0, True), rtol=1e-6, atol=1e-8)


class TestLeaveOneOut:
    def test_the_newton_step_against_its_definition(self):
        data, beta = class_data(30, 2, n_classes=4), 0.9
        system = SoftmaxSystem(class_rows(data.X, data.y, data.weights[None], 4))
        x = np.random.default_rng(0).standard_normal((1, 6))
        # A Newton step from x is one from the mode of all rows if that is where x lies.
        x = x + sum_of_newton(system, x, beta)
        mean, cov = left_out(system, x, beta)
        for i in (0, 7):
            weights = data.weights.copy()
            weights[i] = 0.0
            without = SoftmaxSystem(class_rows(data.X, data.y, weights[None], 4))
            found = without.probabilities(x)
            precision = without.precision(found, beta)[0]
            step = -np.linalg.solve(precision, (x + beta * without.drift(found))[0])
            row = np.kron(np.eye(3), data.X[i])
            np.testing.assert_allclose(mean[i], row @ (x[0] + step), rtol=1e-7)
            np.testing.assert_allclose(cov[i], row @ np.linalg.solve(precision, row.T), rtol=1e-7)

    def test_many_rows_are_nearly_those_of_refits(self):
        data = class_data(502, 1)
        plan = LeaveOneOut(data.weights, "alpha")
        model = models.SoftmaxLogistic()
        curve = model.risk_curve(data, plan)
        value, slope = curve(0.8, derivative=True)
        assert value == pytest.approx(model.risk_curve(data, plan.pairs())(0.8), abs=1e-4)
        difference = (curve(0.8 + 1e-4) - curve(0.8 - 1e-4)) / 2e-4
        assert slope == pytest.approx(difference, rel=1e-4, abs=1e-7)


def sum_of_newton(system, x, beta):
    """Return the way from x to the mode."""
    start = x
    for _ in range(30):
        x = x + system.newton(x, beta)[0]
    return x - start


class TestEvidence:
    def test_both_are_the_integral_s_where_the_posterior_is_gaussian(self):
        """A single column and a tight prior: the integral by Monte Carlo over the prior."""
        data, beta = class_data(40, 1), 0.6
        model = models.SoftmaxLogistic(0.3)
        draws = np.sqrt(0.3) * np.random.default_rng(0).standard_normal((40_000, 3))
        logs = -beta * model.loss(draws, data.X, data.y) @ data.weights
        exact = special.logsumexp(logs) - np.log(len(logs))
        assert model.log_evidence(data, beta) == pytest.approx(exact, abs=0.03)
        bound = model.evidence_bound(data, beta)
        assert exact - 0.05 < bound < exact + 0.01

    def test_formulas_in_all_coefficients(self):
        data, beta = class_data(20, 3, n_classes=4), 0.9
        model = models.SoftmaxLogistic(covariance(3))
        mode, cov = naive_softmax(model, data, data.weights, beta)
        prior = np.kron(np.eye(4), covariance(3))
        P = np.linalg.inv(prior)
        loss = model.loss(mode.reshape(1, -1), data.X, data.y)[0] @ data.weights
        half = 0.5 * (np.linalg.slogdet(cov)[1] - np.linalg.slogdet(prior)[1])
        laplace = half - beta * loss - 0.5 * mode.ravel() @ P @ mode.ravel()
        assert model.log_evidence(data, beta) == pytest.approx(laplace, rel=1e-10)
        apart = 0.5 * (np.trace(P @ cov) + mode.ravel() @ P @ mode.ravel() - 12)
        expected = expected_risk(
            model,
            (data.X, data.y, data.weights),
            (data.X, data.y, data.weights),
            beta * data.size,
            risk="gibbs",
        )
        bound = half - apart - beta * data.size * expected
        assert model.evidence_bound(data, beta) == pytest.approx(bound, rel=1e-9)


class TestInvariance:
    @pytest.mark.parametrize("risk", RISKS)
    def test_names_of_classes_do_not_matter(self, risk):
        data = class_data(30, 2)
        renamed = Data(data.X, np.array([2.0, 0.0, 1.0])[data.y.astype(int)], data.weights)
        plan = LeaveOneOut(data.weights)
        model, betas = models.SoftmaxLogistic(2.0), np.array([0.0, 0.3, 2.0])
        one, other = (model.risk_curve(each, plan, risk)(betas) for each in (data, renamed))
        np.testing.assert_allclose(one, other, rtol=1e-10)

    def test_units_of_columns_do_not_matter(self):
        data = class_data(30, 3)
        units = np.array([1e8, 1.0, 1e-9])
        one = calibrate(models.SoftmaxLogistic(2.0), data.X, data.y)
        other = calibrate(models.SoftmaxLogistic(2.0 / units**2), data.X * units, data.y)
        assert other.beta == pytest.approx(one.beta, rel=1e-6)
        assert other.risk == pytest.approx(one.risk, rel=1e-9)

    def test_a_separable_problem_with_a_vast_prior(self):
        X = np.column_stack([np.ones(30), np.arange(30.0)])
        y = np.repeat([0, 1, 2], 10)
        data = Data(X, y.astype(float), np.ones(30))
        folds = strategies.KFold(3).planned(data, np.random.default_rng(0))
        curve = models.SoftmaxLogistic(1e6).risk_curve(*folds)
        value, slope = curve(np.array([1e-9, 1e-3, 1.0, 100.0]), derivative=True)
        assert np.all(np.isfinite(value)) and np.all(np.isfinite(slope))

    def test_a_class_that_a_training_set_lacks(self):
        """Its probability is what the prior leaves it."""
        data = class_data(12, 2)
        plan = strategies.SampleSplitting().plan(data, np.random.default_rng(0))
        y = np.where(np.arange(12) < 6, data.y % 2, data.y)
        y[6] = 2.0
        held = Data(data.X, y, data.weights)
        model = models.SoftmaxLogistic()
        assert model.risk_curve(held, plan)(1.0) == pytest.approx(
            naive_curve(model, held, plan, 1.0, "gibbs"), rel=1e-9
        )
        two = models.SoftmaxLogistic(n_classes=4).posterior(data.X, data.y, 5.0)
        assert two.predict(data.X).shape == (12, 4)


@pytest.mark.parametrize(
    "y, options, message",
    [
        ([0, 1, 1.5], {}, r"y must hold labels 0, 1, 2 \.\.\., got 1.5"),
        ([0, -1, 1], {}, r"y must hold labels 0, 1, 2 \.\.\., got -1.0"),
        ([0, 3, 1], {}, r"y must hold every label from 0 to 3, got none of 2"),
        ([1, 1, 1], {}, r"y must hold at least two classes, got only 1.0"),
        ([0, 1, 3], {"n_classes": 3}, r"y must hold labels below n_classes = 3, got 3"),
        ([0, 1, 10**9], {}, r"y must hold every label from 0 to 1000000000, got none of 2"),
        ([0, 1, 2], {"prior_cov": -1.0}, r"prior_cov must be positive, got -1.0"),
    ],
)
def test_refusals(y, options, message):
    with pytest.raises(ValueError, match=message):
        calibrate(models.SoftmaxLogistic(**options), [[1.0], [2.0], [4.0]], y)


def test_fewer_than_two_classes_are_refused():
    with pytest.raises(ValueError, match="n_classes must be at least 2, got 1"):
        models.SoftmaxLogistic(n_classes=1)
