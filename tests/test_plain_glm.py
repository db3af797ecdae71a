"""The shortcuts of logistic and softmax models against the plain path, through `calibrate`."""

import numpy as np
import pytest
from scenarios import LOGISTIC, RISKS, SOFTMAX, binary_data, class_data

from temperance import calibrate, models, strategies
from temperance.models.glm import fast, plain
from temperance.models.glm.softmax import fast as softmax_fast

NAMES = ["jaakkola", "full", "laplace", "mean-field", "softmax"]
TRANSFERS = ["beta", "alpha"]
PLANS = {
    "folds": lambda transfer: strategies.KFold(3, transfer),
    "split": lambda transfer: strategies.SampleSplitting(transfer),
    "leave-one-out": lambda transfer: strategies.LeaveOneOut(transfer),
    "prefixes": lambda transfer: strategies.SafeBayes(transfer, start=3),
}
BETAS = np.array([0.0, 0.05, 0.7])

pytestmark = pytest.mark.filterwarnings("ignore::temperance.messages.BoundWarning")


@pytest.fixture
def asked(monkeypatch):
    """What calibrations ask of the shortcuts, and what they are given."""
    calls = []
    for module in (fast, softmax_fast):

        def spy(*arguments, choose=module.choose):
            found = choose(*arguments)
            calls.append((arguments, found))
            return found

        monkeypatch.setattr(module, "choose", spy)
    return calls


def curves(name, data, strategy, risk, asked):
    """Return the curve that a calibration ran on, the plain one, and how the first one fits."""
    model = (LOGISTIC | SOFTMAX)[name]
    bounds = (0.5, 0.7)
    found = calibrate(
        model, data.X, data.y, strategy, risk=risk, weights=data.weights, bounds=bounds
    )
    [(arguments, chosen)] = asked
    assert found.table.curve is chosen
    return chosen, plain.risk_curve(*arguments), type(chosen.evaluate.__self__.losses)


def assert_same(curve, exact):
    """Newton's method leaves values an error of the square of its last step, slopes of the step."""
    (value, slope), (expected, rise) = (each(BETAS, derivative=True) for each in (curve, exact))
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    np.testing.assert_allclose(slope, rise, rtol=0, atol=1e-7 * np.abs(rise).max())


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("transfer", TRANSFERS)
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("name", NAMES)
def test_pairs_that_are_followed_along_beta(name, plan, transfer, risk, asked):
    data = (class_data if name == "softmax" else binary_data)(9)
    curve, exact, _ = curves(name, data, PLANS[plan](transfer), risk, asked)
    assert_same(curve, exact)
    assert curve.method == exact.method


@pytest.mark.parametrize(
    ("transfer", "risk"),
    [
        ("beta", "gibbs"),
        ("alpha", "predictive"),
        pytest.param("beta", "predictive", marks=pytest.mark.slow),
        pytest.param("alpha", "gibbs", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_rows_left_out_by_a_newton_step_up_to_the_square_of_their_share(
    name, transfer, risk, asked, monkeypatch
):
    """Not to leave them out errs by their share."""
    n = 66
    monkeypatch.setattr(fast, "MANY_LEFT_OUT", 50)
    data = (class_data if name == "softmax" else binary_data)(n)
    curve, exact, kind = curves(name, data, PLANS["leave-one-out"](transfer), risk, asked)
    assert kind.__name__.endswith("LeftOutLosses")
    assert abs(curve(0.7) - exact(0.7)) < 25 / n**2


@pytest.mark.parametrize("name", ["full", "mean-field"])
def test_more_columns_than_rows(name, asked):
    """What lies outside the span of a training set's rows is left out, or not."""
    data = binary_data(9, 14)
    kind = type(LOGISTIC[name])
    for strategy in (strategies.KFold(3), strategies.SafeBayes(start=3)):
        asked.clear()
        found = calibrate(kind(), data.X, data.y, strategy, bounds=(0.5, 0.7))
        [(arguments, _)] = asked
        assert_same(found.table.curve, plain.risk_curve(*arguments))


@pytest.mark.parametrize("risk", RISKS)
def test_the_plain_path_makes_the_same_choice(risk, monkeypatch):
    data = binary_data(40, 6)
    both = []
    for choose in (fast.choose, lambda *arguments: None):
        monkeypatch.setattr(fast, "choose", choose)
        model = models.LaplaceLogistic(prior_cov=9.0)
        both.append(calibrate(model, data.X, data.y, strategies.KFold(3), risk=risk))
    one, other = both
    assert one.beta == pytest.approx(other.beta, rel=1e-6)
    assert one.risk == pytest.approx(other.risk, rel=1e-9)
    assert one.standard_error == pytest.approx(other.standard_error, rel=1e-7)
