r"""A model written in PyMC."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from temperance.data import Array, Data
from temperance.models.sampled.draws import Draws
from temperance.models.sampled.ladder import Report
from temperance.models.sampled.model import CarriesData, as_rows, refuse_nan

EXPONENTS = "temperance_exponents"
LIKELIHOOD = "temperance_log_likelihood"
CHECKED_DRAWS = 50  # draws of the prior at which the gradient must be finite


@dataclass(frozen=True, eq=False)
class PyMCModel(CarriesData):
    r"""A PyMC model; its observed variables are tempered row by row, its prior is unchanged.

    .. math:: \pi_c(\theta) \propto \prod_i p(y_i | \theta)^{c_i} \, \pi_0(\theta)

    The model contains its data: ``calibrate(model, model.X, model.y)``.  It is cloned, not changed.

    Parameters
    ----------
    model : pymc.Model
    variables : names of the observed variables to temper, all with the same rows; by default all
    chains, draws, warmup : numbers of chains, of draws per chain, and of tuning steps
    overlap : least share of effective draws from a rung of the ladder to the next
    seed : int
    progress : function (beta, upper, rungs), bool or None
        Called at every rung; by default a line on a terminal or in a notebook.
    """

    model: Any
    variables: Sequence[str] | None = None
    chains: int = 4
    draws: int = 500
    warmup: int = 500
    overlap: float = 0.5
    seed: int = 0
    progress: Report | bool | None = None

    constants: ClassVar[str] = "with the constants of PyMC's logp"

    def __post_init__(self) -> None:
        """Refuse other objects, and models without an observed variable."""
        super().__post_init__()
        if not hasattr(self.model, "observed_RVs") or not hasattr(self.model, "rvs_to_values"):
            raise ValueError(f"model must be a pymc.Model, got {type(self.model).__name__}")
        known = [rv.name for rv in self.model.observed_RVs]
        if not known:
            raise ValueError("model must have an observed variable, got none")
        for name in self.names:
            if name not in known:
                raise ValueError(
                    f"variables must be observed, among {', '.join(known)}, got {name!r}"
                )
        for rv in self.model.free_RVs:
            kind = type(getattr(rv.owner, "op", None)).__name__.removesuffix("RV")
            if kind in ("Flat", "HalfFlat"):
                raise ValueError(
                    f"model must have a proper prior, for beta = 0 is the prior, got {kind} for "
                    f"{rv.name!r}"
                )
            if rv.dtype.startswith(("int", "uint", "bool")):
                raise ValueError(
                    "model must have continuous latent variables, for draws move along gradients, "
                    f"got {kind} for {rv.name!r}"
                )
        rows = {name: np.shape(value)[:1] for name, value in self.values.items()}
        if len(set(rows.values())) > 1 or () in rows.values():
            shapes = ", ".join(f"{name} {np.shape(value)}" for name, value in self.values.items())
            raise ValueError(f"variables must name variables with the same rows, got {shapes}")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tempered variables."""
        if self.variables is None:
            return tuple(rv.name for rv in self.model.observed_RVs)
        return tuple(self.variables)

    @cached_property
    def values(self) -> Mapping[str, Array]:
        """Observed values by name."""
        with quiet():
            return {
                name: np.asarray(self.model.rvs_to_values[self.model[name]].eval())
                for name in self.names
            }

    @property
    def y(self) -> Array:
        """Observed responses (n,); the row indices if a row has several."""
        first = next(iter(self.values.values()))
        if len(self.values) == 1 and first.ndim == 1:
            return first.astype(float)
        return np.arange(float(len(first)))

    def observed(self, data: Data) -> Mapping[str, Array]:
        """Return the observed variables by name."""
        index = self.index(data)
        return {name: value[index] for name, value in self.values.items()}

    def labelled(self, drawn: Draws, data: Data) -> Draws:
        """Return draws with the dims and coords of the PyMC model."""
        dims = {
            name: tuple(str(dim) for dim in named)
            for name, named in self.model.named_vars_to_dims.items()
            if None not in named
        }
        coords = {
            dim: np.asarray(labels)
            for dim, labels in self.model.coords.items()
            if labels is not None
        }
        own, index = dims.get(self.names[0], ())[:1], self.index(data)
        # Labels of the rows that are there; parameters along the same dimension have them all.
        coords |= {dim: coords[dim][index] for dim in own if dim in coords}
        return replace(drawn, dims=dims, coords=coords)

    def own_sampler(self) -> PyMCSampler:
        """Return the sampler on the model's own data, compiled once."""
        return self._sampler

    @cached_property
    def _sampler(self) -> PyMCSampler:
        return PyMCSampler(self)


class PyMCSampler:
    """PyMC's NUTS on a clone of the model with an exponent for each row's likelihood."""

    def __init__(self, settings: PyMCModel) -> None:
        try:
            with quiet():
                import pymc as pm
                import pytensor.tensor as pt
                from pymc.model.fgraph import clone_model
        except ImportError:
            raise ImportError("PyMCModel needs PyMC: pip install 'temperance[pymc]'") from None
        self.settings, self.rows = settings, len(settings.y)
        with quiet():
            self.model = clone_model(settings.model)
            with self.model:
                exponents = pm.Data(EXPONENTS, np.ones(self.rows))
                terms = []
                for name in settings.names:
                    variable = self.model[name]
                    term = pm.logp(variable, self.model.rvs_to_values[variable])
                    pm.Deterministic(f"{LIKELIHOOD}_{name}", term)
                    terms.append(term.reshape((self.rows, -1)).sum(axis=1))
                    # The tempered term replaces log p: adding (c - 1) log p to log p would lose all
                    # digits where log p is large and c is 0.
                    self.model.observed_RVs.remove(variable)
                total = sum(terms[1:], terms[0])
                pm.Potential(
                    "temperance_likelihood",
                    pt.switch(exponents > 0, exponents * total, 0.0).sum(),
                )
                self.step = pm.NUTS()
            self.gradient = self.model.compile_dlogp()

    def draw(self, exponents: Array, seed: int, start: Any = None) -> Draws:
        """Return draws for ``exponents`` (n,); ``start`` is the ``end`` of earlier draws."""
        import pymc as pm

        settings = self.settings
        with quiet(), self.model:
            self.model.set_data(EXPONENTS, np.asarray(exponents, dtype=float))
            trace = pm.sample(
                draws=settings.draws,
                tune=settings.warmup,
                chains=settings.chains,
                cores=1,
                step=self.step,
                initvals=self._scattered(seed) if start is None else start,
                random_seed=seed,
                progressbar=False,
                compute_convergence_checks=False,
                return_inferencedata=False,
            )
        if len(trace.chains) < settings.chains or len(trace) < settings.draws:
            raise KeyboardInterrupt  # which PyMC takes for a wish for fewer draws
        if not np.any(exponents):
            self._check_gradient(trace)
        parts = [
            as_rows(name, self._values(trace, f"{LIKELIHOOD}_{name}"), self.rows)
            for name in settings.names
        ]
        losses = -np.sum(parts, axis=0)
        refuse_nan(losses)
        names = [rv.name for rv in self.model.free_RVs] + [
            rv.name for rv in self.model.deterministics if not rv.name.startswith(LIKELIHOOD)
        ]
        free = [value.name for value in self.model.value_vars]
        end = [
            {name: trace.point(-1, chain=chain)[name] for name in free} for chain in trace.chains
        ]
        return Draws(
            {name: self._values(trace, name) for name in names},
            losses,
            int(np.sum(trace.get_sampler_stats("diverging"))),
            end,
        )

    def _values(self, trace: Any, name: str) -> Array:
        return np.array(trace.get_values(name, combine=False), dtype=float)

    def _scattered(self, seed: int) -> list[dict[str, Array]]:
        """Return PyMC's start, moved by up to 1 in every unconstrained direction, per chain."""
        rng = np.random.default_rng(seed)
        centre = self.model.initial_point()
        return [
            {name: value + rng.uniform(-1, 1, np.shape(value)) for name, value in centre.items()}
            for _ in range(self.settings.chains)
        ]

    def _check_gradient(self, trace: Any) -> None:
        """Refuse a likelihood whose gradient is not finite at draws from the prior."""
        free = [value.name for value in self.model.value_vars]
        with quiet(), np.errstate(all="ignore"):
            self.model.set_data(EXPONENTS, np.ones(self.rows))
            steps = np.linspace(0, len(trace) - 1, CHECKED_DRAWS).astype(int)
            gradients = []
            for step in steps:
                point = trace.point(int(step))
                gradients.append(self.gradient({name: point[name] for name in free}))
        invalid = int(np.sum(~np.isfinite(gradients).all(axis=1)))
        if invalid:
            raise ValueError(
                f"the gradient of the log likelihood must be finite, got nan or infinity at "
                f"{invalid} of {CHECKED_DRAWS} draws from the prior, where sampling would fail: "
                "write the likelihood in a stable form (docs/pymc.md) or use a tighter prior"
            )


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress PyMC's progress, advice and import warnings."""
    loggers = [logging.getLogger(name) for name in ("pymc", "pytensor")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
