"""Choosing how the work of an equation is shared among devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from polyax.meshes.spec import Cuts
from polyax.partition.shares import Rule, Shares, Sizes

POINT = 0.125
"""What it costs to compute one point of an equation, in bytes sent."""
FREE = 100_000
"""So many points of a program cost nothing."""
ALONE = 4
"""How many operands, the largest, are asked what they suggest alone."""


def choose(rule: Rule, homes: Sequence[Cuts], moved: Callable[[Shares], int], sizes: Sizes) -> tuple[Shares, float]:
    """The shares that cost least, and what that is.

    Args:
      homes: how operands are cut, and how results are wanted.
      moved: the bytes that devices send for given shares.
    """
    best: Shares = {}
    least = float("inf")
    for shares in _candidates(rule, homes, sizes):
        nbytes = moved(shares)
        cost = nbytes + POINT * rule.points(shares, sizes)
        if cost < least:
            best, least = shares, cost
        if not nbytes:  # all agree already, or nothing is cut
            break
    return best, least


def _candidates(rule: Rule, homes: Sequence[Cuts], sizes: Sizes) -> Iterator[Shares]:
    """What all suggest together, the largest first or the results first; what some suggest alone; to cut nothing."""
    given = [(n, homes[n]) for n in rule.by_size if any(homes[n])]
    if not given:
        yield {}
        return
    seen: list[Shares] = []
    results_first = sorted(given, key=lambda pair: pair[0] < rule.num_ins)
    firsts = [[pair, *(p for p in given if p is not pair)] for pair in given[:ALONE]]
    for order in (given, results_first, *firsts, *([pair] for pair in given[:ALONE]), []):
        shares = rule.share(order, sizes)
        if shares not in seen:
            seen.append(shares)
            yield shares
