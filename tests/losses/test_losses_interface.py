"""What losses take, refuse, and say about responses."""

import re

import numpy as np
import pytest
from scipy import stats

from temperance.losses import (
    Expectile,
    Hinge,
    Huber,
    Logistic,
    Loss,
    NegativeBinomial,
    Pinball,
    Poisson,
    Probit,
    Squared,
    StudentT,
    Tukey,
)

LIKELIHOODS = {
    Squared(0.3): lambda u: stats.norm(u, np.sqrt(0.3)),
    Logistic(): lambda u: stats.bernoulli(1 / (1 + np.exp(-u))),
    Probit(): lambda u: stats.bernoulli(stats.norm.cdf(u)),
    Poisson(): lambda u: stats.poisson(np.exp(u)),
    NegativeBinomial(1.7): lambda u: stats.nbinom(1.7, 1.7 / (1.7 + np.exp(u))),
    StudentT(4.0, 0.8): lambda u: stats.t(4.0, u, 0.8),
}
OTHERS = [Pinball(0.3), Expectile(0.7), Huber(1.1), Hinge(), Tukey(3.0)]
LOSSES = [*LIKELIHOODS, *OTHERS]
FREE = [StudentT(4.0), NegativeBinomial(), Huber()]


def named(loss):
    return loss.name


def some_responses(loss):
    if isinstance(loss, Logistic | Probit | Hinge):
        return np.array([0.0, 1.0, 1.0])
    if isinstance(loss, Poisson | NegativeBinomial):
        return np.array([0.0, 2.0, 9.0])
    return np.array([-1.3, 0.4, 2.0])


@pytest.mark.parametrize("loss", LIKELIHOODS, ids=named)
def test_likelihoods_are_the_laws_of_the_textbook(loss):
    u, y = np.array([[-1.0], [0.2], [1.7]]), some_responses(loss)
    law = LIKELIHOODS[loss](u)
    log = law.logpmf(y) if loss.discrete else law.logpdf(y)
    np.testing.assert_allclose(loss.value(u, y), -log, rtol=1e-11)
    np.testing.assert_allclose(loss.cdf(u, y), law.cdf(y), rtol=1e-11)
    np.testing.assert_allclose(loss.cdf(u, y + 0.5), law.cdf(y + 0.5), rtol=1e-11)
    np.testing.assert_allclose(loss.response_mean(u), law.mean(), rtol=1e-12)
    if loss.discrete:
        assert (loss.cdf(u, np.array([-0.5, -2.0])) == 0).all()


@pytest.mark.parametrize("loss", LIKELIHOODS, ids=named)
def test_samples_follow_the_law(loss):
    """Frequencies up to each of some responses, within four standard errors; and another law's."""
    rng, size = np.random.default_rng(5), 20_000
    for u, wrong in ((-0.4, 0.0), (1.3, 0.8)):
        draws = loss.sample(np.full(size, u), rng)
        assert draws.shape == (size,) and draws.dtype == float
        levels = np.array([0.0, 1.0, 4.0]) if loss.discrete else u + np.array([-1.0, 0.1, 0.9])
        share = (draws[:, None] <= levels).mean(axis=0)
        exact = loss.cdf(np.array(u), levels)
        error = 4 * np.sqrt(exact * (1 - exact) / size) + 1e-12
        assert (np.abs(share - exact) <= error).all()
        assert (np.abs(share - loss.cdf(np.array(wrong), levels)) > error).any()


@pytest.mark.parametrize("loss", OTHERS, ids=named)
@pytest.mark.parametrize(
    ("method", "arguments"),
    [("response_mean", (0.0,)), ("sample", (0.0, None)), ("cdf", (0.0, 0.0))],
)
def test_other_losses_have_no_law(loss, method, arguments):
    with pytest.raises(ValueError, match=rf"{method}\(.*which the {loss.name} is not"):
        getattr(loss, method)(*arguments)


@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_typical_quadratics_and_units_are_of_the_size_of_the_loss(loss):
    y = np.repeat(some_responses(loss), 4)
    loss.check(y)
    centre, curvature = loss.typical(y, np.zeros_like(y))
    assert centre.shape == curvature.shape == y.shape
    assert np.isfinite(centre).all() and (curvature > 0).all()
    unit = loss.unit(y)
    assert isinstance(unit, float) and unit > 0
    if loss.smooth:
        # A step of a unit from the centre changes the loss by about what the quadratic says.
        ahead, here, behind = (loss.value(centre + side * unit, y) for side in (1, 0, -1))
        share = (ahead - 2 * here + behind) / (curvature * unit**2)
        assert ((share > 0.05) & (share < 20)).all()


@pytest.mark.parametrize("scale", [1e-3, 1e4])
@pytest.mark.parametrize("make", [Pinball, Expectile], ids=["pinball", "expectile"])
def test_units_are_those_of_the_responses(make, scale):
    y = np.random.default_rng(0).normal(3.0, 1.0, 4000)
    outliers = np.append(y, np.full(100, 1e6))
    assert make(0.3).unit(scale * y) == pytest.approx(scale, rel=0.05)
    assert make(0.3).unit(scale * outliers) == pytest.approx(scale, rel=0.15)
    assert make(0.3).unit(np.append(np.zeros(90), np.ones(10))) == pytest.approx(0.3, rel=1e-9)
    assert make(0.3).unit(np.full(5, 7.0)) == 1.0


@pytest.mark.parametrize(
    ("loss", "bad", "words"),
    [
        *((loss, 2.0, "the labels 0 and 1") for loss in (Logistic(), Probit(), Hinge())),
        *((loss, -1.0, "counts 0, 1, 2, ...") for loss in (Poisson(), NegativeBinomial())),
        *((loss, 1.5, "counts 0, 1, 2, ...") for loss in (Poisson(), NegativeBinomial(2.0))),
        *((loss, np.inf, "finite numbers") for loss in (Squared(), *FREE[::2], *OTHERS[:2])),
        (Tukey(2.0), np.nan, "finite numbers"),
    ],
)
def test_responses_are_checked(loss, bad, words):
    with pytest.raises(ValueError, match=re.escape(f"y must hold {words}, got {bad!r}")) as error:
        loss.check(np.array([0.0, bad, 1.0]))
    assert "\n" not in str(error.value)
    loss.check(np.array([0.0, 1.0]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Squared(0.0), "noise_variance must be positive, got 0.0"),
        (lambda: StudentT(-1.0), "df must be positive, got -1.0"),
        (lambda: StudentT(4.0, 0.0), "scale must be positive, got 0.0"),
        (lambda: StudentT(4.0, "any"), "scale must be positive or 'auto', got 'any'"),
        (lambda: NegativeBinomial(-2.0), "dispersion must be positive, got -2.0"),
        (lambda: Pinball(1.0), "quantile must lie between 0 and 1, got 1.0"),
        (lambda: Expectile(0.0), "quantile must lie between 0 and 1, got 0.0"),
        (lambda: Huber(np.nan), "delta must be finite, got nan"),
        (lambda: Tukey(0.0), "c must be positive, got 0.0"),
    ],
)
def test_arguments_are_checked(make, message):
    with pytest.raises(ValueError) as error:
        make()
    assert str(error.value) == message


@pytest.mark.parametrize("loss", FREE, ids=named)
def test_a_free_parameter_has_to_be_fitted(loss):
    y = some_responses(loss)
    assert loss.free
    loss.check(y)
    assert (loss.typical(y, y).curvature > 0).all() and loss.unit(y) > 0
    at = np.zeros(3), np.ones(3), y
    for ask in (
        lambda: loss.value(at[0], y),
        lambda: loss.derivatives(at[0], y),
        lambda: loss.bends(y),
        lambda: loss.expected(*at),
        lambda: loss.partials(*at),
        *(
            [
                lambda: loss.log_predictive(*at),
                lambda: loss.response_mean(y),
                lambda: loss.sample(y, np.random.default_rng(0)),
                lambda: loss.cdf(at[0], y),
            ]
            if loss.likelihood
            else []
        ),
    ):
        with pytest.raises(ValueError, match=r"must be a number, got 'auto': fitted\(u, y, w"):
            ask()
    fitted = loss.fitted(at[0], y, np.ones(3))
    assert not fitted.free and np.isfinite(fitted.expected(*at)).all()


@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_nothing_is_fitted_where_nothing_is_free(loss):
    y = some_responses(loss)
    assert not loss.free
    assert loss.fitted(np.zeros(3), y, np.ones(3)) is loss


@pytest.mark.parametrize(
    ("loss", "truth", "field"),
    [
        (StudentT(4.0), StudentT(4.0, 0.03), "scale"),
        (NegativeBinomial(), NegativeBinomial(2.5), "dispersion"),
    ],
    ids=["Student-t", "negative binomial"],
)
def test_fitted_parameters_maximise_the_likelihood(loss, truth, field):
    rng = np.random.default_rng(3)
    u = rng.normal(1.0, 0.5, 3000)
    y = truth.sample(u, rng)
    weights = np.append(rng.uniform(0.5, 2.0, 2990), np.zeros(10))
    y[-10:] = 1e3  # rows without weight
    found = loss.fitted(u, y, weights)
    value = getattr(found, field)
    assert value == pytest.approx(getattr(truth, field), rel=0.1)

    def risk(factor):
        other = type(found)(**{**vars(found), field: factor * value})
        return weights @ other.value(u, y)

    assert risk(1.0) < min(risk(0.999), risk(1.001))


def test_huber_takes_its_delta_from_the_spread_of_residuals():
    rng = np.random.default_rng(3)
    u = rng.normal(1.0, 5.0, 3000)
    y = u + 0.2 * rng.standard_t(30, 3000)
    y[:30] = 1e3
    assert Huber().fitted(u, y, np.ones(3000)).delta == pytest.approx(1.345 * 0.2, rel=0.06)
    weights = np.append(np.ones(300), np.zeros(2700))
    few = Huber().fitted(u[:300], y[:300], np.ones(300))
    assert Huber().fitted(u, y, weights).delta == pytest.approx(few.delta, rel=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_losses_say_what_they_are(loss):
    assert isinstance(loss, Loss)
    assert loss.likelihood == (loss in LIKELIHOODS)
    assert loss.smooth == (not isinstance(loss, Pinball | Hinge))
    assert loss.name.endswith("loss") and loss.method
    u, y = np.linspace(-6, 6, 401), some_responses(loss)[:, None]
    bend = np.diff(loss.value(u, y), n=2)
    assert loss.convex == bool((bend > -1e-12).all())


def test_a_loss_without_bends_says_so():
    class Half(Loss):
        def value(self, u, y):
            return u

        def derivatives(self, u, y):
            return u, u, u

    with pytest.raises(NotImplementedError, match=r"Half must define bends\(y\)"):
        Half().expected(np.zeros(2), np.ones(2), np.zeros(2))
    with pytest.raises(TypeError):
        Loss()
