"""Where a leaf stands in its pytree: key paths, what goes by tree prefixes, and names of arguments and results."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import Any, NamedTuple

from polyax.ir.source import DebugInfo
from polyax.trace.mismatch import mismatches
from polyax.trace.nodes import DictKey, default_registry, flatten_one_level_with_keys, name_of
from polyax.trace.tree import LEAF, PyTreeDef, tree_flatten, tree_structure, tree_unflatten

KeyEntry = Any
"""``SequenceKey``, ``DictKey``, ``GetAttrKey``, ``FlattenedIndexKey``, or what a registered type gives."""
KeyPath = tuple[KeyEntry, ...]


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """``['w'][0].bias``; with ``simple``, names alone between separators."""
    if not simple:
        return separator.join(map(str, keys))
    return separator.join(map(name_of, keys))


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """``(path, leaf)`` for each leaf.

    >>> [(keystr(path), x) for path, x in tree_leaves_with_path({'w': [1, 2]})]
    [("['w'][0]", 1), ("['w'][1]", 2)]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """``(path, leaf)`` for each leaf, and the structure. With ``is_leaf_takes_path`` it is ``is_leaf(path, x)``.

    >>> leaves, _ = tree_flatten_with_path({'a': 1, 'b': [2]})
    >>> [(keystr(path), x) for path, x in leaves]
    [("['a']", 1), ("['b'][0]", 2)]
    """
    pairs: list[tuple[KeyPath, Any]] = []
    entries: list[Any] = []
    stack: list[tuple[KeyPath, Any]] = [((), tree)]
    while stack:
        path, x = stack.pop()
        ends = is_leaf is not None and (is_leaf(path, x) if is_leaf_takes_path else is_leaf(x))
        found = None if ends else default_registry.flatten_one_level_with_keys(x)
        if found is None:
            pairs.append((path, x))
            entries.append(LEAF.entries[0])
            continue
        keyed, aux = found
        entries.append((type(x), tuple(aux) if type(x) is dict else aux, len(keyed)))
        stack += [((*path, key), child) for key, child in keyed][::-1]
    return pairs, PyTreeDef(tuple(entries), len(pairs))


def tree_map_with_path(
    f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Any = None, is_leaf_takes_path: bool = False
) -> Any:
    """``f(path, leaf, *rest_leaves)`` for each leaf.

    >>> tree_map_with_path(lambda path, x: f'{keystr(path)}={x}', {'a': (1, 2)})
    {'a': ("['a'][0]=1", "['a'][1]=2")}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [treedef.flatten_up_to(r, "tree_map_with_path tree") for r in rest]
    return tree_unflatten(treedef, [f(p, x, *others) for (p, x), *others in zip(pairs, *columns, strict=True)])


# --- prefixes -----------------------------------------------------------------------------------------------------


def broadcast_prefix(
    prefix: Any,
    full: Any,
    is_leaf: Callable[[Any], bool] | None = None,
    *,
    name: str = "broadcast_prefix prefix_tree",
) -> list[Any]:
    """One value of ``prefix``, which error texts call ``name``, for each leaf of ``full``; ``is_leaf`` is about
    ``prefix``.

    Raises:
      ValueError: ``prefix`` is no prefix of ``full``; the text says where.
    """
    leaves, treedef = tree_flatten(prefix, is_leaf)
    out: list[Any] = []
    for value, subtree in zip(leaves, treedef.flatten_up_to(full, name), strict=True):
        out.extend([value] * tree_structure(subtree).num_leaves)
    return out


def prefix_errors(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[Callable[[str], ValueError]]:
    """One entry for each place where ``prefix_tree`` is no prefix of ``full_tree``: the error, for a name of the
    former."""
    return list(mismatches(tree_structure(prefix_tree, is_leaf).entries, full_tree))


def flatten_axes(name: str, treedef: PyTreeDef, axes: Any, *, tupled_args: bool = False) -> list[Any]:
    """One axis for each leaf of ``treedef`` from a tree prefix in which None is a value (``in_axes``, ``out_axes``).

    Raises:
      ValueError: ``axes`` is no prefix of the structure; both are shown.
    """
    placeholder = tree_unflatten(treedef, [object()] * treedef.num_leaves)
    is_none: Callable[[Any], bool] = lambda x: x is None
    try:
        leaves, spec = tree_flatten(axes, is_none)
        parts = spec.flatten_up_to(placeholder, "tree")
        return [axis for axis, part in zip(leaves, parts, strict=True) for _ in tree_flatten(part)[0]]
    except ValueError:
        hint = ""
        if tupled_args:
            hint = (
                f" Note that {name} that are non-trivial pytrees should always be wrapped in a tuple"
                " representing the argument list."
            )
            if treedef.num_leaves == 1 and not isinstance(axes, tuple):
                hint += (
                    f" In particular, you're passing in a single argument which means that {name} might need to be"
                    " wrapped in a singleton tuple."
                )
        raise ValueError(
            f"{name} specification must be a tree prefix of the corresponding value, got specification {axes} "
            f"for value tree {treedef}.{hint}"
        ) from None


def differences(a: PyTreeDef, b: PyTreeDef) -> Iterator[str]:
    """One line for each place where two structures differ."""
    for path, one, other, _ in equality_errors_pytreedef(a, b):
        yield f"at {keystr(path) or 'the root'}: {one} against {other}"


def equality_errors(
    tree1: Any, tree2: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Iterator[tuple[KeyPath, str, str, str]]:
    """``(path, first, second, explanation)`` for each place where the structures of two trees differ.

    >>> list(equality_errors((1, [2]), (1, [2, 3])))
    [((SequenceKey(idx=1),), 'list of length 1', 'list of length 2', 'the lengths do not match')]
    """
    yield from equality_errors_pytreedef(tree_structure(tree1, is_leaf), tree_structure(tree2, is_leaf))


def equality_errors_pytreedef(a: PyTreeDef, b: PyTreeDef) -> Iterator[tuple[KeyPath, str, str, str]]:
    """The same for structures."""
    stack: list[tuple[KeyPath, PyTreeDef, PyTreeDef]] = [((), a, b)]
    while stack:
        path, a, b = stack.pop()
        if a == b:
            continue
        ours, theirs = a.children(), b.children()
        if a.node_type is not b.node_type:
            yield path, _kind(a), _kind(b), "their Python types differ"
        elif len(ours) != len(theirs):
            yield path, _kind(a, True), _kind(b, True), _uncounted(a, b)
        elif a.node_data() != b.node_data():
            yield path, _with_aux(a), _with_aux(b), "the pytree node metadata does not match"
        else:
            keys = _keys_of(a)
            stack += [((*path, k), x, y) for k, x, y in zip(keys, ours, theirs, strict=True)][::-1]


def _keys_of(d: PyTreeDef) -> list[KeyEntry]:
    """The keys of the root's children, told by a tree of this structure."""
    example = tree_unflatten(d, [None] * d.num_leaves)
    return [key for key, _ in flatten_one_level_with_keys(example)[0]]


def _kind(d: PyTreeDef, counted: bool = False) -> str:
    if d.node_type is None:
        return "a pytree leaf"
    count = d.entries[0][2]
    if counted and d.node_type in (list, tuple):
        return f"{d.node_type.__name__} of length {count}"
    return f"{d.node_type} with {count} child{'' if count == 1 else 'ren'}" if counted else f"{d.node_type}"


def _uncounted(a: PyTreeDef, b: PyTreeDef) -> str:
    if a.node_type in (list, tuple):
        return "the lengths do not match"
    keys = [{repr(k.key) for k in _keys_of(d) if isinstance(k, DictKey)} for d in (a, b)]
    other = " ".join(sorted(keys[0] ^ keys[1]))
    told = f", with the symmetric difference of key sets: {{{other}}}" if other else ""
    return f"the numbers of children do not match{told}"


def _with_aux(d: PyTreeDef) -> str:
    return f"{d.node_type} with pytree metadata {d.entries[0][1]}"


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """``full_tree`` with each leaf replaced by the leaf of ``prefix_tree`` that stands for it.

    >>> tree_broadcast([1, 2], [(0, 0), 0])
    [(1, 1), 2]
    """
    return tree_unflatten(tree_structure(full_tree), broadcast_prefix(prefix_tree, full_tree, is_leaf))


class Described(NamedTuple):
    """What is kept of a function and of its program's inputs and results, to name those of derived programs when asked.

    Keeps no function alive, since caches know functions weakly and hold their programs.
    """

    code: CodeType | None
    skipped: int
    placed: bool
    traced_for: str
    in_tree: PyTreeDef | None
    out_tree: PyTreeDef | None
    invars: Sequence[Any]
    outvars: Sequence[Any]
    name: str

    def __call__(self, invars: Sequence[Any], outvars: Sequence[Any]) -> DebugInfo:
        """For a program with these inputs and results."""
        where = "<unknown>"
        if self.code is not None and self.placed:
            where = f"{self.name} at {self.code.co_filename}:{self.code.co_firstlineno}"
        names = _found(self.invars, self._arg_names(), invars)
        return DebugInfo(self.traced_for, where, names, _found(self.outvars, self._result_paths(), outvars))

    def _arg_names(self) -> list[str]:
        if self.in_tree is None:
            return []
        args, kwargs = tree_unflatten(self.in_tree, [0] * self.in_tree.num_leaves)
        named = [*zip(self._positions(len(args)), args, strict=True)]
        named += [(self._keyword(name), x) for name, x in sorted(kwargs.items())]
        return [name + keystr(path) for name, tree in named for path, _ in tree_leaves_with_path(tree)]

    def _positions(self, count: int) -> list[str]:
        known = self._parameters()[self.skipped : self.code.co_argcount if self.code else 0][:count]
        rest = self._rest(inspect.CO_VARARGS) or "args"
        return [*known, *(f"{rest}[{n}]" for n in range(count - len(known)))]

    def _keyword(self, name: str) -> str:
        rest = self._rest(inspect.CO_VARKEYWORDS)
        return name if rest is None or name in self._parameters() else f"{rest}[{name!r}]"

    def _parameters(self) -> Sequence[str]:
        code = self.code
        return () if code is None else code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    def _rest(self, kind: int) -> str | None:
        """The name of ``*args`` or ``**kwargs``, if the function has such."""
        code = self.code
        if code is None or not code.co_flags & kind:
            return None
        before = kind == inspect.CO_VARKEYWORDS and bool(code.co_flags & inspect.CO_VARARGS)
        return code.co_varnames[len(self._parameters()) + before]

    def _result_paths(self) -> list[str]:
        if self.out_tree is None:
            return []
        paths = tree_leaves_with_path(tree_unflatten(self.out_tree, [0] * self.out_tree.num_leaves))
        return [f"result{keystr(path)}" for path, _ in paths]


def _found(known: Sequence[Any], names: Sequence[str], asked: Sequence[Any]) -> tuple[str, ...] | None:
    """The names of what is ``asked`` for: empty ones of what isn't ``known``, nothing if none is."""
    left: dict[int, list[str]] = {}
    for x, name in zip(known, names, strict=False):
        left.setdefault(id(x), []).append(name)
    if asked and not any(id(x) in left for x in asked):
        return None
    return tuple([free.pop(0) if (free := left.get(id(x))) else "" for x in asked])
