"""Passes over partitions give what all rows in memory give."""

import numpy as np
import pytest
from sklearn.model_selection import PredefinedSplit

from temperance import calibrate, models, strategies
from temperance.strategies import Bayes, KFold, LeaveOneOut, SampleSplitting, Stacking
from temperance.streaming import calibrate_blocks, sample
from temperance.streaming.folds import partition_folds

DENSE = 0.3 * np.eye(7) + 0.2
MODELS = {
    "known": models.GaussianLinear(1.0, 0.1, 0.7),
    "dense prior": models.GaussianLinear(4.0, 0.1, DENSE),
    "unknown": models.NormalInverseGammaLinear(prior_mean=0.1),
    "level": models.HierarchicalLinear(),
}
CLOSED = ["known", "dense prior", "unknown"]
pytestmark = pytest.mark.filterwarnings("ignore::temperance.messages.TemperanceWarning")


class Counted(list):
    """Blocks that count how often they are read."""

    passes = 0

    def __iter__(self):
        self.passes += 1
        return super().__iter__()


def problem(n=300, d=7, weighted=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.geomspace(0.1, 3.0, d)
    X[:, 0] = 1.0
    y = X @ rng.standard_normal(d) / 5 + 3 * rng.standard_normal(n) * (1 + 0.5 * np.abs(X[:, 1]))
    return X, y, rng.uniform(0.5, 2.5, n) if weighted else np.ones(n)


def in_blocks(X, y, weights, count=6):
    return Counted((X[i::count], y[i::count], weights[i::count]) for i in range(count))


def splits(n, n_folds, seed, count=6, test_only=None):
    folds = np.empty(n, dtype=int)
    for number in range(count):
        part = slice(number, None, count)
        folds[part] = partition_folds(n_folds, seed, number).take(len(folds[part]))
    if test_only is not None:
        folds = np.where(folds == test_only, 0, -1)
    return strategies.FromSplitter(PredefinedSplit(folds))


def agree(streamed, whole, tolerance=1e-9):
    """At the betas of the table to nearly all digits; a minimum lies between them."""
    betas = streamed.table.betas
    betas = betas[(betas > 0) & (betas <= whole.bounds[1])]
    np.testing.assert_allclose(streamed.curve(betas), whole.curve(betas), rtol=tolerance)
    close = {"rel": 1e-6, "abs": 1e-9}
    if whole.weights is None:
        close = {"rel": 0.1, "abs": 1e-4}  # the minimum of a flat curve
        assert whole.curve(streamed.beta) - whole.curve(whole.beta) < 5e-5
    else:
        np.testing.assert_array_equal(streamed.weights.betas, whole.weights.betas)
        np.testing.assert_allclose(streamed.weights.weights, whole.weights.weights, atol=1e-7)
        assert streamed.beta == pytest.approx(whole.beta, rel=1e-6)
    for name in ("risk", "standard_error", "gain", "gain_standard_error"):
        found, expected = (getattr(each, name) for each in (streamed, whole))
        assert found == pytest.approx(expected, **close)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_forecasts_are_stacked_by_default(name, weighted):
    X, y, weights = problem(weighted=weighted)
    blocks = in_blocks(X, y, weights)
    found = calibrate_blocks(MODELS[name], blocks)
    whole = calibrate(MODELS[name], X, y, weights=weights)
    agree(found, whole)
    assert blocks.passes == 2
    assert found.table.votes == pytest.approx(whole.table.votes, rel=1e-10)
    one, other = (each.posterior.predict(X[:3]) for each in (found, whole))
    for part, expected in zip(np.atleast_2d(one), np.atleast_2d(other), strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-7)
    assert "by two passes over the rows" in repr(found)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("risk", ["gibbs", "predictive"])
@pytest.mark.parametrize("name", CLOSED)
def test_leave_one_out(name, risk, weighted):
    X, y, weights = problem(weighted=weighted)
    blocks = in_blocks(X, y, weights)
    found = calibrate_blocks(MODELS[name], blocks, LeaveOneOut(), risk=risk)
    whole = calibrate(MODELS[name], X, y, LeaveOneOut(), risk=risk, weights=weights)
    agree(found, whole)
    assert blocks.passes == 2
    between = np.geomspace(1e-4, 3.0, 40)
    np.testing.assert_allclose(found.curve(between), whole.curve(between), rtol=1e-6)
    assert found.beta == pytest.approx(whole.beta, rel=1e-4, abs=1e-12)
    assert found.beta_range == pytest.approx(whole.beta_range, rel=1e-2, abs=1e-12)


@pytest.mark.parametrize("name", CLOSED)
def test_leave_one_out_that_keeps_alpha(name):
    X, y, _ = problem()
    weights, strategy = np.full(len(y), 1.7), LeaveOneOut("alpha")
    found = calibrate_blocks(MODELS[name], in_blocks(X, y, weights), strategy, risk="gibbs")
    agree(found, calibrate(MODELS[name], X, y, strategy, weights=weights, risk="gibbs"))


def test_pieces_of_rows_that_stand_for_several():
    X, y, _ = problem(100)
    weights, strategy = np.tile([1.0, 3.0], 50), LeaveOneOut(duplicates="apart")
    found = calibrate_blocks(MODELS["known"], in_blocks(X, y, weights), strategy, risk="gibbs")
    agree(found, calibrate(MODELS["known"], X, y, strategy, weights=weights, risk="gibbs"))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_folds(name, stacked, weighted):
    X, y, weights = problem(weighted=weighted)
    blocks, here, there = in_blocks(X, y, weights), KFold(5), splits(len(y), 5, 3)
    if stacked:
        here, there = Stacking(here), Stacking(there)
    found = calibrate_blocks(MODELS[name], blocks, here, seed=3)
    agree(found, calibrate(MODELS[name], X, y, there, weights=weights))
    assert blocks.passes == 2


def test_other_plans():
    X, y, weights = problem(weighted=True)
    blocks, model = in_blocks(X, y, weights), MODELS["unknown"]
    agree(
        calibrate_blocks(model, blocks, Bayes()), calibrate(model, X, y, "bayes", weights=weights)
    )
    for strategy, there in (
        (SampleSplitting(shuffle=True), splits(len(y), 2, 0, test_only=1)),
        (SampleSplitting(shuffle=True, both_directions=True), splits(len(y), 2, 0)),
    ):
        found = calibrate_blocks(model, blocks, strategy)
        agree(found, calibrate(model, X, y, there, weights=weights))


def test_fewer_rows_than_columns():
    X, y, weights = problem(40, 60)
    model = models.GaussianLinear(4.0)
    agree(calibrate_blocks(model, in_blocks(X, y, weights)), calibrate(model, X, y))
    found = calibrate_blocks(model, in_blocks(X, y, weights), KFold(4), seed=1)
    agree(found, calibrate(model, X, y, splits(40, 4, 1)))


HOSTILE = {
    "directions of one row": 3,
    "outliers": 2,
    "both": 3,
    "equal columns": 2,
    "scales": 2,
}  # and how many passes they may take: more where rows are set aside


@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize("name", ["known", "unknown"])
@pytest.mark.parametrize("case", HOSTILE)
def test_rows_and_columns_that_lose_digits(case, name, stacked):
    X, y, weights = problem()
    if case in ("directions of one row", "both"):
        X[:, 3] = 0.0
        X[17, 3], X[200, 4] = 2e3, 1e7
    if case in ("outliers", "both"):
        y[5] = 1e6
    if case == "equal columns":
        X[:, 5], X[:, 2] = X[:, 4], 0.0
    if case == "scales":
        X *= np.geomspace(1e-6, 1e6, 7)
    blocks, model = in_blocks(X, y, weights), MODELS[name]
    strategy = Stacking() if stacked else LeaveOneOut()
    found = calibrate_blocks(model, blocks, strategy)
    agree(found, calibrate(model, X, y, strategy), 1e-8)
    assert blocks.passes == HOSTILE[case]


class TestSamples:
    @pytest.fixture(autouse=True)
    def few(self, monkeypatch):
        monkeypatch.setattr(sample, "MOST", 1000)
        monkeypatch.setattr(sample, "EXTREME", 100)

    def heavy(self, n=8000):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, 5))
        return X, X[:, 0] + 2 * rng.standard_t(3, n), np.ones(n)

    def test_means_are_those_of_all_rows(self):
        X, y, weights = self.heavy()
        model = MODELS["unknown"]
        found = calibrate_blocks(model, in_blocks(X, y, weights))
        whole = calibrate(model, X, y)
        assert 1000 < len(found.table.weights) < 1150
        assert found.table.counts.sum() == pytest.approx(8000)
        betas = whole.weights.betas
        np.testing.assert_allclose(found.curve(betas), whole.curve(betas), rtol=1e-12)
        assert found.gain == pytest.approx(whole.gain, rel=0.05)
        assert found.gain_standard_error == pytest.approx(whole.gain_standard_error, rel=0.1)

    def test_a_few_outliers_are_not_lost(self, monkeypatch):
        X, y, weights = self.heavy()
        whole = calibrate(MODELS["unknown"], X, y)
        monkeypatch.setattr(sample, "EXTREME", 1)  # negative control
        found = calibrate_blocks(MODELS["unknown"], in_blocks(X, y, weights))
        assert abs(found.gain_standard_error / whole.gain_standard_error - 1) > 0.2

    def test_the_cut_into_partitions_does_not_matter(self):
        X, y, weights = self.heavy()
        one, other = (
            calibrate_blocks(MODELS["unknown"], in_blocks(X, y, weights, count))
            for count in (3, 11)
        )
        np.testing.assert_allclose(one.table.losses, other.table.losses, rtol=1e-9)
        assert one.gain == pytest.approx(other.gain, rel=1e-9)

    def test_copies_are_one_row(self):
        rng = np.random.default_rng(0)
        X = rng.integers(0, 4, (5000, 2)).astype(float)
        y = X[:, 0] + rng.integers(0, 5, 5000)
        found = calibrate_blocks(MODELS["unknown"], in_blocks(X, y, np.ones(5000)))
        assert len(found.table.weights) == 80
        assert found.table.weights.sum() == pytest.approx(5000)


def test_what_needs_single_rows_is_refused():
    X, y, weights = problem()
    found = calibrate_blocks(MODELS["known"], in_blocks(X, y, weights))
    for call, what in ((found.sandwich, "the sandwich"), (found.certificate, "a certificate")):
        with pytest.raises(ValueError, match=f"^{what} needs all rows at once, got sums over"):
            call()


X, Y, W = problem(40)
ROWS = [(X, Y)]
BAD = {
    "generator": (
        lambda: calibrate_blocks(MODELS["known"], iter(ROWS), LeaveOneOut(), risk="gibbs"),
        r"blocks must be readable several times for LeaveOneOut\(.*\) and risk='gibbs': a list, or "
        r"an object whose __iter__ begins anew, got list_iterator$",
    ),
    "generator without a risk": (
        lambda: calibrate_blocks(MODELS["known"], iter(ROWS)),
        r"blocks must be readable several times for Stacking\(.*\) and risk='predictive': .*; or "
        "pass risk='gibbs', which takes one pass$",
    ),
    "folds of rows": (
        lambda: calibrate_blocks(MODELS["known"], ROWS, KFold(), folds="rows"),
        r"folds must be 'blocks' for KFold\(.*\), which needs the rows again, got 'rows'",
    ),
    "reference": (
        lambda: calibrate_blocks(MODELS["known"], ROWS, "reference-risk", risk="gibbs"),
        "ReferenceRisk needs rows in memory: use calibrate, or other strategies",
    ),
    "duplicates": (
        lambda: calibrate_blocks(MODELS["known"], ROWS, LeaveOneOut(duplicates="together")),
        r"strategy must be .*, where equal rows are not seen, got LeaveOneOut",
    ),
    "source": (
        lambda: calibrate_blocks(MODELS["known"], ROWS, Stacking(strategies.SafeBayes())),
        "strategy must be KFold, .* got SafeBayes",
    ),
    "stack by draws": (
        lambda: calibrate_blocks(MODELS["known"], ROWS, Stacking(), risk="gibbs"),
        "Stacking is for forecasts: risk must be 'predictive', got 'gibbs'",
    ),
    "bounds": (
        lambda: calibrate_blocks(MODELS["known"], ROWS, bounds=(0.0, 1e-5)),
        "bounds must reach beyond 0.001 to stack",
    ),
    "unequal weights": (
        lambda: calibrate_blocks(
            MODELS["known"], [(X, Y, np.linspace(1, 2, 40))], LeaveOneOut("alpha")
        ),
        r"weights must be equal for LeaveOneOut\(transfer='alpha'\) on partitions, got from 1 to 2",
    ),
    "huge": (
        lambda: calibrate_blocks(models.GaussianLinear(), [(X * 1e200, Y)]),
        "X and y must be of a size whose squares are finite",
    ),
    "nan": (
        lambda: calibrate_blocks(MODELS["known"], [(X, Y), (X, Y * np.nan)]),
        "partition 1: y must be finite, got nan in row 0",
    ),
    "no rows": (
        lambda: calibrate_blocks(MODELS["known"], [(X[:0], Y[:0])]),
        "X must have at least one row of positive weight, got none",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_line(case):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=f"^{message}") as raised:
        call()
    assert "\n" not in str(raised.value)


def test_blocks_that_change_between_passes_are_noticed():
    class Changing:
        def __init__(self):
            self.passes = 0

        def __iter__(self):
            self.passes += 1
            return iter([(X[:, : 8 - self.passes], Y)])

    with pytest.raises(ValueError, match="^X must have 7 columns in every partition, got 6 in"):
        calibrate_blocks(MODELS["known"], Changing(), LeaveOneOut())
