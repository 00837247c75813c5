"""Sums of products in Einstein's notation: pairs of operands are contracted by ``dot_general``, one after another."""

from __future__ import annotations

import itertools
import operator
import string
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from polyax.ir import dtypes
from polyax.lax import lenient as lax
from polyax.meshes.resharding import with_out_sharding
from polyax.numpy.contraction_orders import PathInfo, best_path, path_info
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
      optimize: order of contraction; False is from left to right, a list of pairs says which operands meet, of which
        each product is put last.
      preferred_element_type: what products and sums are added up in, and the dtype of the result.

    Raises:
      ValueError: the subscripts don't fit the operands.
      NotImplementedError: more than two operands are to meet at once.

    >>> import polyax.numpy as jnp
    >>> jnp.einsum('ij,j->i', jnp.eye(2), jnp.array([3.0, 4.0])).tolist()
    [3.0, 4.0]
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.einsum is not supported.")
    subscripts, operands = _as_text(subscripts, operands)
    if not operands:
        raise _wrong_count(subscripts.count(",") + 1, 0)
    arrays = of_one_dtype("einsum", *operands)
    inputs, output = _parse(subscripts, [x.ndim for x in arrays])
    shapes = tuple(x.shape for x in arrays)
    _check_sizes(inputs, shapes)
    preferred = None if preferred_element_type is None else canonical_dtype(preferred_element_type)
    multiply = lax.dot_general if _dot_general is None else _told_a_type(_dot_general)
    contraction = _Contraction(multiply, precision, preferred)
    result = contraction.all(inputs, output, arrays, _order(inputs, output, shapes, optimize))
    return result if preferred is None else convert(result, preferred)


def einsum_path(subscripts: Any, /, *operands: Any, optimize: Any = "auto") -> tuple[list[tuple[int, ...]], PathInfo]:
    """The order in which ``einsum`` has its operands meet, as pairs of their places, and what that costs.

    >>> import polyax.numpy as jnp
    >>> path, info = jnp.einsum_path("ij,jk,kl->il", jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones((4, 5)))
    >>> path, info.opt_cost
    ([(0, 1), (0, 1)], 128)
    """
    subscripts, operands = _as_text(subscripts, operands)
    shapes = tuple(map(shape_of, operands))
    inputs, output = _parse(subscripts, list(map(len, shapes)))
    _check_sizes(inputs, shapes)
    path = _order(inputs, output, shapes, optimize)
    return path, path_info(inputs, output, shapes, path)


# --- subscripts -------------------------------------------------------------------------------------------------------


def _as_text(subscripts: Any, operands: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """The form with letters; the other one gives operands and lists of labels in turn, whose order is that of letters.

    Raises:
      TypeError: labels can't be compared.
      ValueError: there are more of them than letters.
      KeyError: the result has one that no operand has.
    """
    if isinstance(subscripts, str):
        return subscripts, tuple(operands)
    flat = [subscripts, *operands]
    output = flat.pop() if len(flat) % 2 else None
    arrays, axes = flat[::2], flat[1::2]
    labels = _sorted({a for of_one in axes for a in of_one if a is not Ellipsis})
    if len(labels) > len(string.ascii_letters):
        raise ValueError(f"einsum takes at most {len(string.ascii_letters)} labels, got {len(labels)}.")
    if unknown := [a for a in output or () if a is not Ellipsis and a not in labels]:
        raise KeyError(f"Label {unknown[0]!r} of the result is not one of the operands', which have {labels}.")
    letters = dict(zip([Ellipsis, *labels], ["...", *string.ascii_letters], strict=False))
    text = ",".join("".join(letters[a] for a in of_one) for of_one in axes)
    return (text if output is None else f"{text}->{''.join(letters[a] for a in output)}"), tuple(arrays)


def _sorted(labels: set[Any]) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError as e:
        raise TypeError(f"Labels of dimensions have to be comparable, as numbers or texts are: {e}") from None


def _parse(subscripts: str, ranks: list[int]) -> tuple[list[str], str]:
    """Letters of each operand and of the result, with letters of their own instead of ellipses."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise _wrong_count(len(terms), len(ranks))
    spare = [c for c in string.ascii_letters if c not in text]
    hidden = [rank - len(t.replace("...", "")) if "..." in t else 0 for t, rank in zip(terms, ranks, strict=True)]
    ellipsis = "".join(spare[: max(hidden, default=0)])
    inputs = [t.replace("...", ellipsis[len(ellipsis) - h :] if h else "") for t, h in zip(terms, hidden, strict=True)]
    for i, (term, rank) in enumerate(zip(inputs, ranks, strict=True)):
        if len(term) != rank:
            raise ValueError(
                f"Einstein sum subscript '{terms[i]}' does not contain the correct number of indices for operand {i}."
            )
    output = right.replace("...", ellipsis) if arrow else ellipsis + _implied("".join(terms).replace("...", ""))
    _check_output(output, set("".join(inputs)))
    return inputs, output


def _wrong_count(terms: int, operands: int) -> ValueError:
    return ValueError(f"Number of einsum subscripts, {terms}, must be equal to the number of operands, {operands}.")


def _check_output(output: str, known: set[str]) -> None:
    if "->" in output:
        raise ValueError("Subscripts can only contain one '->'.")
    for letter in output:
        if output.count(letter) != 1:
            raise ValueError(f"Output character '{letter}' appeared more than once in the output.")
        if letter not in known:
            raise ValueError(f"Output character '{letter}' did not appear in the input")


def _implied(letters: str) -> str:
    return "".join(sorted(c for c, n in Counter(letters).items() if n == 1))


def _check_sizes(inputs: list[str], shapes: Sequence[tuple[int, ...]]) -> None:
    sizes: dict[str, int] = {}
    for i, (term, shape) in enumerate(zip(inputs, shapes, strict=True)):
        for letter, n in zip(term, shape, strict=True):
            if sizes.setdefault(letter, n) != n and 1 not in (n, sizes[letter]):
                raise ValueError(
                    f"Size of label '{letter}' for operand {i} ({sizes[letter]}) does not match previous terms ({n})."
                )
            sizes[letter] = max(sizes[letter], n)


# --- contraction ------------------------------------------------------------------------------------------------------


def _order(inputs: list[str], output: str, shapes: tuple[tuple[int, ...], ...], optimize: Any) -> list[tuple[int, ...]]:
    if not isinstance(optimize, (str, bool, type(None))):
        return [_checked_pair(pair) for pair in optimize]
    if optimize is False or len(inputs) <= 2:
        return [(0, 1)] * (len(inputs) - 1) or [(0,)]
    return list(best_path(tuple(inputs), output, shapes))


def _checked_pair(places: Any) -> tuple[int, ...]:
    places = tuple(map(operator.index, places))
    if len(places) > 2:
        raise NotImplementedError(
            "jax.numpy.einsum does not support simultaneous contraction of 3 or more operands. Typically this means "
            "you've passed an unsupported path to the einsum optimize parameter."
        )
    return places


def _told_a_type(multiply: Callable[..., Any]) -> Callable[..., Any]:
    """A product of the user's, which is told the operands' type where nobody has named another: it may narrow them."""

    def product(x: Any, y: Any, numbers: Any, *, precision: Any, preferred_element_type: Any) -> Any:
        wanted = x.dtype if preferred_element_type is None else preferred_element_type
        return multiply(x, y, numbers, precision, preferred_element_type=wanted)

    return product


class _Contraction(NamedTuple):
    """How two operands are multiplied, and in which dtype sums are added up, if they say so."""

    multiply: Callable[..., Any]
    precision: Any
    preferred: Any

    def all(self, inputs: list[str], output: str, arrays: list[Any], order: list[tuple[int, ...]]) -> Any:
        """Operands meet in ``order``; what comes of each product is put last."""
        terms = list(zip(inputs, arrays, strict=True))
        for pair in order:
            taken = [terms.pop(i) for i in sorted(pair, reverse=True)][::-1]
            elsewhere = set(output).union(*(set(t) for t, _ in terms))
            while len(taken) > 1:  # NumPy's paths may have several operands meet
                taken[:2] = [self.pair(taken[0], taken[1], elsewhere.union(*(set(t) for t, _ in taken[2:])))]
            terms.append(taken[0])
        ((term, result),) = terms
        term, result = self.simplified(term, result, set(output))
        return lax.transpose(result, [term.index(c) for c in output])

    def pair(self, a: tuple[str, Any], b: tuple[str, Any], keep: set[str]) -> tuple[str, Any]:
        (s, x), (t, y) = self.simplified(*a, keep | set(b[0])), self.simplified(*b, keep | set(a[0]))
        (s, x), (t, y) = _without_stretched(s, x, t, y), _without_stretched(t, y, s, x)
        batch = [c for c in s if c in t and c in keep]
        contracted = [c for c in s if c in t and c not in keep]
        numbers = (
            (tuple(s.index(c) for c in contracted), tuple(t.index(c) for c in contracted)),
            (tuple(s.index(c) for c in batch), tuple(t.index(c) for c in batch)),
        )
        product = self.multiply(x, y, numbers, precision=self.precision, preferred_element_type=self.preferred)
        rest = (c for c in itertools.chain(s, t) if c not in batch and c not in contracted)
        return "".join(batch) + "".join(rest), product

    def simplified(self, term: str, x: Any, keep: set[str]) -> tuple[str, Any]:
        """Repeated letters become diagonals, letters that nobody needs are summed over."""
        for letter in [c for c, n in Counter(term).items() if n > 1]:
            while term.count(letter) > 1:
                term, x = self.diagonal(term, x, letter)
        summed = [i for i, c in enumerate(term) if c not in keep]
        return "".join(c for c in term if c in keep), self.sum(x, summed) if summed else x

    def diagonal(self, term: str, x: Any, letter: str) -> tuple[str, Any]:
        i, j = [k for k, c in enumerate(term) if c == letter][:2]
        mask = lax.eq(lax.broadcasted_iota(np.int32, x.shape, i), lax.broadcasted_iota(np.int32, x.shape, j))
        return term[:j] + term[j + 1 :], self.sum(lax.select(mask, x, lax.full_like(x, 0)), [j])

    def sum(self, x: Any, axes: list[int]) -> Any:
        """Sums of booleans are true where any is."""
        if self.preferred is not None:
            x = convert(x, dtypes.wider(x.dtype, self.preferred))
        return (lax.reduce_or if x.dtype in dtypes.BOOL else lax.reduce_sum)(x, axes)


def _without_stretched(term: str, x: Any, other: str, y: Any) -> tuple[str, Any]:
    """Axes of size one that the other operand has with a larger size are dropped: the product has them anyway."""
    drop = [i for i, c in enumerate(term) if x.shape[i] == 1 and c in other and y.shape[other.index(c)] != 1]
    if not drop:
        return term, x
    return "".join(c for i, c in enumerate(term) if i not in drop), lax.squeeze(x, drop)
