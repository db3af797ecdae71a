"""Losses as plain values: a name and numbers."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, cast

from temperance import losses
from temperance.app.saved.record import Record
from temperance.losses import Loss

KINDS: dict[str, Any] = {
    "expectile": losses.Expectile,
    "hinge": losses.Hinge,
    "huber": losses.Huber,
    "negative-binomial": losses.NegativeBinomial,
    "poisson": losses.Poisson,
    "probit": losses.Probit,
    "quantile": losses.Pinball,
    "student-t": losses.StudentT,
    "tukey": losses.Tukey,
}


def as_plain(loss: Loss) -> dict[str, Any]:
    """Return a loss as its name and its numbers; refuse others than the library's.

    Examples
    --------
    >>> as_plain(losses.Pinball(0.9))
    {'name': 'quantile', 'quantile': 0.9}
    """
    for name, kind in KINDS.items():
        if type(loss) is kind:
            numbers = {
                each.name: float(getattr(loss, each.name)) for each in fields(cast(Any, kind))
            }
            return {"name": name, **numbers}
    raise ValueError(f"loss cannot be stored, got {type(loss).__name__}")


def from_plain(record: Record) -> Loss:
    """Return the loss that :func:`as_plain` wrote; other values are refused in one line."""
    kind = KINDS[record.text("name", KINDS)]
    found: Loss = kind(**{each.name: record.number(each.name) for each in fields(kind)})
    return found
