"""Compiled programs: shared in a process, kept on disk for the next."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from temperance import models
from temperance.models.sampled.compiled import FOLDER, folder, kept_on_disk
from temperance.models.sampled.reliability import split_rhat


def absolute(theta, x, y):
    return jnp.abs(y - x @ theta)


PRIOR = dist.Normal().expand([2])


def test_models_of_the_same_functions_share_programs():
    one, other = (models.GibbsModel(absolute, PRIOR, seed=seed) for seed in (0, 1))
    assert one._programs(5) is other._programs(5)
    assert one._programs(5).rung is other._programs(10).rung
    assert models.GibbsModel(absolute, PRIOR, sampler="nuts")._programs(5) is not one._programs(5)


class TestOnDisk:
    def compile(self, wanted=True):
        with kept_on_disk(wanted):
            jax.jit(lambda x: jax.lax.sort(jnp.sin(x) @ jnp.cos(x)))(np.eye(5))

    def test_programs_are_kept_and_settings_are_left(self, tmp_path, monkeypatch):
        monkeypatch.setattr("temperance.models.sampled.compiled.LEAST_SECONDS", 0.0)
        monkeypatch.setenv("TEMPERANCE_CACHE", str(tmp_path / "made"))
        before = getattr(jax.config, FOLDER)
        self.compile()
        assert getattr(jax.config, FOLDER) == before
        kept = list((tmp_path / "made").glob("*-cache"))
        assert kept
        jax.jit(lambda x: jnp.tan(x) @ x)(np.eye(4))  # the user's own
        assert list((tmp_path / "made").glob("*-cache")) == kept

    def test_off(self, tmp_path, monkeypatch):
        monkeypatch.setenv("TEMPERANCE_CACHE", str(tmp_path))
        self.compile(wanted=False)
        assert not list(tmp_path.iterdir())
        monkeypatch.setenv("TEMPERANCE_CACHE", "off")
        assert folder() is None

    def test_the_folder_of_the_user_is_taken(self, tmp_path, monkeypatch):
        monkeypatch.setenv("TEMPERANCE_CACHE", str(tmp_path / "ours"))
        jax.config.update(FOLDER, str(tmp_path / "theirs"))
        try:
            self.compile()
            assert not (tmp_path / "ours").exists()
        finally:
            jax.config.update(FOLDER, None)


@pytest.mark.parametrize("apart", [0.0, 0.3])
def test_rhat_is_that_of_arviz(apart):
    array_stats = pytest.importorskip("arviz_stats.base").array_stats
    values = np.random.default_rng(0).standard_t(3, (5, 101)) + apart * np.arange(5)[:, None]
    expected = array_stats.rhat(values, chain_axis=0, draw_axis=1)
    assert split_rhat(values) == pytest.approx(expected, rel=1e-12)
