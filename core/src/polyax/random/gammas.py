"""Gamma numbers, by rejection, and the distributions that are made of them. Bit for bit those of JAX."""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.api import jit, vmap
from polyax.control.calls.custom_jvp import custom_jvp
from polyax.control.calls.custom_vmap import custom_vmap
from polyax.control.flow import looping
from polyax.ir import dtypes
from polyax.ir.primitive import Primitive, def_rule
from polyax.lax import lenient as lax
from polyax.meshes.resharding import with_out_sharding
from polyax.numpy.promotion import concrete_shape, convert, unwrap
from polyax.random import generators
from polyax.random.keys import check_key, key_impl
from polyax.random.samplers import exponential, float_dtype, normal, rademacher, sample_shape, spread, two_keys, uniform
from polyax.trace.varying import varying_like
from polyax.transforms.jvp import jvp_flat
from polyax.transforms.vmap import batch_flat


@with_out_sharding
def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Numbers with density x**(a - 1) exp(-x) / gamma(a).

    Args:
      a: shape parameters, which broadcast to ``shape``.

    >>> from polyax import random
    >>> random.gamma(random.PRNGKey(0), 2.0, (2, 3)).shape
    (2, 3)
    """
    kind, shape = float_dtype("gamma", dtype), sample_shape("gamma", shape, a)
    return _gamma(check_key("gamma", key), spread(a, shape, kind), False)


@with_out_sharding
def loggamma(key: Any, a: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """The logarithms of gamma numbers, also where these underflow."""
    kind, shape = float_dtype("loggamma", dtype), sample_shape("loggamma", shape, a)
    return _gamma(check_key("loggamma", key), spread(a, shape, kind), True)


@jit(static_argnames=("in_logs",), inline=True)
def _gamma(key: Any, a: Any, in_logs: bool) -> Any:
    return _in_logs(key, a) if in_logs else _plain(key, a)


@custom_jvp
def _plain(key: Any, a: Any) -> Any:
    return _each(key, a, False)


@custom_jvp
def _in_logs(key: Any, a: Any) -> Any:
    return _each(key, a, True)


@_plain.defjvp
def _plain_jvp(primals: Any, tangents: Any) -> Any:
    """A number moves with its shape while its place in the distribution stays."""
    x = _plain(*primals)
    return x, tangents[1] * lax.random_gamma_grad(primals[1], x)


@_in_logs.defjvp
def _in_logs_jvp(primals: Any, tangents: Any) -> Any:
    """The logarithm of a number that underflows moves as that of the smallest one."""
    log_x = _in_logs(*primals)
    x = lax.max(lax.exp(log_x), dtypes.finfo(log_x.dtype).tiny)
    return log_x, tangents[1] * (lax.random_gamma_grad(primals[1], x) / x)


def _each(key: Any, a: Any, in_logs: bool) -> Any:
    """One number for each shape parameter, each with a key of its own."""
    shape = np.shape(a)
    flat = lax.reshape(a, (prod(shape),))
    if key_impl(key) in ("rbg", "unsafe_rbg"):
        rows = _in_turn(in_logs)(*(lax.broadcast(x, (1,)) for x in (key, flat)))
        return lax.reshape(rows, shape)
    keys = generators.split(key, flat.shape)
    return lax.reshape(vmap(functools.partial(_rejection, in_logs=in_logs))(keys, flat), shape)


@functools.cache
def _in_turn(in_logs: bool) -> Callable[..., Any]:
    """Rows of numbers, one for each key and as long as its row of shapes, one number after another as in JAX.

    Mapped over keys, rbg draws all bits from the first: so rows stay rows under ``vmap``.
    """

    @custom_vmap
    def rows(keys: Any, a: Any) -> Any:
        of_rows = vmap(lambda key: generators.split(key, a.shape[1:]))(keys)
        each = (lax.reshape(x, (a.size, *x.shape[2:])) for x in (of_rows, a))
        return lax.reshape(looping.map(lambda x: _rejection(x[0], x[1], in_logs), tuple(each)), a.shape)

    @rows.def_vmap
    def _(size: int, mapped: Any, *args: Any) -> Any:
        full = [x if m else lax.broadcast(x, (size,)) for m, x in zip(mapped, args, strict=True)]
        return lax.reshape(
            rows(*(lax.reshape(x, (size * x.shape[1], *x.shape[2:])) for x in full)), full[1].shape
        ), True

    return rows


def _rejection(key: Any, a: Any, in_logs: bool) -> Any:
    """The method of Marsaglia and Tsang (2000) for a >= 1; below, a number for a + 1 times u**(1 / a)."""
    dtype = a.dtype
    large = a >= 1
    d = lax.select(large, a, a + 1) - dtype.type(1 / 3)
    c = dtype.type(1 / 3) / lax.sqrt(d)
    key, other = two_keys(key)
    v = _accepted(key, c, d)
    if in_logs:
        log_u = -exponential(other, (), dtype)
        boost = jnp.where(large | (log_u == 0), 0, log_u * (1 / a))
        return lax.log(d) + lax.log(v) + boost
    u = 1 - uniform(other, (), dtype)
    return d * v * jnp.where(large, 1, lax.pow(u, 1 / a))


def _accepted(key: Any, c: Any, d: Any) -> Any:
    """The cube of 1 + c x for a normal x, which is accepted by comparison with a uniform number."""
    dtype = d.dtype

    def rejected(state: Any) -> Any:
        _, square, v, u = state
        squeeze = u >= 1 - dtype.type(0.0331) * (square * square)
        return squeeze & (lax.log(u) >= square * dtype.type(0.5) + d * ((1 - v) + lax.log(v)))

    def propose(state: Any) -> Any:
        key, of_x, of_u = generators.split(state[0], (3,))
        first = of_x, *varying_like((key, c), dtype.type(0), dtype.type(-1))
        _, x, v = lax.while_loop(lambda s: s[2] <= 0, lambda s: _normal(s[0], c), first)
        return key, x * x, v * v * v, uniform(of_u, (), dtype)

    start = varying_like((key, c), key, dtype.type(0), dtype.type(1), dtype.type(2))
    return lax.while_loop(rejected, propose, start)[2]


def _normal(key: Any, c: Any) -> Any:
    key, own = two_keys(key)
    x = normal(own, (), c.dtype)
    return key, x, 1 + x * c


# --- as a primitive


random_gamma_p = Primitive("random_gamma")
"""``random_gamma[log_space] key a``: gamma numbers for each of ``a``. It becomes what they are made of where it is
used.
"""
random_gamma_p.never("transpose", "gamma numbers are no linear function of their shapes")
random_gamma_p.never("factors", "it is in no program: what it becomes is")


def _numbers(key: Any, a: Any, *, log_space: bool) -> list[Any]:
    return [(_in_logs if log_space else _plain)(key, a)]


random_gamma_p.impl = random_gamma_p.decompose = _numbers
random_gamma_p.record = lambda _, args, params: _numbers(*args, **params)
random_gamma_p.abstract_eval = lambda key, a, **_: [a]


@def_rule(random_gamma_p, "jvp")
def _jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    return jvp_flat(functools.partial(_numbers, **params), primals, tangents)


@def_rule(random_gamma_p, "batch")
def _batch(axis: Any, args: Any, dims: Any, **params: Any) -> Any:
    return batch_flat(functools.partial(_numbers, **params), axis, args, dims)


# --- made of gamma numbers --------------------------------------------------------------------------------------------


@with_out_sharding
def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Numbers in [0, 1] with density proportional to x**(a - 1) (1 - x)**(b - 1)."""
    kind, shape = float_dtype("beta", dtype), sample_shape("beta", shape, a, b)
    first, second = two_keys(check_key("beta", key))
    logs = [loggamma(k, x, shape, kind) for k, x in ((first, a), (second, b))]
    most = lax.max(*logs)
    x, y = (lax.exp(z - most) for z in logs)
    return x / (x + y)


@with_out_sharding
def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Vectors of positive numbers that sum to one, with density proportional to the product of x**(alpha - 1).

    Raises:
      ValueError: ``alpha`` has no dimension.

    >>> from polyax import random
    >>> import polyax.numpy as jnp
    >>> x = random.dirichlet(random.key(0), jnp.ones(3))
    >>> bool(abs(x.sum() - 1) < 1e-6)
    True
    """
    kind = float_dtype("dirichlet", dtype)
    alpha = jnp.asarray(convert(unwrap(alpha), kind))
    if alpha.ndim < 1:
        raise ValueError(f"dirichlet requires alpha.ndim >= 1, got alpha.ndim == {alpha.ndim}")
    batch = alpha.shape[:-1]
    shape = batch if shape is None else sample_shape("dirichlet", shape, np.broadcast_to(np.float32(0), batch))
    logs = loggamma(check_key("dirichlet", key), alpha, (*shape, alpha.shape[-1]), kind)
    x = lax.exp(logs - lax.stop_gradient(logs.max(-1, keepdims=True)))
    return x / x.sum(-1, keepdims=True)


@with_out_sharding
def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Sums of the squares of ``df`` standard normal numbers."""
    kind, shape = float_dtype("chisquare", dtype), sample_shape("chisquare", shape, df)
    return lax.exp(loggamma(check_key("chisquare", key), convert(unwrap(df), kind) / 2, shape, kind)) * kind.type(2)


@with_out_sharding
def f(key: Any, dfnum: Any, dfden: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Quotients of two chi-square numbers, each divided by its degrees of freedom."""
    kind, shape = float_dtype("f", dtype), sample_shape("f", shape, dfnum, dfden)
    of_den, of_num = two_keys(check_key("f", key))
    num, den = (convert(unwrap(x), kind) for x in (dfnum, dfden))
    return (chisquare(of_num, num, shape, kind) / num) / (chisquare(of_den, den, shape, kind) / den)


@with_out_sharding
def t(key: Any, df: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Numbers of Student's distribution: normal ones over the roots of chi-square ones."""
    kind, shape = float_dtype("t", dtype), sample_shape("t", shape, df)
    of_normal, of_gamma = two_keys(check_key("t", key))
    half = convert(unwrap(df), kind) / 2
    return normal(of_normal, shape, kind) * lax.sqrt(half / gamma(of_gamma, half, shape, kind))


@with_out_sharding
def generalized_normal(key: Any, p: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Numbers with density proportional to exp(-abs(x)**p)."""
    kind, shape = float_dtype("generalized_normal", dtype), concrete_shape(shape)
    of_gamma, of_sign = two_keys(check_key("generalized_normal", key))
    size = lax.pow(gamma(of_gamma, 1 / p, shape, kind), spread(1 / p, shape, kind))
    return rademacher(of_sign, shape, kind) * size


@with_out_sharding
def ball(key: Any, d: int, p: Any = 2, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Points uniform in the unit ball of the p-norm in ``d`` dimensions (Barthe et al., 2005)."""
    kind, shape = float_dtype("ball", dtype), concrete_shape(shape)
    first, second = two_keys(check_key("ball", key))
    points = generalized_normal(first, p, (*shape, int(d)), kind)
    rest = exponential(second, shape, kind)
    norm = lax.pow((jnp.abs(points) ** p).sum(-1) + rest, kind.type(1 / p))
    return points / norm[..., None]
