"""From a user's sharding rule to ``Factors``, for operands and results of given types."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from polyax.experimental.custom_partitioning.mappings import BATCHING, ArrayMapping, SdyShardingRule, is_batching
from polyax.meshes.factors import Factors, factors


def factors_of(rule: SdyShardingRule, ins: Sequence[Any], outs: Sequence[Any]) -> Factors:
    """What ``rule`` says of operands and results of these types.

    Raises:
      ValueError: it is of others.
    """
    for kind, mappings, avals in (("operand", rule.operand_mappings, ins), ("result", rule.result_mappings, outs)):
        if len(mappings) != len(avals):
            raise ValueError(f"Sharding rule has {len(mappings)} {kind}s, but the operation has {len(avals)} {kind}s")
    numbering = _Numbering(rule)
    before = [numbering.dims(m, a, f"{n}th operand") for n, (m, a) in enumerate(zip(rule.operand_mappings, ins))]
    after = [numbering.dims(m, a, f"{n}th result") for n, (m, a) in enumerate(zip(rule.result_mappings, outs))]
    kept = {*rule.need_replication_factors, *rule.permutation_factors}
    whole = [numbering.numbers[f] for f in kept]
    reduced = {numbering.numbers[f]: "sum" for f in rule.reduction_factors}
    sizes = {n: numbering.sizes[f] for f, n in numbering.numbers.items()}
    return factors(before, after, whole=whole, reduced=reduced, sizes=sizes)


class _Numbering:
    """Numbers for the names of factors, and their sizes."""

    def __init__(self, rule: SdyShardingRule) -> None:
        self.numbers: dict[str, int] = {}
        self.sizes: dict[str, int] = dict(rule.factor_sizes)
        self.ranks: dict[str, int] = {}
        """How many dimensions the ellipsis of a group stands for."""

    def dims(self, mapping: ArrayMapping, aval: Any, what: str) -> list[list[int]]:
        return [self._dim(dim, n, what) for dim, n in zip(self._expanded(mapping, aval, what), aval.shape, strict=True)]

    def _expanded(self, mapping: ArrayMapping, aval: Any, what: str) -> list[Any]:
        """With names for the dimensions that an ellipsis stands for, which no user writes."""
        named = list(mapping)
        if named and isinstance(named[0], str) and is_batching(named[0]):
            group = named.pop(0).removeprefix(BATCHING) or "0"
            rank = max(0, aval.ndim - len(named))
            if self.ranks.setdefault(group, rank) != rank:
                raise ValueError(
                    f"Ellipsis represents different number of leading dimensions {self.ranks[group]} and {rank}"
                )
            named = [*(f"{BATCHING}{group}_{d}" for d in range(rank)), *named]
        if len(named) != aval.ndim:
            raise ValueError(
                f"Sharding rule {what} has rank {len(named)}, but the operation {what} has rank {aval.ndim}"
            )
        return named

    def _dim(self, dim: Any, size: int, what: str) -> list[int]:
        if isinstance(dim, str):
            return [self._whole(dim, size)]
        found = math.prod(self.sizes.get(f, 1) for f in dim)
        if found != size:
            raise ValueError(
                f"{what} actual size {size} doesn't match the size {found} derived from the compound factors {dim}"
            )
        return [self._number(f) for f in dim]

    def _whole(self, factor: str, size: int) -> int:
        known = self.sizes.setdefault(factor, size)
        if known != size and factor[0] == BATCHING:
            raise ValueError(f"Batching dimension {factor[1:]} corresponds to two sizes: {known} and {size}")
        self.sizes[factor] = min(known, size)
        return self._number(factor)

    def _number(self, factor: str) -> int:
        return self.numbers.setdefault(factor, len(self.numbers))
