"""Complex arrays of which a part is written anew: in memory both parts of a number lie next to each other, and are
written at once. All else of the array stays where it is, instead of being taken apart and put together again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from polyax.ir.jaxpr import Eqn
from polyax.ops.scatter import ScatterDimensionNumbers, scatter_p, slices_at
from polyax_kernels.lower.complexes.formulas import times
from polyax_kernels.lower.complexes.library import called
from polyax_kernels.lower.complexes.pair import Pair
from polyax_kernels.lower.complexes.parts import of_each_part

Rule = Callable[[Eqn, Sequence[Any]], list[Any]]


def slice_updated(eqn: Eqn, args: Sequence[Any]) -> list[Any]:
    """A slice of an array in memory, as words; of other arrays, each part."""
    x, update, *starts = args
    if not x.is_whole:
        return of_each_part(eqn, args)
    first = eqn.invars[-1].aval.dtype.type(0) if starts else np.int32(0)
    return [Pair(words=y) for y in eqn.apply([x.words, update.words, *starts, first])]


def scattered(eqn: Eqn, args: Sequence[Any]) -> list[Any]:
    """Slices of an array in memory, or to be written to one, as words: a dimension more of what is written at each
    index, which is read once for both parts."""
    x, indices, updates = args
    if not x.is_whole and not updates.is_stored:
        return of_each_part(eqn, args)
    numbers: ScatterDimensionNumbers = eqn.params["dimension_numbers"]
    window = (*numbers.update_window_dims, len(updates.shape))
    wider = {**eqn.params, "dimension_numbers": numbers._replace(update_window_dims=window)}
    return [Pair(words=y) for y in eqn.replace(params=wider).apply([x.words, indices, updates.words])]


def multiplied(eqn: Eqn, args: Sequence[Any]) -> list[Any]:
    """What is there, times the updates, if no two of them meet; else it is left to the host."""
    x, indices, updates = args
    if not eqn.params["unique_indices"]:
        return called(eqn, args)
    parts = Pair(words=x.words).parts if x.is_whole else x.parts  # it stays as it is stored
    re, im = (slices_at(part, indices, updates.shape, eqn.params) for part in parts)
    return scattered(eqn.replace(primitive=scatter_p), [x, indices, Pair(times((re, im), updates.parts))])


RULES: Mapping[str, Rule] = {
    "dynamic_update_slice": slice_updated,
    **dict.fromkeys(("scatter", "scatter-add", "scatter-sub"), scattered),
    "scatter-mul": multiplied,
}
