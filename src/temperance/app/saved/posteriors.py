"""Posteriors as plain values (numbers, lists, names) for files, and their reading.

Each kind has a name and two functions.  A posterior that contains others writes them by
``as_plain`` and reads them by ``from_plain``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from temperance.app.saved import losses
from temperance.app.saved.record import Record
from temperance.checks import as_inputs
from temperance.data import Array
from temperance.models.linear_predictor import GaussianPrior
from temperance.posteriors.covariance_root import CovarianceRoot, LowRankRoot
from temperance.posteriors.gaussian import GaussianRegressionPosterior, LogisticPosterior
from temperance.posteriors.hierarchical import HierarchicalPosterior, Parts
from temperance.posteriors.linear_predictor import (
    ClassPosterior,
    PredictorPosterior,
    ResponsePosterior,
)
from temperance.posteriors.mixture import MixturePosterior
from temperance.posteriors.normal_inverse_gamma import NormalInverseGammaPosterior
from temperance.posteriors.softmax import ContrastLaw, SoftmaxMixture, SoftmaxPosterior


@dataclass(frozen=True)
class Kind:
    """How objects of one type are written as plain values and read back.

    Parameters
    ----------
    type : the class itself, without subclasses
    write : from the object to a dictionary of numbers, texts, lists, arrays and dictionaries
    read : from such a dictionary, checked field by field, to the object
    """

    type: type
    write: Callable[[Any], dict[str, Any]]
    read: Callable[[Record], Any]


def as_plain(posterior: Any) -> dict[str, Any]:
    """Return a posterior as plain values.

    Examples
    --------
    >>> import numpy as np
    >>> as_plain(CovarianceRoot(np.array([1.0, 2.0])))
    {'kind': 'root', 'outer': [1.0, 2.0]}
    """
    for name, kind in KINDS.items():
        if type(posterior) is kind.type:
            return {"kind": name, **_listed(kind.write(posterior))}
    raise ValueError(f"posterior cannot be stored, got {type(posterior).__name__}")


def from_plain(record: Record) -> Any:
    """Return the posterior that :func:`as_plain` wrote; other values are refused in one line."""
    return KINDS[record.text("kind", KINDS)].read(record)


def _listed(value: Any) -> Any:
    """Return a value with arrays, at any depth, as lists."""
    if isinstance(value, dict):
        return {name: _listed(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_listed(each) for each in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _gaussian(posterior: Any) -> dict[str, Any]:
    return {"mean": posterior.mean, "root": as_plain(posterior.root)}


def _mean_and_root(record: Record) -> tuple[Any, Any]:
    mean, root = record.array("mean", 1), from_plain(record.record("root"))
    if not isinstance(root, CovarianceRoot) or len(root.outer) != len(mean):
        raise ValueError(f"{record.name_of('root')} must be a root of {len(mean)} coefficients")
    return mean, root


def _with_loss(posterior: Any) -> dict[str, Any]:
    if np.any(posterior.offset(np.ones((1, len(posterior.mean))))):
        raise ValueError("posterior cannot be stored with an offset")
    return {**_gaussian(posterior), "loss": losses.as_plain(posterior.loss)}


def _loss_kind(kind: Any) -> Kind:
    """Return how posteriors under a loss of the linear predictor are written and read."""

    def read(record: Record) -> Any:
        mean, root = _mean_and_root(record)
        return kind(mean, root, as_inputs, losses.from_plain(record.record("loss")), _no_offset)

    return Kind(kind, _with_loss, read)


def _no_offset(inputs: Array) -> Array:
    return np.zeros(len(inputs))


def _square(record: Record, field: str) -> Any:
    """Return a square matrix, or the diagonal of one."""
    found = record.array(field, (1, 2))
    if found.ndim == 2 and found.shape[0] != found.shape[1]:
        raise ValueError(f"{record.name_of(field)} must be square, got shape {found.shape}")
    return found


def _low_rank(record: Record) -> LowRankRoot:
    outer = _square(record, "outer")
    shrinkage = record.array("shrinkage", 1)
    directions = record.array("directions", 2, (len(outer), len(shrinkage)))
    return LowRankRoot(outer, directions, shrinkage)


def _hierarchical(each: HierarchicalPosterior) -> dict[str, Any]:
    parts = {name: getattr(each.parts, name) for name in Parts.__dataclass_fields__}
    known = bool(np.isinf(each.parts.dof[0]))
    if known:  # JSON cannot store infinity
        del parts["dof"]
    return {
        "centre": each.centre,
        "directions": each.directions,
        "intercept": each.intercept,
        "known_noise": known,
        "parts": parts,
    }


def _hierarchical_of(record: Record) -> HierarchicalPosterior:
    centre, parts = record.array("centre", 1), record.record("parts")
    directions = record.array("directions", (1, 2))  # an empty list if there are no directions
    directions = directions.reshape(len(centre), -1)
    weights = parts.array("weights", 1, positive=True)
    k, r = len(weights), directions.shape[1]
    if not np.isclose(weights.sum(), 1.0, atol=1e-6):
        raise ValueError(f"{parts.name_of('weights')} must have the sum 1, got {weights.sum():g}")

    def each(name: str, positive: bool = True) -> Any:
        return parts.array(name, 1, (k,), positive)

    def along(name: str, positive: bool = False) -> Any:
        found = parts.array(name, 2, (k, r) if r else (k, None), positive)
        return found.reshape(k, r)

    known = record.truth("known_noise")
    intercept = record.truth("intercept")
    return HierarchicalPosterior(
        centre,
        directions,
        Parts(
            weights,
            np.full(k, np.inf) if known else each("dof"),
            each("noise"),
            each("scale"),
            along("left", positive=True),
            along("mean"),
            each("level", positive=False),
            each("level_variance", positive=intercept),
        ),
        intercept,
        as_inputs,
    )


def _mixture_of(record: Record, kind: type[MixturePosterior]) -> MixturePosterior:
    weights = record.array("weights", 1, positive=True)
    parts = [from_plain(each) for each in record.records("parts")]
    if len(parts) != len(weights) or len({type(part) for part in parts}) != 1:
        raise ValueError(f"{record.name_of('parts')} must be {len(weights)} of one kind")
    if not np.isclose(weights.sum(), 1.0, atol=1e-6):
        raise ValueError(f"{record.name_of('weights')} must have the sum 1, got {weights.sum():g}")
    return kind(weights, tuple(parts))


def _softmax(each: SoftmaxPosterior) -> dict[str, Any]:
    law = each.law
    basis = {} if law.basis is None else {"basis": law.basis}
    return {"mean": law.mean, "root": law.root, "prior_root": law.prior.root, **basis}


def _softmax_of(record: Record) -> SoftmaxPosterior:
    mean, prior = record.array("mean", 2), _square(record, "prior_root")
    size, d = mean.size, len(prior)
    inner = record.array("root", 2, (size, size))
    basis = record.array("basis", 2, (d, mean.shape[1])) if record.has("basis") else None
    if basis is None and mean.shape[1] != d:
        raise ValueError(f"{record.name_of('mean')} must have {d} columns, got {mean.shape[1]}")
    law = ContrastLaw(mean, inner, GaussianPrior(np.zeros(d), prior), basis)
    with np.errstate(all="ignore"):  # overflow is refused later, as a forecast that is not finite
        coefficients, root = law.coefficients.ravel(), law.covariance_root()
    return SoftmaxPosterior(coefficients, root, as_inputs, law)


def _written_parts(each: MixturePosterior) -> dict[str, Any]:
    return {"weights": each.weights, "parts": [as_plain(part) for part in each.parts]}


KINDS: dict[str, Kind] = {
    "softmax": Kind(SoftmaxPosterior, _softmax, _softmax_of),
    "softmax mixture": Kind(
        SoftmaxMixture, _written_parts, lambda record: _mixture_of(record, SoftmaxMixture)
    ),
    "hierarchical": Kind(HierarchicalPosterior, _hierarchical, _hierarchical_of),
    "mixture": Kind(
        MixturePosterior, _written_parts, lambda record: _mixture_of(record, MixturePosterior)
    ),
    "root": Kind(
        CovarianceRoot,
        lambda root: {"outer": root.outer},
        lambda record: CovarianceRoot(_square(record, "outer")),
    ),
    "low-rank root": Kind(
        LowRankRoot,
        lambda root: {
            "outer": root.outer,
            "directions": root.directions,
            "shrinkage": root.shrinkage,
        },
        _low_rank,
    ),
    "gaussian regression": Kind(
        GaussianRegressionPosterior,
        lambda each: {**_gaussian(each), "noise_variance": each.noise_variance},
        lambda record: GaussianRegressionPosterior(
            *_mean_and_root(record), as_inputs, record.number("noise_variance", positive=True)
        ),
    ),
    "predictor": _loss_kind(PredictorPosterior),
    "classes": _loss_kind(ClassPosterior),
    "responses": _loss_kind(ResponsePosterior),
    "logistic": Kind(
        LogisticPosterior,
        _gaussian,
        lambda record: LogisticPosterior(*_mean_and_root(record), as_inputs),
    ),
    "normal inverse gamma": Kind(
        NormalInverseGammaPosterior,
        lambda each: {**_gaussian(each), "a": each.a, "b": each.b},
        lambda record: NormalInverseGammaPosterior(
            *_mean_and_root(record),
            record.number("a", positive=True),
            record.number("b", positive=True),
            as_inputs,
        ),
    ),
}
