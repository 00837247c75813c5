"""Attention: means of values, weighted by how well queries fit keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.ir import dtypes
from polyax.nn.normalize import logsumexp, softmax
from polyax.numpy.ranges import counted

__all__ = ["dot_product_attention"]

_IMPLEMENTATIONS = (None, "xla", "cudnn")


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """``softmax(scale query key^T + bias) value``, for each head and each example of a batch.

    Args:
      query: ``[batch, queries, heads, features]``, or without the batch.
      key, value: ``[batch, keys, groups, features]``; each of ``groups`` serves ``heads / groups`` heads that follow
        each other.
      bias: added to scaled products; broadcasts to ``[batch, heads, queries, keys]``.
      mask: booleans that broadcast to the same: False keeps a query from a key. A query that is kept from all gets the
        mean of all values.
      scale: ``1 / sqrt(features)`` by default.
      is_causal: keeps queries from keys that come after them.
      query_seq_lengths, key_value_seq_lengths: int32 ``[batch]``, how many queries and keys there are; results of other
        queries are zeros.
      local_window_size: how far before and after a query the keys lie that it may see: a number, or a pair.
      implementation: None or "xla": what this device has.
      return_residual: return also the logarithm of the sum of exponentials, ``[batch, queries, heads]``.

    Returns:
      An array like ``query``. Products and the softmax are computed in float32 at least.

    Raises:
      ValueError: shapes, dtypes or the implementation aren't as above.
      RuntimeError: the implementation is "cudnn".

    >>> x = np.ones((1, 3, 2, 4), np.float32)
    >>> dot_product_attention(x, x, x, is_causal=True).shape
    (1, 3, 2, 4)
    """
    _check_implementation(implementation)
    batched = jnp.ndim(query) == 4
    query, key, value = [jnp.asarray(x) for x in (query, key, value)]
    if not batched:
        query, key, value = query[None], key[None], value[None]
    lengths = query_seq_lengths, key_value_seq_lengths
    _check_shapes(query, key, value, mask, lengths)
    bias, mask = (x if x is None or batched or jnp.ndim(x) == 4 else jnp.asarray(x)[None] for x in (bias, mask))
    allowed = _allowed(query.shape[1], key.shape[1], mask, is_causal, local_window_size, lengths)
    scale = 1 / np.sqrt(query.shape[-1]) if scale is None else scale
    out, residual = _attend(query, key, value, bias, allowed, scale)
    if query_seq_lengths is not None:
        out, residual = _of_queries(query_seq_lengths, out, residual)
    if not batched:
        out, residual = out[0], residual[0]
    return (out, residual.astype(key.dtype)) if return_residual else out


def _of_queries(lengths: Any, out: Any, residual: Any) -> tuple[Any, Any]:
    """What there is for the first queries of each example, and nothing for the others."""
    real = jnp.arange(out.shape[1])[None, :, None] < lengths[:, None, None]
    return jnp.where(real[..., None], out, 0), jnp.where(real, residual, -np.inf)


def _check_implementation(implementation: str | None) -> None:
    if implementation not in _IMPLEMENTATIONS:
        raise ValueError(f"Unsupported implementation option: {implementation}; None or 'xla' is what there is")
    if implementation == "cudnn":
        raise RuntimeError("cuDNN is not detected: attention of cuDNN isn't used here; leave implementation out")


def _check_shapes(query: Any, key: Any, value: Any, mask: Any, lengths: tuple[Any, Any]) -> None:
    if query.ndim != 4:
        raise ValueError(f"query must have the shape [batch, queries, heads, features], got {query.aval}")
    batch, _, heads, features = query.shape
    for name, x in (("key", key), ("value", value)):
        if x.ndim != 4 or (x.shape[0], x.shape[3]) != (batch, features) or x.shape != key.shape:
            wanted = f"[{batch}, keys, groups, {features}]" if name == "key" else f"{key.shape}, as key has it"
            raise ValueError(f"{name} shape should be {wanted}: but got {x.shape}, for query of shape {query.shape}")
        if x.dtype != query.dtype:
            raise ValueError(f"{name} dtype should be that of query, {query.dtype}, but got {x.dtype}")
    if heads % key.shape[2]:
        raise ValueError(
            f"The number of query heads must be a multiple of key/value heads, but got {heads} vs {key.shape[2]}"
        )
    if mask is not None and jnp.result_type(mask) not in dtypes.BOOL:
        raise ValueError(f"mask dtype should be bool, but got {jnp.result_type(mask)}")
    for name, x in zip(("query_seq_lengths", "key_value_seq_lengths"), lengths, strict=True):
        if x is not None and jnp.shape(x) != (batch,):
            raise ValueError(f"{name} shape should be [{batch}]: but got {jnp.shape(x)}")
        if x is not None and not dtypes.is_integer(jnp.result_type(x)):
            raise ValueError(f"{name} dtype should be int32, but got {jnp.result_type(x)}")


def _allowed(queries: int, keys: int, mask: Any, is_causal: bool, window: Any, lengths: tuple[Any, Any]) -> Any:
    """Which keys a query may see, as an array that broadcasts to ``[batch, heads, queries, keys]``, or None for all."""
    row, column = counted(keys)[None, :], counted(queries)[:, None]
    place = row - column
    found = [] if mask is None else [mask]
    if is_causal:
        found.append(place <= 0)
    if window is not None:
        before, after = (window, window) if isinstance(window, int) else window
        found.append((place >= -before) & (place <= after))
    for length, numbers in zip(lengths, (column, row), strict=True):
        if length is not None:
            found.append(numbers < jnp.asarray(length)[:, None, None, None])
    total = None
    for x in found:
        total = x if total is None else jnp.logical_and(total, x)
    return total


def _attend(query: Any, key: Any, value: Any, bias: Any, allowed: Any, scale: Any) -> tuple[Any, Any]:
    """Results, and logarithms of sums of exponentials; heads are dealt to groups of keys."""
    batch, queries, heads, features = query.shape
    groups = key.shape[2]
    wide = dtypes.wider(query.dtype, np.float32)
    dealt = jnp.reshape(query, (batch, queries, groups, heads // groups, features))
    products = jnp.einsum("bqghf,bkgf->bghqk", dealt, key, preferred_element_type=wide)
    products = jnp.reshape(products, (batch, heads, queries, key.shape[1])) * jnp.asarray(scale, wide)
    if bias is not None:
        products = products + bias.astype(wide)
    if allowed is not None:
        products = jnp.where(allowed, products, -0.7 * float(dtypes.finfo(wide).max))
    weights = softmax(products, axis=-1).astype(query.dtype)
    weights = jnp.reshape(weights, (batch, groups, heads // groups, queries, key.shape[1]))
    out = jnp.einsum("bghqk,bkgf->bqghf", weights, value)
    return jnp.reshape(out, query.shape), jnp.moveaxis(logsumexp(products, axis=-1), 1, 2)
