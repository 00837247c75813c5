"""Primitives that do the same to both parts of complex numbers, and those that multiply them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from polyax.ir.dtypes import real_part
from polyax.ir.jaxpr import Eqn
from polyax.ops.basis import add, sub
from polyax_kernels.lower.complexes.pair import Pair

_EACH = (
    "add add_any all_gather all_to_all broadcast_in_dim concatenate copy cumsum dynamic_slice name neg pad ppermute "
    "psum pvary reduce_precision reduce_scatter reduce_sum reduce_window_sum reshape rev select_and_scatter_add "
    "select_n slice split squeeze stop_gradient sub transpose"
)
EACH = frozenset(_EACH.split())
"""Names of primitives that are linear over the reals, or move elements."""
ON_WORDS = frozenset(("add", "add_any", "copy", "cumsum", "neg", "reduce_sum", "stop_gradient", "sub"))
"""Those of them that do the same to words, whose last dimension they leave alone."""
WIDER: dict[str, Callable[[Mapping[str, Any], int], dict[str, Any]]] = {
    "broadcast_in_dim": lambda p, _: {
        "shape": (*p["shape"], 2),
        "broadcast_dimensions": (*p["broadcast_dimensions"], len(p["shape"])),
    },
    "reshape": lambda p, _: {"new_sizes": (*p["new_sizes"], 2)},
    "slice": lambda p, _: {
        "start_indices": (*p["start_indices"], 0),
        "limit_indices": (*p["limit_indices"], 2),
        "strides": p["strides"] and (*p["strides"], 1),
    },
    **dict.fromkeys(("concatenate", "rev", "split", "squeeze"), lambda *_: {}),
}
"""Those that move words, and what else their parameters say then. Products would take transposes of words for their own
(``passes/transposes.py``), whose operands lack the last dimension."""
DOUBLE = 8
"""Bytes of a part of which two fill no word."""
PRODUCTS = ("dot_general", "conv_general_dilated")


def of_each_part(eqn: Eqn, args: Sequence[Any]) -> list[Any]:
    """The primitive, applied to the real parts and to the imaginary ones; what isn't complex goes to both."""
    of_one_rank = len({len(a.aval.shape) for a in eqn.invars}) == 1  # words of a scalar don't align with others
    if eqn.primitive.name in ON_WORDS and of_one_rank and all(isinstance(x, Pair) and x.is_stored for x in args):
        return [Pair(words=x) for x in eqn.apply([x.words for x in args])]
    if _moves_words(eqn, args):
        return _moved(eqn, args)
    return [Pair(parts) for parts in _parts(eqn, args)]


def _parts(eqn: Eqn, args: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Those of each result."""
    both = [eqn.apply([x.parts[n] if isinstance(x, Pair) else x for x in args]) for n in (0, 1)]
    return list(zip(*both, strict=True))


def _moved(eqn: Eqn, args: Sequence[Any]) -> list[Pair]:
    """What arithmetic reads is moved as parts, where it is read, and what is stored as words."""
    more = WIDER[eqn.primitive.name](eqn.params, len(args[0].shape))
    parts = cache(lambda: _parts(eqn, args))
    words = cache(lambda: eqn.replace(params={**eqn.params, **more}).apply([x.words for x in args]))
    return [Pair(later=(partial(_nth, parts, n), partial(_nth, words, n))) for n in range(len(eqn.outvars))]


def _nth(made: Callable[[], Sequence[Any]], n: int) -> Any:
    return made()[n]


def _moves_words(eqn: Eqn, args: Sequence[Any]) -> bool:
    """Those of 64 bits a kernel moves whole in any case (``passes/words.py``)."""
    doubles = eqn.invars[0].aval.dtype.itemsize == 2 * DOUBLE
    return doubles and eqn.primitive.name in WIDER and all(x.is_whole for x in args)


def gathered(eqn: Eqn, args: Sequence[Any]) -> list[Any]:
    """A gather of each part, which fills in that part of the fill value."""
    fill = eqn.params["fill_value"]
    fills = (None, None) if fill is None else (complex(fill).real, complex(fill).imag)
    x, indices = args
    made = (
        eqn.replace(params={**eqn.params, "fill_value": value}).apply([part, indices])[0]
        for value, part in zip(fills, x.parts, strict=True)
    )
    return [Pair(tuple(made))]


def product(eqn: Eqn, args: Sequence[Any]) -> list[Any]:
    """A product of arrays: that of each part of one with each part of the other."""
    params = _on_parts(eqn.params)

    def times(x: Any, y: Any) -> Any:
        return eqn.replace(params=params).apply([x, y])[0]

    x, y = args
    if not isinstance(x, Pair):
        return [Pair((times(x, y.parts[0]), times(x, y.parts[1])))]
    if not isinstance(y, Pair):
        return [Pair((times(x.parts[0], y), times(x.parts[1], y)))]
    (a, b), (c, d) = x.parts, y.parts
    return [Pair((sub(times(a, c), times(b, d)), add(times(a, d), times(b, c))))]


def _on_parts(params: Mapping[str, Any]) -> dict[str, Any]:
    wanted = params.get("preferred_element_type")
    return dict(params) if wanted is None else {**params, "preferred_element_type": real_part(wanted)}


RULES: dict[str, Callable[[Eqn, Sequence[Any]], list[Any]]] = {
    **dict.fromkeys(EACH, of_each_part),
    **dict.fromkeys(PRODUCTS, product),
    "gather": gathered,
}
