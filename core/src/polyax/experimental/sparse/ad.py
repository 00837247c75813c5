"""Derivatives with respect to sparse arrays: those of their stored elements, at the same indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax import api
from polyax.api.arguments import as_indices, check_int_or_tuple, wraps
from polyax.api.vmap import vmap
from polyax.experimental.sparse.base import JAXSparse
from polyax.runtime.contract.tracebacks import api_boundary
from polyax.trace.tree import tree_flatten, tree_leaves, tree_map, tree_unflatten


def _is_sparse(x: Any) -> bool:
    return isinstance(x, JAXSparse)


class _Stored:
    """A function of the elements that are stored of the arguments to differentiate, and how derivatives look."""

    def __init__(self, fun: Callable[..., Any], argnums: int | Sequence[int], args: tuple[Any, ...]) -> None:
        self.fun, self.args = fun, args
        self.positions = as_indices(argnums, len(args))
        self.one = isinstance(argnums, int)
        self.elements = [tree_map(_elements, args[n], is_leaf=_is_sparse) for n in self.positions]

    def __call__(self, elements: Sequence[Any], **kwargs: Any) -> Any:
        args = list(self.args)
        for n, given in zip(self.positions, elements, strict=True):
            args[n] = tree_map(_with_elements, args[n], given, is_leaf=_is_sparse)
        return self.fun(*args, **kwargs)

    def placed(self, out: Any, found: Any) -> Any:
        """Derivatives of results like ``out``: for each of its leaves, in the form of the arguments."""
        leaves, tree = tree_flatten(out)
        columns = [tree.flatten_up_to(found)] if leaves else []
        per_leaf = [self.like_args(x) for x in columns[0]] if columns else []
        return tree_unflatten(tree, per_leaf)

    def like_args(self, found: Sequence[Any]) -> Any:
        pairs = zip(self.positions, found, strict=True)
        parts = tuple([tree_map(_at_indices, self.args[n], x, is_leaf=_is_sparse) for n, x in pairs])
        return parts[0] if self.one else parts


def _elements(x: Any) -> Any:
    return x.data if _is_sparse(x) else x


def _with_elements(x: Any, data: Any) -> Any:
    if not _is_sparse(x):
        return data
    bufs, aux = x.tree_flatten()
    return type(x).tree_unflatten(aux, (data, *bufs[1:]))


def _at_indices(x: Any, derivative: Any) -> Any:
    """A derivative as an array with the indices of ``x``, for each element of the result."""
    if not _is_sparse(x):
        return derivative
    place = lambda d: _with_elements(x, d)
    for _ in range(derivative.ndim - x.data.ndim):
        place = vmap(place)
    return place(derivative)


def value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """``polyax.value_and_grad`` of a function of sparse and dense arrays.

    The gradient with respect to a sparse array is one with the same indices.

    Args:
      kwargs: as of ``polyax.value_and_grad``.

    >>> import polyax.numpy as jnp
    >>> from polyax.experimental import sparse
    >>> X = sparse.BCOO.fromdense(jnp.arange(6.))
    >>> value, g = value_and_grad(lambda X, y: X @ y)(X, jnp.ones(6))
    >>> value.item(), g
    (15.0, BCOO(float32[6], nse=5))
    """
    check_int_or_tuple("argnums", argnums)

    @wraps(fun, "Value and gradient of {fun}.")
    @api_boundary
    def value_and_grad_f(*args: Any, **named: Any) -> Any:
        stored = _Stored(fun, argnums, args)
        out, found = api.value_and_grad(stored, has_aux=has_aux, **kwargs)(stored.elements, **named)
        return out, stored.like_args(found)

    return value_and_grad_f


def grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """``polyax.grad`` of a function of sparse and dense arrays; see ``value_and_grad``.

    >>> import polyax.numpy as jnp
    >>> from polyax.experimental import sparse
    >>> grad(lambda X, y: X @ y)(sparse.BCOO.fromdense(jnp.arange(6.)), jnp.ones(6))
    BCOO(float32[6], nse=5)
    """
    both = value_and_grad(fun, argnums, has_aux, **kwargs)

    @wraps(fun, "Gradient of {fun}.")
    @api_boundary
    def grad_f(*args: Any, **named: Any) -> Any:
        out, found = both(*args, **named)
        return (found, out[1]) if has_aux else found

    return grad_f


def _jacobian(transform: Any, fun: Any, argnums: Any, has_aux: bool, kwargs: dict[str, Any]) -> Callable[..., Any]:
    check_int_or_tuple("argnums", argnums)

    @wraps(fun, "Jacobian of {fun}.")
    @api_boundary
    def jacobian_f(*args: Any, **named: Any) -> Any:
        stored = _Stored(fun, argnums, args)
        shape: Any = None

        def kept(elements: Any, **named: Any) -> Any:
            nonlocal shape
            out = stored(elements, **named)
            result = out[0] if has_aux else out
            shape = tree_map(lambda _: 0, result)
            if any(map(_is_sparse, tree_leaves(result, is_leaf=_is_sparse))):
                raise NotImplementedError("sparse Jacobians of functions with sparse results")
            return out

        found = transform(kept, has_aux=has_aux, **kwargs)(stored.elements, **named)
        if has_aux:
            return stored.placed(shape, found[0]), found[1]
        return stored.placed(shape, found)

    return jacobian_f


def jacfwd(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """``polyax.jacfwd`` of a function of sparse and dense arrays, with dense results; see ``value_and_grad``."""
    return _jacobian(api.jacfwd, fun, argnums, has_aux, kwargs)


def jacrev(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """``polyax.jacrev`` of a function of sparse and dense arrays, with dense results; see ``value_and_grad``."""
    return _jacobian(api.jacrev, fun, argnums, has_aux, kwargs)


jacobian = jacrev
