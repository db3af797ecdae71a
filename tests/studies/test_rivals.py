"""Rules that were tried against reference risk do what they say."""

import numpy as np
import pytest
from temperance.search.minimise import Minimum

from temperance import calibrate, models
from temperance.data import Data
from temperance.plans import LeaveOneOut
from temperance.strategies import Bootstrap, LeaveOneOut, ReferenceRisk
from temperance.strategies.selection import minimum_of
from temperance_studies.thesis.defaults import rivals

pytestmark = pytest.mark.filterwarnings("ignore::temperance.messages.BoundWarning")
BOUNDS = (0.0, 3.0)
MODEL = models.GaussianLinear(noise_variance=1.0)
RULES = [
    rivals.FirstDescribed(),
    rivals.AveragedPosterior(),
    rivals.Bagged(),
    rivals.BothCurves(),
    rivals.VetoedBootstrap(),
    rivals.BetweenBoth(),
    rivals.NearBayes(),
]


def problem(seed=0, n=30, d=15, noise=2.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return Data(X, X @ rng.standard_normal(d) * 0.5 + noise * rng.standard_normal(n), np.ones(n))


def facts(data, seed=0):
    left_out = MODEL.risk_curve(data, LeaveOneOut(data.weights))
    return rivals.Facts(MODEL, data, "gibbs", BOUNDS, np.random.default_rng(seed), left_out)


def chosen(rule, data, model=MODEL):
    return calibrate(model, data.X, data.y, rule).beta


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize("model", [MODEL, models.NormalInverseGammaLinear()])
def test_choices_keep_to_the_bounds_and_to_the_seed(rule, model):
    data = problem()
    first, second = (chosen(rule, data, model) for _ in range(2))
    assert first == second and BOUNDS[0] <= first <= BOUNDS[1]


def test_the_first_form_shrinks_more_where_columns_repeat_each_other():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 25))
    X = X + 0.1 * rng.standard_normal((40, 25))
    data = Data(X, X[:, 0] + rng.standard_normal(40), np.ones(40))
    first, now = (rule.reference(MODEL, data, data.weights, "gibbs") for rule in (
        rivals.FirstDescribed(), ReferenceRisk()))  # fmt: skip
    assert first(0.1) > now(0.1)


def test_the_first_form_is_for_linear_models():
    with pytest.raises(ValueError, match="model must be linear, got LaplaceLogistic"):
        calibrate(models.LaplaceLogistic(), np.ones((4, 1)), [0, 1, 0, 1], rivals.FirstDescribed())


def test_the_average_is_drawn_from_its_weights():
    known = facts(problem())
    rule = rivals.AveragedPosterior()
    drawn = np.log([rule.beta(known) for _ in range(400)])
    height = -len(known.data) * known.reference()(known.betas)
    weight = np.exp(height - height.max())
    mean = weight @ np.log(known.betas) / weight.sum()
    assert abs(drawn.mean() - mean) < 4 * drawn.std() / np.sqrt(400)


def test_bagging_averages_choices_around_that_of_leave_one_out():
    data = problem(seed=3)
    known = facts(data)
    many = rivals.Bagged(draws=2000).beta(known)
    rng = np.random.default_rng(5)
    losses = np.column_stack([known.left_out.rows(beta)[0] for beta in known.betas])
    weights = rng.exponential(size=(2000, len(data)))
    least = np.log(known.betas[(weights @ losses).argmin(axis=1)])
    assert abs(np.log(many) - least.mean()) < 5 * least.std() * np.sqrt(2 / 2000)


def test_both_curves_are_summed():
    data = problem(seed=1)
    known = facts(data)
    grid = np.linspace(0.001, 3, 3000)
    total = known.reference()(grid) + known.left_out(grid)
    assert rivals.BothCurves().beta(known) == pytest.approx(grid[total.argmin()], abs=2e-3)


def test_the_bootstrap_is_heard_unless_leave_one_out_is_sure():
    data = problem(seed=2)
    plan = Bootstrap(n_draws=200).plan(data, np.random.default_rng(0))
    own = minimum_of(MODEL.risk_curve(data, plan), BOUNDS).beta
    assert rivals.VetoedBootstrap(errors=1e9).beta(facts(data)) == own
    strict = rivals.VetoedBootstrap(errors=1e-9).beta(facts(data))
    assert strict == pytest.approx(chosen(LeaveOneOut(), data), abs=1e-3)
    between = rivals.BetweenBoth().beta(facts(data))
    assert between == pytest.approx(np.sqrt(own * chosen(LeaveOneOut(), data)), rel=1e-6)


def test_bayes_is_kept_where_it_is_tolerated():
    data = problem(seed=2)
    known = facts(data)
    assert rivals.NearBayes(errors=1e9).beta(known) == 1.0
    assert rivals.NearBayes(errors=1.0).beta(known) == known.tolerated(Minimum(1.0), 1.0)
