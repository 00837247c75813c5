"""Wrong programs: each raises JAX's error class, says shapes, dtypes and the remedy, and ends at the user's line."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax import lax
from support.process import run


def float32(*shape: int) -> object:
    return jnp.ones(shape, jnp.float32)


def int32(*shape: int) -> object:
    return jnp.ones(shape, jnp.int32)


class Becoming:
    """An object that arrays can be made of."""

    def __jax_array__(self) -> object:
        return jnp.ones(2)


def branch_on_tracer() -> object:
    def f(x):
        if x > 0:
            return x
        return -x

    return jax.jit(f)(1.0)


def loop_on_tracer() -> object:
    def f(x):
        while x < 10:
            x = x * 2
        return x

    return jax.jit(f)(1.0)


def leaked_to_eager() -> object:
    kept = []
    jax.jit(lambda x: kept.append(x * 2))(1.0)
    return kept[0] + 1


def leaked_to_another_trace() -> object:
    kept = []
    jax.jit(lambda x: kept.append(x * 2))(1.0)
    return jax.jit(lambda y: y + kept[0])(1.0)


def leaked_from_grad() -> object:
    kept = []

    def f(x):
        kept.append(x * 2)
        return x

    jax.grad(f)(1.0)
    return jax.jit(lambda y: y + kept[0])(1.0)


def assign_item() -> None:
    x = float32(3)
    x[0] = 1.0


def assign_item_of_tracer() -> object:
    def f(x):
        x[0] = 1.0
        return x

    return jax.jit(f)(float32(3))


def closes_over_shape() -> object:
    return jax.jit(lambda n: jnp.ones(n))(3)


CASES: dict[str, tuple[Callable[[], object], str, str]] = {
    # shapes
    "add": (
        lambda: float32(3, 4) + float32(4, 3),
        "TypeError",
        "add got incompatible shapes for broadcasting: (3, 4), (4, 3).",
    ),
    "lax.add": (
        lambda: lax.add(float32(3), float32(4)),
        "TypeError",
        "add got incompatible shapes for broadcasting: (3,), (4,).",
    ),
    "dot": (
        lambda: jnp.dot(float32(3, 4), float32(3, 4)),
        "TypeError",
        "dot_general requires contracting dimensions to have the same shape, got (4,) and (3,).",
    ),
    "reshape": (
        lambda: float32(3, 4).reshape(5),
        "TypeError",
        "cannot reshape array of shape (3, 4) (size 12) into shape (5,) (size 5)",
    ),
    "concatenate": (
        lambda: jnp.concatenate([float32(3, 4), float32(4, 3)]),
        "TypeError",
        "Cannot concatenate arrays with shapes that differ in dimensions other than the one being concatenated: "
        "concatenating along dimension 0 for shapes (3, 4), (4, 3).",
    ),
    "broadcast_to": (lambda: jnp.broadcast_to(float32(3, 4), (3, 3)), "ValueError", "(3, 3)|float32[3,3]"),
    "axis": (lambda: jnp.sum(float32(3, 4), axis=7), "ValueError", "axis 7 is out of bounds for array of dimension 2"),
    "too many indices": (lambda: float32(3, 4)[0, 0, 0], "IndexError", "Too many indices"),
    # dtypes
    "lax dtypes": (
        lambda: lax.add(float32(3), int32(3)),
        "TypeError",
        "lax.add requires arguments to have the same dtypes, got float32, int32. "
        "(Tip: jnp.add is a similar function that does automatic type promotion on inputs).",
    ),
    "bitwise float": (lambda: jnp.bitwise_and(float32(3), 1), "TypeError", "float32"),
    "string": (lambda: jnp.array("a"), "TypeError", "not a valid JAX array type|not a valid polyax array type"),
    "float index": (lambda: float32(3)[1.5], "TypeError", "Indexer must have integer or boolean type"),
    "ragged": (lambda: jnp.array([[1, 2], [3]]), "ValueError", "inhomogeneous shape"),
    # traced values where concrete ones are needed
    "if": (
        branch_on_tracer,
        "TracerBoolConversionError",
        "Attempted boolean conversion of traced array with shape bool[]",
    ),
    "while": (
        loop_on_tracer,
        "TracerBoolConversionError",
        "Attempted boolean conversion of traced array with shape bool[]",
    ),
    "numpy": (
        lambda: jax.jit(lambda x: np.sin(x))(1.0),
        "TracerArrayConversionError",
        "The numpy.ndarray conversion method __array__() was called on traced array with shape float32[]",
    ),
    "float": (lambda: jax.jit(lambda x: float(x))(1.0), "ConcretizationTypeError", "float32[]"),
    "item": (lambda: jax.jit(lambda x: x.item())(1.0), "ConcretizationTypeError", "the item() method"),
    "tolist": (lambda: jax.jit(lambda x: x.tolist())(1.0), "ConcretizationTypeError", "The tolist() method"),
    "format": (lambda: jax.jit(lambda x: f"{x:.2f}")(1.0), "TypeError", "passed to DynamicJaxprTracer.__format__"),
    "hash": (lambda: jax.jit(lambda x: {x: 1})(1.0), "TypeError", "unhashable type: 'DynamicJaxprTracer'"),
    "branch on two arguments": (
        lambda: jax.jit(lambda x, y: x if x > y else y)(1, 2),
        "TracerBoolConversionError",
        "depends on the values of the arguments x and y.",
    ),
    "branch on three arguments": (
        lambda: jax.jit(lambda *xs: 1 if sum(xs) else 2)(1, 2, 3),
        "TracerBoolConversionError",
        "depends on the values of the arguments xs[0], xs[1], and xs[2].",
    ),
    "branch on keywords": (
        lambda: jax.jit(lambda x, **others: 1 if others["z"] > others["y"] else 2)(x=1, y=2, z=3),
        "TracerBoolConversionError",
        "depends on the values of the arguments others['y'] and others['z'].",
    ),
    "branch on a constant": (
        lambda: jax.jit(lambda: 1 if jnp.add(1, 1) > 2 else 2)(),
        "TracerBoolConversionError",
        "This value became a tracer due to operations on these lines:\n  add at ",
    ),
    "branch on many constants": (
        lambda: jax.jit(lambda: 1 if sum(jnp.add(1, 1) for _ in range(6)) else 2)(),
        "TracerBoolConversionError",
        "(Additional originating lines are not shown.)",
    ),
    "an object that becomes an array": (
        lambda: jax.jit(lambda x: x)(Becoming()),
        "ValueError",
        "Triggering __jax_array__() during abstractification is no longer supported",
    ),
    "dlpack": (lambda: jax.jit(np.from_dlpack)(1.0), "ConcretizationTypeError", "The __dlpack__() method was called"),
    "index": (
        lambda: jax.jit(lambda i: [1, 2, 3][i])(1),
        "TracerIntegerConversionError",
        "The __index__() method was called on traced array with shape int32[]",
    ),
    "traced shape": (closes_over_shape, "TypeError", "Shapes must be 1D sequences of concrete values of integer type"),
    "traced mask": (
        lambda: jax.jit(lambda x: x[x > 0])(float32(3)),
        "NonConcreteBooleanIndexError",
        "Array boolean indices must be concrete; got bool[3]",
    ),
    # leaks and mutation
    "leak to eager": (leaked_to_eager, "UnexpectedTracerError", "float32[]"),
    "leak to a trace": (leaked_to_another_trace, "UnexpectedTracerError", "float32[]"),
    "leak from grad": (leaked_from_grad, "UnexpectedTracerError", "float32[]"),
    "item assignment": (assign_item, "TypeError", "x = x.at[idx].set(y)"),
    "item assignment to a tracer": (assign_item_of_tracer, "TypeError", "x = x.at[idx].set(y)"),
    # lists
    "sum of a list": (
        lambda: jnp.sum([1.0, 2.0]),
        "TypeError",
        "sum requires ndarray or scalar arguments, got <class 'list'>",
    ),
    "max of a tuple": (
        lambda: jnp.max((1.0, 2.0)),
        "TypeError",
        "max requires ndarray or scalar arguments, got <class 'tuple'>",
    ),
    "sin of a list": (
        lambda: jnp.sin([1.0]),
        "TypeError",
        "sin requires ndarray or scalar arguments, got <class 'list'>",
    ),
    # vmap
    "in_axes too short": (
        lambda: jax.vmap(lambda x, y: x + y, in_axes=(0,))(float32(3), float32(3)),
        "ValueError",
        "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments passed to "
        "the function, but got len(in_axes)=1, len(args)=2",
    ),
    "in_axes sizes": (
        lambda: jax.vmap(lambda x, y: x + y)(float32(3, 4), float32(4, 3)),
        "ValueError",
        "vmap got inconsistent sizes for array axes to be mapped",
    ),
    "in_axes sizes name types": (
        lambda: jax.vmap(lambda x, y: x + y)(float32(3, 4), float32(4, 3)),
        "ValueError",
        "float32[3,4]",
    ),
    "in_axes rank": (
        lambda: jax.vmap(lambda x: x, in_axes=5)(float32(3, 4)),
        "ValueError",
        "vmap was requested to map its argument along axis 5, which implies that its rank should be at least 6, but is "
        "only 2 (its shape is (3, 4))",
    ),
    "in_axes all None": (
        lambda: jax.vmap(lambda x: x, in_axes=None)(float32(3)),
        "ValueError",
        "vmap must have at least one non-None value in in_axes",
    ),
    "in_axes type": (
        lambda: jax.vmap(lambda x: x, in_axes=("a",))(float32(3)),
        "TypeError",
        "vmap in_axes must be an int, None",
    ),
    "out_axes": (lambda: jax.vmap(lambda x: x, out_axes=3)(float32(3, 4)), "ValueError", "axis 3 is out of bounds"),
    # grad
    "grad of a vector": (
        lambda: jax.grad(lambda x: x)(float32(3, 4)),
        "TypeError",
        "Gradient only defined for scalar-output functions. Output had shape: (3, 4)",
    ),
    "grad of an integer": (
        lambda: jax.grad(lambda x: x.astype(jnp.int32))(1.0),
        "TypeError",
        "grad requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got int32",
    ),
    "grad of a pair": (
        lambda: jax.grad(lambda x: (x, x))(1.0),
        "TypeError",
        "Gradient only defined for scalar-output functions.",
    ),
    "grad at an integer": (
        lambda: jax.grad(lambda x: x * 1.0)(1),
        "TypeError",
        "grad requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but got int32",
    ),
    "argnums": (
        lambda: jax.grad(lambda x: x, argnums=2)(1.0),
        "TypeError",
        "differentiating with respect to argnums=2 requires at least 3 positional arguments",
    ),
    "jvp dtypes": (
        lambda: jax.jvp(lambda x: x, (1.0,), (int32(),)),
        "TypeError",
        "primal and tangent arguments to jax.jvp do not match",
    ),
    "jvp shapes": (
        lambda: jax.jvp(lambda x: x, (float32(3, 4),), (float32(4, 3),)),
        "ValueError",
        "jvp called with different primal and tangent shapes",
    ),
    # what is not an array, or not a device
    "jit of a string": (lambda: jax.jit(lambda x: x)("a"), "TypeError", "<class 'str'>"),
    "jit returns a string": (lambda: jax.jit(lambda x: "a")(1.0), "TypeError", "<class 'str'>"),
    "unmapped result": (
        lambda: jax.vmap(lambda x: x, out_axes=None, axis_name="i")(float32(3)),
        "ValueError",
        "vmap has mapped output (axis_name=i) but out_axes is None",
    ),
    "unhashable static": (
        lambda: jax.jit(lambda x, n: x, static_argnums=(1,))(1.0, np.ones(3)),
        "ValueError",
        "Non-hashable static arguments",
    ),
    "unknown platform": (lambda: jax.devices("quantum"), "RuntimeError", "quantum"),
    "truth of an array": (
        lambda: bool(float32(3)),
        "ValueError",
        "The truth value of an array with more than one element is ambiguous",
    ),
    "hash of an array": (lambda: hash(float32(3)), "TypeError", "unhashable type"),
}


def caught(program: Callable[[], object]) -> BaseException:
    try:
        program()
    except Exception as e:
        return e
    raise AssertionError("the program ran, though it is wrong")


@pytest.mark.parametrize(("program", "kind", "text"), CASES.values(), ids=CASES)
def test_error(program: Callable[[], object], kind: str, text: str) -> None:
    error = caught(program)
    assert kind in [c.__name__ for c in type(error).__mro__], f"{type(error).__name__}: {error}"
    assert any(part in str(error) for part in text.split("|")), str(error)


@pytest.mark.parametrize("name", CASES)
def test_traceback_ends_at_the_users_line(name: str) -> None:
    error = caught(CASES[name][0])
    last = traceback.extract_tb(error.__traceback__)[-1]
    assert last.filename == __file__, f"{last.filename}:{last.lineno} {last.line}"


def test_unknown_platform_names_what_there_is() -> None:
    assert re.search(r"reference", str(caught(lambda: jax.devices("quantum"))))


def test_unknown_device_number() -> None:
    done = run("import polyax.numpy as jnp; jnp.ones(3) + 1", POLYAX_DEVICE="reference:97")
    last = [line for line in done.stderr.splitlines() if "Error" in line][-1]
    assert last.startswith("RuntimeError") and "reference:97" in last and "reference:0" in last


def test_unknown_platform_in_the_environment() -> None:
    done = run("import polyax.numpy as jnp; jnp.ones(3) + 1", POLYAX_PLATFORMS="quantum")
    last = [line for line in done.stderr.splitlines() if "Error" in line][-1]
    assert last.startswith("RuntimeError: Unknown backend quantum") and "cpu" in last


def test_traced_condition_names_the_line_and_the_remedy() -> None:
    message = str(caught(branch_on_tracer))
    assert "test_bad_input.py" in message and "cond" in message, message


def test_unfiltered_traceback_on_request() -> None:
    with jax.config.override(traceback_filtering=False):
        error = caught(lambda: float32(3) + float32(4))
    assert traceback.extract_tb(error.__traceback__)[-1].filename != __file__


def test_only_arguments_can_be_made_static() -> None:
    constant = lambda: jax.jit(lambda: 1 if jnp.add(1, 1) > 2 else 2)()
    assert "static_argnums" in str(caught(branch_on_tracer)) and "static_argnums" not in str(caught(constant))
    assert "static_argnums" in str(caught(lambda: jax.checkpoint(lambda: 1 if jnp.add(1, 1) > 2 else 2)()))
