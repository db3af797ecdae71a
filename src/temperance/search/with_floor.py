r"""Minimisation with a floor: a cheap lower bound of the curve.

If the curve equals the floor at the floor's global minimum, that is the minimum of the curve.
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
    """Return the global minimum of a smooth curve, as `minimise` does, with fewer evaluations.

    The floor may be discontinuous where it departs from the curve.
    """
    found = minimise(floor, ruler, search=search)
    at = np.array([found.beta])
    if not found.flat and evaluate(at)[0] <= floor(at)[0]:
        return found
    return minimise(evaluate, ruler, search=search)
