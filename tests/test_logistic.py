"""The four Gaussian approximations against naive algorithms, and at their limits."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenarios import LOGISTIC, binary_data, covariance
from scipy import optimize, special

from temperance import expected_risk, models, strategies
from temperance.losses.base import Predictor
from temperance.losses.logistic import Logistic
from temperance.models.glm import full_covariance, jaakkola, newton
from temperance.models.glm.backprop import Schedule, backprop
from temperance.models.glm.fast import pairs
from temperance.models.glm.jaakkola import lambda_and_slope
from temperance.models.glm.krylov import solve_batch
from temperance.models.glm.mean_and_curvature import MeanAndCurvatureSystem
from temperance.models.glm.rows import Rows
from temperance.quadrature import softplus_expectations

ALPHA = 40.0
MEAN = np.array([0.1, -0.2, 0.3, 0.0])
COV = covariance(4)
DATA = binary_data(25, 4, seed=2)


def negative_elbo(mean, root, cov=COV, expected=None):
    """alpha E_q[r_n] + KL(q | prior), from the textbook."""
    S, P0 = root @ root.T, np.linalg.inv(cov)
    mu, v = DATA.X @ mean, np.einsum("ij,jk,ik->i", DATA.X, S, DATA.X)
    loss = (softplus_expectations(mu, v)[0] if expected is None else expected(mu, v)) - DATA.y * mu
    shift = mean - MEAN
    divergence = 0.5 * (
        np.trace(P0 @ S)
        + shift @ P0 @ shift
        - len(mean)
        - np.linalg.slogdet(S)[1]
        + np.linalg.slogdet(cov)[1]
    )
    return ALPHA * DATA.weights @ loss / DATA.weights.sum() + divergence


def fitted(model):
    return model.posterior(DATA.X, DATA.y, ALPHA, DATA.weights)


def jaakkola_by_em(steps):
    c, P0 = ALPHA * DATA.weights / DATA.weights.sum(), np.linalg.inv(COV)
    v = np.ones(len(DATA.y))
    for _ in range(steps):
        lam = (special.expit(v) - 0.5) / (2 * v)
        S = np.linalg.inv(P0 + 2 * (DATA.X.T * (c * lam)) @ DATA.X)
        m = S @ (P0 @ MEAN + DATA.X.T @ (c * (DATA.y - 0.5)))
        v = np.sqrt(np.einsum("ij,jk,ik->i", DATA.X, S + np.outer(m, m), DATA.X))
    return m, S


def test_jaakkola_is_the_fixed_point_of_em():
    posterior = fitted(models.JaakkolaLogistic(MEAN, COV))
    mean, cov = jaakkola_by_em(2000)
    np.testing.assert_allclose(posterior.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(posterior.cov, cov, rtol=1e-9, atol=1e-12)
    five, _ = jaakkola_by_em(5)
    assert np.abs(five - mean).max() > 1e-4  # five steps are not enough to pass this test


def test_full_covariance_minimises_the_objective():
    posterior = fitted(models.FullCovarianceLogistic(MEAN, COV))
    lower = np.tril_indices(4)

    def objective(x):
        root = np.zeros((4, 4))
        root[lower] = x[4:]
        return negative_elbo(x[:4], root)

    start = np.concatenate([np.zeros(4), np.eye(4)[lower]])
    best = optimize.minimize(objective, start, method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(posterior.mean, best.x[:4], atol=1e-6)
    assert negative_elbo(posterior.mean, posterior.root.dense()) <= best.fun + 1e-10


def test_mean_field_minimises_the_objective():
    variances = np.diag(COV)
    posterior = fitted(models.MeanFieldLogistic(MEAN, variances))

    def objective(x):
        return negative_elbo(x[:4], np.diag(np.exp(x[4:])), np.diag(variances))

    best = optimize.minimize(objective, np.zeros(8), method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(posterior.mean, best.x[:4], atol=1e-6)
    np.testing.assert_allclose(posterior.std, np.exp(best.x[4:]), atol=1e-6)


def test_laplace_is_mode_and_curvature():
    posterior = fitted(models.LaplaceLogistic(MEAN, COV))
    c, P0 = ALPHA * DATA.weights / DATA.weights.sum(), np.linalg.inv(COV)

    def gradient(theta):
        return P0 @ (theta - MEAN) + DATA.X.T @ (c * (special.expit(DATA.X @ theta) - DATA.y))

    np.testing.assert_allclose(gradient(posterior.mean), 0.0, atol=1e-9)
    steps = 1e-6 * np.eye(4)
    hessian = [(gradient(posterior.mean + h) - gradient(posterior.mean - h)) / 2e-6 for h in steps]
    np.testing.assert_allclose(np.linalg.inv(hessian), posterior.cov, rtol=1e-6, atol=1e-8)


def test_approximations_are_ordered_by_the_objective():
    """The full covariance is the best Gaussian; the others, and Jaakkola's bound, are above it."""
    values = {
        name: negative_elbo(posterior.mean, posterior.root.dense())
        for name, posterior in (
            ("full", fitted(models.FullCovarianceLogistic(MEAN, COV))),
            ("jaakkola", fitted(models.JaakkolaLogistic(MEAN, COV))),
            ("laplace", fitted(models.LaplaceLogistic(MEAN, COV))),
        )
    }
    assert values["full"] < values["jaakkola"]
    assert values["full"] < values["laplace"]


def test_backprop_converges_to_the_deterministic_optimum():
    variances = np.diag(COV)
    goal = fitted(models.MeanFieldLogistic(MEAN, variances))
    best = negative_elbo(goal.mean, goal.root.dense(), np.diag(variances))
    gap = {}
    for steps in (200, 20_000):
        fit = fitted(models.MeanFieldLogistic(MEAN, variances, method="sgd", steps=steps))
        gap[steps] = negative_elbo(fit.mean, fit.root.dense(), np.diag(variances)) - best
    assert 0 < gap[20_000] < 0.01
    assert gap[200] > 0.05  # the thesis' two hundred steps do not get there
    np.testing.assert_allclose(fit.mean, goal.mean, atol=0.03)
    np.testing.assert_allclose(fit.std, goal.std, atol=0.01)


def test_backprop_derivative_is_that_of_its_own_path():
    rows = Rows(DATA.X, 0.1 * DATA.X[:, 0], DATA.y, DATA.weights[None])
    schedule = Schedule(steps=40, rate=1.0, seed=3)
    h = 1e-6
    fit, up, down = (backprop(rows, np.array([[0.7 + e]]), schedule) for e in (0, h, -h))
    np.testing.assert_allclose(fit.d_mean, (up.mean - down.mean) / (2 * h), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(
        fit.d_deviation, (up.deviation - down.deviation) / (2 * h), rtol=1e-5, atol=1e-8
    )


def test_trajectory_starts_at_the_prior_and_ends_at_the_posterior():
    model = models.MeanFieldLogistic(MEAN, 2.0, method="sgd", steps=50)
    path = model.trajectory(DATA.X, DATA.y, ALPHA)
    assert path.shape == (51, 4)
    np.testing.assert_allclose(path[0], MEAN)
    np.testing.assert_allclose(path[-1], model.posterior(DATA.X, DATA.y, ALPHA).mean)


def test_partials_are_derivatives():
    mean, variance = np.linspace(-6, 6, 13), np.geomspace(1e-3, 30, 13)
    h = 1e-5
    y = np.arange(13) % 2.0

    def partials(mean, variance):
        return Logistic().partials(mean, variance, y)

    at, up, down = (partials(mean + e, variance) for e in (0.0, h, -h))
    np.testing.assert_allclose(at.mean_mean, (up.mean - down.mean) / (2 * h), atol=1e-8)
    np.testing.assert_allclose(at.mean_variance, (up.variance - down.variance) / (2 * h), atol=1e-8)
    more, less = (partials(mean, variance * (1 + e)) for e in (h, -h))
    slope = (more.variance - less.variance) / (2 * h * variance)
    np.testing.assert_allclose(at.variance_variance, slope, atol=1e-7)


def test_lambda_is_smooth_through_zero():
    square = np.array([0.0, 1e-12, 0.99e-4, 1.01e-4, 1.0, 1e8])
    lam, slope = lambda_and_slope(square)
    assert lam[0] == 1 / 8 and slope[0] == -1 / 96
    xi = np.sqrt(square[2:])
    np.testing.assert_allclose(lam[2:], (special.expit(xi) - 0.5) / (2 * xi), rtol=1e-10)
    h = 1e-6
    (up, _), (down, _) = lambda_and_slope(square[4] + h), lambda_and_slope(square[4] - h)
    assert slope[4] == pytest.approx((up - down) / (2 * h), rel=1e-6)


def hard_cases():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    clean = (X[:, 0] > 0).astype(float)
    noisy = (rng.random(30) < special.expit(X[:, 0])).astype(float)
    collinear = np.column_stack([X, X[:, 0], X @ rng.standard_normal((4, 2))])
    return {
        "separable": (X, clean),
        "collinear": (collinear, noisy),
        "collinear and separable": (collinear, clean),
        "wide": (rng.standard_normal((12, 40)), clean[:12]),
        "scales apart": (X * [1.0, 1e3, 1e-3, 50.0], noisy),
        "one row": (X[:1], clean[:1]),
        "one column of zeros": (np.column_stack([X, np.zeros(30)]), noisy),
        "many rows": (np.tile(X, (3, 1)), np.tile(noisy, 3)),
        "many rows, separable": (np.tile(X, (3, 1)), np.tile(clean, 3)),
        "many rows, collinear": (np.tile(collinear, (3, 1)), np.tile(noisy, 3)),
        "many rows, scales apart": (np.tile(X * [1.0, 1e3, 1e-3, 50.0], (3, 1)), np.tile(noisy, 3)),
    }


@pytest.mark.parametrize("case", hard_cases())
@pytest.mark.parametrize(
    "model",
    [
        models.JaakkolaLogistic(),
        models.FullCovarianceLogistic(),
        models.LaplaceLogistic(),
        models.MeanFieldLogistic(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_any_alpha_is_reached_without_overflow(model, case):
    X, y = hard_cases()[case]
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        for alpha in (0.0, 1e3, 1e6, 1e12):
            posterior = model.posterior(X, y, alpha)
            assert np.all(np.isfinite(posterior.mean)) and np.all(np.isfinite(posterior.root.outer))
            for risk in ("gibbs", "predictive"):
                numbers = expected_risk(model, (X, y), (X, y), alpha, risk=risk, derivative=True)
                assert np.all(np.isfinite(numbers))
            assert np.all(posterior.std <= 1 + 1e-6)  # data narrow the prior
            assert stationarity(model, X, y, alpha, posterior) < 1e-4


def stationarity(model, X, y, alpha, posterior):
    """Gradient of the objective in the mean, relative to the size of its terms."""
    mean, variance = posterior.linear_predictor(X)
    if isinstance(model, models.LaplaceLogistic):
        expected = special.expit(mean)
    elif isinstance(model, models.JaakkolaLogistic):
        xi = np.sqrt(mean**2 + variance)
        expected = 0.5 + mean * np.tanh(xi / 2) / (2 * xi)
    else:
        expected = softplus_expectations(mean, variance, 1)[1]
    pull = alpha * (expected - y) / len(y)
    size = np.abs(posterior.mean) + np.abs(pull) @ np.abs(X) + 1e-12
    return np.max(np.abs(posterior.mean + pull @ X) / size)


@given(
    scale=st.floats(-3, 2),
    spread=st.floats(-1, 2),
    alpha=st.floats(0, 6),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=15, deadline=None)
def test_mean_field_with_one_column_is_full_covariance(scale, spread, alpha, seed):
    rng = np.random.default_rng(seed)
    x = 10**scale * rng.standard_normal(20)
    y = (rng.random(20) < special.expit(x)).astype(float)
    diagonal, full = (
        kind(prior_cov=10**spread).posterior(x, y, 10**alpha)
        for kind in (models.MeanFieldLogistic, models.FullCovarianceLogistic)
    )
    np.testing.assert_allclose(diagonal.mean, full.mean, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(diagonal.std, full.std, rtol=1e-5)


@pytest.mark.parametrize("name", ["jaakkola", "full", "laplace"])
def test_more_columns_than_rows_is_the_same_problem(name):
    """Against the same model forced to work in all d dimensions."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((8, 20)), (rng.random(8) < 0.5).astype(float)
    model = type(LOGISTIC[name])(0.2, covariance(20))
    padded = np.vstack([X, np.zeros((20, 20))]), np.append(y, np.zeros(20))
    weights = np.append(np.ones(8), np.full(20, 1e-300))
    reduced, full = model.posterior(X, y, 8.0), model.posterior(*padded, 8.0, weights)
    np.testing.assert_allclose(reduced.mean, full.mean, atol=1e-8)
    np.testing.assert_allclose(reduced.cov, full.cov, atol=1e-8)


def test_batched_gmres_solves():
    rng = np.random.default_rng(0)
    matrices = np.eye(30) + 0.1 * rng.standard_normal((5, 30, 30))
    right = rng.standard_normal((5, 30))
    right[3] = 0.0
    solved = solve_batch(lambda x: np.einsum("mij,mj->mi", matrices, x), right)
    np.testing.assert_allclose(
        solved, np.linalg.solve(matrices, right[..., None])[..., 0], atol=1e-9
    )


def test_gmres_takes_the_last_step_for_nothing():
    """The residual is known: close to the identity it is worth one multiplication."""
    rng = np.random.default_rng(0)
    matrices = np.eye(30) + 1e-4 * rng.standard_normal((5, 30, 30))
    right = rng.standard_normal((5, 30))
    exact = np.linalg.solve(matrices, right[..., None])[..., 0]
    calls = []

    def operator(x):
        calls.append(x)
        return np.einsum("mij,mj->mi", matrices, x)

    size = np.abs(exact).max()
    np.testing.assert_allclose(solve_batch(operator, right, 1e-9), exact, rtol=0, atol=1e-9 * size)
    without = len(calls)
    fewer = solve_batch(operator, right, 1e-9, contraction=1e-3)
    np.testing.assert_allclose(fewer, exact, rtol=0, atol=1e-9 * size)
    assert len(calls) - without == without - 1
    assert solve_batch(operator, right, 1e-3, contraction=1e-3) is right


BY_ROWS = {
    "full": (full_covariance.FullCovarianceSystem, Logistic()),
    "jaakkola": (jaakkola.JaakkolaSystem, jaakkola.JaakkolaBound()),
}


@pytest.mark.parametrize("name", BY_ROWS)
def test_equations_for_few_and_for_many_rows_have_the_same_solutions(name):
    """Unknowns at each row, and unknowns that do not grow with the rows."""
    few, loss = BY_ROWS[name]
    data = binary_data(90, 3, seed=4)
    weights = np.stack([data.weights, np.ones(90)])
    rows = Rows(data.X, np.linspace(-1, 1, 90), data.y, weights)
    systems = few(rows, loss), MeanAndCurvatureSystem(rows, loss)
    paths = [pairs.Path(system, tolerance=1e-12) for system in systems]
    fresh = np.random.default_rng(0).standard_normal((1, 7, 3))
    for beta in (0.0, 0.01, 0.3, 3.0):
        one, other = (
            each.system.law(found.x, found.tangent, beta).predictor(fresh, np.zeros(7))
            for each in paths
            for found in [each.at(beta)]
        )
        for quantity, same in zip(one, other, strict=True):
            np.testing.assert_allclose(quantity, same, rtol=1e-10, atol=1e-11)


def test_the_bound_has_the_partials_of_its_equation():
    """psi = mu/2 + log 2 cosh(xi/2) with xi^2 = mu^2 + v, by finite differences."""
    mean, variance, h = np.linspace(-4, 4, 9), np.geomspace(0.01, 20, 9), 1e-5

    def psi(mean, variance):
        return mean / 2 + np.log(2 * np.cosh(np.sqrt(mean**2 + variance) / 2))

    at = jaakkola.bounded_loss(mean, variance)
    by_mean = (psi(mean + h, variance) - psi(mean - h, variance)) / (2 * h)
    by_variance = (psi(mean, variance + h / 10) - psi(mean, variance - h / 10)) / (h / 5)
    np.testing.assert_allclose(at.mean, by_mean, atol=1e-8)
    np.testing.assert_allclose(at.variance, by_variance, atol=1e-8)
    up, down = (jaakkola.bounded_loss(mean + e, variance) for e in (h, -h))
    np.testing.assert_allclose(at.mean_mean, (up.mean - down.mean) / (2 * h), atol=1e-8)
    np.testing.assert_allclose(at.mean_variance, (up.variance - down.variance) / (2 * h), atol=1e-8)
    more, less = (jaakkola.bounded_loss(mean, variance + e / 10) for e in (h, -h))
    slope = (more.variance - less.variance) / (h / 5)
    np.testing.assert_allclose(at.variance_variance, slope, atol=1e-8)


@pytest.mark.parametrize("name", ["jaakkola", "full", "laplace", "mean-field"])
def test_the_curve_does_not_depend_on_what_was_asked_before(name):
    data = binary_data(14, 3)
    data, plan = strategies.KFold(4).planned(data, np.random.default_rng(0))
    wandering = LOGISTIC[name].risk_curve(data, plan)
    betas = np.array([3.0, 0.01, 1.0, 0.0, 40.0, 0.7])
    one_by_one = [wandering(beta) for beta in betas]
    np.testing.assert_allclose(LOGISTIC[name].risk_curve(data, plan)(betas), one_by_one, rtol=1e-9)


def test_few_solutions_are_remembered_in_order(monkeypatch):
    monkeypatch.setattr(pairs, "MOST_REMEMBERED", 1)
    data = binary_data(14, 3)
    data, plan = strategies.KFold(4).planned(data, np.random.default_rng(0))
    rows = Rows(data.X, np.zeros(14), data.y, plan.pairs().likelihood_weights)
    found = pairs.Path(jaakkola.JaakkolaSystem(rows, jaakkola.JaakkolaBound()))
    for beta in (1.0, 3.0, 0.1, 40.0, 0.7, 41.0):
        assert found.at(beta).beta == beta
        kept = [solution.beta for solution in found._known]
        assert kept == sorted(kept) and len(kept) <= 3


def test_a_posterior_that_is_not_found_is_refused_in_one_line(monkeypatch):
    """No other posterior stands in for it, in curves neither."""
    data = binary_data()
    plan = strategies.Naive().plan(data, np.random.default_rng(0))
    curve = models.LaplaceLogistic().risk_curve(data, plan)
    monkeypatch.setattr(newton, "MOST_BETAS", 1)
    monkeypatch.setattr(newton, "MOST_NEWTON_STEPS", 2)
    refused = pytest.raises(ValueError, match=r"^X must .* beta = 1e\+03, only up to .*prior_cov$")
    with refused:
        curve(1e3)
    with refused:
        models.LaplaceLogistic().posterior(data.X, data.y, 1e3 * len(data.y))
    monkeypatch.undo()
    fresh = models.LaplaceLogistic().risk_curve(data, plan)
    assert curve(1e3) == pytest.approx(fresh(1e3), rel=1e-9)


def test_losses_of_large_predictors_keep_their_digits():
    """A row whose label is right at 7.7 deviations of 1e14: no difference from y f, or from 1."""
    mean, deviation, rise, zero = (np.array([[each]]) for each in (7.7e14, 1e14, 1e13, 0.0))
    # E max(-f, 0) = s [phi(r) - r Phi(-r)], with slope -Phi(-r) in the mean, at r = m / s
    short = mp.ncdf(-7.7)
    expected = [1e14 * (mp.npdf(7.7) - 7.7 * short), -1e13 * short]
    for y in (1.0, 0.0):
        sign = 2 * y - 1
        moments = Predictor(sign * mean, deviation**2, sign * rise, zero)
        found = Logistic().risk(moments, np.array([[y]]), "gibbs")
        np.testing.assert_allclose(np.ravel(found), np.array(expected, dtype=float), rtol=1e-9)


def test_a_newton_step_finds_the_variances_of_a_mean_field():
    """Their equations are taken by logarithms, nearly linear; else the step's square is left."""
    data = binary_data(20_000, 3)
    rows = Rows(data.X, np.zeros(20_000), data.y, np.ones((1, 20_000)))
    system = LOGISTIC["mean-field"].approximation(Logistic()).system(rows)
    solution = newton.solve(system, 1.0).x
    away = np.array([[0.0, 0.0, 0.0, 0.2, -0.2, 0.1]])
    step, _ = system.newton(solution + away, 1.0)
    np.testing.assert_allclose(step, -away, atol=1e-4)


@pytest.mark.parametrize("name", ["jaakkola", "full", "laplace", "mean-field"])
def test_a_tangent_is_good_beside_its_solution_however_much_data_outweigh_the_prior(name):
    """A pull from before the step would err by the step over beta, a thousand tangents here."""
    data, rng = binary_data(20_000, 3), np.random.default_rng(0)
    rows = Rows(data.X, np.zeros(20_000), data.y, np.ones((1, 20_000)))
    system = LOGISTIC[name].approximation(Logistic()).system(rows)
    solution = newton.solve(system, 1.0)
    away = 3e-3 * system.scale(solution.x, 1.0) * rng.standard_normal(solution.x.shape)
    _, tangent = system.newton(solution.x + away, 1.0)
    # Coefficients, then what their precision is made of.
    for part in (slice(0, 3), slice(3, None)):
        expected = solution.tangent[:, part]
        error = np.abs(tangent()[:, part] - expected).max(initial=0.0)
        assert error <= 0.05 * np.abs(expected).max(initial=0.0)
