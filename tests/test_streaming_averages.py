"""Averages over beta on partitions are those of all rows in memory."""

import numpy as np
import pytest

from temperance import calibrate, models
from temperance.strategies import Average, KFold, LeaveOneOut, SafeBayes
from temperance.streaming import calibrate_blocks
from tests.test_streaming_modes import in_blocks, problem, splits

pytestmark = pytest.mark.filterwarnings("ignore::temperance.messages.TemperanceWarning")
LINEAR = [models.GaussianLinear(2.0, 0.0, 0.5), models.NormalInverseGammaLinear(0.1, 0.5, 2.0, 3.0)]


def linear_rows():
    # Without weights: in memory copies do not count as free rows, and blocks do not know them.
    X, _, _ = problem(120, 3)
    rng = np.random.default_rng(1)
    return X, X[:, 0] + X[:, 1] + 4 * rng.standard_t(4, 120), np.ones(120)


def compare(found, whole):
    np.testing.assert_allclose(found.average.betas, whole.average.betas, rtol=1e-7)
    np.testing.assert_allclose(found.average.weights, whole.average.weights, rtol=1e-6, atol=1e-7)
    assert found.beta == pytest.approx(whole.beta, rel=1e-7)
    assert found.risk == pytest.approx(whole.risk, rel=1e-8)
    assert found.standard_error == pytest.approx(whole.standard_error, rel=1e-6)
    assert found.gain_standard_error == pytest.approx(whole.gain_standard_error, rel=1e-5)
    assert found.beta_range == pytest.approx(whole.beta_range, rel=1e-6)
    one, other = (each.posterior.predict(np.eye(3)) for each in (found, whole))
    for part, expected in zip(np.atleast_2d(one), np.atleast_2d(other), strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-6)


@pytest.mark.parametrize("model", LINEAR, ids=["known", "unknown"])
@pytest.mark.parametrize("source", ["folds", "left out"])
def test_averages_of_linear_models(model, source):
    X, y, weights = linear_rows()
    blocks = in_blocks(X, y, weights)
    here = KFold(5) if source == "folds" else LeaveOneOut()
    there = splits(120, 5, "beta") if source == "folds" else LeaveOneOut()
    found = calibrate_blocks(model, blocks, Average(here), risk="predictive", folds="blocks")
    compare(found, calibrate(model, X, y, Average(there), risk="predictive", weights=weights))
    assert blocks.passes == 3


def test_averages_of_laplace_approximations():
    X, y, _ = problem(150)
    weights = np.ones(150)
    blocks, model = in_blocks(X, y, weights), models.LaplaceLogistic(0.2, 2.0)
    found = calibrate_blocks(model, blocks, Average(KFold(5)), risk="predictive", folds="blocks")
    there = Average(splits(150, 5, "beta"))
    compare(found, calibrate(model, X, y, there, risk="predictive", weights=weights))
    assert blocks.passes <= 15


def test_a_row_that_determines_a_direction_is_deleted_under_the_average_too():
    X, y, weights = linear_rows()
    X[:, 2] = 0.0
    X[7, 2] = 1e7
    blocks, model = in_blocks(X, y, weights), LINEAR[0]
    found = calibrate_blocks(model, blocks, Average(), risk="predictive")
    whole = calibrate(model, X, y, Average(), risk="predictive", weights=weights)
    assert blocks.passes > 3
    assert found.risk == pytest.approx(whole.risk, rel=1e-8)
    np.testing.assert_allclose(found.average.weights, whole.average.weights, rtol=1e-6, atol=1e-7)


X, Y, W = linear_rows()
BAD = {
    "risk": (
        lambda: calibrate_blocks(LINEAR[0], [(X, Y)], Average()),
        "risk must be 'predictive' for Average on partitions, got 'gibbs'",
    ),
    "source": (
        lambda: calibrate_blocks(LINEAR[0], [(X, Y)], Average(SafeBayes()), risk="predictive"),
        "source must be LeaveOneOut or KFold for Average on partitions, got SafeBayes",
    ),
    "source of a logistic model": (
        lambda: calibrate_blocks(
            models.LaplaceLogistic(), [(X, Y > 0)], Average(), risk="predictive", folds="blocks"
        ),
        r"strategy must be KFold for LaplaceLogistic on partitions, or Average\(KFold\(\)\), got ",
    ),
    "folds": (
        lambda: calibrate_blocks(LINEAR[0], [(X, Y)], Average(KFold()), risk="predictive"),
        "folds must be 'blocks' for the predictive risk of folds, which needs the rows again",
    ),
    "bounds": (
        lambda: calibrate_blocks(
            LINEAR[0], [(X, Y)], Average(), risk="predictive", bounds=(0.0, 1e-5)
        ),
        "bounds must reach beyond 0.0001 to average",
    ),
    "once": (
        lambda: calibrate_blocks(LINEAR[0], iter([(X, Y)]), Average(), risk="predictive"),
        "blocks must be readable several times for Average",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_line(case):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=f"^{message}") as raised:
        call()
    assert "\n" not in str(raised.value)
