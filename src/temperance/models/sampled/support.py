r"""Which betas recorded draws support, and the leave-one-out losses at nodes among them.

A walk from the draws' own beta, in both directions and in even steps of t, ends before the first
node whose weights cannot be trusted, close to where that begins.  It knows nothing of bounds but
where nobody wants to know more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from temperance.models.sampled.recorded import RecordedDraws, ReweightedDraws, RowLosses
from temperance.types import Risk

STEP = 0.125  # of t, between nodes
HALVINGS = 6  # of the last step
FARTHEST = 14.0  # t of a beta that is a million units away


class Node(NamedTuple):
    """The draws at one beta: its place t, all rows' weights, the rows' losses."""

    t: float
    beta: float
    drawn: ReweightedDraws
    rows: RowLosses
    in_doubt: int


Look = Callable[[float], Node | None]


def supported_nodes(recorded: RecordedDraws, bounds: tuple[float, float], risk: Risk) -> list[Node]:
    """Return nodes that rise from the lower end of the support to the upper, or beyond the bounds.

    A beta is supported where the weights of all rows together can be trusted, and no more rows than
    at the draws' own beta are in doubt: their weights have too large a k or too small an effective
    size.
    """
    origin = node_at(recorded, recorded.beta_of_draws, risk)

    def look(t: float) -> Node | None:
        beta = float(recorded.beta(t))
        if not recorded.supports(beta):
            return None
        node = node_at(recorded, beta, risk)._replace(t=t)
        return node if node.in_doubt <= origin.in_doubt else None

    lower, upper = (float(recorded.place(end)) for end in bounds)
    down = _walk(look, origin, lower, max(float(recorded.place(0.0)), -FARTHEST))
    up = _walk(look, origin, upper, FARTHEST)
    return [*reversed(down), origin, *up]


def node_at(recorded: RecordedDraws, beta: float, risk: Risk) -> Node:
    """Look at the draws at one beta."""
    rows = recorded.leave_one_out(beta, risk)
    in_doubt = int(recorded.in_doubt(rows).sum())
    return Node(float(recorded.place(beta)), beta, recorded.at(beta), rows, in_doubt)


def _walk(look: Look, origin: Node, wanted: float, end: float) -> list[Node]:
    """Walk from the origin towards ``end`` until ``wanted`` is passed or support ends."""
    sign = 1.0 if end > 0 else -1.0
    nodes = [origin]
    step = 1
    while sign * nodes[-1].t < min(sign * wanted, sign * end):
        t = sign * min(step * STEP, sign * end)
        node = look(t)
        if node is None:
            last = _last_good(look, nodes[-1].t, t)
            if last is not None:
                # Nodes that lie close together would turn Monte Carlo error into slopes.
                close = len(nodes) > 1 and abs(last.t - nodes[-1].t) < STEP / 4
                nodes[len(nodes) - close :] = [last]
            break
        nodes.append(node)
        step += 1
    return nodes[1:]


def _last_good(look: Look, good: float, bad: float) -> Node | None:
    """Bisect between a place that is supported and one that is not."""
    last = None
    for _ in range(HALVINGS):
        middle = 0.5 * (good + bad)
        node = look(middle)
        if node is None:
            bad = middle
        else:
            good, last = middle, node
    return last
