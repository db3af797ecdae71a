r"""A model written in Stan, run by PyStan or by CmdStanPy."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np

from temperance.checks import as_numbers, shown
from temperance.data import Array, Data
from temperance.models.sampled.cmdstan import CmdStanProgram, cmdstan_draws
from temperance.models.sampled.draws import Draws
from temperance.models.sampled.ladder import Report
from temperance.models.sampled.model import CarriesData, as_rows, refuse_nan


@dataclass(frozen=True, eq=False)
class StanModel(CarriesData):
    r"""A Stan program whose data include a weight for each row's likelihood.

    .. math:: \pi_c(\theta) \propto \prod_i p(y_i | \theta)^{c_i} \, \pi_0(\theta)

    The program declares ``vector<lower=0>[n] weights;`` in its data, writes each row's likelihood
    as ``target += weights[i] * ...``, and declares ``vector[n] log_lik``, without weights, in its
    generated quantities.  The model contains its data: ``calibrate(model, model.X, model.y)``.  It
    is compiled once; folds and betas are data.

    Parameters
    ----------
    program : str or cmdstanpy.CmdStanModel
        The program as text is run by PyStan, a model of CmdStanPy by itself.
    data : mapping of names to values, without the weights
    response : name of the observed responses in ``data``
    weights, log_lik : names of the weights and of the log likelihoods in the program
    chains, draws, warmup : numbers of chains, of draws per chain, and of tuning steps
    overlap : least share of effective draws from a rung of the ladder to the next
    seed : int
    progress : function (beta, upper, rungs), bool or None
        Called at every rung; by default a line on a terminal or in a notebook.
    """

    program: str | CmdStanProgram
    data: Mapping[str, Any]
    response: str = "y"
    weights: str = "weights"
    log_lik: str = "log_lik"
    chains: int = 4
    draws: int = 500
    warmup: int = 500
    overlap: float = 0.5
    seed: int = 0
    progress: Report | bool | None = None

    constants: ClassVar[str] = "constants as in log_lik"

    def __post_init__(self) -> None:
        """Refuse a program without weights or log likelihoods, and data without responses."""
        super().__post_init__()
        if not isinstance(self.program, str | CmdStanProgram):
            raise ValueError(
                "program must be a Stan program, as text or as a CmdStanModel of CmdStanPy, got "
                f"{shown(self.program)}"
            )
        for argument, name, declaration in (
            ("weights", self.weights, f"vector<lower=0>[n] {self.weights}; in its data"),
            ("log_lik", self.log_lik, f"vector[n] {self.log_lik}; in its generated quantities"),
        ):
            if not re.search(rf"\b{re.escape(name)}\b", self.code):
                raise ValueError(
                    f"program must declare {declaration}, or {argument} must say what it is "
                    f"called there, got a program without {name!r}"
                )
        if self.response not in self.data:
            raise ValueError(
                f"response must be a name in data, one of {', '.join(self.data)}, got "
                f"{self.response!r}"
            )

    @cached_property
    def code(self) -> str:
        """The text of the program, without comments."""
        text = self.program if isinstance(self.program, str) else self.program.code()
        return re.sub(r"//[^\n]*|/\*.*?\*/", "", text or "", flags=re.DOTALL)

    @property
    def y(self) -> Array:
        """Observed responses (n,); the row indices if a row has several."""
        values = as_numbers(f"data[{self.response!r}]", self.data[self.response])
        return values if values.ndim == 1 else np.arange(float(len(values)))

    def observed(self, data: Data) -> Mapping[str, Array]:
        """Return the observed variables by name."""
        return {self.response: np.asarray(self.data[self.response])[self.index(data)]}

    def own_sampler(self) -> StanSampler:
        """Return the sampler on the model's own data."""
        if isinstance(self.program, str):
            _require_stan()
        return StanSampler(self)


@dataclass(frozen=True, eq=False)
class StanSampler:
    """Stan's NUTS, on one compiled program: a new run only sends new data."""

    settings: StanModel

    def draw(self, exponents: Array, seed: int, start: Any = None) -> Draws:
        """Return draws for ``exponents`` (n,); ``start`` is the ``end`` of earlier draws."""
        settings = self.settings
        data = {**settings.data, settings.weights: exponents}
        request: dict[str, Any] = dict(
            data={name: np.asarray(value).tolist() for name, value in data.items()},
            seed=1 + seed % (2**31 - 2),  # Stan requires a seed from 1 to 2^31 - 1
            chains=settings.chains,
            draws=settings.draws,
            warmup=settings.warmup,
            init=start,
        )
        if isinstance(settings.program, str):
            values = _stan().run(program_code=settings.program, **request)
            divergent = int(values.pop("divergent__"))
        else:
            values, divergent = cmdstan_draws(settings.program, **request)
        if settings.log_lik not in values:
            raise ValueError(f"program must give {settings.log_lik} in its generated quantities")
        losses = -as_rows(settings.log_lik, values.pop(settings.log_lik), len(settings.y))
        refuse_nan(losses)
        end = [
            {name: value[chain, -1].tolist() for name, value in values.items()}
            for chain in range(settings.chains)
        ]
        return Draws(values, losses, divergent, end)


class _Stan:
    """A process that runs PyStan, see ``stan_worker.py``."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("stan_worker.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        atexit.register(self.close)

    def run(self, **request: Any) -> dict[str, Array]:
        """Return parameters by name, (chains, draws, ...), and the number of divergences."""
        assert self.process.stdin is not None and self.process.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            out = str(Path(folder) / "draws.npz")
            try:
                self.process.stdin.write(json.dumps(request | {"out": out}) + "\n")
                self.process.stdin.flush()
                line = self._answer(self.process.stdout)
            except BaseException:
                # The request may be incomplete or unanswered: start a new process next time.
                self.close()
                raise
            error = json.loads(line)["error"] if line else "its process ended"
            if not line:
                self.close()
            if error:
                raise ValueError(f"Stan failed: {error}")
            with np.load(out, allow_pickle=False) as found:
                return {name: found[name] for name in found.files}

    def _answer(self, answers: IO[str]) -> str:
        """Return the next line; forked processes of PyStan keep the pipe open if it dies."""
        while not select.select([answers], [], [], 1.0)[0]:
            if self.process.poll() is not None:
                return ""
        return answers.readline()

    def close(self) -> None:
        """End the process and those that it forked (its session)."""
        _stan.cache_clear()
        atexit.unregister(self.close)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(BrokenPipeError):
            self.process.communicate()


@cache
def _stan() -> _Stan:
    _require_stan()
    return _Stan()


def _require_stan() -> None:
    if find_spec("stan") is None:
        raise ImportError(
            "StanModel needs PyStan, pip install 'temperance[stan]', or a CmdStanModel of CmdStanPy"
        )
