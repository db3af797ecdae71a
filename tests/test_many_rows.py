"""Logistic models with many rows: leave-one-out in linear time, held to refits."""

import tracemalloc

import numpy as np
import pytest
from scenarios import LOGISTIC, RISKS, binary_data
from scipy import special

from temperance import calibrate, models, strategies
from temperance.data import Data
from temperance.losses import Logistic
from temperance.models.glm import fast
from temperance.models.glm.fast import leave_one_out
from temperance.models.glm.laplace import LaplaceSystem
from temperance.plans import LeaveOneOut

NAMES = ("jaakkola", "full", "laplace", "mean-field")
BETAS = np.array([0.0, 0.2, 1.0, 3.0])
THETA = np.array([1.0, -0.5, 0.3])


def many_data(n, seed=0):
    """Rows of one truth, whatever their number, with weights of their own."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = (rng.random(n) < special.expit(X @ THETA)).astype(float)
    return Data(X, y, rng.uniform(0.5, 2.0, n))


def slopes_by_differences(curve, betas):
    step = 1e-4 * betas
    return (curve(betas + step) - curve(betas - step)) / (2 * step)


def assert_slopes(curve):
    inside = BETAS[1:]
    _, slope = curve(inside, derivative=True)
    expected = slopes_by_differences(curve, inside)
    scale = np.abs(slope).max()
    np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-6 * scale)


@pytest.fixture
def newton_from_few_rows(monkeypatch):
    monkeypatch.setattr(fast, "MANY_LEFT_OUT", 50)


@pytest.mark.usefixtures("newton_from_few_rows")
@pytest.mark.parametrize("transfer", ["beta", "alpha"])
@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_a_newton_step_leaves_a_row_out_up_to_the_square_of_its_share(name, risk, transfer):
    """Not to leave it out errs by its share, a hundred times as much."""
    for n in (100, 200, 400):
        data = many_data(n, seed=n)
        plan = LeaveOneOut(data.weights, transfer)
        curve = LOGISTIC[name].risk_curve(data, plan, risk)
        exact = LOGISTIC[name].risk_curve(data, plan.pairs(), risk)
        naive = LOGISTIC[name].risk_curve(data, strategies.Naive().plan(data, None), risk)
        assert np.abs(curve(BETAS) - exact(BETAS)).max() < 25 / n**2
        assert np.abs(naive(1.0) - exact(1.0)) > 1 / n  # negative control
        assert curve(0.0) == pytest.approx(exact(0.0), rel=1e-12)
    losses, weight = curve.rows(1.0)
    np.testing.assert_array_equal(weight, data.weights)
    np.testing.assert_allclose(losses, exact.rows(1.0)[0], atol=0.02)
    assert losses @ weight / weight.sum() == pytest.approx(curve(1.0), rel=1e-12)
    assert_slopes(curve)


@pytest.mark.usefixtures("newton_from_few_rows")
def test_the_error_falls_with_the_square_of_the_rows():
    model = models.LaplaceLogistic()

    def error(n):
        plan = LeaveOneOut(np.ones(n))
        both = [
            [model.risk_curve(many_data(n, seed), each)(1.0) for each in (plan, plan.pairs())]
            for seed in range(6)
        ]
        close, exact = np.mean(both, axis=0)
        return abs(close - exact)

    assert 8 < error(150) / error(600) < 32  # sixteen, but for the luck of the draw


@pytest.mark.usefixtures("newton_from_few_rows")
@pytest.mark.parametrize("name", NAMES)
def test_the_displayed_steps_are_newtons(name):
    """With equations for the mean without row i, at fixed variances, from the solution with it."""
    data, beta = many_data(60), 1.3
    model = LOGISTIC[name]
    posterior = model.posterior(data.X, data.y, beta * data.size, data.weights)
    prior = model.prior(3)
    Z, offset = prior.whiten(data.X), data.X @ prior.mean
    whitening = np.linalg.inv(prior.unwhiten(np.eye(3)))
    covariance = whitening @ posterior.cov @ whitening.T
    u = np.linalg.lstsq(Z, data.X @ posterior.mean - offset, rcond=None)[0]
    variance = np.einsum("ij,jk,ik->i", Z, covariance, Z)
    approximation = model.approximation(Logistic())
    force = approximation.forces(offset + Z @ u, variance, data.y)
    rows = leave_one_out.Rows(Z, offset, data.y, data.weights[None])
    triangle = np.linalg.cholesky(covariance)
    root = np.diagonal(triangle) if approximation.diagonal else triangle
    mean, left = leave_one_out.left_out(rows, (u[None], root[None]), approximation, beta)
    for i in (0, 17, 59):
        c = beta * np.delete(data.weights, i)
        others, pull, bend = (np.delete(each, i, axis=0) for each in (Z, force.pull, force.hessian))
        hessian = np.eye(3) + (others.T * (c * bend)) @ others
        step = np.linalg.solve(hessian, -(u + others.T @ (c * pull)))
        assert mean[i] == pytest.approx(offset[i] + Z[i] @ (u + step), rel=1e-7)
        lost = beta * data.weights[i] * force.curvature[i] * np.outer(Z[i], Z[i])
        kept = np.linalg.inv(covariance) - (
            np.diag(np.diag(lost)) if approximation.diagonal else lost
        )
        assert left[i] == pytest.approx(Z[i] @ np.linalg.solve(kept, Z[i]), rel=1e-7)


@pytest.mark.usefixtures("newton_from_few_rows")
@pytest.mark.parametrize("name", NAMES)
def test_rows_that_move_far_are_refitted(name, monkeypatch):
    data = many_data(80)
    X, y = data.X.copy(), data.y.copy()
    X[5], y[5] = 7 * THETA, 0.0  # far out, on the wrong side
    data = Data(X, y, data.weights)
    for transfer in ("beta", "alpha"):
        plan = LeaveOneOut(data.weights, transfer)
        exact = LOGISTIC[name].risk_curve(data, plan.pairs()).rows(1.0)[0][5]
        curve = LOGISTIC[name].risk_curve(data, plan)
        assert curve.rows(1.0)[0][5] == pytest.approx(exact, rel=1e-8)
        assert_slopes(curve)
    monkeypatch.setattr(leave_one_out, "FAR", np.inf)
    assert abs(LOGISTIC[name].risk_curve(data, plan).rows(1.0)[0][5] - exact) > 0.05


@pytest.mark.usefixtures("newton_from_few_rows")
def test_all_of_several_rows_that_move_far_are_refitted():
    rng, data = np.random.default_rng(3), many_data(80)
    X, y = data.X.copy(), data.y.copy()
    for row in range(6):
        direction = rng.normal(size=3)
        X[row] = 9 * direction / np.linalg.norm(direction)
        y[row] = float(direction @ THETA < 0)  # on the wrong side
    data = Data(X, y, data.weights)
    plan = LeaveOneOut(data.weights)
    model = models.LaplaceLogistic()
    exact, found = (model.risk_curve(data, each).rows(1.0)[0][:6] for each in (plan.pairs(), plan))
    assert (np.abs(found / exact - 1) < 1e-8).sum() >= 5


@pytest.mark.parametrize("name", NAMES)
def test_left_out_rows_come_in_any_order(name):
    data = many_data(600)
    order = np.random.default_rng(1).permutation(600)
    moved = Data(data.X[order], data.y[order], data.weights[order])
    one, other = (
        LOGISTIC[name].risk_curve(each, LeaveOneOut(each.weights, "alpha"), "predictive")
        for each in (data, moved)
    )
    np.testing.assert_allclose(one(BETAS), other(BETAS), rtol=1e-10)
    np.testing.assert_allclose(one.rows(0.7)[0][order], other.rows(0.7)[0], rtol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_few_rows_are_refitted_as_ever(name):
    data = binary_data(90, 3)
    plan = LeaveOneOut(data.weights)
    curve, exact = (LOGISTIC[name].risk_curve(data, each) for each in (plan, plan.pairs()))
    np.testing.assert_array_equal(curve(BETAS), exact(BETAS))
    assert curve.method == exact.method == "Gaussian approximation, losses by quadrature"


def test_how_many_rows_are_many():
    sizes = [(500, 3), (501, 3), (601, 100), (600, 100)]
    assert [fast.many_rows(*size) for size in sizes] == [False, True, True, False]


@pytest.mark.slow
def test_the_choice_is_that_of_refits():
    """On the curve of refits the choices differ by less than one standard error in a thousand."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 30))
    y = (rng.random(600) < special.expit(X[:, 0])).astype(float)
    model = models.LaplaceLogistic(prior_cov=25.0)
    exact, close = (
        calibrate(model, X, y, strategy, risk="predictive")
        for strategy in (strategies.KFold(600), strategies.LeaveOneOut())
    )
    assert close.table.method.endswith("rows left out by one Newton step")
    assert not exact.at_bound and not close.at_bound
    assert close.beta == pytest.approx(exact.beta, rel=0.02)
    assert exact.curve(close.beta) - exact.risk < 1e-3 * exact.gain_standard_error
    assert close.risk == pytest.approx(exact.risk, abs=0.02 * exact.standard_error)


def test_leave_one_out_takes_few_fits_and_little_memory(monkeypatch):
    """As many Newton steps for twice the rows, and no array of rows by rows."""
    steps = []
    newton = LaplaceSystem.newton
    monkeypatch.setattr(
        LaplaceSystem, "newton", lambda self, x, beta: steps.append(0) or newton(self, x, beta)
    )
    taken = {}
    for n in (4000, 8000):
        steps.clear()
        taken[n] = peak_of(LeaveOneOut(np.ones(n))), len(steps)
    assert taken[8000][1] < 60
    assert taken[8000][0] < 2.2 * taken[4000][0] < 60 * 8000 * 3 * 8


def peak_of(plan):
    """Return the peak of memory of a curve at three betas, in bytes."""
    data = many_data(len(plan.weights))
    tracemalloc.start()
    models.LaplaceLogistic().risk_curve(data, plan)(BETAS[1:])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


@pytest.mark.filterwarnings("ignore::temperance.messages.BoundWarning")
@pytest.mark.parametrize("name", ["jaakkola", "mean-field"])
@pytest.mark.parametrize("strategy", [strategies.LeaveOneOut(), strategies.SafeBayes()], ids=str)
@pytest.mark.slow
def test_many_rows_are_calibrated(name, strategy):
    data = many_data(5000)
    found, ten_folds = (
        calibrate(LOGISTIC[name], data.X, data.y, each, risk="gibbs")
        for each in (strategy, strategies.KFold())
    )
    allowed = 0.1 if strategy == strategies.LeaveOneOut() else 1.0
    assert found.risk == pytest.approx(ten_folds.risk, abs=allowed * ten_folds.standard_error)
    assert found.standard_error == pytest.approx(ten_folds.standard_error, rel=0.1)
