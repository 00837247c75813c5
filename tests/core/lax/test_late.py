"""What ``polyax.lax`` loads when it is first asked for: ragged and scaled products, convolutions, barriers, answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import export, lax
from support.agreeing import Agreeing, agreeing
from support.process import output

R = np.random.default_rng(3)
A, B = R.standard_normal((6, 2)), R.standard_normal((3, 2, 4))
SIZES = np.array([2, 1, 2])
BATCH, WIDE = R.standard_normal((2, 6, 3)), R.standard_normal((2, 6, 4))


def ragged_rows(lhs: Any, rhs: Any, sizes: Any) -> Any:
    out, begin = np.zeros((lhs.shape[0], rhs.shape[-1])), 0
    for g, n in enumerate(sizes):
        out[begin : begin + n] = lhs[begin : begin + n] @ rhs[g]
        begin += n
    return out


def ragged_contraction(lhs: Any, rhs: Any, sizes: Any) -> Any:
    """Per example of a batch, the product over each group of the dimension that is contracted."""
    ends = np.cumsum(sizes)
    parts = [slice(e - n, e) for e, n in zip(ends, sizes, strict=True)]
    return np.stack([np.einsum("bmk,bmn->bkn", lhs[:, p], rhs[:, p]) for p in parts])


CONTRACTED = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((0,), (0,))), [1], [])
IN_BATCH = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((0,), (0,))), [0], [])
SIGNAL, LOCAL = R.standard_normal((2, 2, 4)), R.standard_normal((3, 6, 2))


def local_convolution(x: Any, w: Any) -> Any:
    out = np.zeros((2, 3, 2))
    for b, f, p in np.ndindex(2, 3, 2):
        out[b, f, p] = (x[b, :, p : p + 3].reshape(-1) * w[f, :, p]).sum()
    return out


CASES: dict[str, Agreeing] = {
    "ragged_dot": agreeing(lax.ragged_dot, ragged_rows, A, B, SIZES),
    "ragged_dot with all rows": agreeing(lax.ragged_dot, ragged_rows, A, B, np.array([0, 5, 1])),
    "ragged contraction": agreeing(
        lambda x, y: lax.ragged_dot_general(x, y, SIZES, CONTRACTED), lambda x, y: ragged_contraction(x, y, SIZES),
        BATCH, WIDE,
    ),
    "ragged batch": agreeing(
        lambda x, y: lax.ragged_dot_general(x, y, np.array([1, 1]), IN_BATCH),
        lambda x, y: np.einsum("bmk,bmn->bkn", x, y), BATCH, WIDE,
    ),
    "scaled_dot": agreeing(
        lambda x, y, s: lax.scaled_dot(x, y, lhs_scale=s, preferred_element_type=np.float64),
        lambda x, y, s: (x * np.repeat(s, 3, 1)) @ y, R.standard_normal((2, 6)), A, R.standard_normal((2, 2)),
    ),
    "scaled_dot of batches": agreeing(
        lambda x, y, s: lax.scaled_dot(x, y, rhs_scale=s, preferred_element_type=np.float64),
        lambda x, y, s: x @ (y * np.repeat(s, 2, 1)),
        np.swapaxes(BATCH, 1, 2), WIDE, R.standard_normal((2, 3, 4)),
    ),
    "local convolution": agreeing(
        lambda x, w: lax.conv_general_dilated_local(x, w, (1,), "VALID", (3,)), local_convolution, SIGNAL, LOCAL
    ),
    "local convolution in another layout": agreeing(
        lambda x, w: lax.conv_general_dilated_local(
            x, w, (1,), "VALID", (3,), dimension_numbers=("HNC", "IHO", "CHN")),
        lambda x, w: np.transpose(local_convolution(np.transpose(x, (1, 2, 0)), np.transpose(w, (2, 0, 1))), (1, 2, 0)),
        np.transpose(SIGNAL, (2, 0, 1)), np.transpose(LOCAL, (1, 2, 0)),
    ),
    "optimization_barrier": agreeing(lambda x, y: lax.optimization_barrier((x, y * 2)), lambda x, y: (x, y * 2), A, B),
    "index_take": agreeing(
        lambda x, i, j: lax.index_take(x, (i, j), (0, 2)), lambda x, i, j: x[i, :, j],
        B, np.array([2, 0, -1, 1]), np.array([1, 0, 3, -2]),
    ),
    "index_take, clamped": agreeing(
        lambda x, i: lax.index_take(x, (i,), (1,)), lambda x, i: x.T[np.clip(i, 0, 1)], A, np.array([1, 0, 7])
    ),
    "mul to another type": agreeing(
        lambda x, y: lax.mul(x, y, out_dtype=np.float64), lambda x, y: x.astype(float) * y, A.astype("float32"), A,
        order=1,
    ),
    "exp with an accuracy": agreeing(lambda x: lax.exp(x, accuracy=lax.AccuracyMode.HIGHEST), np.exp, A),
    "conv_transpose with consistent padding": agreeing(
        lambda x, w: lax.conv_transpose(x, w, (2,), [(0, 2)], use_consistent_padding=True),
        lambda x, w: np.asarray(lax.conv_transpose(x, w, (2,), [(2, 0)])), SIGNAL, R.standard_normal((3, 4, 2)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_agrees(name: str) -> None:
    CASES[name].check()


ALGORITHMS = {
    lax.DotAlgorithmPreset.F32_F32_F32: lax.Precision.HIGHEST,
    lax.DotAlgorithmPreset.TF32_TF32_F32: lax.Precision.HIGH,
    lax.DotAlgorithmPreset.BF16_BF16_F32_X9: lax.Precision.HIGHEST,
    lax.DotAlgorithmPreset.BF16_BF16_F32: lax.Precision.DEFAULT,
    lax.DotAlgorithm("float32", "float32", "float32"): lax.Precision.HIGHEST,
    lax.DotAlgorithm("bfloat16", "bfloat16", "float32", 2, 2, 3): lax.Precision.HIGH,
}


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_algorithms_are_precisions(algorithm: Any) -> None:
    eqn = polyax.make_jaxpr(lambda x: lax.dot(x, x, precision=algorithm))(jnp.ones((2, 2))).eqns[0]
    assert eqn.params["precision"] == (ALGORITHMS[algorithm],) * 2


def test_shapes_of_convolutions() -> None:
    layout = ("NHC", "HIO", "NHC")
    assert lax.conv_shape_tuple((4, 2, 5), (3, 2, 3), (2,), [(1, 1)], batch_group_count=2) == (2, 3, 3)
    assert lax.conv_general_shape_tuple((1, 5, 2), (3, 2, 3), (1,), "SAME", layout) == (1, 5, 3)
    for padding in ("SAME", "VALID", [(0, 1)]):
        x, w = jnp.ones((1, 5, 2)), jnp.ones((3, 2, 3))
        made = lax.conv_transpose(x, w, (2,), padding, dimension_numbers=layout)
        assert lax.conv_transpose_shape_tuple(x.shape, w.shape, (2,), padding, layout) == made.shape
    assert lax.conv_general_permutations(layout) == ((0, 2, 1), (2, 1, 0), (0, 2, 1))


def test_a_sink_keeps_what_nothing_uses() -> None:
    def f(x: Any) -> Any:
        lax.dce_sink({"a": x * 2})
        return x + 1

    program = polyax.make_jaxpr(polyax.jit(f))(1.0)
    inner = program.eqns[0].params["jaxpr"]
    assert [str(e) for e in inner.effects] == ["NoDCE"] and polyax.jit(f)(1.0) == f(1.0) == 2
    assert polyax.grad(f)(1.0) == 1 and polyax.vmap(f)(jnp.ones(2)).tolist() == [2, 2]


def test_staged_values_belong_to_the_program() -> None:
    seen: list[Any] = []
    polyax.make_jaxpr(lambda x: seen.append(lax.stage(2.0)) or x)(1.0)
    assert isinstance(seen[0], polyax.core.Tracer) and isinstance(lax.stage(np.ones(2)), polyax.Array)


def test_answers() -> None:
    assert lax.dtype(1.5) == lax.dtype(np.float32) == lax.dtype("f4") == np.float32
    assert lax.shape_as_value((2, 3)).tolist() == [2, 3] and lax.shape_as_value(()).shape == (0,)
    assert isinstance(lax.shape_as_value(()), polyax.Array)


def test_symbolic_shapes_as_values() -> None:
    sizes = polyax.jit(lambda x: lax.shape_as_value(x.shape))
    (exported, given) = export.export(sizes), polyax.ShapeDtypeStruct(export.symbolic_shape("a, 3*b"), np.float32)
    assert exported(given).call(np.ones((2, 9), np.float32)).tolist() == [2, 9]


def test_full_with_a_place() -> None:
    device = polyax.devices("reference")[0]
    place = polyax.sharding.SingleDeviceSharding(device)
    assert lax.full((2,), 1, sharding=place).devices() == {device}
    assert lax.full_like(jnp.ones(3), 2, sharding=place).tolist() == [2, 2, 2]
    assert lax.full_like(polyax.ShapeDtypeStruct((2,), np.float32), 2).tolist() == [2, 2]
    assert lax.full_like(polyax.typeof(1), 2).weak_type


def ragged(along: list[int], groups: list[int]) -> Any:
    return lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), along, groups)


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "no accuracy": (lambda: lax.exp(1.0, accuracy=3), NotImplementedError, "Accuracy 3 not supported"),
    "a negative tolerance": (lambda: lax.Tolerance(-1.0), ValueError, "must be non-negative"),
    "other groups": (lambda: lax.ragged_dot(A, B, SIZES[:2]), TypeError, "group dimension size to be 2, got 3"),
    "sizes that are no integers": (lambda: lax.ragged_dot(A, B, B[0, 0]), TypeError, "requires integer group_sizes"),
    "sizes for another batch": (
        lambda: lax.ragged_dot_general(BATCH, WIDE, np.ones((3, 3), int), CONTRACTED), TypeError,
        r"group_sizes to have shape \(2, 3\), got \(3, 3\)",
    ),
    "two ragged dimensions": (
        lambda: lax.ragged_dot_general(A, B, SIZES, ragged([0, 1], [0])),
        TypeError, "exactly one lhs ragged dimension",
    ),
    "groups of rhs that aren't contracted": (
        lambda: lax.ragged_dot_general(A, B, SIZES, ragged([0], [])),
        TypeError, "exactly one rhs group dimension",
    ),
    "an offset": (lambda: lax.ragged_dot(A, B, SIZES, group_offset=1), NotImplementedError, "group_offset"),
    "a scale of another size": (lambda: lax.scaled_dot(A, A.T, lhs_scale=A[:4]), TypeError, "lhs_scale must have the"),
    "four dimensions": (lambda: lax.scaled_dot(*[np.ones((1, 1, 1, 1))] * 2), ValueError, "needs dimension_numbers"),
    "indices for too few axes": (lambda: lax.index_take(A, (SIZES,), (0, 1)), ValueError, "for each axis, got 1"),
    "no dtype": (lambda: lax.dtype([1]), TypeError, r"Cannot determine dtype of \[1\]"),
    "a barrier for a text": (lambda: lax.optimization_barrier("x"), TypeError, "the argument of optimization_barrier"),
    "a list to stage": (lambda: lax.stage(["x"]), TypeError, "the argument of stage"),
    "too few paddings": (lambda: lax.conv_shape_tuple((1, 1, 4), (1, 1, 2), (1,), []), TypeError, "explicit pads"),
    "a batch in groups": (
        lambda: lax.conv_shape_tuple((3, 1, 4), (2, 1, 2), (1,), "VALID", 2), ValueError, "isn't divisible",
    ),
    "two layouts": (lambda: lax.conv_general_permutations(("NHC", "HIO")), TypeError, "must be three strings"),
    "no layout": (lambda: lax.conv_general_permutations(("NHC", "HIi", "NHC")), TypeError, "'O' and 'I'"),
    "no place": (lambda: lax.full((2,), 1, sharding=3), ValueError, "Received invalid value: 3"),
    "an unknown name": (lambda: lax.no_such_name, AttributeError, "has no attribute 'no_such_name'"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_told(case: str) -> None:
    call, error, text = REFUSED[case]
    with pytest.raises(error, match=text):
        call()


def test_nothing_of_it_is_loaded_with_polyax() -> None:
    program = "import polyax, sys; print([m for m in sys.modules if m in ('polyax.lax.ragged', 'polyax.lax.barriers')])"
    found = output(program)
    assert found == "[]" and "ragged_dot" in dir(lax)
