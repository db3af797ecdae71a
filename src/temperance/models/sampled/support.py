r"""The range of betas that recorded draws support, and leave-one-out losses at nodes in it.

A search from the draws' own beta, in both directions and in even steps of t, ends before the first
node with unreliable weights, close to where that begins.  The bounds only stop the search early.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from temperance.data import Risk
from temperance.models.sampled.recorded import RecordedDraws, ReweightedDraws, RowLosses

STEP = 0.125  # of t, between nodes
HALVINGS = 6  # of the last step
FARTHEST = 14.0  # largest t: a beta about a million units away


class Node(NamedTuple):
    """Estimates at one beta: t, the weights for all rows, the rows' losses."""

    t: float
    beta: float
    drawn: ReweightedDraws
    rows: RowLosses
    unreliable: int


Evaluate = Callable[[float], Node | None]


def supported_nodes(recorded: RecordedDraws, bounds: tuple[float, float], risk: Risk) -> list[Node]:
    """Return nodes from the lower end of the supported range to the upper, or past the bounds.

    A beta is supported if the weights of all rows together are reliable, and no more rows than at
    the draws' own beta have too large a k or too small an effective size.
    """
    origin = node_at(recorded, recorded.beta_of_draws, risk)

    def evaluate(t: float) -> Node | None:
        beta = float(recorded.beta(t))
        if not recorded.supports(beta):
            return None
        node = node_at(recorded, beta, risk)._replace(t=t)
        return node if node.unreliable <= origin.unreliable else None

    lower, upper = (float(recorded.place(end)) for end in bounds)
    down = _search(evaluate, origin, lower, max(float(recorded.place(0.0)), -FARTHEST))
    up = _search(evaluate, origin, upper, FARTHEST)
    return [*reversed(down), origin, *up]


def node_at(recorded: RecordedDraws, beta: float, risk: Risk) -> Node:
    """Return the estimates at one beta."""
    rows = recorded.leave_one_out(beta, risk)
    unreliable = int(recorded.unreliable(rows).sum())
    return Node(float(recorded.place(beta)), beta, recorded.at(beta), rows, unreliable)


def _search(evaluate: Evaluate, origin: Node, target: float, end: float) -> list[Node]:
    """Return nodes from the origin towards ``end`` until ``target`` is passed or support ends."""
    sign = 1.0 if end > 0 else -1.0
    nodes = [origin]
    step = 1
    while sign * nodes[-1].t < min(sign * target, sign * end):
        t = sign * min(step * STEP, sign * end)
        node = evaluate(t)
        if node is None:
            last = _last_good(evaluate, nodes[-1].t, t)
            if last is not None:
                # Nodes that are very close would turn Monte Carlo errors into large slopes.
                close = len(nodes) > 1 and abs(last.t - nodes[-1].t) < STEP / 4
                nodes[len(nodes) - close :] = [last]
            break
        nodes.append(node)
        step += 1
    return nodes[1:]


def _last_good(evaluate: Evaluate, good: float, bad: float) -> Node | None:
    """Return the last supported node, by bisection between a supported and an unsupported t."""
    last = None
    for _ in range(HALVINGS):
        middle = 0.5 * (good + bad)
        node = evaluate(middle)
        if node is None:
            bad = middle
        else:
            good, last = middle, node
    return last
