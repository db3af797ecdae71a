"""Samplers of models in JAX, and their settings."""

from __future__ import annotations

from dataclasses import dataclass

from temperance.validation import shown, whole


@dataclass(frozen=True)
class SMC:
    """Adaptive tempered sequential Monte Carlo with Hamiltonian moves, by BlackJAX.

    Parameters
    ----------
    islands : int, optional
        Independent groups of particles, whose scatter gives the Monte Carlo error.  By default 64
        for a single pair; fewer, but at least 8, for plans of many pairs, whose errors average out.
    particles : int
        Number of particles of an island.
    moves : int
        Transitions of every particle at each rung.
    """

    islands: int | None = None
    particles: int = 32
    moves: int = 5

    def __post_init__(self) -> None:
        """Refuse numbers that are too small."""
        if self.islands is not None:
            whole("islands", self.islands, 2)
        whole("particles", self.particles, 4)
        whole("moves", self.moves, 1)

    kind = "smc"

    def shape(self, pairs: int) -> tuple[int, int]:
        """Return the number of groups and of draws in each."""
        return self.islands or min(64, max(8, -(-160 // pairs))), self.particles


@dataclass(frozen=True)
class NUTS:
    """The no-U-turn sampler at every rung, started and tuned from the rung below, by BlackJAX.

    Parameters
    ----------
    chains : int
    draws : int, optional
        Number of draws of a chain at each rung.  By default 500 for a single pair; fewer, but at
        least 64, for plans of many pairs, whose errors average out.
    moves : int
        Transitions at each rung that tune the step and are discarded.
    """

    chains: int = 4
    draws: int | None = None
    moves: int = 50

    def __post_init__(self) -> None:
        """Refuse numbers that are too small."""
        whole("chains", self.chains, 2)
        if self.draws is not None:
            whole("draws", self.draws, 4)
        whole("moves", self.moves, 1)

    kind = "nuts"

    def shape(self, pairs: int) -> tuple[int, int]:
        """Return the number of groups and of draws in each."""
        return self.chains, self.draws or min(500, max(64, -(-1250 // pairs)))


def sampler_named(sampler: SMC | NUTS | str) -> SMC | NUTS:
    """Return the settings, or the default settings of a name."""
    if isinstance(sampler, SMC | NUTS):
        return sampler
    if sampler == "smc":
        return SMC()
    if sampler == "nuts":
        return NUTS()
    raise ValueError(f"sampler must be 'smc', 'nuts', SMC(...) or NUTS(...), got {shown(sampler)}")
