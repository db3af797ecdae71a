r"""Calibrations on Dask's arrays and data frames: the rows stay on the workers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any

import numpy as np

from temperance.calibration import Calibration
from temperance.checks import shown, whole
from temperance.data import Risk
from temperance.streaming.calibrate import as_strategy, calibrate_partitions
from temperance.streaming.linear import Linear, folds_of, source_of
from temperance.streaming.mode_sums import LaplaceModel
from temperance.streaming.partitions import TOGETHER, Folded, S, Statistic, merge_group


def calibrate_dask(
    model: Linear | LaplaceModel,
    X: Any,
    y: Any,
    weights: Any = None,
    n_folds: int = 10,
    seed: int = 0,
    client: Any = None,
    *,
    strategy: Any = None,
    bounds: tuple[float, float] = (0.0, 3.0),
    risk: Risk = "predictive",
) -> Calibration:
    r"""Choose beta, or weights over beta, from the partitions of Dask's arrays or data frames.

    Each partition is reduced to statistics of O(d^2) numbers, and to losses of sampled rows, where
    it lies; these are merged in groups of eight.  The result equals that of
    ``calibrate_blocks(..., folds="blocks")`` on the same partitions, to the last digit.

    Parameters
    ----------
    X, y, weights : Dask arrays, data frames or series
        With the same partitions of the rows, of any lengths; partitions may be empty.  Arrays of
        known lengths are cut like X.
    n_folds : int
        Number of folds where there is no strategy and rows are held out in folds.
    seed : int
        Seed of the folds.  Each partition draws its own, from ``default_rng([seed, partition])``.
    client : distributed.Client, optional
        By default the current client, or Dask's own scheduler in threads of this process.
    model, strategy, bounds, risk
        As for :func:`calibrate_blocks`.

    Returns
    -------
    Calibration
        As :func:`calibrate_blocks`; nothing in it refers to the cluster.

    Examples
    --------
    >>> import dask.array as da
    >>> from temperance import models
    >>> from temperance.streaming import calibrate_dask
    >>> rng = da.random.default_rng(1)
    >>> X = rng.standard_normal((1000, 20), chunks=(300, 20))
    >>> y = X[:, 0] + 30 * rng.standard_normal(1000, chunks=300)
    >>> calibrate_dask(models.GaussianLinear(), X, y).gain > 0
    True
    """
    if client is not None and not callable(getattr(client, "compute", None)):
        raise ValueError(f"client must be a distributed.Client or None, got {shown(client)}")
    partitions = DaskPartitions(_partitions(_dask(), X, y, weights), client)
    chosen = as_strategy(strategy, model, risk, bounds, n_folds)
    folded = Folded(folds_of(source_of(chosen)) or 1, whole("seed", seed, 0))
    return calibrate_partitions(model, partitions, chosen, folded, bounds=bounds, risk=risk)


@dataclass(frozen=True, eq=False)
class DaskPartitions:
    """Delayed partitions (X, y) or (X, y, weights), and the client that computes them."""

    parts: Sequence[tuple[Any, ...]]
    client: Any = None

    def total(self, statistic: Statistic[S]) -> S:
        """Return the statistic of all rows, in one pass."""
        dask = _dask()
        shared = dask.delayed(statistic, pure=False)  # sent once, not with every task
        apply, merge = dask.delayed(_applied, pure=False), dask.delayed(merge_group, pure=False)
        level = [apply(shared, number, *part) for number, part in enumerate(self.parts)]
        while len(level) > 1:
            groups = [level[i : i + TOGETHER] for i in range(0, len(level), TOGETHER)]
            level = [merge(group) if len(group) > 1 else group[0] for group in groups]
        try:
            if self.client is None:
                return dask.compute(level[0])[0]
            return self.client.compute(level[0]).result()
        except _lost() as error:
            reason = " ".join(str(error).split())[:200]
            raise RuntimeError(
                "client must stay connected until the calibration ends, got "
                f"{type(error).__name__} ({reason}); nothing was written, call again"
            ) from None


def _applied(statistic: Statistic[S], number: int, *block: Any) -> S:
    return statistic(number, block)


def _lost() -> tuple[type[BaseException], ...]:
    """Return what Dask raises when workers or the scheduler are gone for good."""
    try:
        from distributed import KilledWorker, client
        from distributed.comm import CommClosedError
    except ImportError:
        return (CancelledError,)
    closed = getattr(client, "ClosedClientError", CommClosedError)
    return CancelledError, TimeoutError, CommClosedError, KilledWorker, closed


def _dask() -> Any:
    try:
        import dask
    except ImportError:
        raise ImportError("calibrate_dask needs dask: pip install 'temperance[dask]'") from None
    return dask


def _partitions(dask: Any, X: Any, y: Any, weights: Any) -> list[tuple[Any, ...]]:
    """Return the delayed partitions, after cutting arrays of known lengths like X."""
    named = {"X": X, "y": y} | ({} if weights is None else {"weights": weights})
    parts: list[Any] = []
    for name, value in named.items():
        if not dask.is_dask_collection(value) or not hasattr(value, "to_delayed"):
            raise ValueError(
                f"{name} must be a Dask array, data frame or series, got {shown(type(value))}; use "
                "calibrate or calibrate_blocks for other rows"
            )
        if getattr(value, "ndim", 1) > 2:
            raise ValueError(f"{name} must have one or two dimensions, got shape {value.shape}")
        cuts, own = _lengths(X), _lengths(value)
        if cuts is not None and own is not None and own != cuts:
            if sum(own) != sum(cuts):
                raise ValueError(
                    f"X and {name} must have the same length, got {sum(cuts)} and {sum(own)}"
                )
            value = value.rechunk({0: cuts})
        elif name == "X":
            value = _whole_rows(X)
        parts.append(list(np.ravel(np.asarray(value.to_delayed(), dtype=object))))
        if len(parts[-1]) != len(parts[0]):
            raise ValueError(
                f"{name} must have as many partitions as X if lengths are unknown, got "
                f"{len(parts[-1])} and {len(parts[0])}; compute_chunk_sizes() of an array makes "
                "them known"
            )
    return list(zip(*parts, strict=True))


def _lengths(value: Any) -> tuple[int, ...] | None:
    """Return the rows of each partition; None if they are unknown, as in data frames."""
    cuts = getattr(value, "chunks", [np.nan])[0]
    return None if np.isnan(cuts).any() else cuts


def _whole_rows(X: Any) -> Any:
    """Return X with all columns in each partition."""
    if not hasattr(X, "chunks") or X.ndim < 2 or X.numblocks[1] == 1:
        return X
    from dask.array import PerformanceWarning

    warnings.warn(
        f"X has {X.numblocks[1]} chunks of columns, which are joined for each partition of rows; "
        "X.rechunk({1: -1}) once saves that",
        PerformanceWarning,
        stacklevel=4,
    )
    return X.rechunk({1: -1})
