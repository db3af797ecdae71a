"""Every model with every strategy: the curve is what a naive computation says it is."""

import warnings

import numpy as np
import pytest
from scenarios import (
    HIERARCHICAL,
    LINEAR,
    MODELS,
    RISKS,
    STRATEGIES,
    data_for,
    gaussian_data,
    naive_curve,
    table_of,
)

from temperance import calibrate
from temperance.messages import BoundWarning
from temperance.rules import BetaWeights, cross_fitted

BETAS = np.array([0.0, 0.02, 0.4, 2.8])

# Plans of a kind that others stand for: models that fit each pair meet them among the slow tests.
ALIKE = (
    "split, thesis",
    "split, random",
    "bootstrap",
    "safe bayes, thesis",
    "safe bayes, random",
    "k-fold, alpha",
    "leave-one-out",
)
EVERY = [
    pytest.param(model, strategy, marks=[pytest.mark.slow] * slow)
    for model in MODELS
    for strategy in STRATEGIES
    for slow in [model not in (*LINEAR, *HIERARCHICAL, "laplace") and strategy in ALIKE]
]
# A stack has the table of its source.
CURVES = [each for each in EVERY if each.values[1] != "stacking"]


def planned(model_name, strategy_name):
    return STRATEGIES[strategy_name].planned(data_for(model_name), np.random.default_rng(1))


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize(("model_name", "strategy_name"), CURVES)
def test_curve_agrees_with_naive_computation_and_finite_differences(
    model_name, strategy_name, risk
):
    model = MODELS[model_name]
    data, plan = planned(model_name, strategy_name)
    curve = table_of(model, data, plan, risk)
    value, slope = curve(BETAS, derivative=True)
    naive = [naive_curve(model, data, plan, beta, risk) for beta in BETAS]
    # Closed forms to 1e-9; a Newton iteration stops at 1e-10 of its own.
    np.testing.assert_allclose(value, naive, rtol=1e-9)
    step = 1e-5 * np.maximum(BETAS, 0.02)
    inside = BETAS > 0
    up, down = curve(BETAS + step), curve(np.maximum(BETAS - step, 0.0))
    differences = ((up - down) / (2 * step))[inside]
    scale = np.abs(slope).max()
    np.testing.assert_allclose(slope[inside], differences, rtol=1e-6, atol=1e-6 * scale)
    (loss,) = curve.at(np.array([0.4]))
    assert loss @ curve.share == pytest.approx(curve(0.4), rel=1e-11)


@pytest.mark.parametrize(("model_name", "strategy_name"), EVERY)
def test_calibration_is_the_minimum_over_the_bounds(model_name, strategy_name):
    data = data_for(model_name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundWarning)
        result = calibrate(
            MODELS[model_name],
            data.X,
            data.y,
            STRATEGIES[strategy_name],
            bounds=(0.05, 2.5),
            risk="predictive" if strategy_name == "stacking" else "gibbs",
            weights=data.weights,
        )
    assert result.alpha == pytest.approx(result.beta * data.weights.sum())
    if strategy_name != "stacking":
        assert result.risk == pytest.approx(result.curve(result.beta))
    assert result.bayes_risk == pytest.approx(result.curve(1.0))
    if strategy_name == "bayes":
        assert result.beta == 1.0
    elif strategy_name == "stacking":
        mixed = cross_fitted(result.table, result.weights.betas)
        assert result.risk == pytest.approx(result.table.share @ mixed)
        assert result.beta == result.weights.median
    else:
        grid = np.linspace(0.05, 2.5, 100 if model_name in LINEAR else 25)
        assert result.risk <= result.curve(grid).min() + 1e-9
    # A stack has a posterior at each beta, any other choice at its own.
    parts = result.weights or BetaWeights(np.array([result.beta]), np.ones(1))
    means = [
        MODELS[model_name].posterior(data.X, data.y, beta * data.size, data.weights).mean
        for beta in parts.betas
    ]
    np.testing.assert_allclose(result.posterior.mean, np.tensordot(parts.weights, means, 1))


@pytest.mark.parametrize(("model_name", "strategy_name"), CURVES)
def test_predictive_risk_is_below_gibbs_risk(model_name, strategy_name):
    """Jensen: -log E p <= E -log p, row by row."""
    data, plan = planned(model_name, strategy_name)
    gibbs, predictive = (table_of(MODELS[model_name], data, plan, risk) for risk in RISKS)
    for beta in (0.0, 0.7, 2.0):
        difference = (gibbs.at(np.array([beta])) - predictive.at(np.array([beta])))[0]
        assert difference.min() >= -1e-12
        assert difference.max() > 1e-6


@pytest.mark.parametrize("n, d", [(9, 25), (40, 2), (70, 40), (150, 3)])
@pytest.mark.parametrize("strategy_name", sorted(set(STRATEGIES) - {"stacking"}))
@pytest.mark.parametrize("model_name", ["linear", "unknown variance"])
def test_linear_shapes(model_name, strategy_name, n, d):
    """More columns than rows, as many, fewer, and far fewer."""
    model = type(LINEAR[model_name])(prior_cov=0.5)
    rng = np.random.default_rng(2)
    data, plan = STRATEGIES[strategy_name].planned(gaussian_data(n, d, seed=n), rng)
    for risk in RISKS:
        curve = table_of(model, data, plan, risk)
        for beta in (0.0, 0.3, 1.7):
            expected = naive_curve(model, data, plan, beta, risk)
            assert curve(beta) == pytest.approx(expected, rel=1e-9)
