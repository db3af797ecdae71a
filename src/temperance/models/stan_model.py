r"""A model written in Stan, run by PyStan."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from temperance.models.sampled import CarriesData, as_rows, refuse_nan
from temperance.sampling.draws import Draws
from temperance.types import Array, Data
from temperance.validation import as_numbers, shown


@dataclass(frozen=True, eq=False)
class StanModel(CarriesData):
    r"""A Stan program that weighs its rows' likelihoods by data.

    .. math:: \pi_c(\theta) \propto \prod_i p(y_i | \theta)^{c_i} \, \pi_0(\theta)

    The program declares ``vector<lower=0>[n] weights;`` in its data, writes each row's likelihood
    as ``target += weights[i] * ...`` and gives ``vector[n] log_lik`` without weights in its
    generated quantities.  The model carries its data: ``calibrate(model, model.X, model.y)``.  It
    is compiled once; folds and betas are data.

    Parameters
    ----------
    program_code : str
    data : mapping of names to values, without the weights
    response : name of the observed responses in ``data``
    weights, log_lik : names of the weights and of the log likelihoods in the program
    chains, draws, warmup : numbers of chains, of draws of each, and of steps to tune it
    overlap : least share of effective draws from a rung of the ladder to the next
    seed : int
    """

    program_code: str
    data: Mapping[str, Any]
    response: str = "y"
    weights: str = "weights"
    log_lik: str = "log_lik"
    chains: int = 4
    draws: int = 500
    warmup: int = 500
    overlap: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse a program without weights or log likelihoods, and data without responses."""
        super().__post_init__()
        if not isinstance(self.program_code, str):
            raise ValueError(f"program_code must be a Stan program, got {shown(self.program_code)}")
        for argument, name, declaration in (
            ("weights", self.weights, f"vector<lower=0>[n] {self.weights}; in its data"),
            ("log_lik", self.log_lik, f"vector[n] {self.log_lik}; in its generated quantities"),
        ):
            if not re.search(rf"\b{re.escape(name)}\b", _without_comments(self.program_code)):
                raise ValueError(
                    f"program_code must declare {declaration}, or {argument} must say what it is "
                    f"called there, got a program without {name!r}"
                )
        if self.response not in self.data:
            raise ValueError(
                f"response must be a name in data, one of {', '.join(self.data)}, got "
                f"{self.response!r}"
            )

    @property
    def y(self) -> Array:
        """Observed responses (n,); the numbers of the rows if a row has several."""
        values = as_numbers(f"data[{self.response!r}]", self.data[self.response])
        return values if values.ndim == 1 else np.arange(float(len(values)))

    def observed(self, data: Data) -> Mapping[str, Array]:
        """Return the observed variables by name."""
        return {self.response: np.asarray(self.data[self.response])[self.index(data)]}

    def own_sampler(self) -> StanSampler:
        """Return the sampler on the data that the model carries."""
        return StanSampler(self)


@dataclass(frozen=True, eq=False)
class StanSampler:
    """Stan's NUTS; PyStan keeps the compiled program, so that a new run only brings new data."""

    settings: StanModel

    def draw(self, exponents: Array, seed: int, start: Any = None) -> Draws:
        """Draw from the posterior with ``exponents`` (n,); ``start`` is an ``end`` of before."""
        settings = self.settings
        # PyStan wants plain numbers, and a positive seed below 2^31.
        data = {**settings.data, settings.weights: np.asarray(exponents, dtype=float)}
        given = {} if start is None else {"init": start}

        def run() -> Any:
            import stan

            program = stan.build(
                settings.program_code, data=data, random_seed=1 + seed % (2**31 - 2)
            )
            return program.sample(
                num_chains=settings.chains,
                num_samples=settings.draws,
                num_warmup=settings.warmup,
                **given,
            )

        fit = _quietly(run)
        if settings.log_lik not in fit.param_names:
            raise ValueError(
                f"program_code must give {settings.log_lik} in its generated quantities"
            )
        values = {name: self._chains(fit, name) for name in fit.param_names}
        rows = len(settings.y)
        losses = -as_rows(settings.log_lik, values.pop(settings.log_lik), rows)
        refuse_nan(losses)
        end = [
            {name: value[chain, -1].tolist() for name, value in values.items()}
            for chain in range(settings.chains)
        ]
        return Draws(values, losses, int(fit["divergent__"].sum()), end)

    def _chains(self, fit: Any, name: str) -> Array:
        """Turn PyStan's (..., draws x chains) into (chains, draws, ...)."""
        shape = tuple(fit.dims[fit.param_names.index(name)])
        flat = np.asarray(fit[name]).reshape(*shape, self.settings.draws, self.settings.chains)
        return np.moveaxis(flat, (-1, -2), (0, 1))


def _quietly(run: Callable[[], Any]) -> Any:
    """Run PyStan in a thread, for it needs an event loop of its own, and keep what it prints."""
    printed = io.StringIO()
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        ThreadPoolExecutor(1) as thread,
    ):
        warnings.simplefilter("ignore")
        try:
            return thread.submit(run).result()
        except ImportError:
            raise ImportError("StanModel needs PyStan: pip install 'temperance[stan]'") from None
        except (ValueError, RuntimeError) as error:
            said = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", printed.getvalue()).split())
            raise ValueError(f"Stan failed: {error} {said[-500:]}".rstrip()) from error


def _without_comments(program: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", program, flags=re.DOTALL)
