"""jaxtyping: shapes and dtypes as annotations, checked at run time."""

import jax
import jax.numpy as jnp
from common import program
from jaxtyping import Array, ArrayLike, Float, Int, Key, PRNGKeyArray, PyTree, Shaped, UInt32, jaxtyped, print_bindings


@program()
def annotations():
    assert print_bindings is not None
    x = jnp.ones((2, 3))
    told = {
        "float": isinstance(x, Float[Array, "2 3"]),
        "named": isinstance(x, Float[Array, "a b"]),
        "rank": isinstance(x, Float[Array, "a"]),
        "int": isinstance(x, Int[Array, "..."]),
        "words": isinstance(jax.random.PRNGKey(0), UInt32[Array, "2"]),
        "key": isinstance(jax.random.key(0), Key[Array, ""]),
        "either": isinstance(jax.random.key(0), PRNGKeyArray),
        "any": isinstance(x, Shaped[Array, "..."]),
        "scalar": isinstance(1.0, Float[ArrayLike, ""]),
        "tree": isinstance({"a": x, "b": [x]}, PyTree[Float[Array, "2 3"]]),
    }
    traced = []

    @jax.jit
    def f(y):
        traced.append(isinstance(y, Float[Array, "2 3"]) and not isinstance(y, Float[Array, "3 2"]))
        return y

    f(x)
    return {name: float(v) for name, v in told.items()} | {"traced": float(traced[0])}


def _checker(fn):
    import functools
    import inspect

    signature = inspect.signature(fn)

    @functools.wraps(fn)
    def checked(*args, **kwargs):
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            if not isinstance(value, fn.__annotations__[name]):
                raise TypeError(name)
        return fn(*args, **kwargs)

    return checked


@program()
def functions():
    @jaxtyped(typechecker=_checker)
    def product(a: Float[Array, "i j"], b: Float[Array, "j k"]):  # noqa: F722
        return a @ b

    refused = 0
    try:
        jax.jit(product)(jnp.ones((2, 3)), jnp.ones((2, 3)))
    except Exception as e:
        refused = int("jaxtyping" in type(e).__module__ or isinstance(e, TypeError))
    batched = jax.vmap(product, in_axes=(0, None))(jnp.ones((5, 2, 3)), jnp.ones((3, 2)))
    return {"product": product(jnp.ones((2, 3)), jnp.ones((3, 2))), "batched": batched.sum(), "refused": refused}
