"""Gibbs posteriors of any loss of a linear predictor, against plain computations."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scenarios import RISKS, covariance, table_of
from scipy import optimize, special

from temperance import calibrate, losses, models, strategies
from temperance.data import Data
from temperance.models.glm import fast, plain
from temperance.plans import Folds, LeaveOneOut

KINDS = ("full-covariance", "mean-field", "laplace")
pytestmark = pytest.mark.filterwarnings("ignore::temperance.messages.BoundWarning")


@dataclass(frozen=True)
class Case:
    """A loss and how responses to a predictor are drawn."""

    loss: losses.Loss
    draw: object


def noisy(u, rng):
    return u + 0.5 * rng.standard_t(3, len(u))


def labels(u, rng):
    y = (rng.random(len(u)) < special.expit(u)).astype(float)
    y[:2] = 0.0, 1.0
    return y


def counts(u, rng):
    return rng.poisson(np.exp(0.5 * u) * rng.gamma(2.0, 0.5, len(u))).astype(float)


CASES = {
    "squared": Case(losses.Squared(0.7), noisy),
    "logistic": Case(losses.Logistic(), labels),
    "probit": Case(losses.Probit(), labels),
    "poisson": Case(losses.Poisson(), counts),
    "negative binomial": Case(losses.NegativeBinomial(1.5), counts),
    "student-t": Case(losses.StudentT(4.0, 0.6), noisy),
    "pinball": Case(losses.Pinball(0.3), noisy),
    "expectile": Case(losses.Expectile(0.8), noisy),
    "huber": Case(losses.Huber(0.6), noisy),
    "hinge": Case(losses.Hinge(), labels),
    "tukey": Case(losses.Tukey(3.0), noisy),
}
EVERY = [
    (name, kind)
    for name, case in CASES.items()
    for kind in KINDS
    if kind != "laplace" or case.loss.smooth
]
# Expectations by quadrature take long: with one kind of posterior, and the others among slow tests.
BY_QUADRATURE = ("probit", "student-t", "tukey", "negative binomial", "expectile", "huber")
MOST = [
    pytest.param(*pair, marks=[pytest.mark.slow] * (pair[0] in BY_QUADRATURE and pair[1] == slow))
    for pair in EVERY
    for slow in ["full-covariance"]
]
LIKELIHOODS = [pair for pair in EVERY if CASES[pair[0]].loss.likelihood]


def data_of(name, n=24, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = CASES[name].draw(X @ np.linspace(1.0, -0.5, d), rng)
    return Data(X, y, rng.uniform(0.5, 2.0, n))


def model_of(name, kind):
    cov = [0.5, 1.0, 2.0] if kind == "mean-field" else covariance(3)
    return models.GibbsLinear(CASES[name].loss, kind, [0.1, -0.2, 0.3], cov)


def objective(name, kind, data, beta):
    """Return beta sum w E l + KL, of means and a root of the covariance, in plain coordinates."""
    loss, model = CASES[name].loss, model_of(name, kind)
    prior = model.prior(3)
    C = np.diag(prior.root) if prior.root.ndim == 1 else prior.root
    precision = np.linalg.inv(C @ C.T)

    def value(x):
        m, root = x[:3], np.zeros((3, 3))
        if kind == "mean-field":
            root = np.diag(np.exp(x[3:]))
        else:
            root[np.tril_indices(3)] = x[3:]
        S = root @ root.T
        v = np.einsum("ij,jk,ik->i", data.X, S, data.X)
        risk = data.weights @ loss.expected(data.X @ m, v, data.y)
        off = m - prior.mean
        divergence = 0.5 * (np.trace(precision @ S) + off @ precision @ off)
        return beta * risk + divergence - np.linalg.slogdet(root)[1]

    return value


@pytest.mark.parametrize("beta", [0.05, 1.0, 20.0])
@pytest.mark.parametrize(("name", "kind"), [pair for pair in EVERY if pair[1] != "laplace"])
def test_posteriors_minimise_the_objective(name, kind, beta):
    data = data_of(name)
    found = model_of(name, kind).posterior(data.X, data.y, beta * data.size, data.weights)
    value = objective(name, kind, data, beta)
    if kind == "mean-field":
        at = np.concatenate([found.mean, np.log(found.std)])
    else:
        at = np.concatenate([found.mean, np.linalg.cholesky(found.cov)[np.tril_indices(3)]])
    gradient = optimize.approx_fprime(at, value, 1e-6)
    scale = np.abs(optimize.approx_fprime(at + 0.1 * np.abs(at) + 0.05, value, 1e-6)).max()
    assert np.abs(gradient).max() < 2e-4 * max(scale, 1.0)
    best = optimize.minimize(value, at, method="BFGS", options={"gtol": 1e-7})
    assert best.fun > value(at) - 1e-7 * max(1.0, abs(value(at)))


@pytest.mark.parametrize("beta", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("name", [name for name, kind in EVERY if kind == "laplace"])
def test_laplace_is_the_mode_and_its_curvature(name, beta):
    data, loss, model = data_of(name), CASES[name].loss, model_of(name, "laplace")
    found = model.posterior(data.X, data.y, beta * data.size, data.weights)
    root = model.prior(3).root
    precision = np.linalg.inv(root @ root.T)
    u = data.X @ found.mean
    first, second, _ = loss.derivatives(u, data.y)
    pull = beta * data.X.T @ (data.weights * first)
    np.testing.assert_allclose(
        pull, -precision @ (found.mean - model.prior(3).mean), rtol=1e-6, atol=1e-7
    )
    expected = precision + beta * (data.X.T * (data.weights * second)) @ data.X
    np.testing.assert_allclose(np.linalg.inv(found.cov), expected, rtol=1e-6)


PLANS = {
    "folds": lambda data: Folds(data.weights, np.arange(len(data)) % 4, 4),
    "split, alpha": lambda data: Folds(data.weights, np.arange(len(data)) % 2, 2, "alpha", 1),
    "leave-one-out": lambda data: LeaveOneOut(data.weights),
    "prefixes": lambda data: strategies.SafeBayes(start=6, stride=5).plan(data, None),
}


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize(("name", "kind"), MOST)
def test_curves_are_the_plain_ones_and_their_slopes_difference_quotients(name, kind, plan):
    data = data_of(name, {"folds": 60, "leave-one-out": 8}.get(plan, 24))
    model, chosen = model_of(name, kind), PLANS[plan](data)
    for risk in RISKS if CASES[name].loss.likelihood else ["gibbs"]:
        curve = model.risk_curve(data, chosen, risk)
        for beta in (0.03, 0.6, 5.0):
            problem = model.problem(data)
            exact = plain.risk_curve(problem.rows, chosen, risk, problem.approximation)
            value, slope = (float(each) for each in curve(beta, derivative=True))
            assert value == pytest.approx(float(exact(beta)), rel=1e-8)
            step = 1e-4 * beta
            difference = (curve(beta + step) - curve(beta - step)) / (2 * step)
            assert slope == pytest.approx(difference, rel=2e-4, abs=1e-6 * abs(value) / beta)


@pytest.mark.parametrize(("name", "kind"), MOST)
def test_risks_are_those_of_draws(name, kind):
    data, model, rng = data_of(name), model_of(name, kind), np.random.default_rng(1)
    posterior = model.posterior(data.X, data.y, 0.7 * data.size, data.weights)
    draws = model.loss(posterior.sample(40_000, rng), data.X, data.y)
    plan = strategies.Naive().plan(data, rng)
    share = data.weights / data.size
    for risk in RISKS if CASES[name].loss.likelihood else ["gibbs"]:
        found = model.risk_curve(data, plan, risk)(0.7)
        if risk == "gibbs":
            sums = draws @ share
            assert found == pytest.approx(sums.mean(), abs=4 * sums.std() / 200)
        else:
            logs = -np.log(np.exp(-draws).mean(axis=0))
            assert found == pytest.approx(logs @ share, rel=0.02, abs=0.005)


@pytest.mark.parametrize(("name", "kind"), MOST)
def test_weights_are_copies_and_alpha_0_the_prior(name, kind):
    data, model = data_of(name), model_of(name, kind)
    weights = np.arange(len(data)) % 3 + 1
    one = model.posterior(data.X, data.y, 30.0, weights)
    X, y = np.repeat(data.X, weights, axis=0), np.repeat(data.y, weights)
    copies = model.posterior(X, y, 30.0)
    np.testing.assert_allclose(one.mean, copies.mean, rtol=1e-7)
    np.testing.assert_allclose(one.cov, copies.cov, rtol=1e-6, atol=1e-12)
    prior = model.posterior(data.X, data.y, 0.0, data.weights)
    np.testing.assert_allclose(prior.mean, [0.1, -0.2, 0.3], atol=1e-12)
    root = model.prior(3).root
    cov = np.diag(root**2) if root.ndim == 1 else root @ root.T
    np.testing.assert_allclose(prior.cov, cov, rtol=1e-10)


@pytest.mark.parametrize("c", [1e-6, 1e5])
@pytest.mark.parametrize("kind", ["full-covariance", "mean-field"])
@pytest.mark.parametrize("name", ["pinball", "squared", "huber", "student-t", "expectile", "tukey"])
def test_units_of_the_response_do_not_matter(name, kind, c):
    data, loss = data_of(name), CASES[name].loss
    scaled, factor = {
        "pinball": (loss, c),
        "expectile": (loss, c**2),
        "squared": (losses.Squared(0.7 * c**2), 1.0),
        "huber": (losses.Huber(0.6 * c), c**2),
        "student-t": (losses.StudentT(4.0, 0.6 * c), 1.0),
        "tukey": (losses.Tukey(3.0 * c), c**2),
    }[name]
    one = models.GibbsLinear(loss, kind).posterior(data.X, data.y, 40.0)
    other = models.GibbsLinear(scaled, kind, prior_cov=c**2)
    same = other.posterior(data.X, c * data.y, 40.0 / factor)
    np.testing.assert_allclose(same.mean, c * one.mean, rtol=1e-6)
    np.testing.assert_allclose(same.std, c * one.std, rtol=1e-6)


@pytest.mark.parametrize("risk", RISKS)
def test_squared_loss_is_the_linear_model(risk):
    data = data_of("squared")
    ours = models.GibbsLinear(losses.Squared(0.7), prior_cov=covariance(3))
    linear = models.GaussianLinear(0.7, prior_cov=covariance(3))
    plan = PLANS["folds"](data)
    for beta in (0.0, 0.3, 2.0, 1e4):
        found = ours.risk_curve(data, plan, risk)(beta)
        assert found == pytest.approx(table_of(linear, data, plan, risk)(beta), rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_logistic_presets_are_the_same(kind):
    data = data_of("logistic")
    preset = {
        "full-covariance": models.FullCovarianceLogistic,
        "mean-field": models.MeanFieldLogistic,
        "laplace": models.LaplaceLogistic,
    }[kind]()
    ours, plan = models.GibbsLinear(losses.Logistic(), kind), PLANS["folds"](data)
    for risk in RISKS:
        assert ours.risk_curve(data, plan, risk)(0.7) == preset.risk_curve(data, plan, risk)(0.7)
    new = data.X[:5]
    one = ours.posterior(data.X, data.y, 20.0)
    np.testing.assert_allclose(
        one.predict(new), preset.posterior(data.X, data.y, 20.0).predict(new), rtol=1e-12
    )


def test_many_rows_are_left_out_by_newton_steps():
    for name, kind in (("pinball", "full-covariance"), ("poisson", "mean-field")):
        data = data_of(name, 900)
        model, plan = model_of(name, kind), LeaveOneOut(np.ones(900))
        data = replace(data, weights=np.ones(900))
        assert fast.many_rows(900, 3)
        loss, _ = model.risk_curve(data, plan).rows(1.0)
        for row in (0, 17, 450):
            others = np.delete(np.arange(900), row)
            alone = model.posterior(data.X[others], data.y[others], 899.0)
            mean, variance = alone.linear_predictor(data.X[row : row + 1])
            exact = CASES[name].loss.expected(mean, variance, data.y[row : row + 1])
            assert loss[row] == pytest.approx(float(exact[0]), rel=2e-3)


class TestOffset:
    def test_is_a_column_with_the_coefficient_one(self):
        data = data_of("poisson", 40)
        exposure = np.random.default_rng(2).uniform(-1, 1, 40)
        X = np.column_stack([data.X, exposure])
        model = models.GibbsLinear(losses.Poisson(), offset=3)
        found = model.posterior(X, data.y, 40.0)
        assert found.mean.shape == (3,)
        u = data.X @ found.mean + exposure
        v = np.einsum("ij,jk,ik->i", data.X, found.cov, data.X)
        pull = data.X.T @ (np.exp(u + v / 2) - data.y)
        np.testing.assert_allclose(found.mean, -pull, rtol=1e-6, atol=1e-7)
        mean, _ = found.predict(X)
        np.testing.assert_allclose(mean, np.exp(u + v / 2), rtol=1e-8)

    def test_rows_follow_their_offset_into_folds(self):
        data = data_of("poisson", 40)
        X = np.column_stack([np.full(40, 0.7), data.X])
        with_offset = models.GibbsLinear(losses.Poisson(), offset=0)
        shifted = models.GibbsLinear(
            losses.Poisson(), prior_mean=[0.7, 0, 0, 0], prior_cov=[1e-12, 1, 1, 1]
        )
        ones = np.column_stack([np.ones(40), data.X])
        plan = PLANS["folds"](data)
        one = with_offset.risk_curve(replace(data, X=X), plan)(0.5)
        assert one == pytest.approx(shifted.risk_curve(replace(data, X=ones), plan)(0.5), rel=1e-6)

    @pytest.mark.parametrize("offset", [5, True, "a", 1.0])
    def test_bad_ones_are_refused(self, offset):
        data = data_of("poisson")
        with pytest.raises(ValueError, match="^offset must be"):
            models.GibbsLinear(losses.Poisson(), offset=offset).posterior(data.X, data.y, 1.0)


class TestRefusals:
    def test_laplace_of_a_kink(self):
        with pytest.raises(ValueError, match="posterior must be 'full-covariance' or"):
            models.GibbsLinear(losses.Pinball(0.5), "laplace")

    def test_no_loss(self):
        with pytest.raises(ValueError, match="loss must be an object of temperance.losses, got 3"):
            models.GibbsLinear(3)

    def test_predictive_risk_without_a_likelihood(self):
        data = data_of("pinball")
        with pytest.raises(ValueError, match="risk must be 'gibbs' for the pinball loss"):
            calibrate(model_of("pinball", "mean-field"), data.X, data.y, risk="predictive")

    def test_one_class(self):
        data = data_of("hinge")
        with pytest.raises(ValueError, match="y must hold both classes 0 and 1, got only 1.0"):
            calibrate(models.GibbsLinear(losses.Hinge()), data.X, np.ones(24))


@pytest.mark.parametrize(("name", "kind"), MOST)
@pytest.mark.parametrize("alpha", [1e-9, 1e6, 1e12])
def test_extreme_alphas_are_finite_or_refused_in_one_line(name, kind, alpha):
    data, model = data_of(name), model_of(name, kind)
    try:
        found = model.posterior(data.X, data.y, alpha)
    except ValueError as error:
        assert "\n" not in str(error)
        return
    assert np.all(np.isfinite(found.mean))
    assert np.all(found.std > 0)


@pytest.mark.parametrize(("name", "kind"), MOST)
@pytest.mark.parametrize("shape", ["collinear", "wide", "far"])
def test_hard_designs(name, kind, shape):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((20, 3))
    if shape == "collinear":
        X[:, 2] = X[:, 0] + 1e-9 * X[:, 1]
    elif shape == "wide":
        X = rng.standard_normal((8, 20)) / 4
    else:
        X[:, 1] += 1000.0
        X /= 1000.0
    y = CASES[name].draw(X[:, 0], rng)
    model = models.GibbsLinear(CASES[name].loss, kind)
    curve = model.risk_curve(
        Data(X, y, np.ones(len(y))), Folds(np.ones(len(y)), np.arange(len(y)) % 4, 4)
    )
    values, slopes = curve(np.array([0.0, 0.1, 1.0, 10.0]), derivative=True)
    assert np.all(np.isfinite(values)) and np.all(np.isfinite(slopes))


def test_zero_and_huge_counts():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(30), rng.standard_normal(30)])
    for y in (np.zeros(30), 1e6 * np.exp(0.1 * X[:, 1]).round(6)):
        for kind in KINDS:
            for loss in (losses.Poisson(), losses.NegativeBinomial(2.0)):
                model = models.GibbsLinear(loss, kind, prior_cov=[100.0, 1.0])
                found = model.posterior(X, np.floor(y), 30.0)
                assert np.all(np.isfinite(found.mean))
                if y.max() > 0:
                    assert found.mean == pytest.approx([np.log(1e6), 0.1], abs=0.35)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["poisson", "pinball", "student-t"])
def test_risks_are_those_of_sampled_posteriors(name):
    """With many rows for each column the Gaussians are close to the posteriors themselves."""
    pytest.importorskip("blackjax")
    import jax.numpy as jnp
    from jax.scipy.special import gammaln
    from numpyro import distributions as dist

    def poisson(u, y):
        return jnp.exp(u) - y * u + gammaln(y + 1)

    def pinball(u, y):
        return jnp.maximum(0.3 * (y - u), -0.7 * (y - u))

    def student(u, y):
        constant = gammaln(2.0) - gammaln(2.5) + 0.5 * jnp.log(jnp.pi * 4) + jnp.log(0.6)
        return 2.5 * jnp.log1p((u - y) ** 2 / (4 * 0.36)) + constant

    row = {"poisson": poisson, "pinball": pinball, "student-t": student}[name]
    data = data_of(name, 300)
    data = replace(data, weights=np.ones(300))
    prior = dist.Normal(jnp.zeros(3), 1.0).to_event(1)
    sampled = models.GibbsModel(lambda t, x, y: row(x @ t, y), prior, progress=False)
    gaussian = models.GibbsLinear(CASES[name].loss)
    plan = Folds(data.weights, np.arange(300) % 3, 3)
    curve, ours = sampled.risk_curve(data, plan), gaussian.risk_curve(data, plan)
    for beta in (0.3, 1.0):
        error = float(curve.error(np.array([beta]))[0])
        assert abs(float(ours(beta)) - float(curve(beta))) < 4 * error + 2e-4


def test_residuals_that_are_all_the_same_have_no_density():
    X = np.random.default_rng(0).standard_normal((30, 2))
    model = models.GibbsLinear(losses.Pinball(0.5))
    for y in (np.ones(30), X[:, 0]):
        rows = np.column_stack([np.ones(30), X])
        with pytest.raises(ValueError, match="^X and y must leave at least 8 rows on either side"):
            model.information(Data(rows, y, np.ones(30)))


def test_no_dispersion_is_fitted_to_zeros():
    with pytest.raises(ValueError, match="^y must hold a count above 0"):
        models.GibbsLinear(losses.NegativeBinomial()).posterior(np.ones((4, 1)), np.zeros(4), 4.0)
