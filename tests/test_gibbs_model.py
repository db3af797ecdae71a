"""Models in JAX that nobody wrote formulae for, held against those that somebody did."""

import subprocess
import sys
import warnings
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from temperance import calibrate, expected_risk, models, strategies
from temperance.calibration import has_likelihood
from temperance.data import Data
from temperance.messages import BoundWarning
from temperance.models.sampled import batched
from temperance.models.sampled.batched import BatchedLadders
from temperance.models.sampled.curve import PairedDraws
from temperance.models.sampled.settings import NUTS, SMC
from temperance.rules import stack

RISKS = ("gibbs", "predictive")
NOISE_VARIANCE = 2.0
EXACT = models.GaussianLinear(noise_variance=NOISE_VARIANCE)
CONSTANT = 0.5 * np.log(2 * np.pi * NOISE_VARIANCE)
BOUNDS = (0.0, 3.0)


def squared(theta, x, y):
    return (y - x @ theta) ** 2 / (2 * NOISE_VARIANCE) + CONSTANT


def standard_normal(theta):
    return -0.5 * jnp.sum(theta**2)


def linear_model(d, **options):
    return models.GibbsModel(squared, dist.Normal(0.0, 1.0).expand([d]), **options)


def linear_data(n, d, seed=0, noise=2.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = X @ rng.standard_normal(d) + noise * rng.standard_normal(n)
    return Data(X, y, np.ones(n))


def planned(strategy, data):
    return strategy.planned(data, np.random.default_rng(0))[1]


def closed(data, plan, risk="gibbs"):
    return EXACT.held_out(data, plan, risk, BOUNDS)


SMALL = linear_data(15, 3)
FEW = SMC(islands=16)
MODEL = linear_model(3, sampler=FEW)  # one object, so that it compiles once


class TestAgainstTheClosedForm:
    @pytest.mark.parametrize(
        "strategy",
        [strategies.Naive(), strategies.SampleSplitting(), strategies.KFold(5)],
        ids=["naive", "split", "5-fold"],
    )
    @pytest.mark.slow
    def test_forty_parameters(self, strategy):
        """The thesis' n = d = 40, at 50 alphas over [0, 3n]."""
        data = linear_data(40, 40)
        plan = planned(strategy, data)
        drawn, exact = BIG.risk_curve(data, plan), closed(data, plan)
        betas = np.linspace(0, 3, 50)
        error = drawn.error(betas)
        assert np.all(np.abs(drawn(betas) - exact(betas)) < 4 * error)
        assert np.all(error < 0.03 * exact(betas))

    @pytest.mark.parametrize("risk", RISKS)
    @pytest.mark.parametrize(
        "strategy",
        [
            strategies.KFold(4, "alpha"),
            strategies.Bootstrap(4),
            strategies.SafeBayes("alpha", stride=3),
            strategies.SampleSplitting("beta", True, True, 2),
            strategies.LeaveOneOut(),
            strategies.LeaveOneOut("alpha"),
        ],
        ids=repr,
    )
    @pytest.mark.slow
    def test_every_strategy(self, strategy, risk):
        plan = planned(strategy, SMALL)
        drawn, exact = MODEL.risk_curve(SMALL, plan, risk), closed(SMALL, plan, risk)
        betas = np.linspace(0, 2.5, 50)
        assert np.all(np.abs(drawn(betas) - exact(betas)) < 4 * drawn.error(betas))

    @pytest.mark.parametrize("sampler", [SMC(), NUTS(draws=64, moves=25)], ids=["smc", "nuts"])
    @pytest.mark.slow
    def test_errors_are_honest(self, sampler):
        """Over 100 seeds z has variance 1 at every beta; with half the error it would have 4."""
        data = linear_data(10, 2, seed=3)
        plan = planned(strategies.Naive(), data).pairs()
        betas = np.array([0.0, 0.1, 0.4, 1.0, 2.0])
        programs = linear_model(2, sampler=sampler)._programs(1)  # compiled once for all seeds
        z = {risk: [] for risk in RISKS}
        for seed in range(100):
            ladders = BatchedLadders(programs, data.X, data.y, plan, seed, overlap=0.5)
            for risk in RISKS:
                drawn = PairedDraws(ladders, plan, risk)
                exact = closed(data, plan, risk)(betas)
                z[risk].append((drawn.evaluate(betas)[0] - exact) / drawn.error(betas))
        for risk in RISKS:
            variance = np.var(z[risk], axis=0)
            assert (0.7 < variance).all() and (variance < 1.4).all(), (risk, variance)
            assert np.abs(np.mean(z[risk], axis=0)).max() < 0.4  # 4 errors of a mean of 100


BIG = linear_model(40, sampler=SMC(islands=32))


@pytest.fixture(scope="module")
def result():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundWarning)
        return calibrate(
            MODEL, SMALL.X, SMALL.y, strategies.KFold(4), risk="predictive", bounds=(0, 2)
        )


def test_islands_that_differ_are_moved_again(monkeypatch):
    programs, calls = MODEL._programs(1), []
    moved = programs.rung
    monkeypatch.setitem(programs.__dict__, "rung", lambda *a: calls.append(a[0]) or moved(*a))
    plan = planned(strategies.KFold(2), SMALL).pairs()
    counts = []
    for apart in ([], [True, False, True, True] * 20):  # in the first pass two pairs, then one
        differ = iter(apart)
        monkeypatch.setattr(batched, "_differ", lambda u, differ=differ: next(differ, False))
        ladders = BatchedLadders(programs, SMALL.X, SMALL.y, plan, 0, overlap=0.5).extend(0.02)
        counts.append((len(ladders[0].betas), len(calls)))
        calls.clear()
    (rungs, plain), (_, more) = counts
    assert plain == 2 * (rungs - 1) < more <= batched.MOST_PASSES * plain


def test_a_loss_may_be_no_likelihood():
    model = linear_model(2, likelihood=False)
    assert not has_likelihood(model) and has_likelihood(linear_model(2))
    data = linear_data(10, 2)
    with pytest.raises(ValueError, match="risk must be 'gibbs' with likelihood=False"):
        calibrate(model, data.X, data.y, "leave-one-out", risk="predictive")
    with pytest.raises(ValueError, match="likelihood must be"):
        linear_model(2, likelihood="no")


def test_particles_are_a_multiple_of_moves():
    with pytest.raises(ValueError, match="particles must be a multiple of moves, 8, got 30"):
        SMC(particles=30)


@pytest.mark.filterwarnings("ignore::temperance.messages.BoundWarning")
class TestCalibration:
    def test_close_to_the_closed_form(self, result):
        exact = calibrate(EXACT, SMALL.X, SMALL.y, strategies.KFold(4), risk="predictive",
                          bounds=(0, 2))  # fmt: skip
        error = result.table.error(np.array([result.beta]))[0]
        assert exact.curve(result.beta) - exact.risk < 8 * error
        assert abs(result.risk - exact.curve(result.beta)) < 4 * error

    def test_the_default_is_a_stack_of_rows_left_out(self):
        found, exact = (calibrate(model, SMALL.X, SMALL.y) for model in (MODEL, EXACT))
        assert found.strategy == strategies.Stacking() and found.kind == "predictive"
        known = stack(replace(exact.table, votes=found.table.votes), exact.weights.betas)
        np.testing.assert_array_equal(found.weights.betas, known.betas)
        np.testing.assert_allclose(found.weights.weights, known.weights, atol=0.1)
        assert found.bayes_risk == pytest.approx(exact.bayes_risk, rel=0.02)
        draws = found.posterior["posterior"]["theta"].values.reshape(-1, 3)
        law = EXACT.mixture(SMALL, found.weights, None).marginals()
        np.testing.assert_allclose(draws.mean(axis=0), law.mean, atol=0.2 * law.std.min())
        np.testing.assert_allclose(draws.std(axis=0), law.std, rtol=0.2)

    def test_says_how_and_how_reliable(self, result):
        assert "rungs of 512 draws, effective sample size" in repr(result)
        assert "  (predictive; constants as in loss)" in repr(result)
        curve = result.table.curve
        reliability = curve.reliability(result.beta)
        assert reliability.effective > 200 and reliability.rhat < reliability.rhat_limit
        assert reliability.divergent == 0 and reliability.overlap > 0.1
        assert curve.effective([0.5, 1.0]).shape == (2,)

    def test_same_seed_same_result(self, result):
        again = calibrate(
            MODEL, SMALL.X, SMALL.y, strategies.KFold(4), risk="predictive", bounds=(0, 2)
        )
        assert again.beta == result.beta and repr(again) == repr(result)

    @pytest.mark.slow
    def test_weights_count(self):
        """A row of weight 6 trains and tests six times; without the weight the curve is another."""
        weights = np.ones(15)
        weights[3] = 6.0
        betas = np.array([0.2, 1.0])
        data = Data(SMALL.X, SMALL.y, weights)
        drawn = MODEL.risk_curve(data, planned(strategies.Naive(), data))
        exact = closed(data, planned(strategies.Naive(), data))
        assert np.all(np.abs(drawn(betas) - exact(betas)) < 4 * drawn.error(betas))
        plain = closed(SMALL, planned(strategies.Naive(), SMALL))
        assert np.all(np.abs(plain(betas) - exact(betas)) > 8 * drawn.error(betas))

    @pytest.mark.slow
    def test_expected_risk(self):
        train, test = (SMALL.X[:10], SMALL.y[:10]), (SMALL.X[10:], SMALL.y[10:])
        given = train, test, 10.0
        drawn, slope = expected_risk(MODEL, *given, risk="gibbs", derivative=True)
        exact, exact_slope = expected_risk(EXACT, *given, risk="gibbs", derivative=True)
        assert drawn == pytest.approx(exact, rel=0.05)
        assert slope == pytest.approx(exact_slope, abs=0.02)


class TestPosterior:
    @pytest.mark.slow
    def test_is_an_arviz_object(self):
        """From a start alone: the prior is sampled too, and the user's settings stay."""
        told = []
        model = models.GibbsModel(
            lambda theta, x, y: squared(theta["slopes"], x, y),
            log_prior=lambda theta: standard_normal(theta["slopes"]),
            init={"slopes": np.zeros(3)},
            sampler=FEW,
            progress=lambda *news: told.append(news),
        )
        before = jax.config.jax_enable_x64
        tree = model.posterior(SMALL.X, SMALL.y, alpha=7.5)
        assert jax.config.jax_enable_x64 == before
        assert jnp.ones(2).dtype == ("float64" if before else "float32")
        assert told[-1][:2] == (0.5, 0.5) and told[0][0] == 0.0
        assert tree.attrs["beta"] == 0.5 and tree.attrs["alpha"] == 7.5
        draws = tree["posterior"]["slopes"].values
        assert draws.shape == (4, 128, 3) and draws.dtype == "float64"
        exact = EXACT.posterior(SMALL.X, SMALL.y, alpha=7.5)
        error = np.sqrt(np.diag(exact.cov) / draws[..., 0].size)
        assert np.all(np.abs(draws.mean(axis=(0, 1)) - exact.mean) < 5 * error)
        losses = -tree["log_likelihood"]["y"].values
        naive = (SMALL.y - draws @ SMALL.X.T) ** 2 / (2 * NOISE_VARIANCE) + CONSTANT
        np.testing.assert_allclose(losses, naive, rtol=1e-10)
        np.testing.assert_array_equal(tree["observed_data"]["y"], SMALL.y)

    def test_at_zero_it_is_the_prior(self):
        draws = MODEL.posterior(SMALL.X, SMALL.y, alpha=0.0)["posterior"]["theta"].values
        assert draws.std() == pytest.approx(1.0, abs=0.06)


class TestBrokenModels:
    def check(self, loss, log_prior=standard_normal):
        model = models.GibbsModel(loss, log_prior=log_prior, init=np.zeros(3))
        calibrate(model, SMALL.X, SMALL.y)

    def test_nan_names_observation_and_parameter(self):
        bad = SMALL.y[4]
        with pytest.raises(ValueError, match=r"got nan for observation 4 .* at theta = \[0.0, 0"):
            self.check(lambda theta, x, y: jnp.where(y == bad, jnp.nan, squared(theta, x, y)))

    def test_nan_among_the_draws(self):
        def loss(theta, x, y):
            return jnp.where(theta[0] > 1.0, jnp.nan, squared(theta, x, y))

        model = models.GibbsModel(loss, dist.Normal(-2.0, 1.0).expand([3]))
        with pytest.raises(ValueError, match=r"loss must be a number, got nan for observation 0"):
            calibrate(model, SMALL.X, SMALL.y)

    def test_wrong_shape(self):
        with pytest.raises(ValueError, match=r"one number per observation, got shape \(3,\)"):
            self.check(lambda theta, x, y: theta * x)

    def test_not_traceable(self):
        def loss(theta, x, y):
            return 1.0 if y > 0 else x @ theta

        with pytest.raises(
            ValueError, match="loss must be a function that JAX can trace, got Trac"
        ):
            self.check(loss)

    def test_prior(self):
        with pytest.raises(ValueError, match="log_prior must be finite at the start, got -inf"):
            self.check(squared, lambda theta: jnp.log(theta[0]))
        with pytest.raises(ValueError, match=r"log_prior must return a number, got shape \(3,\)"):
            self.check(squared, lambda theta: -(theta**2))

    @pytest.mark.parametrize(
        "options, message",
        [
            ({"loss": 3}, "loss must be a function, got 3"),
            ({"init": "zero"}, "init must be a pytree of real numbers"),
            ({"init": {}}, "init must be a pytree of real numbers"),
            ({"init": lambda key: 0.0}, "init must be a parameter to start from"),
            ({"init": None}, "init must be a parameter to start from"),
            ({"draw_prior": lambda key: key}, "init must be left out beside draw_prior"),
            ({"init": None, "draw_prior": lambda: 0.0}, "draw_prior must be a function of a JAX"),
            ({"prior": dist.Normal()}, "log_prior must be left out beside prior"),
            ({"sampler": "gibbs"}, "sampler must be 'smc', 'nuts'"),
            ({"overlap": 1.5}, "overlap must lie between 0 and 1"),
            ({"seed": -1}, "seed must be at least 0"),
        ],
    )
    def test_options(self, options, message):
        given = {"loss": squared, "log_prior": standard_normal, "init": np.zeros(3)} | options
        with pytest.raises(ValueError, match=message):
            models.GibbsModel(**given).check(SMALL)

    def test_sampler_options(self):
        with pytest.raises(ValueError, match="islands must be at least 2"):
            SMC(islands=1)
        with pytest.raises(ValueError, match="chains must be at least 2"):
            NUTS(chains=1)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"log_prior": standard_normal, "init": np.zeros(3)}, "log_prior without draw_prior"),
        ({"prior": dist.Normal().expand([3]), "sampler": NUTS(draws=8)}, "NUTS"),
    ],
)
def test_without_blackjax(options, what, monkeypatch):
    monkeypatch.setitem(sys.modules, "blackjax", None)
    monkeypatch.delitem(sys.modules, "temperance.models.sampled.nuts", raising=False)
    with pytest.raises(ImportError) as error:
        models.GibbsModel(squared, **options).posterior(SMALL.X, SMALL.y, 1.0)
    assert str(error.value) == f"{what} needs BlackJAX: pip install 'temperance[jax]'"


def test_importing_imports_nothing_heavy():
    heavy = ["jax", "arviz_base", "arviz_stats", "xarray", "pymc", "numpyro", "stan", "rich"]
    script = f"import sys, temperance; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize(
    "start, stride, expected", [(1, 5, [5, 10]), (6, 5, [10]), (3, 4, [4, 8, 12])]
)
def test_strides(start, stride, expected):
    """The first k s rows train, the next s are tested."""
    plan = planned(strategies.SafeBayes(start=start, stride=stride), SMALL)
    assert plan.train.sum(axis=1).tolist() == expected
    for end, train, test in zip(expected, plan.train, plan.test, strict=True):
        assert np.flatnonzero(train).tolist() == list(range(end))
        assert np.flatnonzero(test).tolist() == list(range(end, min(end + stride, 15)))


def test_stride_one_is_every_row():
    one, many = (
        strategies.SafeBayes(stride=1, permutations=2),
        strategies.SafeBayes(permutations=2),
    )
    a, b = planned(one, SMALL).pairs(), planned(many, SMALL).pairs()
    np.testing.assert_array_equal(a.train, b.train)


def test_stride_must_leave_rows():
    with pytest.raises(ValueError, match="stride must be less than the number of rows, got 15"):
        planned(strategies.SafeBayes(stride=15), SMALL)
