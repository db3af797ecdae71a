r"""Minimisation above a floor: a curve that costs less and is nowhere higher.

Where the curve touches its floor's global minimum, that is its own.
"""

from __future__ import annotations

import numpy as np

from temperance.search.log_scale import Ruler
from temperance.search.minimise import THOROUGH, Evaluate, Minimum, Search, minimise


def minimise_above_floor(
    evaluate: Evaluate,
    floor: Evaluate,
    ruler: Ruler,
    search: Search = THOROUGH,
) -> Minimum:
    """Find the global minimum of a smooth curve, as `minimise` does, with fewer of its points.

    The floor may jump where it leaves the curve.
    """
    found = minimise(floor, ruler, search=search)
    at = np.array([found.beta])
    if not found.flat and evaluate(at)[0] <= floor(at)[0]:
        return found
    return minimise(evaluate, ruler, search=search)
