"""What must be alike in control flow, carries and results of branches, and the texts that tell how it isn't."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from polyax.ir.aval import ShapedArray, same_type
from polyax.trace.calls import Signature
from polyax.trace.flat import arg_names
from polyax.trace.paths import equality_errors_pytreedef, keystr, tree_leaves_with_path
from polyax.trace.recording import SourceOf
from polyax.trace.tree import PyTreeDef, tree_unflatten
from polyax.trace.varying import in_order

Pair = tuple[str, str]


@dataclass(frozen=True)
class Sides:
    """How texts call two things that must be alike.

    Attributes:
      headings, remedies: of texts about structures, and about types.
      structures, types: what each side is called there; ``{at}`` is the place.
      at: how a place is told, given its path.
      initial: what can be cast where the sides vary along different axes of a mesh.
      told: what the sides are.
    """

    headings: Pair
    structures: Pair
    types: Pair
    remedies: Pair
    initial: Pair
    at: Callable[[str], str] = str
    told: str = ""


def check_same(
    sides: Sides,
    trees: tuple[PyTreeDef, PyTreeDef],
    avals: tuple[Sequence[ShapedArray], Sequence[ShapedArray]],
) -> None:
    """Both must have one structure and types that are equal up to weakness.

    Raises:
      TypeError: with the components that differ.
    """
    if trees[0] != trees[1]:
        raise TypeError(_text(sides, 0, list(_structures(sides, trees)), ""))
    found = list(_types(sides, trees[0], avals))
    if found:
        raise TypeError(_text(sides, 1, found, _casts(sides, avals)))


def _text(sides: Sides, which: int, found: Sequence[str], casts: str) -> str:
    if len(found) == 1:
        (first,) = found
        listed = f"{'T' + first[1:] if first.startswith('the ') else first}."
    else:
        listed = ";\n".join(f"  * {x}" for x in found) + "."
    parts = [sides.headings[which], sides.told, listed, casts, sides.remedies[which]]
    return "\n\n".join(p for p in parts if p)


def _structures(sides: Sides, trees: tuple[PyTreeDef, PyTreeDef]) -> Iterator[str]:
    for path, a, b, why in equality_errors_pytreedef(*trees):
        first, second = (side.format(at=sides.at(keystr(path))) for side in sides.structures)
        yield f"{first} is {_one(a)} but {second} is {_one(b)}, so {why}"


def _one(thing: str) -> str:
    return thing if thing.startswith("a ") else f"a {thing}"


def _types(sides: Sides, tree: PyTreeDef, avals: tuple[Sequence[ShapedArray], Sequence[ShapedArray]]) -> Iterator[str]:
    paths = [keystr(path) for path, _ in tree_leaves_with_path(tree_unflatten(tree, list(avals[0])))]
    for path, a, b in zip(paths, *avals, strict=True):
        if not alike(a, b):
            first, second = (side.format(at=sides.at(path)) for side in sides.types)
            yield f"{first} has type {a.str_short()} but {second} has type {b.str_short()}{_difference(a, b)}"


def alike(a: ShapedArray, b: ShapedArray) -> bool:
    """Whether two types are equal up to weakness."""
    return same_type(a, b) and a.vma == b.vma and a.told == b.told


def _difference(a: ShapedArray, b: ShapedArray) -> str:
    parts = [f"the {name}s do not match" for name in ("dtype", "shape") if getattr(a, name) != getattr(b, name)]
    if a.vma != b.vma:
        parts.append("the manual axis types do not match")
    parts += ["the shardings do not match"] if a.told != b.told else []
    return ", so " + ", and ".join(parts)


def _casts(sides: Sides, avals: tuple[Sequence[ShapedArray], Sequence[ShapedArray]]) -> str:
    """How to make them vary along the same axes of a mesh."""
    lines = []
    for a, b in zip(*avals, strict=True):
        for value, missing in ((sides.initial[0], b.vma - a.vma), (sides.initial[1], a.vma - b.vma)):
            if missing:
                cast = f"`polyax.lax.pcast(..., {in_order(missing)}, to='varying')`"
                lines.append(f"This might be fixed by applying {cast} to {value}.")
    return "\n".join(lines)


# --- sides


def carries(what: str, carry: str) -> Sides:
    """What goes into a body and what comes out; ``carry`` is what its parameter is called."""
    must = f"{what} carry input and carry output must have"
    return Sides(
        (f"{must} the same pytree structure, but they differ:", f"{must} equal types, but they differ:"),
        ("the input carry {at}", "the corresponding component of the carry output"),
        ("the input carry {at}", "the corresponding output carry component"),
        (
            "Revise the function so that the carry output has the same pytree structure as the carry input.",
            "Revise the function so that all output types match the corresponding input types.",
        ),
        ("the initial carry value", "the output carry"),
        lambda path: f"component {carry}{path}" if path else carry,
    )


def branch_results(what: str, names: Pair, funs: Sequence[Callable[..., object]]) -> Sides:
    """The results of two functions."""
    a, b = names
    revise = f"Revise {a} and/or {b} so that"
    return Sides(
        (
            f"{what} branch outputs must have the same pytree structure, but they differ:",
            f"{what} branches must have equal output types but they differ.",
        ),
        (f"{a} output{{at}}", f"{b} output{{at}}"),
        (f"the output of {a}{{at}}", f"the corresponding output of {b}"),
        (f"{revise} they have the same pytree structure.", f"{revise} all output types match."),
        (f"the output of {a}", f"the output of {b}"),
        lambda path: f" at path {path}" if path else "",
        "\n".join(f"{name} is {SourceOf(fun, list)}" for name, fun in zip(names, funs, strict=True)),
    )


def results(what: str, names: Pair, culprit: str) -> Sides:
    """What a function gives, and what that must be like."""
    both = names[0] + "{at}", names[1] + "{at}"
    must = f"{what} have"
    return Sides(
        (f"{must} the same pytree structure, but they differ:", f"{must} equal types, but they differ:"),
        both,
        both,
        (f"Revise {culprit} so that both have the same structure.", f"Revise {culprit} so that all types match."),
        names,
    )


def first_parameter(fun: Callable[..., object]) -> str:
    """What a function calls its first argument."""
    names = arg_names(fun, (0,), {}) if Signature(fun).parameters else []
    return names[0] if names else "carry"
