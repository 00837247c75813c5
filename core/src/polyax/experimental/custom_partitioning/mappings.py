"""What users say of an operation's dimensions: names of factors for each of them, as in einsum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

BATCHING = "…"
"""Stands for leading dimensions, of any number."""


class CompoundFactor(tuple[str, ...]):
    """The factors of one dimension that several make up, outermost first.

    >>> CompoundFactor("b", "c")
    ('b', 'c')
    """

    def __new__(cls, *factors: Any) -> CompoundFactor:
        if len(factors) < 2:
            raise ValueError("A compound factor should contain at least two factors")
        for factor in factors:
            if not isinstance(factor, str):
                raise ValueError(f"Each element of CompoundFactor must be a str, but got {type(factor)}")
            if is_batching(factor):
                raise ValueError("Ellipsis can't be used in a compound factor")
            _check_name(factor)
        return tuple.__new__(cls, factors)


class ArrayMapping(tuple[Any, ...]):
    """The factors of each dimension of an operand or result; ``BATCHING`` may be the first.

    >>> ArrayMapping(BATCHING, CompoundFactor("b", "c"), "d")
    ('…', ('b', 'c'), 'd')
    """

    def __new__(cls, *dim_mappings: Any) -> ArrayMapping:
        for n, dim in enumerate(dim_mappings):
            if not isinstance(dim, (str, CompoundFactor)):
                raise ValueError(f"Each element of ArrayMapping must be a str or CompoundFactor, but got {type(dim)}")
            if isinstance(dim, str) and not is_batching(dim):
                _check_name(dim)
            elif isinstance(dim, str) and n:
                raise ValueError("Ellipsis can only be used at the beginning of a dimension")
        return tuple.__new__(cls, dim_mappings)


class SdyShardingRule:
    """How the dimensions of operands and results belong together.

    Args:
      operand_mappings, result_mappings: an ``ArrayMapping`` for each.
      reduction_factors: those that are summed up: what ``partition`` computes on blocks puts the parts together.
      need_replication_factors: those that nobody may cut.
      permutation_factors: those along which blocks would have to be exchanged; nobody cuts them here.
      factor_sizes: of those that stand in compound factors alone.

    Raises:
      ValueError: a factor isn't used, has no size or two, or is in several of the sets.

    >>> print(SdyShardingRule((ArrayMapping("i", "j"),), (ArrayMapping("i"),), reduction_factors=("j",)))
    SdyShardingRule((('i', 'j'),), (('i',),), {} reduction_factors=('j',))
    """

    def __init__(
        self,
        operand_mappings: tuple[ArrayMapping, ...],
        result_mappings: tuple[ArrayMapping, ...],
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ) -> None:
        self.operand_mappings = operand_mappings
        self.result_mappings = result_mappings
        self.factor_sizes = factor_sizes
        self.reduction_factors = reduction_factors
        self.need_replication_factors = need_replication_factors
        self.permutation_factors = permutation_factors
        used = _used((*operand_mappings, *result_mappings))
        _check_sizes(used, factor_sizes)
        _check_sets(used, self._sets)

    @property
    def _sets(self) -> dict[str, tuple[str, ...]]:
        names = "reduction_factors", "need_replication_factors", "permutation_factors"
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        sets = "".join(f" {name}={found}" for name, found in self._sets.items() if len(found))
        return f"SdyShardingRule({self.operand_mappings}, {self.result_mappings}, {self.factor_sizes}{sets})"


def is_batching(factor: str) -> bool:
    """Whether it stands for leading dimensions: ``…``, or ``…`` with a number, which tells groups apart."""
    return factor[:1] == BATCHING and (len(factor) == 1 or factor[1:].isdigit())


def _check_name(factor: str) -> None:
    if not factor[:1].isalpha():
        raise ValueError(f"Factor names have to start with a letter, but got '{factor[:1]}'")
    for char in factor[1:]:
        if char != "_" and not char.isdigit() and not char.isalpha():
            raise ValueError(f"Unknown character '{char}'")


def _used(mappings: Sequence[ArrayMapping]) -> dict[str, bool]:
    """The factors, and of each whether it is all of some dimension, which tells its size."""
    found: dict[str, bool] = {}
    for dim in [dim for mapping in mappings for dim in mapping]:
        if isinstance(dim, str):
            found[dim] = True
        else:
            for factor in dim:
                found.setdefault(factor, False)
    return found


def _check_sizes(used: dict[str, bool], sizes: dict[str, int]) -> None:
    for factor in sizes:
        if factor not in used:
            raise ValueError(f"Factor {factor} is not used in the rule, but size is provided")
    for factor, whole in used.items():
        if factor not in sizes and not whole:
            raise ValueError(f"Factor {factor} is only used in compound factors; must specify its size")
        if factor in sizes and whole:
            raise ValueError(f"Factor {factor} represents a whole dimension; do not specify its size")


def _check_sets(used: dict[str, bool], sets: dict[str, Any]) -> None:
    seen: set[str] = set()
    for kind, found in sets.items():
        if not isinstance(found, tuple):
            raise ValueError(f"{kind} must be a tuple of factors")
        if len(found) != len(set(found)):
            raise ValueError(f"{kind} contains duplicated factors")
        for factor in found:
            if factor not in used:
                raise ValueError(f"Factor {factor} in {kind} is not used in the rule")
            if factor in seen:
                raise ValueError(
                    f"Factor {factor} can only be in one of the reduction, need replication, or permutation factor "
                    "sets."
                )
            seen.add(factor)
