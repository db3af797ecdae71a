r"""Scores and curvature of any loss of a linear predictor."""

from __future__ import annotations

import numpy as np

from temperance.losses.base import Loss
from temperance.models.information import linear_predictor_information
from temperance.types import Array, Information


def loss_information(
    loss: Loss, Z: Array, offset: Array, y: Array, weights: Array, prior_root: Array
) -> Information:
    """Return the information of a smooth loss of u = offset + z'theta."""
    if not loss.smooth:
        raise ValueError(
            f"rates by information need a smooth loss, got the {loss.name}; use Coverage()"
        )
    centre, curvature = loss.typical(y, offset)

    def derivatives(u: Array) -> tuple[Array, Array]:
        first, second, _ = loss.derivatives(offset + u, y)
        return first, second

    return linear_predictor_information(
        Z,
        weights,
        lambda u: loss.value(offset + u, y),
        derivatives,
        prior_root,
        np.broadcast_to(centre - offset, y.shape),
    )
