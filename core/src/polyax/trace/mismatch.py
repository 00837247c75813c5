"""Where and how pytrees differ: the texts of errors about structures that should match. Runs when there is an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from polyax.trace.nodes import default_registry, name_of

Entry = tuple[type | None, Any, int]
Path = tuple[Any, ...]
Complaint = Callable[[str], ValueError]
"""From a name of the tree to the error."""


def kind_mismatch(kind: type, aux: Any, count: int, x: Any) -> ValueError:
    """The error about ``x``, which should be a node of this type with ``count`` children."""
    called = _BUILTIN.get(kind) or ("named tuple" if issubclass(kind, tuple) and hasattr(kind, "_fields") else "")
    if type(x) is not kind:
        return ValueError(_other_kind(kind, called, x))
    parts = default_registry.flatten_one_level(x)
    assert parts is not None
    if kind is dict:
        return ValueError(f"Dict key mismatch; expected keys: {list(aux)}; present keys: {sorted(x)}.")
    if len(parts[0]) != count:
        what = called.capitalize() or "Custom type"
        return ValueError(f"{what} arity mismatch: {len(parts[0])} != {count}; {called or 'value'}: {x!r}.")
    return ValueError(f"Mismatch custom node data: {aux} != {parts[1]}; value: {x!r}.")


_BUILTIN = {list: "list", tuple: "tuple", dict: "dict", type(None): "None"}


def _other_kind(kind: type, called: str, x: Any) -> str:
    if kind is type(None):
        return (
            f"Expected None, got {x!r}.\n\nNone is a node without children: to give it in place of others, map with "
            "is_leaf=lambda x: x is None."
        )
    if called == "named tuple" and isinstance(x, tuple) and hasattr(x, "_fields"):
        return f"Named tuple type mismatch: expected type: {kind}, tuple: {x!r}."
    if called:
        return f"Expected {called}, got {x!r}."
    return f"Custom node type mismatch: expected type: {kind}, value: {x!r}."


def first_mismatch(entries: Sequence[Entry], full: Any, name: str) -> ValueError:
    """The error about ``full`` not beginning with the structure ``entries`` of a tree called ``name``."""
    return next(mismatches(entries, full))(name)


def mismatches(entries: Sequence[Entry], full: Any) -> Iterator[Complaint]:
    """One complaint for each place where ``full`` doesn't begin with the structure ``entries``."""
    stack: list[tuple[Path, Any]] = [((), full)]
    n = 0
    while n < len(entries):
        kind, aux, count = entries[n]
        path, x = stack.pop()
        n += 1
        if kind is None:
            continue
        found = default_registry.flatten_one_level_with_keys(x)
        why = _why(kind, aux, count, x, found)
        if why is None and found is not None:
            stack.extend([((*path, key), child) for key, child in found[0]][::-1])
            continue
        yield _complaint(path, *(why or ("", "")))
        n = _skip(entries, n, count)


def _skip(entries: Sequence[Entry], n: int, count: int) -> int:
    """The position after ``count`` subtrees."""
    while count:
        count += entries[n][2] - 1
        n += 1
    return n


def _complaint(path: Path, head: str, text: str) -> Complaint:
    where = "".join(map(str, path))

    def error(name: str) -> ValueError:
        return ValueError(
            f"pytree structure error: {head} at key path\n    {name}{where}\nAt that key path, the prefix pytree "
            f"{name} has a subtree of type{text}"
        )

    return error


def _why(kind: type, aux: Any, count: int, x: Any, found: tuple[list[Any], Any] | None) -> tuple[str, str] | None:
    """Headline and explanation; None where nothing differs at this node."""
    if type(x) is not kind or found is None:
        return "different types", (
            f"\n    {kind}\nbut at the same key path the full pytree has a subtree of different type\n    {type(x)}."
        )
    pairs, other = found
    if kind in (list, tuple) and len(pairs) != count:
        return f"different lengths of {kind.__name__}", (
            f" {kind.__name__} of length {count}, but the full pytree has a subtree of the same type but of length "
            f"{len(pairs)}."
        )
    if len(pairs) != count:
        return "different numbers of pytree children", _counts(kind, aux, count, pairs)
    other = tuple(other) if kind is dict else other
    if aux != other:
        import difflib  # when it is needed: `import polyax` stays quick

        return "different pytree metadata", (
            f"\n    {kind}\nwith metadata\n    {aux}\nbut at the same key path the full pytree has a subtree of the "
            f"same type but with metadata\n    {other}\nso the diff in the metadata at these pytree nodes is\n"
            + "\n".join(f"    {line}" for line in difflib.ndiff(str(aux).splitlines(), str(other).splitlines()))
        )
    return None


def _counts(kind: type, aux: Any, count: int, pairs: list[Any]) -> str:
    theirs = [name_of(key) for key, _ in pairs]
    ours = [str(k) for k in aux] if isinstance(aux, tuple) and len(aux) == count else []
    differing = sorted(set(ours) ^ set(theirs)) if ours else []
    text = (
        f"\n    {kind}\nwith {count} child keys\n    {' '.join(ours)}\nbut at the same key path the full pytree has a "
        f"subtree of the same type but with {len(theirs)} child keys\n    {' '.join(theirs)}"
    )
    return text + (f"\nso the symmetric difference on key sets is\n    {' '.join(differing)}" if differing else "")
