"""Two passes over partitions give what all rows in memory give."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import PredefinedSplit
from temperance.search.log_scale import Ruler, Scale

from temperance import calibrate, models, strategies
from temperance.strategies import Bayes, KFold, LeaveOneOut, ReferenceRisk, SampleSplitting
from temperance.streaming import calibrate_blocks
from temperance.streaming.folds import partition_folds
from temperance.streaming.loss_sums import LossSums, SummedCurve
from temperance.streaming.panels import Panels

DENSE = 0.3 * np.eye(7) + 0.2
MODELS = {
    "known": models.GaussianLinear(1.0, 0.1, 0.7),
    "dense prior": models.GaussianLinear(4.0, 0.1, DENSE),
    "unknown": models.NormalInverseGammaLinear(prior_mean=0.1),
}
BETAS = np.concatenate([[0.0], np.geomspace(1e-7, 3.0, 30)])
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
    y = X @ rng.standard_normal(d) / 5 + 3 * rng.standard_normal(n) * (1 + 0.5 * np.abs(X[:, 0]))
    return X, y, rng.uniform(0.5, 2.5, n) if weighted else np.ones(n)


def in_blocks(X, y, weights, count=6):
    return Counted((X[i::count], y[i::count], weights[i::count]) for i in range(count))


def agree(streamed, whole, betas=BETAS, curve=1e-10):
    assert streamed.beta == pytest.approx(whole.beta, rel=1e-6)
    (value, slope), (expected, steep) = (
        each.curve(betas, derivative=True) for each in (streamed, whole)
    )
    np.testing.assert_allclose(value, expected, rtol=curve)
    # Slopes in log beta, in units of the risk.
    np.testing.assert_allclose(slope * betas / expected, steep * betas / expected, atol=1e-9)
    assert streamed.standard_error == pytest.approx(whole.standard_error, rel=1e-6)
    assert streamed.gain_standard_error == pytest.approx(
        whole.gain_standard_error, rel=1e-6, abs=1e-12
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("risk", ["gibbs", "predictive"])
@pytest.mark.parametrize("name", MODELS)
def test_leave_one_out(name, risk, weighted):
    X, y, weights = problem(weighted=weighted)
    blocks = in_blocks(X, y, weights)
    found = calibrate_blocks(MODELS[name], blocks, LeaveOneOut(), risk=risk)
    agree(found, calibrate(MODELS[name], X, y, LeaveOneOut(), risk=risk, weights=weights))
    assert blocks.passes == 2
    assert found.beta_range == pytest.approx(
        calibrate(MODELS[name], X, y, LeaveOneOut(), risk=risk, weights=weights).beta_range,
        rel=1e-6,
        abs=1e-12,
    )
    assert "by two passes over the rows" in repr(found)


@pytest.mark.parametrize("name", MODELS)
def test_leave_one_out_that_keeps_alpha(name):
    X, y, _ = problem()
    weights = np.full(len(y), 1.7)
    strategy = LeaveOneOut("alpha")
    found = calibrate_blocks(MODELS[name], in_blocks(X, y, weights), strategy)
    agree(found, calibrate(MODELS[name], X, y, strategy, weights=weights))


@pytest.mark.parametrize("veto", [2.0, 0.3, None])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_reference_risk(name, weighted, veto):
    X, y, weights = problem(weighted=weighted)
    strategy, blocks = ReferenceRisk(veto, duplicates="apart"), in_blocks(X, y, weights)
    found = calibrate_blocks(MODELS[name], blocks, ReferenceRisk(veto))
    whole = calibrate(MODELS[name], X, y, strategy, weights=weights)
    assert blocks.passes == 2
    if veto is not None:
        agree(found, whole)
    np.testing.assert_allclose(found.curve(BETAS), whole.curve(BETAS), rtol=1e-10)
    assert found.beta == pytest.approx(whole.beta, rel=1e-6)
    assert found.strategy == strategy


def test_the_veto_matters():
    X, y, weights = problem(100, seed=3)
    chosen = [
        calibrate_blocks(MODELS["known"], in_blocks(X, y, weights), ReferenceRisk(veto)).beta
        for veto in (0.05, None)
    ]
    assert chosen[0] != chosen[1]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_predictive_risk_of_folds(name, weighted):
    X, y, weights = problem(weighted=weighted)
    blocks = in_blocks(X, y, weights)
    folds = np.empty(len(y), dtype=int)
    for number in range(6):
        folds[number::6] = partition_folds(5, 3, number).take(len(folds[number::6]))
    splits = strategies.FromSplitter(PredefinedSplit(folds))
    found = calibrate_blocks(
        MODELS[name], blocks, KFold(5), risk="predictive", folds="blocks", seed=3
    )
    agree(found, calibrate(MODELS[name], X, y, splits, risk="predictive", weights=weights))
    assert blocks.passes == 2


def test_predictive_risk_of_other_plans():
    X, y, weights = problem(weighted=True)
    blocks, model = in_blocks(X, y, weights), MODELS["unknown"]
    found = calibrate_blocks(model, blocks, Bayes(), risk="predictive")
    agree(found, calibrate(model, X, y, Bayes(), risk="predictive", weights=weights))
    halves = np.empty(len(y), dtype=int)
    for number in range(6):
        halves[number::6] = partition_folds(2, 0, number).take(len(halves[number::6]))
    one_way = strategies.FromSplitter(PredefinedSplit(np.where(halves == 1, 0, -1)))
    both = strategies.FromSplitter(PredefinedSplit(halves))
    for strategy, splits in (
        (SampleSplitting(shuffle=True), one_way),
        (SampleSplitting(shuffle=True, both_directions=True), both),
    ):
        found = calibrate_blocks(model, blocks, strategy, risk="predictive", folds="blocks")
        agree(found, calibrate(model, X, y, splits, risk="predictive", weights=weights))


HOSTILE = {
    "directions of one row": 4,
    "outliers": 4,
    "both": 4,
    "equal columns": 2,
    "scales": 2,
}  # and how many passes they may take: more where rows are set aside or losses are huge


@pytest.mark.parametrize("risk", ["gibbs", "predictive"])
@pytest.mark.parametrize("name", ["known", "unknown"])
@pytest.mark.parametrize("case", HOSTILE)
def test_rows_and_columns_that_lose_digits(case, name, risk):
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
    found = calibrate_blocks(model, blocks, LeaveOneOut(), risk=risk)
    agree(found, calibrate(model, X, y, LeaveOneOut(), risk=risk))
    assert blocks.passes <= HOSTILE[case]


@settings(max_examples=30, deadline=None)
@given(
    logs=st.lists(st.floats(-3.0, 8.0), min_size=1, max_size=5),
    upper=st.floats(0.1, 1e3),
    place=st.floats(0.0, 1.0),
    ends=st.booleans(),
)
def test_panels_have_the_digits_of_functions_of_a_posterior(logs, upper, place, ends):
    lam = 10.0 ** np.array(logs)
    panels = Panels(Ruler.of_scale((0.0, upper), models_scale(lam)))
    if ends:  # no singularity beyond this
        panels = replace(panels, largest=2 / lam.min())

    def risk(beta):
        s = 1 / (1 + np.multiply.outer(beta, lam))
        return (s**2).sum(axis=-1) + np.log1p(s.sum(axis=-1)) + 0.1

    beta = np.array([place * upper, upper * 1e-3 * place, 0.0, upper])
    value, slope = panels.weights(beta)
    np.testing.assert_allclose(value @ risk(panels.nodes), risk(beta), rtol=3e-11)
    step = 1e-6 * (beta + panels.ruler.offset)
    difference = (risk(beta + step) - risk(np.maximum(beta - step, 0))) / (
        step + np.minimum(step, beta)
    )
    inside = (beta > 0) & (beta < upper)
    np.testing.assert_allclose(
        (slope @ risk(panels.nodes))[inside],
        difference[inside],
        rtol=1e-4,
        atol=1e-8 / panels.ruler.offset,
    )


def test_panels_end_where_posteriors_do():
    counts = []
    for rows in (1e3, 1e6, 1e9):
        ruler = Ruler.of_scale((0.0, 3.0), Scale(1 / rows))
        counts.append([len(Panels(ruler, largest=each).nodes) for each in (1e150, 30 / rows)])
    assert [each for _, each in counts] == [25] * 3
    assert counts[0][0] < counts[1][0] < counts[2][0]


def models_scale(lam):
    return Scale(1 / lam.max(), 1 / lam.min())


def test_few_rows_have_the_moments_of_all_losses():
    rng = np.random.default_rng(0)
    panels = Panels(Ruler(0.0, 3.0, 0.5))
    betas, weights = panels.nodes, rng.uniform(0.5, 2.0, 200)
    shape = rng.standard_normal((200, 2))
    losses = 3 + shape[:, :1] / (1 + betas) + shape[:, 1:] ** 2 / (2 + betas)
    parts = [LossSums.of(losses[i::3], weights[i::3], 5) for i in range(3)]
    summed = SummedCurve(parts[0].merge(*parts[1:]), panels, Scale(0.5))
    found = np.array([summed.rows(float(beta))[0] for beta in betas]).T
    share = summed.weights / summed.weights.sum()
    mean = weights @ losses / weights.sum()
    np.testing.assert_allclose(share @ found, mean, rtol=1e-12)
    np.testing.assert_allclose(summed.evaluate(betas)[0], mean, rtol=1e-12)
    centred = losses - mean
    np.testing.assert_allclose(
        (found - mean).T @ (share[:, None] * (found - mean)),
        centred.T @ (weights[:, None] * centred) / weights.sum(),
        atol=1e-12,
    )


X, Y, W = problem(40)
BAD = {
    "generator": (
        lambda: calibrate_blocks(MODELS["known"], iter([(X, Y)]), LeaveOneOut()),
        r"blocks must be readable several times for LeaveOneOut\(.*\) and risk='gibbs': a list",
    ),
    "folds of rows": (
        lambda: calibrate_blocks(MODELS["known"], [(X, Y)], risk="predictive"),
        "folds must be 'blocks' for the predictive risk of folds, which needs the rows again",
    ),
    "predictive reference": (
        lambda: calibrate_blocks(MODELS["known"], [(X, Y)], ReferenceRisk(), risk="predictive"),
        "risk must be 'gibbs' for ReferenceRisk on partitions, got 'predictive'",
    ),
    "duplicates": (
        lambda: calibrate_blocks(MODELS["known"], [(X, Y)], ReferenceRisk(duplicates="together")),
        "duplicates must be 'auto' or 'apart' on partitions",
    ),
    "few rows": (
        lambda: calibrate_blocks(MODELS["known"], [(X[:7], Y[:7])], LeaveOneOut()),
        "X must have more rows than columns for several passes, got 7 rows of 7 columns; use",
    ),
    "unequal weights": (
        lambda: calibrate_blocks(
            MODELS["known"], [(X, Y, np.linspace(1, 2, 40))], LeaveOneOut("alpha")
        ),
        r"weights must be equal for LeaveOneOut\(transfer='alpha'\) on partitions, got from 1 to 2",
    ),
    "huge": (
        lambda: calibrate_blocks(models.GaussianLinear(), [(X * 1e100, Y)], LeaveOneOut()),
        "X must have entries whose squares neither overflow nor vanish for several passes, got up",
    ),
    "nan": (
        lambda: calibrate_blocks(MODELS["known"], [(X, Y), (X, Y * np.nan)], LeaveOneOut()),
        "partition 1: y must be finite, got nan in row 0",
    ),
    "beyond": (
        lambda: calibrate_blocks(MODELS["known"], [(X, Y)], LeaveOneOut()).curve(4.0),
        "beta must be at most 3, the largest of the pass over the rows, got 4.0",
    ),
    "no rows": (
        lambda: calibrate_blocks(MODELS["known"], [(X[:0], Y[:0])], LeaveOneOut()),
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
