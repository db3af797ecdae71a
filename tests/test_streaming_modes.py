"""Laplace approximations in passes over partitions are those of all rows in memory."""

import numpy as np
import pytest
from sklearn.model_selection import PredefinedSplit

from temperance import calibrate, losses, models, strategies
from temperance.data import Data
from temperance.plans import Folds
from temperance.strategies import KFold, LeaveOneOut
from temperance.streaming import calibrate_blocks
from temperance.streaming.folds import partition_folds

BETAS = np.concatenate([[0.0], np.geomspace(1e-6, 3.0, 20)])
PARTS = 4
pytestmark = pytest.mark.filterwarnings("ignore::temperance.messages.TemperanceWarning")


class Counted(list):
    """Blocks that count how often they are read."""

    passes = 0

    def __iter__(self):
        self.passes += 1
        return super().__iter__()


def problem(n=200, d=3, steep=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, 0] = 1.0
    y = (rng.uniform(size=n) < 1 / (1 + np.exp(-steep * X[:, 1]))).astype(float)
    return X, y, rng.uniform(0.5, 2.0, n)


def in_blocks(*parts):
    return Counted(tuple(part[i::PARTS] for part in parts) for i in range(PARTS))


def splits(n, n_folds, transfer, seed=0):
    folds = np.empty(n, dtype=int)
    for part in range(PARTS):
        folds[part::PARTS] = partition_folds(n_folds, seed, part).take(len(folds[part::PARTS]))
    return strategies.FromSplitter(PredefinedSplit(folds), transfer)


@pytest.mark.parametrize("risk", ["gibbs", "predictive"])
@pytest.mark.parametrize(
    ("model", "steep", "transfer"),
    [
        (models.LaplaceLogistic(), 1.0, "beta"),
        (models.LaplaceLogistic(0.3, 100.0), 1.0, "alpha"),
        (models.LaplaceLogistic(0.3, 100.0), 100.0, "beta"),  # classes nearly apart
        (models.LaplaceLogistic(0.0, 0.5 * np.eye(3) + 0.3), 3.0, "beta"),
    ],
    ids=["plain", "wide prior", "separable", "dense prior"],
)
def test_folds_are_those_in_memory(model, steep, transfer, risk):
    X, y, weights = problem(steep=steep)
    blocks = in_blocks(X, y, weights)
    found = calibrate_blocks(model, blocks, KFold(10, transfer), risk=risk, folds="blocks", seed=2)
    whole = calibrate(model, X, y, splits(len(y), 10, transfer, seed=2), risk=risk, weights=weights)
    assert blocks.passes <= 20
    np.testing.assert_allclose(found.curve(BETAS), whole.curve(BETAS), rtol=1e-8)
    assert found.beta == pytest.approx(whole.beta, rel=1e-6)
    assert found.standard_error == pytest.approx(whole.standard_error, rel=1e-6)
    assert found.gain_standard_error == pytest.approx(whole.gain_standard_error, rel=1e-5)
    assert found.alpha == pytest.approx(whole.alpha, rel=1e-6)
    for beta in (0.0, 0.3, 1.0, 3.0):
        one, other = (each.posterior_at(beta) for each in (found, whole))
        np.testing.assert_allclose(one.mean, other.mean, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(one.cov, other.cov, rtol=1e-6, atol=1e-8)
    assert "by passes over the rows" in repr(found)


def test_hessians_are_those_at_the_modes_of_steep_classes():
    rng = np.random.default_rng(12)
    X = rng.standard_t(30.0, (107, 2)) * [9.14, 1.31]
    u = 20.0 * X[:, 0] / np.abs(X[:, 0]).mean()
    y = (rng.uniform(size=107) < 1 / (1 + np.exp(-np.clip(u, -500, 500)))).astype(float)
    model, weights = models.LaplaceLogistic(0.0, 5.96), np.ones(107)
    blocks = in_blocks(X, y, weights)
    found = calibrate_blocks(model, blocks, KFold(4), risk="predictive", folds="blocks")
    whole = calibrate(model, X, y, splits(107, 4, "beta"), risk="predictive")
    assert blocks.passes <= 40
    np.testing.assert_allclose(found.curve(BETAS), whole.curve(BETAS), rtol=2e-9)


def test_steps_that_go_too_far_are_shortened():
    X, y, weights = problem(60, 3, steep=100.0)
    model, blocks = models.LaplaceLogistic(0.0, 1e6), in_blocks(X, y, weights)
    found = calibrate_blocks(model, blocks, KFold(5), folds="blocks", bounds=(0.0, 1.0))
    whole = calibrate(model, X, y, splits(60, 5, "beta"), weights=weights, bounds=(0.0, 1.0))
    assert blocks.passes <= 40
    np.testing.assert_allclose(found.posterior.mean, whole.posterior.mean, rtol=1e-6)
    np.testing.assert_allclose(found.curve(1.0), whole.curve(1.0), rtol=1e-6)


def test_panels_are_halved_where_the_curve_asks_for_it(monkeypatch):
    rng = np.random.default_rng(2)
    X, y = rng.standard_t(1.2, (40, 1)), (rng.uniform(size=40) < 0.15).astype(float)
    y[:2] = 1.0, 0.0
    model, weights = models.LaplaceLogistic(1.0), np.ones(40)
    blocks = in_blocks(X, y, weights)
    expected = calibrate(model, X, y, splits(40, 4, "beta")).curve(BETAS)
    found = calibrate_blocks(model, blocks, KFold(4), folds="blocks").curve(BETAS)
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    assert blocks.passes <= 40
    monkeypatch.setattr("temperance.streaming.modes.RESOLVED", np.inf)  # negative control
    rough = calibrate_blocks(model, blocks, KFold(4), folds="blocks").curve(BETAS)
    assert np.abs(rough / expected - 1).max() > 1e-6


def test_empty_blocks_do_not_matter():
    X, y, _ = problem()
    nothing = (np.empty((0, 3)), np.empty(0))
    blocks = [(X[:90], y[:90]), nothing, (X[90:], y[90:])]
    model = models.LaplaceLogistic()
    found = calibrate_blocks(model, blocks, KFold(3), folds="blocks")
    assert found.data.size == pytest.approx(200)


X, Y, W = problem(40)
MODEL = models.LaplaceLogistic()


def run(*blocks, strategy=None, **options):
    return calibrate_blocks(MODEL, list(blocks), strategy, **({"folds": "blocks"} | options))


BAD = {
    "labels": (
        lambda: run((X, Y), (X, Y + 1)),
        r"partition 1: y must hold the labels 0 and 1, got 2\.0",
    ),
    "one class": (
        lambda: run((X, np.ones(40))),
        r"y must hold both classes 0 and 1, got only 1\.0",
    ),
    "nan": (lambda: run((X, Y), (X * np.nan, Y)), "partition 1: X must be finite, got nan in row"),
    "columns": (
        lambda: run((X, Y), (X[:, :2], Y)),
        "X must have 3 columns in every partition, got 2 in partition 1",
    ),
    "strategy": (
        lambda: run((X, Y), strategy=LeaveOneOut()),
        r"strategy must be KFold for LaplaceLogistic on partitions, or Average\(KFold\(\)\), got ",
    ),
    "folds": (
        lambda: run((X, Y), folds="rows"),
        "folds must be 'blocks' for LaplaceLogistic, which needs the rows again, got 'rows'",
    ),
    "once": (
        lambda: calibrate_blocks(MODEL, iter([(X, Y)]), folds="blocks"),
        "blocks must be readable several times for KFold",
    ),
    "few rows": (
        lambda: run((X[:5], np.arange(5) % 2)),
        r"X must have a row in every fold of KFold\(.*\), got none in one",
    ),
    "no rows": (lambda: run((X[:0], Y[:0])), "X must have at least one row of positive weight"),
    "dependent columns": (
        lambda: run((X @ [[1e9, 1e9, 0], [0, 1e-3, 0], [0, 0, 1]], Y)),
        "X and y must have modes that Newton's method finds in 40 passes over the rows, got some",
    ),
    "prior mean": (
        lambda: calibrate_blocks(models.LaplaceLogistic(1e5), [(X, Y)], folds="blocks"),
        "partition 0: prior_mean must predict log odds of at most 1000 in size",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_line(case):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=f"^{message}") as raised:
        call()
    assert "\n" not in str(raised.value)


def test_other_likelihoods_agree_with_the_curve_in_memory():
    rng = np.random.default_rng(0)
    blocks = []
    for _ in range(3):
        X = rng.standard_normal((80, 3))
        blocks.append((X, rng.poisson(np.exp(0.5 * X[:, 0])).astype(float)))
    model = models.GibbsLinear(losses.Poisson(), "laplace")
    found = calibrate_blocks(model, blocks, KFold(4), folds="blocks", seed=3)
    X, y = (np.concatenate(part) for part in zip(*blocks, strict=True))
    fold = np.concatenate([partition_folds(4, 3, number).take(80) for number in range(3)])
    curve = model.risk_curve(Data(X, y, np.ones(240)), Folds(np.ones(240), fold, 4))
    betas = np.array([0.01, 0.4, 2.0])
    np.testing.assert_allclose(found.curve(betas), curve(betas), rtol=1e-9)
    np.testing.assert_allclose(
        found.posterior.mean, model.posterior(X, y, found.alpha).mean, rtol=1e-7
    )
    assert found.posterior.predict(X[:2])[0].shape == (2,)


@pytest.mark.parametrize("loss", [losses.Huber(1.0), losses.NegativeBinomial(), losses.Tukey(2.0)])
def test_losses_that_panels_do_not_resolve_are_refused(loss):
    with pytest.raises(ValueError, match="log-concave likelihood without free parameters"):
        calibrate_blocks(models.GibbsLinear(loss, "laplace"), [(np.eye(3), np.ones(3))])


def test_an_offset_is_no_coefficient():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-1, 1, 120), rng.standard_normal((120, 2))])
    y = rng.poisson(np.exp(X[:, 0] + 0.5 * X[:, 1])).astype(float)
    model = models.GibbsLinear(losses.Poisson(), "laplace", offset=0)
    found = calibrate_blocks(model, in_blocks(X, y, np.ones(120)), KFold(4), folds="blocks")
    whole = calibrate(model, X, y, splits(120, 4, "beta"))
    np.testing.assert_allclose(found.curve(BETAS), whole.curve(BETAS), rtol=1e-8)
    np.testing.assert_allclose(found.posterior.mean, whole.posterior.mean, rtol=1e-6)
