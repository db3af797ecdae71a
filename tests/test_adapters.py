"""Models written in NumPyro, PyMC and Stan, held to the closed form of the same model."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from temperance import calibrate, calibrate_from_draws, models, strategies
from temperance.checks import as_data
from temperance.messages import DivergenceWarning, MixingWarning
from temperance.models.sampled import model as sampled_model
from temperance.models.sampled import stan_model
from temperance.models.sampled.draws import Draws
from temperance.models.sampled.model import SampledModel
from temperance.plans import Pairs

ROOT = Path(__file__).resolve().parents[1]
EXACT = models.GaussianLinear(1.0)
RISKS = ("gibbs", "predictive")
BETAS = np.array([0.0, 0.1, 0.3, 0.6, 1.0])
quiet = pytest.mark.filterwarnings("ignore::temperance.messages.TemperanceWarning")


def linear_data(n=24, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X @ rng.standard_normal(d) + rng.standard_normal(n)


X, Y = linear_data()


def largest_z(theta, mean, cov):
    """Largest deviation of two moments of theta (chains, size, d), in Monte Carlo errors."""
    from arviz_stats.base import array_stats

    centred = theta - mean
    worst = 0.0
    for i in range(len(mean)):
        worst = max(worst, _z(array_stats, centred[..., i], 0.0))
        for j in range(i + 1):
            worst = max(worst, _z(array_stats, centred[..., i] * centred[..., j], cov[i, j]))
    return worst


def _z(array_stats, values, expected):
    effective = array_stats.ess(values, chain_axis=0, draw_axis=1, method="mean")
    return abs(values.mean() - expected) / (values.std() / np.sqrt(effective))


def halves():
    first = (np.arange(24) < 12).astype(float)
    return Pairs(np.stack([first, 1 - first]), np.stack([1 - first, first]), 24.0)


def check_draws(sampler):
    """Moments of tempered posteriors, of all rows and of a fold, and of the prior."""
    fold = (np.arange(24) < 12).astype(float)
    uneven = np.linspace(0.0, 1.0, 24)
    bayes = EXACT.posterior(X, Y, 24.0)
    end = None
    for exponents in (np.zeros(24), np.full(24, 0.3), 0.7 * fold, uneven):
        drawn = sampler.draw(exponents, 3, end)
        end = drawn.end
        if exponents.any():
            exact = EXACT.posterior(X, Y, exponents.sum(), exponents)
            mean, cov = exact.mean, exact.cov
        else:
            mean, cov = np.zeros(2), np.eye(2)
        assert largest_z(drawn.theta["theta"], mean, cov) < 4
        # Negative control: it is not the untempered posterior.
        assert largest_z(drawn.theta["theta"], bayes.mean, bayes.cov) > 4
        losses = EXACT.loss(drawn.theta["theta"].reshape(-1, 2), X, Y)
        np.testing.assert_allclose(drawn.losses, losses.reshape(drawn.losses.shape), atol=1e-4)
    one, other = (sampler.draw(uneven, 5) for _ in range(2))
    np.testing.assert_array_equal(one.losses, other.losses)
    assert not np.array_equal(one.losses, sampler.draw(uneven, 6).losses)


def check_curve(model, inputs, responses, risks=RISKS):
    """Curves of two halves over betas."""
    data, plan = as_data(inputs, responses), halves()
    exact_data = as_data(X, Y)
    for risk in risks:
        curve = model.risk_curve(data, plan, risk)
        exact = EXACT.held_out(exact_data, plan, risk, (0.0, 1.0))
        gap = np.abs(curve(BETAS) - exact(BETAS))
        assert np.all(gap < 4 * curve.error(BETAS))
        seen = Pairs(plan.train, plan.train, 24.0)
        naive = EXACT.held_out(exact_data, seen, risk, (0.0, 1.0))
        assert np.any(np.abs(curve(BETAS) - naive(BETAS)) > 4 * curve.error(BETAS))


def check_posterior(model, inputs, responses, least=0.0):
    """The posterior of weighted rows as an ArviZ tree; a weight of zero leaves a row out."""
    weights = np.repeat([least, 1.0, 2.0], 8)
    alpha, kept = 0.4 * weights.sum(), weights > 0
    tree = model.posterior(inputs, responses, alpha, weights)
    exact = EXACT.posterior(X, Y, alpha, weights)
    assert largest_z(tree["posterior"]["theta"].values, exact.mean, exact.cov) < 4
    assert tree.attrs["alpha"] == alpha
    assert tree.attrs["beta"] == pytest.approx(0.4)
    assert tree.attrs["model"] == type(model).__name__
    assert tree["log_likelihood"]["y"].shape[2] == kept.sum()
    np.testing.assert_array_equal(tree["observed_data"]["y"], Y[kept])


def check_refusals_of_data(model):
    with pytest.raises(ValueError, match=r"X must be model\.X.*got None"):
        calibrate(model, None, model.y)
    with pytest.raises(ValueError, match=r"X must be model\.X.*got shape \(24, 2\)"):
        calibrate(model, X, model.y)
    with pytest.raises(ValueError, match=r"y must be model\.y.*in row 0"):
        calibrate(model, model.X, model.y + 1)


@pytest.fixture(scope="module")
def numpyro():
    return pytest.importorskip("numpyro")


@pytest.fixture(scope="module")
def linear(numpyro):
    from numpyro import distributions as dist

    def linear(X, y):
        prior = dist.Normal(0.0, 1.0).expand([X.shape[1]]).to_event(1)
        theta = numpyro.sample("theta", prior)
        with numpyro.plate("rows", len(X)):
            numpyro.sample("y", dist.Normal(X @ theta, 1.0), obs=y)

    return linear


@pytest.fixture(scope="module")
def numpyro_model(linear):
    return models.NumPyroModel(linear, draws=300, warmup=300)


class TestNumPyro:
    @pytest.mark.slow
    def test_draws(self, numpyro_model):
        check_draws(numpyro_model.sampler(as_data(X, Y)))

    def test_curve(self, numpyro_model):
        check_curve(numpyro_model, X, Y, ["predictive"])

    def test_posterior(self, numpyro_model):
        check_posterior(numpyro_model, X, Y, least=0.5)

    @quiet
    @pytest.mark.slow
    def test_every_strategy(self, linear):
        few = models.NumPyroModel(linear, chains=2, draws=100, warmup=100)
        for strategy in (
            strategies.Bayes(),
            strategies.Naive(),
            strategies.SampleSplitting("alpha", both_directions=True),
            strategies.Bootstrap(n_draws=3),
            strategies.SafeBayes(start=4),
            strategies.KFold(2),
            strategies.LeaveOneOut(),
        ):
            found = calibrate(few, X[:8], Y[:8], strategy, risk="predictive", bounds=(0, 1.5))
            assert 0 <= found.beta <= 1.5, strategy
            assert np.isfinite(found.risk), strategy

    def test_one_program_serves_data_of_one_shape(self, numpyro_model):
        first = numpyro_model.sampler(as_data(X, Y)).program
        assert numpyro_model.sampler(as_data(-X, Y)).program is first
        assert numpyro_model.sampler(as_data(X[:12], Y[:12])).program is not first

    @pytest.mark.slow
    def test_a_model_that_looks_at_the_data(self, numpyro):
        """It is compiled for the data at hand, and again for others."""
        from numpyro import distributions as dist

        def model(X, y):
            top = float(y.max())
            theta = numpyro.sample("theta", dist.Normal(0.0, 1.0))
            numpyro.sample("y", dist.Normal(theta + top, 1.0).expand([len(y)]), obs=y)

        bound = models.NumPyroModel(model, draws=100, warmup=100)
        first = bound.sampler(as_data(None, [1.0, 2.0]))
        assert bound.sampler(as_data(None, [1.0, 2.0])).program is first.program
        other = bound.sampler(as_data(None, [1.0, 4.0]))
        assert other.program is not first.program
        drawn = other.draw(np.ones(2), 0)
        mean = drawn.theta["theta"][..., None] + 4.0
        losses = 0.5 * (np.array([1.0, 4.0]) - mean) ** 2 + 0.5 * np.log(2 * np.pi)
        np.testing.assert_allclose(drawn.losses, losses, atol=1e-4)

    @pytest.mark.slow
    def test_prior_as_a_factor(self, numpyro):
        from numpyro import distributions as dist

        def model(X, y):
            theta = numpyro.sample("theta", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
            numpyro.factor("tighter", -0.5 * (theta**2).sum())
            numpyro.sample("y", dist.Normal(X @ theta, 1.0), obs=y)

        data = as_data(X, Y)
        with pytest.raises(
            ValueError, match=r"sites must name.*of tighter, y: the factor 'tighter'"
        ):
            models.NumPyroModel(model).check(data)
        named = models.NumPyroModel(model, sites=["y"], draws=500)
        drawn = named.sampler(data).draw(np.zeros(24), 0)
        assert largest_z(drawn.theta["theta"], np.zeros(2), 0.5 * np.eye(2)) < 4
        assert largest_z(drawn.theta["theta"], np.zeros(2), np.eye(2)) > 4

    @pytest.mark.slow
    def test_several_sites_and_columns(self, numpyro):
        """Losses of a row add up over sites and over what belongs to the row."""
        from numpyro import distributions as dist

        def model(X, y):
            theta = numpyro.sample("theta", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
            mean = X @ theta
            numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)
            both = np.ones((1, 2))
            numpyro.sample("twice", dist.Normal(mean[:, None] * both, 1.0), obs=y[:, None] * both)

        thrice = models.NumPyroModel(model, draws=500).sampler(as_data(X, Y))
        exponents = 0.2 * (np.arange(24) < 12)
        drawn = thrice.draw(exponents, 1)
        exact = EXACT.posterior(X, Y, 3 * exponents.sum(), exponents)
        assert largest_z(drawn.theta["theta"], exact.mean, exact.cov) < 4
        losses = 3 * EXACT.loss(drawn.theta["theta"].reshape(-1, 2), X, Y)
        np.testing.assert_allclose(drawn.losses.reshape(-1, 24), losses, atol=1e-3)

    @pytest.mark.slow
    def test_impossible_rows_without_weight_play_no_part(self, numpyro):
        """A row outside the support of its likelihood has an infinite loss, at exponent 0 too."""
        from numpyro import distributions as dist

        def model(X, y):
            rate = numpyro.sample("rate", dist.Gamma(2.0, 2.0))
            likelihood = dist.Exponential(rate, validate_args=False)
            numpyro.sample("y", likelihood.expand([len(y)]), obs=abs(y))
            numpyro.factor("possible", np.where(y >= 0, 0.0, -np.inf))

        y = np.array([1.0, 2.0, -1.0])
        sampler = models.NumPyroModel(model, sites=["y", "possible"]).sampler(as_data(None, y))
        drawn = sampler.draw(np.array([1.0, 1.0, 0.0]), 0)
        assert np.isinf(drawn.losses[..., 2]).all()
        # Gamma(2 + 2, 2 + 3)
        rate = drawn.theta["rate"][..., None]
        assert largest_z(rate, np.array([0.8]), np.array([[4 / 25]])) < 4

    def test_refusals(self, numpyro, linear):
        from numpyro import distributions as dist

        def unobserved(X, y):
            numpyro.sample("theta", dist.Normal(0.0, 1.0))

        def joint(X, y):
            theta = numpyro.sample("theta", dist.Normal(0.0, 1.0))
            numpyro.sample("y", dist.Normal(theta, 1.0).expand([len(y)]).to_event(1), obs=y)

        def improper(X, y):
            flat = dist.ImproperUniform(dist.constraints.real, (), ())
            numpyro.sample("y", dist.Normal(numpyro.sample("theta", flat), 1.0), obs=y)

        def discrete(X, y):
            k = numpyro.sample("k", dist.Poisson(3.0))
            numpyro.sample("y", dist.Normal(k, 1.0).expand([len(y)]), obs=y)

        data = as_data(X, Y)
        for model, message in (
            (models.NumPyroModel(unobserved), "must have an observed site"),
            (models.NumPyroModel(improper), "model must have a proper prior"),
            (models.NumPyroModel(discrete), "must be continuous, .* got Poisson for 'k'"),
            (models.NumPyroModel(joint), r"each of the 24 rows, got batch shape \(\)"),
            (models.NumPyroModel(linear, sites=["z"]), "sites must be observed, one of y, got 'z'"),
        ):
            with pytest.raises(ValueError, match=message):
                model.check(data)
        for arguments, message in (
            ({"model": 3}, "model must be a function of X and y, got 3"),
            ({"model": lambda X, y, n: 0}, r"of X and y alone, got arguments \(X, y, n\)"),
            ({"model": linear, "chains": 1}, "chains must be at least 2"),
            ({"model": linear, "draws": 2.5}, "draws must be an integer"),
            ({"model": linear, "overlap": 1.5}, "overlap must lie between 0 and 1"),
        ):
            with pytest.raises(ValueError, match=message):
                models.NumPyroModel(**arguments)

    @pytest.mark.slow
    def test_nan_is_refused(self, numpyro):
        from numpyro import distributions as dist

        def model(X, y):
            theta = numpyro.sample("theta", dist.Normal(0.0, 1.0))
            numpyro.sample("y", dist.Normal(theta, 1.0).expand([len(y)]), obs=y)
            numpyro.factor("strange", np.array([0.0, np.nan]))

        sampler = models.NumPyroModel(model, sites=["y", "strange"]).sampler(as_data(None, [1, 2]))
        with pytest.raises(ValueError, match="got nan in row 1"):
            sampler.draw(np.array([1.0, 0.0]), 0)


@pytest.fixture(scope="module")
def pm():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what PyMC's own imports say
        return pytest.importorskip("pymc")


@pytest.fixture(scope="module")
def pymc_model(pm):
    with pm.Model() as linear:
        theta = pm.Normal("theta", 0.0, 1.0, shape=2)
        pm.Normal("y", X @ theta, 1.0, observed=Y)
    return models.PyMCModel(linear, chains=2, draws=400, warmup=200)


class TestPyMC:
    @pytest.mark.slow
    def test_draws(self, pymc_model):
        check_draws(pymc_model.own_sampler())

    @pytest.mark.slow
    def test_curve(self, pymc_model):
        check_curve(pymc_model, pymc_model.X, pymc_model.y, ["predictive"])

    @pytest.mark.slow
    def test_posterior(self, pymc_model):
        check_posterior(pymc_model, pymc_model.X, pymc_model.y)

    @quiet
    def test_calibrate(self, pymc_model):
        """The default strategies sort the rows; the model knows them by number."""
        few = models.PyMCModel(pymc_model.model, chains=2, draws=100, warmup=100)
        folds, bounds = strategies.KFold(2), (0, 0.5)
        found = calibrate(few, few.X, few.y, folds, bounds=bounds, risk="gibbs")
        exact = calibrate(EXACT, X, Y, folds, bounds=bounds, risk="gibbs")
        error = found.table.error(np.array([0.5]))[0]
        assert abs(found.curve(0.5) - exact.curve(0.5)) < 8 * error
        assert repr(found).startswith("Calibration of PyMCModel by KFold(n_folds=2")
        assert found.data.size == exact.data.size == 24

    def test_refusals_of_data(self, pymc_model):
        check_refusals_of_data(pymc_model)

    def test_model_is_left_alone(self, pymc_model):
        assert [rv.name for rv in pymc_model.model.observed_RVs] == ["y"]
        assert set(pymc_model.model.named_vars) == {"theta", "y"}

    def test_rows_twice_weigh_twice(self, pymc_model):
        data = as_data(
            np.concatenate([pymc_model.X, pymc_model.X]),
            np.concatenate([pymc_model.y, pymc_model.y]),
        )
        seen = []

        class Spy:
            def draw(self, exponents, seed, start=None):
                seen.append(exponents)
                return pymc_model.own_sampler().draw(exponents, seed, start)

        twice = sampled_model._RowsOf(Spy(), pymc_model.index(data), 24)
        drawn = twice.draw(np.full(48, 0.5), 0)
        np.testing.assert_array_equal(seen[0], np.ones(24))
        assert drawn.losses.shape == (2, 400, 48)
        np.testing.assert_array_equal(drawn.losses[..., :24], drawn.losses[..., 24:])

    def test_variables_not_named_stay(self, pm):
        """With y tempered to nothing, z still trains."""
        with pm.Model() as both:
            theta = pm.Normal("theta", 0.0, 1.0, shape=2)
            pm.Normal("y", X @ theta, 1.0, observed=Y)
            pm.Normal("z", X @ theta, 1.0, observed=-Y)
        model = models.PyMCModel(both, variables=["y"], chains=2, draws=400, warmup=200)
        drawn = model.own_sampler().draw(np.zeros(24), 0)
        exact = EXACT.posterior(X, -Y, 24.0)
        assert largest_z(drawn.theta["theta"], exact.mean, exact.cov) < 4
        np.testing.assert_array_equal(models.PyMCModel(both).y, np.arange(24))

    def test_gradient_that_is_no_number(self, pm):
        with pm.Model() as binary:
            theta = pm.Normal("theta", 0.0, 100.0, shape=2)
            pm.Bernoulli("y", logit_p=X @ theta, observed=(Y > 0).astype(int))
        sampler = models.PyMCModel(binary, draws=100, warmup=100).own_sampler()
        with pytest.raises(ValueError, match=r"gradient .* must be finite, .* of 50 draws"):
            sampler.draw(np.zeros(24), 0)

    def test_refusals(self, pm, pymc_model):
        with pytest.raises(ValueError, match="model must be a pymc.Model, got int"):
            models.PyMCModel(3)
        with pm.Model() as unobserved:
            pm.Normal("theta")
        with pytest.raises(ValueError, match="must have an observed variable"):
            models.PyMCModel(unobserved)
        with pytest.raises(ValueError, match="variables must be observed, among y, got 'z'"):
            models.PyMCModel(pymc_model.model, variables=["z"])
        for prior, message in (
            (pm.Flat, "proper prior, .* got Flat for 'theta'"),
            (pm.HalfFlat, "proper prior, .* got HalfFlat for 'theta'"),
            (lambda name: pm.Poisson(name, 3.0), "continuous .* got Poisson for 'theta'"),
        ):
            with pm.Model() as refused:
                pm.Normal("y", prior("theta"), observed=Y)
            with pytest.raises(ValueError, match=message):
                models.PyMCModel(refused)
        with pm.Model() as uneven:
            theta = pm.Normal("theta")
            pm.Normal("y", theta, observed=Y)
            pm.Normal("z", theta, observed=Y[:3])
        with pytest.raises(ValueError, match=r"the same rows, got y \(24,\), z \(3,\)"):
            models.PyMCModel(uneven)


class Fake(SampledModel):
    """A sampler with faults."""

    seed = 3

    def __init__(self, divergent, apart):
        self.divergent, self.apart = divergent, apart

    def sampler(self, data):
        return self

    def draw(self, exponents, seed, start=None):
        rng = np.random.default_rng(seed)
        theta = rng.standard_normal((2, 100)) + self.apart * np.array([[0.0], [1.0]])
        return Draws({"theta": theta}, theta[..., None] + Y, self.divergent)


@pytest.mark.parametrize(
    ("divergent", "apart", "category"),
    [(0, 0.0, None), (5, 0.0, DivergenceWarning), (0, 4.0, MixingWarning)],
)
def test_faults_of_the_sampler_are_warnings(divergent, apart, category):
    model = Fake(divergent, apart)
    if category is None:
        tree = model.posterior(X, Y, 12.0)
    else:
        with pytest.warns(category):
            tree = model.posterior(X, Y, 12.0)
    assert tree.attrs["divergences"] == divergent
    assert tree.attrs["seed"] == 3
    assert "R-hat" in tree.attrs["method"]


PROGRAM = "data { vector[n] weights; } generated quantities { vector[n] log_lik; }"


@pytest.fixture(scope="module")
def program():
    """The program of the page, so that one build serves both."""
    page = (ROOT / "docs" / "stan.md").read_text()
    return page.partition('program = """')[2].partition('"""')[0]


def kept_fits(program):
    """Fits of a program in PyStan's cache."""
    from httpstan import cache
    from httpstan.models import calculate_model_name

    return set(cache.model_directory(calculate_model_name(program)).rglob("*.jsonlines.gz"))


class TestStan:
    @pytest.mark.slow
    def test_draws_curve_and_posterior(self, program):
        pytest.importorskip("httpstan")
        data = {"n": 24, "d": 2, "X": X, "y": Y}
        model = models.StanModel("\n" + program.lstrip("\n"), data, draws=300, warmup=300)
        model.own_sampler().draw(np.ones(24), 0)
        before = kept_fits(model.program)
        check_draws(model.own_sampler())
        assert kept_fits(model.program) == before
        check_curve(model, model.X, model.y, ["gibbs"])
        check_posterior(model, model.X, model.y)
        check_refusals_of_data(model)

    def test_a_program_that_does_not_compile(self):
        pytest.importorskip("httpstan")
        model = models.StanModel(PROGRAM, {"y": Y})
        with pytest.raises(ValueError, match=r"Stan failed: Semantic error.*Identifier .n. not in"):
            model.own_sampler().draw(np.ones(24), 0)

    def test_refusals(self):
        for arguments, message in (
            (("x", {}), r"must declare vector<lower=0>\[n\] weights; in its data"),
            ((PROGRAM.replace("log_lik", "// log_lik\n"), {}), r"declare vector\[n\] log_lik;"),
            ((PROGRAM, {"x": 1, "z": 2}), "response must be a name in data, one of x, z, got 'y'"),
            ((3, {}), "program must be a Stan program, as text .* got 3"),
        ):
            with pytest.raises(ValueError, match=message):
                models.StanModel(*arguments)

    def test_a_process_that_ended(self):
        """It is noticed, and the next run has a new one."""
        pytest.importorskip("httpstan")
        worker = stan_model._stan()
        worker.process.kill()
        model = models.StanModel(PROGRAM, {"y": Y})
        with pytest.raises((ValueError, BrokenPipeError)):
            model.own_sampler().draw(np.ones(24), 0)
        assert stan_model._stan() is not worker
        stan_model._stan().close()

    def test_rows_with_several_responses(self):
        model = models.StanModel(PROGRAM, {"y": np.zeros((5, 2))})
        np.testing.assert_array_equal(model.y, np.arange(5))


class CmdStanOf:
    """The interface of a CmdStanModel, with draws of the closed form of the linear model."""

    def __init__(self, program):
        self.program, self.calls = program, []

    def code(self):
        return self.program

    def sample(self, data, *, chains, iter_sampling, iter_warmup, seed, show_progress, inits=None):
        self.calls.append((data, chains, iter_warmup, seed, show_progress, inits))
        exponents = np.array(data["weights"])
        law = EXACT.posterior(X, Y, exponents.sum(), exponents) if exponents.any() else None
        mean, cov = (np.zeros(2), np.eye(2)) if law is None else (law.mean, law.cov)
        size = chains * iter_sampling
        theta = np.random.default_rng(seed).multivariate_normal(mean, cov, size)
        return CmdStanFit(theta, chains)


class CmdStanFit:
    def __init__(self, theta, chains):
        self.theta, self.chains = theta, chains

    def stan_variable(self, name):
        return self.stan_variables()[name]

    def stan_variables(self):
        log_lik = -EXACT.loss(self.theta, X, Y)
        return {"theta": self.theta, "level": self.theta[:, 0], "log_lik": log_lik}

    def method_variables(self):
        return {"divergent__": np.eye(len(self.theta) // self.chains, self.chains)}


class TestCmdStan:
    @pytest.fixture
    def model(self, program):
        return models.StanModel(CmdStanOf(program), {"n": 24, "d": 2, "X": X, "y": Y}, draws=1000)

    def test_draws_curve_and_posterior(self, model):
        check_draws(model.own_sampler())
        check_curve(model, model.X, model.y, ["gibbs"])
        check_posterior(model, model.X, model.y)
        check_refusals_of_data(model)

    def test_what_is_asked_for(self, model):
        drawn = model.own_sampler().draw(np.full(24, 0.5), 0)
        assert drawn.divergent == 4
        assert drawn.theta["level"].shape == (4, 1000)
        again = model.own_sampler().draw(np.full(24, 0.5), 2**31, drawn.end)
        np.testing.assert_array_equal(again.theta["theta"].shape, (4, 1000, 2))
        (_, *first), (data, *second) = model.program.calls
        assert first == [4, 500, 1, False, None]
        assert second[:2] == [4, 500] and 1 <= second[2] < 2**31
        assert len(second[4]) == 4
        assert second[4][3]["theta"] == drawn.theta["theta"][3, -1].tolist()
        assert data["weights"] == [0.5] * 24 and data["n"] == 24

    def test_constants(self, model):
        found = calibrate(
            model, model.X, model.y, strategies.KFold(2), bounds=(0, 0.5), risk="gibbs"
        )
        assert "  (gibbs; constants as in log_lik)" in repr(found)
        assert "log_prob" in models.NumPyroModel.constants  # where the tests above find them
        assert "logp" in models.PyMCModel.constants

    def test_draws_of_a_fit(self, program):
        """The two lines of the page: chains follow one another in CmdStanPy's arrays."""
        ones = {"n": 24, "weights": np.ones(24)}
        options = {"iter_sampling": 500, "iter_warmup": 0, "seed": 1, "show_progress": False}
        fit = CmdStanOf(program).sample(ones, chains=4, **options)
        page = (ROOT / "docs" / "stan.md").read_text()
        lines = page.partition("`log_lik` is enough:")[2].strip().splitlines()[:2]
        names = {"fit": fit, "data": ones, "calibrate_from_draws": calibrate_from_draws}
        exec("\n".join(line.strip() for line in lines), names)
        assert names["log_lik"].shape == (4, 500, 24)
        assert names["calibration"].supported[0] < 1 < names["calibration"].supported[1]

    @pytest.mark.slow
    def test_cmdstanpy_itself(self, program, tmp_path):
        cmdstanpy = pytest.importorskip("cmdstanpy")
        try:
            cmdstanpy.cmdstan_path()
        except ValueError:
            pytest.skip("CmdStan is not installed")
        (tmp_path / "linear.stan").write_text(program)
        compiled = cmdstanpy.CmdStanModel(stan_file=str(tmp_path / "linear.stan"))
        data = {"n": 24, "d": 2, "X": X, "y": Y}
        check_draws(models.StanModel(compiled, data, draws=300, warmup=300).own_sampler())


@pytest.mark.parametrize(
    ("absent", "use", "message"),
    [
        (
            "numpyro",
            lambda: models.NumPyroModel(print).check(as_data(X, Y)),
            r"NumPyroModel needs NumPyro: pip install 'temperance\[jax\]'",
        ),
        (
            "stan",
            lambda: models.StanModel(PROGRAM, {"y": Y}).check(as_data(np.arange(24.0), Y)),
            r"StanModel needs PyStan, pip install 'temperance\[stan\]', or a CmdStanModel",
        ),
    ],
)
def test_missing_extra(monkeypatch, absent, use, message):
    stan_model._stan.cache_clear()
    monkeypatch.setitem(sys.modules, absent, None)
    with pytest.raises(ImportError, match=message):
        use()
