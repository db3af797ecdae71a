"""Laplace approximations in passes over partitions are those of all rows in memory."""

import numpy as np
import pytest
from sklearn.model_selection import PredefinedSplit

from temperance import calibrate, losses, models, strategies
from temperance.strategies import KFold, LeaveOneOut, Stacking
from temperance.streaming import calibrate_blocks
from temperance.streaming.folds import partition_folds
from temperance.streaming.mode_sums import ModeSums, SumAtPoints, products
from temperance.streaming.partitions import Blocks, Folded

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


def splits(n, n_folds, transfer="beta", seed=0):
    folds = np.empty(n, dtype=int)
    for part in range(PARTS):
        folds[part::PARTS] = partition_folds(n_folds, seed, part).take(len(folds[part::PARTS]))
    return strategies.FromSplitter(PredefinedSplit(folds), transfer)


def agree(found, whole, rtol=1e-8):
    betas = found.table.betas
    np.testing.assert_allclose(found.curve(betas), whole.curve(betas), rtol=rtol)
    assert whole.curve(found.beta) - whole.curve(whole.beta) < 1e-5
    assert found.standard_error == pytest.approx(whole.standard_error, rel=1e-3)
    assert found.gain_standard_error == pytest.approx(whole.gain_standard_error, rel=0.05, abs=1e-6)
    one, other = found.posterior_at(found.beta), whole.posterior_at(found.beta)
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(one.cov, other.cov, rtol=1e-6, atol=1e-8)
    for beta in (0.0, betas[1], 1.0):
        one, other = (each.posterior_at(beta) for each in (found, whole))
        np.testing.assert_allclose(one.mean, other.mean, rtol=1e-6, atol=1e-8)
    for beta in (1e-6, 0.02, 0.5, 2.0):  # between the betas of the passes
        one, other = (each.posterior_at(beta) for each in (found, whole))
        error = np.abs(one.mean - other.mean) / np.sqrt(np.diagonal(other.cov))
        assert error.max() < 0.01


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
    found = calibrate_blocks(model, blocks, KFold(10, transfer), risk=risk, seed=2)
    there = splits(len(y), 10, transfer, seed=2)
    agree(found, calibrate(model, X, y, there, risk=risk, weights=weights))
    assert blocks.passes <= 20
    assert "by passes over the rows" in repr(found)


def test_forecasts_are_stacked_by_default():
    X, y, weights = problem()
    blocks, model = in_blocks(X, y, weights), models.LaplaceLogistic(0.2, 2.0)
    found = calibrate_blocks(model, blocks)
    whole = calibrate(model, X, y, Stacking(splits(200, 10)), weights=weights)
    np.testing.assert_allclose(found.weights.weights, whole.weights.weights, atol=1e-8)
    for name in ("risk", "gain", "standard_error", "gain_standard_error"):
        assert getattr(found, name) == pytest.approx(getattr(whole, name), rel=1e-7, abs=1e-10)
    one, other = (each.posterior.predict(X[:5]) for each in (found, whole))
    np.testing.assert_allclose(one, other, rtol=1e-6)
    assert blocks.passes <= 15


def test_hessians_are_those_at_the_modes_of_steep_classes():
    rng = np.random.default_rng(12)
    X = rng.standard_t(30.0, (107, 2)) * [9.14, 1.31]
    u = 20.0 * X[:, 0] / np.abs(X[:, 0]).mean()
    y = (rng.uniform(size=107) < 1 / (1 + np.exp(-np.clip(u, -500, 500)))).astype(float)
    model, weights = models.LaplaceLogistic(0.0, 5.96), np.ones(107)
    blocks = in_blocks(X, y, weights)
    found = calibrate_blocks(model, blocks, KFold(4))
    whole = calibrate(model, X, y, splits(107, 4), risk="predictive")
    assert blocks.passes <= 40
    betas = found.table.betas
    np.testing.assert_allclose(found.curve(betas), whole.curve(betas), rtol=2e-9)


def test_steps_that_go_too_far_are_shortened():
    X, y, weights = problem(60, 3, steep=100.0)
    model, blocks = models.LaplaceLogistic(0.0, 1e6), in_blocks(X, y, weights)
    options = {"risk": "gibbs", "bounds": (0.0, 1.0)}
    found = calibrate_blocks(model, blocks, KFold(5), **options)
    whole = calibrate(model, X, y, splits(60, 5), weights=weights, **options)
    assert blocks.passes <= 40
    one, other = (each.posterior_at(1.0).mean for each in (found, whole))
    np.testing.assert_allclose(one, other, rtol=1e-6)
    np.testing.assert_allclose(found.curve(1.0), whole.curve(1.0), rtol=1e-6)


def test_empty_blocks_do_not_matter():
    X, y, _ = problem()
    blocks = [(X[:90], y[:90]), (np.empty((0, 3)), np.empty(0)), (X[90:], y[90:])]
    found = calibrate_blocks(models.LaplaceLogistic(), blocks, KFold(3))
    assert found.data.size == pytest.approx(200)
    assert found.table.weights.sum() == pytest.approx(200)


def test_other_likelihoods_and_offsets():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-1, 1, 240), rng.standard_normal((240, 2))])
    y = rng.poisson(np.exp(X[:, 0] + 0.5 * X[:, 1])).astype(float)
    for offset in (None, 0):
        model = models.GibbsLinear(losses.Poisson(), "laplace", offset=offset)
        found = calibrate_blocks(model, in_blocks(X, y, np.ones(240)), KFold(4))
        agree(found, calibrate(model, X, y, splits(240, 4)))
        assert found.posterior.predict(X[:2])[0].shape == (2,)


@pytest.mark.parametrize("loss", [losses.Huber(1.0), losses.NegativeBinomial(), losses.Tukey(2.0)])
def test_other_losses_are_refused(loss):
    with pytest.raises(ValueError, match="log-concave likelihood without free parameters"):
        calibrate_blocks(models.GibbsLinear(loss, "laplace"), [(np.eye(3), np.ones(3))])


X, Y, W = problem(40)
MODEL = models.LaplaceLogistic()


def run(*blocks, strategy=None, **options):
    return calibrate_blocks(MODEL, list(blocks), strategy, **options)


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
        r"strategy must be KFold for LaplaceLogistic on partitions, or Stacking\(KFold\(\)\), got ",
    ),
    "folds": (
        lambda: run((X, Y), folds="rows"),
        r"folds must be 'blocks' for Stacking\(.*\), which needs the rows again, got 'rows'",
    ),
    "once": (
        lambda: calibrate_blocks(MODEL, iter([(X, Y)]), KFold(), risk="gibbs"),
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
        lambda: calibrate_blocks(models.LaplaceLogistic(1e5), [(X, Y)]),
        "partition 0: prior_mean must predict log odds of at most 1000 in size",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_line(case):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=f"^{message}") as raised:
        call()
    assert "\n" not in str(raised.value)


class TestSums:
    """Sums over rows at points of several training sets are what a naive computation gives."""

    model = models.LaplaceLogistic(0.3, 2.0)
    folded, partition = Folded(3, 5), 2
    theta = np.random.default_rng(1).standard_normal((3, 2, 3))

    @staticmethod
    def naive(rows, theta):
        """Return the sums over some rows (X, y, weights) at one point."""
        X, y, w = rows
        Z, u = X * np.sqrt(2.0), X.sum(axis=1) * 0.3 + X @ theta * np.sqrt(2.0)
        p = 1 / (1 + np.exp(-u))
        hessian = (Z.T * (w * p * (1 - p))) @ Z
        return w.sum(), w @ y, w @ (np.logaddexp(0, u) - y * u), (w * (p - y)) @ Z, hessian

    @staticmethod
    def compare(sums, number, point, expected):
        weight, labels, *others = expected
        np.testing.assert_allclose(sums.weight[number], weight, rtol=1e-12)
        np.testing.assert_allclose(sums.labels[number], labels, rtol=1e-12)
        for found, each in zip((sums.value, sums.gradient, sums.hessian), others, strict=True):
            np.testing.assert_allclose(found[number, point], each, rtol=1e-10, atol=1e-12)

    def at(self, theta):
        return SumAtPoints(self.model, self.folded, theta)(self.partition, problem(50))

    def folds(self):
        return partition_folds(3, 5, self.partition).take(50)

    def test_folds_and_the_rows_outside_of_them(self):
        rows, fold = problem(50), self.folds()
        own, outside = self.at(self.theta[:1]), self.at(self.theta)
        for number in range(3):
            inside, others = (
                [part[each] for part in rows] for each in (fold == number, fold != number)
            )
            assert own.rows[number] == len(inside[0])
            for point in range(2):
                at = self.theta[:, point]
                self.compare(own, number, point, self.naive(inside, at[0]))
                self.compare(own.others, number, point, self.naive(others, at[0]))
                self.compare(outside, number, point, self.naive(others, at[number]))
                self.compare(own.together, 0, point, self.naive(rows, at[0]))

    def test_batches_of_rows_do_not_matter(self, monkeypatch):
        whole = self.at(self.theta)
        monkeypatch.setattr("temperance.streaming.mode_sums.BATCH", 1)
        monkeypatch.setattr("temperance.streaming.mode_sums.FEW_ROWS", 2)
        for one, other in zip(whole, self.at(self.theta), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)

    def test_products(self):
        Z = np.random.default_rng(0).standard_normal((7, 4))
        sums = ModeSums.zero(0, 1, 7, 4)._replace(packed=products(Z).T[None])
        np.testing.assert_array_equal(sums.hessian[0], Z[:, :, None] * Z[:, None])


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Poisson(), losses.Probit()])
def test_losses_to_second_order(loss):
    u = np.concatenate([-np.geomspace(1e-8, 500, 20), [0.0], np.geomspace(1e-8, 30, 20)])
    for y in (np.zeros_like(u), np.ones_like(u)):
        found = loss.to_second_order(u, y)
        first, second, _ = loss.derivatives(u, y)
        for one, other in zip(found, (loss.value(u, y), first, second), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-300)


def test_passes_of_folds_are_few(monkeypatch):
    """Points of all folds are what a pass over many rows costs; those of all rows are a tenth."""
    asked = []

    def total(self, statistic, before=Blocks.total):
        asked.append(statistic)
        return before(self, statistic)

    monkeypatch.setattr(Blocks, "total", total)
    X, y, w = problem(2000, 4)
    calibrate_blocks(models.LaplaceLogistic(), in_blocks(X, y, w))
    points = [np.size(each.theta[..., 0]) for each in asked[1:-1]]
    assert len(points) <= 10
    assert sum(points) <= 400
