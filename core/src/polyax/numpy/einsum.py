"""Sums of products in Einstein's notation: pairs of operands are contracted by ``dot_general``, one after another."""

from __future__ import annotations

import itertools
import string
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyax import lax
from polyax.meshes.resharding import with_out_sharding
from polyax.numpy.promotion import canonical_dtype, convert, of_one_dtype, shape_of

__all__ = ["einsum", "einsum_path"]


@with_out_sharding
def einsum(
    subscripts: Any, /, *operands: Any, out: None = None, optimize: Any = "auto", precision: Any = None,
    preferred_element_type: Any = None, _dot_general: Callable[..., Any] | None = None, out_sharding: Any = None,
) -> Any:  # fmt: skip
    """The sum of products that ``subscripts`` says, such as ``'ij,jk->ik'`` for a matrix product.

    Args:
      subscripts: letters for the axes of each operand and of the result; ``...`` stands for further axes, which
        broadcast. Or operands and lists of axis numbers in turn.
      optimize: order of contraction; False is from left to right.

    Raises:
      ValueError: the subscripts don't fit the operands.

    >>> import polyax.numpy as jnp
    >>> jnp.einsum('ij,j->i', jnp.eye(2), jnp.array([3.0, 4.0])).tolist()
    [3.0, 4.0]
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.einsum is not supported.")
    subscripts, operands = _as_text(subscripts, operands)
    arrays = of_one_dtype("einsum", *operands)
    inputs, output = _parse(subscripts, [x.ndim for x in arrays])
    _check_sizes(inputs, arrays)
    preferred = None if preferred_element_type is None else canonical_dtype(preferred_element_type)
    multiply = _dot_general or lax.dot_general
    result = _contract(inputs, output, arrays, _order(inputs, output, arrays, optimize), multiply, precision, preferred)
    return result if preferred is None else convert(result, preferred)


def einsum_path(subscripts: Any, /, *operands: Any, optimize: Any = "auto") -> Any:
    """The order of contraction that NumPy finds, as pairs of operands, and a text that describes it."""
    subscripts, operands = _as_text(subscripts, operands)
    stand_ins = [np.broadcast_to(np.float32(0), shape_of(x)) for x in operands]
    path, text = np.einsum_path(subscripts, *stand_ins, optimize="greedy" if optimize == "auto" else optimize)
    return path[1:], text


# --- subscripts -------------------------------------------------------------------------------------------------------


def _as_text(subscripts: Any, operands: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """The form with letters; the other one gives operands and lists of numbers in turn."""
    if isinstance(subscripts, str):
        return subscripts, tuple(operands)
    flat = [subscripts, *operands]
    output = flat.pop() if len(flat) % 2 else None
    arrays, axes = flat[::2], flat[1::2]
    text = ",".join(map(_letters, axes))
    return (text if output is None else f"{text}->{_letters(output)}"), tuple(arrays)


def _letters(axes: Sequence[Any]) -> str:
    return "".join("..." if a is Ellipsis else string.ascii_letters[a] for a in axes)


def _parse(subscripts: str, ranks: list[int]) -> tuple[list[str], str]:
    """Letters of each operand and of the result, with letters of their own instead of ellipses."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"einsum {subscripts!r} has {len(terms)} terms for {len(ranks)} operands")
    spare = [c for c in string.ascii_letters if c not in text]
    hidden = [rank - len(t.replace("...", "")) if "..." in t else 0 for t, rank in zip(terms, ranks, strict=True)]
    ellipsis = "".join(spare[: max(hidden, default=0)])
    inputs = [t.replace("...", ellipsis[len(ellipsis) - h :] if h else "") for t, h in zip(terms, hidden, strict=True)]
    for term, rank in zip(inputs, ranks, strict=True):
        if len(term) != rank:
            raise ValueError(f"einsum {subscripts!r}: the term {term!r} names {len(term)} axes of an array with {rank}")
    output = right.replace("...", ellipsis) if arrow else ellipsis + _implied("".join(terms).replace("...", ""))
    unknown = set(output) - set("".join(inputs))
    if unknown or len(set(output)) != len(output):
        raise ValueError(f"einsum {subscripts!r}: the result's axes {output!r} must occur in the operands, once each")
    return inputs, output


def _implied(letters: str) -> str:
    return "".join(sorted(c for c, n in Counter(letters).items() if n == 1))


def _check_sizes(inputs: list[str], arrays: list[Any]) -> None:
    sizes: dict[str, int] = {}
    for term, x in zip(inputs, arrays, strict=True):
        for letter, n in zip(term, x.shape, strict=True):
            if sizes.setdefault(letter, n) != n and 1 not in (n, sizes[letter]):
                raise ValueError(
                    f"Size of label '{letter}' for operand {term!r} ({n}) does not match previous terms "
                    f"({sizes[letter]})."
                )
            sizes[letter] = max(sizes[letter], n)


# --- contraction ------------------------------------------------------------------------------------------------------


def _order(inputs: list[str], output: str, arrays: list[Any], optimize: Any) -> list[tuple[int, ...]]:
    if isinstance(optimize, (list, tuple)):
        return [tuple(p) for p in optimize if not isinstance(p, str)]
    if len(arrays) <= 2 or optimize is False:
        return [(0, 1)] * (len(arrays) - 1)
    stand_ins = [np.broadcast_to(np.float32(0), x.shape) for x in arrays]
    how = "optimal" if optimize == "optimal" else "greedy"
    return [tuple(p) for p in np.einsum_path(f"{','.join(inputs)}->{output}", *stand_ins, optimize=how)[0][1:]]


def _contract(
    inputs: list[str],
    output: str,
    arrays: list[Any],
    order: list[tuple[int, ...]],
    multiply: Any,
    precision: Any,
    preferred: Any,
) -> Any:
    terms = list(zip(inputs, arrays, strict=True))
    for pair in order:
        taken = [terms.pop(i) for i in sorted(pair, reverse=True)][::-1]
        elsewhere = set(output).union(*(set(t) for t, _ in terms))
        while len(taken) > 1:
            keep = elsewhere.union(*(set(t) for t, _ in taken[2:]))
            taken[:2] = [_pair(taken[0], taken[1], keep, multiply, precision, preferred)]
        terms.append(taken[0])
    ((term, result),) = terms
    term, result = _simplified(term, result, set(output))
    return lax.transpose(result, [term.index(c) for c in output])


def _simplified(term: str, x: Any, keep: set[str]) -> tuple[str, Any]:
    """Repeated letters become diagonals, letters that nobody needs are summed over."""
    for letter in [c for c, n in Counter(term).items() if n > 1]:
        while term.count(letter) > 1:
            term, x = _diagonal(term, x, letter)
    summed = [i for i, c in enumerate(term) if c not in keep]
    if summed:
        x = lax.reduce_sum(x, summed)
    return "".join(c for c in term if c in keep), x


def _diagonal(term: str, x: Any, letter: str) -> tuple[str, Any]:
    i, j = [k for k, c in enumerate(term) if c == letter][:2]
    mask = lax.eq(lax.broadcasted_iota(np.int32, x.shape, i), lax.broadcasted_iota(np.int32, x.shape, j))
    kept = lax.select(mask, x, lax.full_like(x, 0))
    return term[:j] + term[j + 1 :], lax.reduce_sum(kept, (j,))


def _pair(
    a: tuple[str, Any], b: tuple[str, Any], keep: set[str], multiply: Any, precision: Any, preferred: Any
) -> tuple[str, Any]:
    (s, x), (t, y) = _simplified(*a, keep | set(b[0])), _simplified(*b, keep | set(a[0]))
    (s, x), (t, y) = _without_stretched(s, x, t, y), _without_stretched(t, y, s, x)
    batch = [c for c in s if c in t and c in keep]
    contracted = [c for c in s if c in t and c not in keep]
    numbers = (
        (tuple(s.index(c) for c in contracted), tuple(t.index(c) for c in contracted)),
        (tuple(s.index(c) for c in batch), tuple(t.index(c) for c in batch)),
    )
    product = multiply(x, y, numbers, precision=precision, preferred_element_type=preferred)
    rest = (c for c in itertools.chain(s, t) if c not in batch and c not in contracted)
    return "".join(batch) + "".join(rest), product


def _without_stretched(term: str, x: Any, other: str, y: Any) -> tuple[str, Any]:
    """Axes of size one that the other operand has with a larger size are dropped: the product has them anyway."""
    drop = [i for i, c in enumerate(term) if x.shape[i] == 1 and c in other and y.shape[other.index(c)] != 1]
    if not drop:
        return term, x
    return "".join(c for i, c in enumerate(term) if i not in drop), lax.squeeze(x, drop)
