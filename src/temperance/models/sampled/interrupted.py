"""Ladders that go on where an interrupt (Ctrl-C) stopped them, when the same is asked again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256

import numpy as np

from temperance.data import Data
from temperance.models.sampled.ladder import Ladder, Ladders
from temperance.plans import Pairs


class Interrupted:
    """The ladders of a model whose climb was interrupted; the last ones are kept."""

    def __init__(self) -> None:
        self.kept: dict[str, Ladders] = {}

    def ladders(self, data: Data, plan: Pairs, make: Callable[[], Ladders]) -> Ladders:
        """Return the interrupted ladders of the same data and plan, or new ones."""
        key = sha256()
        for part in (data.X, data.y, plan.likelihood_weights, plan.test):
            key.update(np.ascontiguousarray(part).tobytes())
        name = key.hexdigest()
        kept = self.kept.pop(name) if name in self.kept else make()
        return _Resumable(self, name, kept)


class _Resumable:
    def __init__(self, owner: Interrupted, key: str, ladders: Ladders) -> None:
        self.owner, self.key, self.ladders = owner, key, ladders

    @property
    def upper(self) -> float:
        return self.ladders.upper

    def extend(self, upper: float) -> Sequence[Ladder]:
        try:
            return self.ladders.extend(upper)
        except KeyboardInterrupt:
            self.owner.kept = {self.key: self.ladders}
            raise KeyboardInterrupt(
                f"on the way to beta = {upper:.3g}: the rungs drawn so far are kept, the same call "
                "of the same model goes on from there"
            ) from None
