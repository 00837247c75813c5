"""Results of calls out of programs that begin as arguments: which, and whether they can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polyax.ir.aval import ShapedArray


def aliased_pairs(
    aliases: Mapping[int, int] | None, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], numbered: bool = False
) -> tuple[tuple[int, int], ...]:
    """``aliases`` from numbers of arguments to those of results, in order; errors give those of what differs if these
    are ``numbered``.

    Raises:
      ValueError: there is no such argument or result, or they differ in shape or dtype.

    >>> aliased_pairs({0: 1}, [ShapedArray((2,), "int32")], [])
    Traceback (most recent call last):
    ...
    ValueError: input_output_aliases contains the mapping '0:1' with output index 1 outside the range [0, 0).
    """
    pairs = tuple(sorted((int(i), int(o)) for i, o in (aliases or {}).items()))
    for i, o in pairs:
        told = f"input_output_aliases contains the mapping '{i}:{o}'"
        for what, n, there in (("input", i, ins), ("output", o, outs)):
            if not 0 <= n < len(there):
                raise ValueError(f"{told} with {what} index {n} outside the range [0, {len(there)}).")
        if (ins[i].shape, ins[i].dtype) != (outs[o].shape, outs[o].dtype):
            one, other = (f"input[{i}]", f"to output[{o}]") if numbered else ("an input", "an output")
            raise ValueError(
                f"{told} referring to {one} with abstract value {ins[i]} and {other} with a different abstract value "
                f"{outs[o]}."
            )
    return pairs
