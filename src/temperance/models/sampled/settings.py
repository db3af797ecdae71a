"""Samplers of models in JAX, and their settings."""

from __future__ import annotations

from dataclasses import dataclass

from temperance.checks import shown, whole

# A posterior has the shape of the pairs of a K-fold plan, so that one compiled program serves both,
# and several ladders.
LADDERS = 3
SHAPE_OF_POSTERIOR = 10


@dataclass(frozen=True)
class SMC:
    """Adaptive tempered sequential Monte Carlo with Hamiltonian moves.

    Parameters
    ----------
    islands : int, optional
        Independent groups of particles, whose scatter gives the Monte Carlo error.  By default 64
        for a single pair, 24 for each of up to 10 pairs and for each of three ladders of a
        posterior, and 8 for each of more pairs, whose errors average out.
    particles : int
        Number of particles of an island, a multiple of ``moves``.
    moves : int
        Transitions in a row at each rung, each of which gives a particle.
    """

    islands: int | None = None
    particles: int = 32
    moves: int = 8

    def __post_init__(self) -> None:
        """Refuse numbers that are too small."""
        if self.islands is not None:
            whole("islands", self.islands, 2)
        whole("particles", self.particles, 4)
        whole("moves", self.moves, 1)
        if self.particles % self.moves:
            raise ValueError(
                f"particles must be a multiple of moves, {self.moves}, got {self.particles}"
            )

    kind = "smc"

    def shape(self, pairs: int) -> tuple[int, int]:
        """Return the number of groups and of draws in each."""
        return self.islands or _by_pairs(pairs, 64, 24, 8), self.particles

    @property
    def ladders(self) -> int:
        """Number of ladders of a posterior."""
        return 1 if self.islands else LADDERS


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
        return self.chains, self.draws or _by_pairs(pairs, 500, 200, 64)

    @property
    def ladders(self) -> int:
        """Number of ladders of a posterior."""
        return 1 if self.draws else LADDERS


def sampler_named(sampler: SMC | NUTS | str) -> SMC | NUTS:
    """Return the settings, or the default settings of a name."""
    if isinstance(sampler, SMC | NUTS):
        return sampler
    if sampler == "smc":
        return SMC()
    if sampler == "nuts":
        return NUTS()
    raise ValueError(f"sampler must be 'smc', 'nuts', SMC(...) or NUTS(...), got {shown(sampler)}")


def _by_pairs(pairs: int, one: int, few: int, many: int) -> int:
    """Return a number that depends on whether there is one pair, up to ten, or more."""
    return one if pairs == 1 else few if pairs <= SHAPE_OF_POSTERIOR else many
