"""Optimizers of single arrays as optimizers of pytrees: what they keep is packed, and parameters can be any tree."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from polyax.trace.register import register_pytree_node
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_unflatten

Array = Any
Params = Any
"""Parameters: a pytree of arrays."""
State = Any
"""What an optimizer keeps of one array, parameters included."""
Updates = Any
"""Gradients: a pytree as the parameters are."""
Step = int


class OptimizerState(NamedTuple):
    """What an optimizer keeps: leaves for each parameter, and their structures."""

    packed_state: Any
    tree_def: PyTreeDef
    subtree_defs: Any


register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda aux, children: OptimizerState(children[0], *aux),
)

InitFn = Callable[[Params], OptimizerState]
UpdateFn = Callable[[Step, Updates, OptimizerState], OptimizerState]
ParamsFn = Callable[[OptimizerState], Params]


class Optimizer(NamedTuple):
    """``init_fn(params)`` gives a state, ``update_fn(step, gradients, state)`` the next one, ``params_fn(state)`` the
    parameters."""

    init_fn: InitFn
    update_fn: UpdateFn
    params_fn: ParamsFn


def optimizer(opt_maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """A maker of optimizers of pytrees from one of optimizers of single arrays; a decorator.

    Args:
      opt_maker: gives ``(init, update, get_params)``: the state of an array, the next state from a step's number, a
        gradient and a state, and the array of a state.
    """

    @functools.wraps(opt_maker)
    def made(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def tree_init(params: Params) -> OptimizerState:
            leaves, tree = tree_flatten(params)
            return _packed(tree, [init(x) for x in leaves])

        def tree_update(step: Step, grads: Updates, state: OptimizerState) -> OptimizerState:
            leaves, tree = tree_flatten(grads)
            if tree != state.tree_def:
                raise TypeError(
                    "optimizer update function was passed a gradient tree that did not match the parameter tree "
                    f"structure with which it was initialized: parameter tree {state.tree_def} and grad tree {tree}."
                )
            new = _packed(tree, [update(step, g, s) for g, s in zip(leaves, _states(state), strict=True)])
            for before, after in zip(state.subtree_defs, new.subtree_defs, strict=True):
                if before != after:
                    raise TypeError(
                        "optimizer update function produced an output structure that did not match its input "
                        f"structure: input {before} and output {after}."
                    )
            return new

        def tree_params(state: OptimizerState) -> Params:
            return tree_unflatten(state.tree_def, [get_params(s) for s in _states(state)])

        return Optimizer(tree_init, tree_update, tree_params)

    return made


def _packed(tree: PyTreeDef, states: list[State]) -> OptimizerState:
    flat = [tree_flatten(s) for s in states]
    return OptimizerState(tuple(leaves for leaves, _ in flat), tree, tuple(structure for _, structure in flat))


def _states(state: OptimizerState) -> list[State]:
    return [tree_unflatten(d, leaves) for d, leaves in zip(state.subtree_defs, state.packed_state, strict=True)]


class JoinPoint:
    """A leaf of a tree of parameters that holds the state of that parameter, a pytree itself."""

    def __init__(self, subtree: Any) -> None:
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """The state as a tree like the parameters, with a ``JoinPoint`` for each: what is to be saved has no structure of
    its own then."""
    return tree_unflatten(opt_state.tree_def, map(JoinPoint, _states(opt_state)))


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The state that ``unpack_optimizer_state`` has unpacked.

    Raises:
      TypeError: a leaf is no ``JoinPoint``.
    """
    leaves, tree = tree_flatten(marked_pytree)
    for leaf in leaves:
        if not isinstance(leaf, JoinPoint):
            raise TypeError(f"pack_optimizer_state needs a tree of JoinPoint, got the leaf {leaf!r} of {type(leaf)}")
    return _packed(tree, [leaf.subtree for leaf in leaves])


def unzip2(xys: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """First and second elements of pairs."""
    both = [tuple(p) for p in xys]
    return tuple(a for a, _ in both), tuple(b for _, b in both)
