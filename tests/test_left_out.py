"""Rows left out of awkward data, and rules on awkward curves."""

import numpy as np
import pytest
from fuzz import plain_averaged

from temperance import calibrate, models, strategies
from temperance.data import Data
from temperance.plans import LeaveOneOut, Pairs
from temperance.rules import minimum, mixed_losses
from temperance.table import held_out_losses

BOUNDS = (0.0, 3.0)
BETAS = np.array([0.01, 0.5, 1.0, 3.0])


@pytest.mark.parametrize("level", [True, False])
@pytest.mark.parametrize("risk", ["gibbs", "predictive"])
@pytest.mark.parametrize("shape", [(20, 50), (4, 6), (12, 11), (12, 4)])
def test_rows_left_out_of_wide_data_are_those_of_refits(shape, risk, level):
    n, d = shape
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(n), rng.standard_normal((n, d))])
    y = 3 + X @ rng.standard_normal(d + 1) / np.sqrt(d) + rng.standard_normal(n)
    data, model = Data(X, y, rng.uniform(0.5, 2.0, n)), models.HierarchicalLinear(intercept=level)
    plan = LeaveOneOut(data.weights)
    ours, pairs = (model.held_out(data, p, risk, BOUNDS) for p in (plan, plan.pairs()))
    np.testing.assert_allclose(ours.at(BETAS), pairs.at(BETAS), rtol=1e-8)
    if n < 5:
        inputs = plain_averaged.inputs_of(model, data, plan.pairs())
        plain = [plain_averaged.plain_risk(model, inputs, beta, risk, 50)[0] for beta in BETAS]
        np.testing.assert_allclose(ours.risk(BETAS), plain, rtol=1e-9)


def test_copies_of_a_row_far_from_the_others_leave_no_residual():
    X = np.column_stack([np.ones(3), [0.1, 0.2, 0.4]])
    data = Data(X, np.array([1e9, 0.0, 1.0]), np.ones(3))
    model = models.HierarchicalLinear(a=0.1, scales=(1.0,))
    train, test = np.array([[3.0, 0, 0], [0, 2.0, 1.0]]), np.array([[0, 1.0, 0], [1.0, 0, 0]])
    plan = Pairs(train, test, 3.0)
    found = model.held_out(data, plan, "predictive", BOUNDS).risk(BETAS)
    inputs = plain_averaged.inputs_of(model, data, plan)
    plain = [plain_averaged.plain_risk(model, inputs, beta, "predictive")[0] for beta in BETAS]
    np.testing.assert_allclose(found, plain, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::temperance.messages.TemperanceWarning")
@pytest.mark.parametrize("upper", [1e-6, 1e-3])
def test_bounds_may_lie_below_the_scan(upper):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 2)), rng.standard_normal(20)
    found = calibrate(models.GaussianLinear(), X, y, strategies.KFold(4), bounds=(0.0, upper))
    assert 0 <= found.beta <= upper


def test_a_beta_between_those_of_the_scan_is_taken_if_the_curve_is_lower_there():
    """A polynomial through a cliff falls where the curve does not."""
    betas = np.geomspace(0.001, 10.0, 9)
    table = held_out_losses(betas, np.zeros((9, 1)))
    steep = type(
        "Steep",
        (type(table),),
        {"risk": lambda self, b: np.where(b > 0.5, 1e4 * b, 0.0) + (np.log(b / 0.3)) ** 2},
    )
    found = minimum(steep(**vars(table)), (0.001, 10.0))
    values = steep(**vars(table)).risk(np.array([found.beta, *betas]))
    assert values[0] <= values[1:].min()


def test_a_mixture_of_one_has_its_loss_however_large():
    losses = np.array([[0.0, 5.0], [2000.0, 3.0]])
    assert mixed_losses(losses, np.array([0.0, 1.0])).tolist() == [2000.0, 3.0]
