"""A climb says how far it is, can be interrupted, and is drawn with its error."""

import numpy as np
import pytest

from temperance import calibrate, calibrate_from_draws, strategies
from temperance.models.sampled.draws import Draws
from temperance.models.sampled.model import SampledModel
from temperance.models.sampled.progress import line, reporter
from temperance.plots import second_valleys

RNG = np.random.default_rng(0)
Y = RNG.standard_normal(12)
quiet = pytest.mark.filterwarnings("ignore::temperance.messages.TemperanceWarning")


class Mean(SampledModel):
    """The mean of a Gaussian, with independent draws; an interrupt at one of them."""

    overlap, seed = 0.5, 3

    def __init__(self, interrupt=None, progress=None, y=Y, unit=1.0):
        self.interrupt, self.progress, self.count = interrupt, progress, 0
        self.y, self.unit = y, unit

    def sampler(self, data):
        return self

    def draw(self, exponents, seed, start=None):
        self.count += 1
        if self.count == self.interrupt:
            raise KeyboardInterrupt
        exponents = self.unit * exponents
        precision = 1.0 + exponents.sum()
        noise = np.random.default_rng(seed).standard_normal((4, 250))
        theta = exponents @ self.y / precision + noise / np.sqrt(precision)
        return Draws({"theta": theta}, 0.5 * self.unit * (self.y - theta[..., None]) ** 2)


def chosen(model, seed=0):
    return calibrate(model, None, Y, strategies.KFold(3), risk="gibbs", seed=seed)


@quiet
class TestInterrupt:
    def test_the_same_call_goes_on(self):
        whole, model = Mean(), Mean(interrupt=6)
        with pytest.raises(KeyboardInterrupt, match="the rungs drawn so far are kept"):
            chosen(model)
        found, expected = chosen(model), chosen(whole)
        assert found.beta == expected.beta and found.risk == expected.risk
        assert model.count == whole.count + 1  # the draw that was interrupted is repeated

    def test_another_plan_begins_anew(self):
        whole, model = Mean(), Mean(interrupt=6)
        with pytest.raises(KeyboardInterrupt):
            chosen(model)
        assert chosen(model, seed=1).beta == chosen(whole, seed=1).beta
        assert model.count == whole.count + 6


@quiet
def test_large_losses_have_small_betas():
    """Losses times c and bounds over c are the same problem, however small betas are."""
    y = 1.0 + 4 * Y
    found, large = (
        calibrate(Mean(y=y, unit=c), None, y, "leave-one-out", bounds=(0, 30 / c), risk="gibbs")
        for c in (1.0, 1e6)
    )
    assert 0.01 < found.beta < 30 and large.table.betas[0] < 1e-6
    assert large.beta * 1e6 == pytest.approx(found.beta, rel=0.05)
    assert large.risk / 1e6 == pytest.approx(found.risk, rel=1e-3)


@quiet
class TestProgress:
    def test_every_model_reports(self):
        told = []
        chosen(Mean(progress=lambda *news: told.append(news)))
        assert told[0][0] == 0.0 and max(beta for beta, *_ in told) == 3.0

    def test_a_line(self, capsys, monkeypatch):
        line(0.5, 3.0, 4)
        assert capsys.readouterr().err.strip() == "climbing: rung 4, beta 0.5 of 3"
        line(3.0, 3.0, 9)
        assert capsys.readouterr().err.strip() == ""
        assert reporter(None) is None and reporter(False) is None
        monkeypatch.setitem(__import__("sys").modules, "ipykernel", object())
        assert reporter(None) is line


class TestSecondValleys:
    BETAS = np.linspace(0.01, 3, 200)

    def values(self, depth):
        return (self.BETAS - 1) ** 2 * (self.BETAS - 2.5) ** 2 + depth * self.BETAS

    def test_found_behind_a_ridge(self):
        ((beta, risk),) = second_valleys(self.BETAS, self.values(0.01), 1.0, 0.01)
        assert beta == pytest.approx(2.5, abs=0.05) and 0.02 < risk < 0.03

    def test_not_in_noise_or_where_there_is_one(self):
        assert second_valleys(self.BETAS, self.values(0.01), 1.0, 0.5) == []
        assert second_valleys(self.BETAS, (self.BETAS - 1) ** 2, 1.0, 0.0) == []


@quiet
class TestPlotAndPrint:
    def test_axis_and_band(self):
        matplotlib = pytest.importorskip("matplotlib")
        matplotlib.use("Agg")
        found = chosen(Mean())
        axes = found.plot()
        labels = axes.get_legend_handles_labels()[1]
        assert "± 2 Monte Carlo errors" in labels
        expected = "linear" if found.beta > 0.3 else "function"
        assert axes.get_xscale() == expected
        matplotlib.pyplot.close("all")

    def test_method_is_about_the_choice(self):
        found = chosen(Mean())
        effective = found.table.curve.reliability(found.beta).effective
        assert f"effective sample size {effective:.0f}," in repr(found)


def test_printing_warns_of_nothing():
    """The risk at Bayes may lie beyond the draws; who prints is not told again."""
    theta = RNG.normal(Y.sum() / 12.2, 12.2**-0.5, (4, 500, 1)) * 3
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = calibrate_from_draws(-0.5 * (Y - theta) ** 2 * 4, 8.0, bounds=(0, 50))
        assert found.supported[0] > 1
    repr(found)
