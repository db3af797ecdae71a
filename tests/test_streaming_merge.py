"""Moments of partitions add up: in any order, on any tree, and as bytes."""

import numpy as np
import pytest
from sklearn.model_selection import PredefinedSplit

from temperance import calibrate, models, strategies
from temperance.streaming import (
    FoldMoments,
    calibrate_blocks,
    calibrate_moments,
    partition_moments,
)
from temperance.streaming.folds import FoldNumbers
from temperance.streaming.partitions import merged

MODELS = [models.GaussianLinear(0.3, 0.2, 0.7), models.NormalInverseGammaLinear(prior_mean=0.1)]
BETAS = np.array([0.0, 1e-3, 0.1, 1.0, 3.0])


def some_partitions(count=20, rows=30, d=12, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        X = rng.standard_normal((rows, d)) * np.geomspace(1e-2, 1e3, d)
        yield X, X[:, 0] * 100 + 40 * rng.standard_normal(rows), rng.uniform(0.5, 2.0, rows)


def moments_of(partitions, **options):
    return [
        partition_moments(*part, partition=number, **options)
        for number, part in enumerate(partitions)
    ]


def trees(parts, rng):
    """The same moments one by one, backwards, all at once, and pair by random pair."""
    yield merged(parts)
    yield merged(parts[::-1])
    yield parts[0].merge(*parts[1:])
    left = parts[0]
    for part in parts[1:]:
        left = left.merge(part)
    yield left
    pool = list(parts)
    while len(pool) > 1:
        one, other = (pool.pop(rng.integers(len(pool))) for _ in range(2))
        pool.append(one.merge(other))
    yield pool[0]


@pytest.mark.filterwarnings("ignore::temperance.messages.BoundWarning")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_any_order_and_any_tree_give_the_same_curve(model):
    parts = moments_of(some_partitions())
    found = [calibrate_moments(model, total) for total in trees(parts, np.random.default_rng(1))]
    expected = found[0].curve(BETAS)
    for other in found[1:]:
        np.testing.assert_allclose(other.curve(BETAS), expected, rtol=1e-12)
        assert other.beta == pytest.approx(found[0].beta, rel=1e-8)
        assert other.data.size == pytest.approx(found[0].data.size, rel=1e-14)


def test_partitions_draw_their_folds_alone():
    partitions = list(some_partitions(5))
    folds = [FoldNumbers(10, np.random.default_rng([3, i])).take(30) for i in range(5)]
    assert len({tuple(fold) for fold in folds}) == 5
    X, y, weights = (np.concatenate(part) for part in zip(*partitions, strict=True))
    splits = strategies.FromSplitter(PredefinedSplit(np.concatenate(folds)), "beta")
    whole = calibrate(MODELS[0], X, y, splits, weights=weights, risk="gibbs")
    total = calibrate_moments(MODELS[0], moments_of(partitions, seed=3))
    np.testing.assert_allclose(total.curve(BETAS), whole.curve(BETAS), rtol=1e-10)
    assert total.beta == pytest.approx(whole.beta, rel=1e-8)


@pytest.mark.parametrize("count", [1, 7, 8, 9, 64, 65, 75])
def test_the_tree_depends_on_the_number_of_partitions_alone(count):
    class Named(str):
        def merge(self, *others):
            return Named(f"({' '.join((self, *others))})") if others else self

    names = [Named(i) for i in range(count)]
    level = names
    while len(level) > 1:
        level = [Named.merge(*level[i : i + 8]) for i in range(0, len(level), 8)]
    assert merged(iter(names)) == level[0]


def test_blocks_may_draw_their_own_folds():
    partitions = list(some_partitions(11))
    expected = calibrate_moments(MODELS[0], moments_of(partitions, seed=5))
    found = calibrate_blocks(MODELS[0], iter(partitions), risk="gibbs", folds="blocks", seed=5)
    assert (found.beta, found.risk) == (expected.beta, expected.risk)
    assert calibrate_blocks(MODELS[0], partitions, risk="gibbs", seed=5).risk != found.risk


def test_empty_partitions_do_not_matter():
    partitions = list(some_partitions(4))
    nothing = (np.empty((0, 3)), np.empty(0), np.empty(0))
    moments = moments_of([partitions[0], nothing, partitions[2], ([], [], [])])
    apart = [moments[0], moments[2]]
    assert calibrate_moments(MODELS[0], moments).risk == calibrate_moments(MODELS[0], apart).risk


def test_bytes_hold_the_moments():
    (part,) = moments_of(some_partitions(1))
    again = FoldMoments.from_bytes(part.to_bytes())
    for one, other in zip(part.triangles, again.triangles, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(part.weight, again.weight)
    np.testing.assert_array_equal(part.count, again.count)
    assert part.ones is again.ones is False


PART = next(some_partitions(1))
(MOMENTS,) = moments_of([PART])
BAD = {
    "nan": (
        lambda: partition_moments(PART[0], PART[1] * np.nan, partition=57),
        "partition 57: y must be finite, got nan in row 0",
    ),
    "columns": (
        lambda: merged(moments_of([PART, (PART[0][:, :5], PART[1], PART[2])])),
        "X must have 12 columns in every partition, got 5 in partition 1",
    ),
    "folds of moments": (
        lambda: MOMENTS.merge(partition_moments(*PART, n_folds=3)),
        "moments must have the same number of folds, got 10 and 3",
    ),
    "folds of the strategy": (
        lambda: calibrate_moments(MODELS[0], MOMENTS, strategies.KFold(5)),
        r"moments must have 5 folds for KFold\(.*\), got 10",
    ),
    "strategy": (
        lambda: calibrate_moments(MODELS[0], MOMENTS, strategies.SafeBayes()),
        "strategy must be KFold, .* got SafeBayes",
    ),
    "no moments": (
        lambda: calibrate_moments(MODELS[0], [MOMENTS, 3]),
        "moments must be FoldMoments, got 3 among them",
    ),
    "nothing": (
        lambda: calibrate_moments(MODELS[0], 3),
        "moments must be FoldMoments, got 3",
    ),
    "an empty fold": (
        lambda: calibrate_moments(MODELS[0], partition_moments(PART[0][:9], PART[1][:9])),
        r"X must have a row in every fold of KFold\(.*\), got none in one of them out of 9 rows",
    ),
    "seed": (
        lambda: calibrate_blocks(MODELS[0], [PART], risk="gibbs", folds="blocks", seed=None),
        "seed must be an integer, got None",
    ),
    "folds": (
        lambda: calibrate_blocks(MODELS[0], [PART], folds="partitions"),
        "folds must be one of 'rows', 'blocks', got 'partitions'",
    ),
    "blocks": (
        lambda: calibrate_blocks(MODELS[0], 3, risk="gibbs", folds="blocks"),
        "blocks must be an iterable of",
    ),
    "a block": (
        lambda: calibrate_blocks(MODELS[0], [PART, PART[0]]),
        r"blocks must hold \(X, y\) or \(X, y, weights\), got ndarray as partition 1",
    ),
    "no blocks": (
        lambda: calibrate_blocks(MODELS[0], []),
        "blocks must hold at least one block, got none",
    ),
    "bytes": (
        lambda: FoldMoments.from_bytes(MOMENTS.to_bytes()[:500]),
        "content must be bytes from FoldMoments.to_bytes, got b.PK",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_line(case):
    call, message = BAD[case]
    with pytest.raises(ValueError, match=f"^{message}") as raised:
        call()
    assert "\n" not in str(raised.value)
