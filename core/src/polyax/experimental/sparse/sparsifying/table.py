"""Which primitives know what to do with sparse operands.

A rule takes the operands, some of them ``BCOO`` or ``BCSR`` and others dense, and the parameters, and gives a list.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from polyax.experimental.sparse.base import JAXSparse
from polyax.experimental.sparse.bcoo import BCOO
from polyax.experimental.sparse.bcsr import BCSR
from polyax.extend.core import primitives as p
from polyax.ir.primitive import Primitive
from polyax.lax.special.bessel import bessel_i0e_p

Rule = Callable[..., list[Any]]

sparse_rules_bcoo: dict[Primitive, Rule] = {}
sparse_rules_bcsr: dict[Primitive, Rule] = {}

_DENSIFYING = {
    *(p.acos_p, p.acosh_p, bessel_i0e_p, p.cos_p, p.cosh_p, p.eq_p, p.exp_p),
    *(p.ge_p, p.gt_p, p.le_p, p.lt_p, p.log_p, p.ne_p, p.xor_p),
}


def sparse_rule(*primitives: Primitive, bcsr: bool = False) -> Callable[[Rule], Rule]:
    """Decorator: the rule of primitives for ``BCOO``, and for ``BCSR`` too if it says so."""

    def register(rule: Rule) -> Rule:
        for primitive in primitives:
            sparse_rules_bcoo[primitive] = rule
            if bcsr:
                sparse_rules_bcsr[primitive] = rule
        return rule

    return register


def rule_for(primitive: Primitive, values: list[Any]) -> Rule | None:
    """The rule for these operands; None if all are dense.

    Raises:
      NotImplementedError: there is none.
    """
    kinds = {type(x) for x in values if isinstance(x, JAXSparse)}
    if not kinds:
        return None
    rule = (sparse_rules_bcsr if BCSR in kinds else sparse_rules_bcoo).get(primitive)
    if rule is not None:
        return rule
    if primitive in _DENSIFYING:
        raise NotImplementedError(
            f"sparse rule for {primitive} is not implemented because it would result in dense output. If this is your "
            "intent, use sparse.todense() to convert your arguments to dense matrices."
        )
    raise NotImplementedError(f"sparse rule for {primitive} is not implemented.")


# --- values -----------------------------------------------------------------------------------------------------------


def is_sparse(x: Any) -> bool:
    """Whether ``x`` is what rules know."""
    return isinstance(x, (BCOO, BCSR))


def marked(x: Any) -> Any:
    """A sparse array that is known by itself: those made of it have its indices."""
    if not is_sparse(x):
        return x
    new = copy.copy(x)
    new._places = object()
    return new


def same_places(x: Any, y: Any) -> bool:
    """Whether both come from one array, and their indices are its own."""
    mark = getattr(x, "_places", None)
    return mark is not None and mark is getattr(y, "_places", None)


def with_data(x: Any, data: Any) -> Any:
    """``x`` with other data at the same indices."""
    new = type(x)((data, *x._bufs[1:]), **x._info._asdict())
    new._places = getattr(x, "_places", None)
    return new


def without_promises(x: Any) -> Any:
    """``x`` with nothing said of its indices, so that it is of the same type whatever it came from."""
    return type(x)(x._bufs, shape=x.shape) if is_sparse(x) else x


def sparse_among(values: Any) -> Iterator[Any]:
    return (x for x in values if is_sparse(x))
