r"""Draws of a Stan program by CmdStanPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from temperance.data import Array


@runtime_checkable
class CmdStanProgram(Protocol):
    """What is used of a ``cmdstanpy.CmdStanModel``."""

    def code(self) -> str | None:
        """Return the Stan program."""
        ...

    def sample(self, data: Any = None, **options: Any) -> Any:
        """Return a ``cmdstanpy.CmdStanMCMC``."""
        ...


def cmdstan_draws(
    program: CmdStanProgram,
    data: Mapping[str, Any],
    seed: int,
    chains: int,
    draws: int,
    warmup: int,
    init: Any,
) -> tuple[dict[str, Array], int]:
    """Return variables by name, (chains, draws, ...), and the number of divergences."""
    given = {} if init is None else {"inits": init}
    fit = program.sample(
        data=dict(data),
        chains=chains,
        iter_sampling=draws,
        iter_warmup=warmup,
        seed=seed,
        show_progress=False,
        **given,
    )
    # CmdStanPy's arrays have the draws of the first chain, then those of the second, and so on.
    values = {
        name: np.asarray(value, dtype=float).reshape(chains, draws, *np.shape(value)[1:])
        for name, value in fit.stan_variables().items()
    }
    return values, int(np.sum(fit.method_variables()["divergent__"]))
