"""Complex numbers as pairs of real ones, against NumPy's own."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.numpy_backend import NumpyKernelBackend
from kernels.programs import on_kernels, on_reference, planned, traced

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.ops import basis, convert, elementwise
from polyax_kernels.plan.plan import CallStep, KernelStep

RNG = np.random.default_rng(0)
Z = RNG.standard_normal((3, 4)) + 1j * RNG.standard_normal((3, 4))
W = RNG.standard_normal((3, 4)) + 1j * RNG.standard_normal((3, 4))

UNARY = {
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "exp": np.exp,
    "exp2": np.exp2, "log": np.log, "log1p": np.log1p, "expm1": np.expm1, "sqrt": np.sqrt, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "abs": np.abs, "square": np.square,
}  # fmt: skip
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 1e-5, -1e-5, 1e5, -1e5, 30.0, -700.0, 1e300]
POINTS = np.array([complex(a, b) for a in SPECIAL for b in SPECIAL])


@pytest.mark.parametrize("name", UNARY)
def test_functions_at_branch_cuts_and_far_out(name: str) -> None:
    """All sides of all cuts, and results that overflow in some parts alone."""
    (found,) = on_kernels(getattr(elementwise, name), [POINTS])
    with np.errstate(all="ignore"):
        want = UNARY[name](POINTS)
    if name in ("square", "exp2"):  # NumPy subtracts squares that overflow
        inside = np.abs(POINTS) < 1e150
        found, want = found[inside], want[inside]
    defined = np.isfinite(want)
    np.testing.assert_allclose(found[defined], want[defined], 1e-11)


@pytest.mark.parametrize("name", ["sqrt", "log", "acos", "acosh", "asin", "asinh", "atanh"])
def test_the_sign_of_zero_chooses_the_side_of_a_cut(name: str) -> None:
    edge = np.array([complex(-3, 0.0), complex(-3, -0.0), complex(3, 0.0), complex(3, -0.0)])
    edge = edge * 1j if name == "asinh" else edge
    (found,) = on_kernels(getattr(elementwise, name), [edge])
    np.testing.assert_allclose(found, UNARY[name](edge), 1e-14)


@pytest.mark.parametrize("name", ["exp", "sinh", "cosh", "sin", "cos"])
def test_what_overflows_has_no_nan(name: str) -> None:
    (found,) = on_kernels(getattr(elementwise, name), [np.array([1e5 + 0j, 1e5 - 0j, 1e5j, 1e300, 1e300j])])
    assert not np.isnan(found).any()


@pytest.mark.parametrize("shape, axis", [((1,), 0), ((2,), 0), ((7,), 0), ((3, 4), (0, 1)), ((3, 5), 1), ((3, 0), 1)])
def test_products_of_many_are_numpys(shape: tuple[int, ...], axis: int | tuple[int, ...]) -> None:
    z = RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)
    (found,) = on_kernels(lambda z: jnp.prod(z, axis), [z])
    np.testing.assert_allclose(found, np.prod(z, axis), 1e-13)


@pytest.mark.parametrize("reverse", [False, True])
def test_products_so_far_are_numpys(reverse: bool) -> None:
    (found,) = on_kernels(lambda z: lax.cumprod(z, 1, reverse=reverse), [Z])
    want = np.cumprod(Z[:, ::-1], 1)[:, ::-1] if reverse else np.cumprod(Z, 1)
    np.testing.assert_allclose(found, want, 1e-13)


def test_quotients_are_numpys() -> None:
    x = np.array([1 + 2j, 1e300 + 1e300j, 1e-300 + 1e-300j, 1 + 1j, 3 - 1j, 0j])
    y = np.array([3 - 4j, 1e300 - 1e300j, 1e-300 + 0j, 0j, 1e-160j, 2 + 1j])
    with np.errstate(all="ignore"):
        want = x / y
    (found,) = on_kernels(basis.div, [x, y])
    np.testing.assert_allclose(found, want, 1e-15)


INF, NAN = np.inf, np.nan
AT_INFINITY: dict[str, dict[complex, complex]] = {
    "asin": {complex(INF, 0): complex(np.pi / 2, INF), complex(-INF, INF): complex(-np.pi / 4, INF),
             complex(1, -INF): complex(0, -INF), complex(INF, NAN): complex(NAN, INF)},
    "acos": {complex(INF, INF): complex(np.pi / 4, -INF), complex(-INF, -INF): complex(3 * np.pi / 4, INF),
             complex(-INF, 1): complex(np.pi, -INF), complex(INF, NAN): complex(NAN, -INF)},
    "asinh": {complex(0, INF): complex(INF, np.pi / 2), complex(INF, INF): complex(INF, np.pi / 4),
              complex(INF, 1): complex(INF, 0)},
    "acosh": {complex(-INF, -INF): complex(INF, -3 * np.pi / 4), complex(INF, NAN): complex(INF, NAN),
              complex(2, INF): complex(INF, np.pi / 2)},
    "atan": {complex(INF, NAN): complex(np.pi / 2, 0), complex(1, INF): complex(np.pi / 2, 0)},
    "tanh": {complex(INF, INF): complex(1, 0), complex(-INF, NAN): complex(-1, 0), complex(NAN, 0): complex(NAN, 0),
             complex(1, INF): complex(NAN, NAN), complex(-30, INF): complex(NAN, NAN)},
    "sinh": {complex(NAN, 0): complex(NAN, 0), complex(INF, 0): complex(INF, 0)},
    "cosh": {complex(NAN, 0): complex(NAN, 0), complex(-INF, 0): complex(INF, 0)},
    "expm1": {complex(-INF, INF): -1, complex(-INF, NAN): -1, complex(-INF, 1): -1},
    "log": {complex(INF, INF): complex(INF, np.pi / 4), complex(-INF, 1): complex(INF, np.pi)},
}  # fmt: skip


@pytest.mark.parametrize("name", AT_INFINITY)
def test_infinite_parts(name: str) -> None:
    """As C99 and the standard of arrays want it; the sign of zero is open where they leave it open."""
    points = AT_INFINITY[name]
    (found,) = on_kernels(getattr(elementwise, name), [np.array(list(points))])
    want = np.array(list(points.values()), complex)
    for part in (np.real, np.imag):
        np.testing.assert_allclose(part(found), part(want), 1e-14)


def test_the_sign_of_vanishing_results() -> None:
    x = np.array([complex(-INF, 1), complex(-INF, -2.5)])
    (found,) = on_kernels(elementwise.exp, [x])
    for part in (np.real, np.imag):
        assert np.signbit(part(found)).tolist() == [False, True]


def test_the_real_part_of_expm1_of_zero_is_positive() -> None:
    (found,) = on_kernels(elementwise.expm1, [np.array([complex(a, 0.0) for a in (0.0, -0.0)])])
    assert found.tolist() == [0, 0] and not np.signbit([np.real(found), np.imag(found)]).any()


def test_scalars_are_not_aligned_with_rows() -> None:
    """In memory a complex scalar has a dimension, and a row of numbers one more."""
    for op in (basis.sub, basis.add):
        (found,) = on_kernels(op, [np.array(1 + 2j), Z])
        np.testing.assert_allclose(found, 1 + 2j - Z if op is basis.sub else 1 + 2j + Z)


def test_nothing_and_nan_is_nan() -> None:
    (found,) = on_kernels(basis.div, [np.array([1j, 2.0]), np.array([complex(0, np.nan), complex(np.nan, 0)])])
    assert np.isnan(np.real(found)).all() and np.isnan(np.imag(found)).all()


POWERS = {n: (lambda z, n=n: elementwise.integer_pow(z, n)) for n in (0, 1, 2, 3, 7, -1, -2)}


@pytest.mark.parametrize("n", POWERS)
def test_whole_powers(n: int) -> None:
    np.testing.assert_allclose(on_kernels(POWERS[n], [Z])[0], Z**n, 1e-13)


def test_powers() -> None:
    x, y = np.array([0, 0, 0, 2, -2, 1j]), np.array([0, 2, 1 + 1j, 3, 0.5, 1j])
    np.testing.assert_allclose(on_kernels(elementwise.pow, [x + 0j, y + 0j])[0], x.astype(complex) ** y, 1e-13, 1e-15)


PROGRAMS = {
    "moved": lambda z, w: [
        lax.concatenate([z[::-1], w.T.reshape(3, 4)], 1),
        z[1:, ::2],
        lax.pad(z, 1j, [(1, 0, 1)] * 2),
    ],
    "indexed": lambda z, w: [z[jnp.array([2, 0])], z.at[1].add(w[0]), z.at[:, 1].set(2j)],
    "updated": lambda z, w: [lax.dynamic_update_slice(z, w[:1], (jnp.int32(1), jnp.int32(0)))],
    "chosen": lambda z, w: [jnp.where(z.real > 0, z, w), z == w, z != z, jnp.where(z == z, 1, 1j)],
    "summed": lambda z, w: [z.sum(0), (z * w).sum(), jnp.cumsum(z, 1), jnp.cumsum(z * w, 1), z.mean(1)],
    "multiplied": lambda z, w: [z @ w.T, z @ w.real.T, z.imag @ w.T, jnp.einsum("ij,ij->i", z, w)],
    "converted": lambda z, w: [z.real.astype(complex), jnp.conj(z.imag), z.astype("complex64"), (z * 0).astype(bool)],
    "libraries": lambda z, w: [jnp.fft.fft(z * w) * 2, jnp.sort(z * 1j, axis=0), jnp.linalg.eigvals(z[:, :3])],
    "convolved": lambda z, w: [jnp.convolve(z[0], w[0]), jnp.convolve(z[0].real, w[0])],
    "scanned": lambda z, w: lax.scan(lambda c, x: (c * x + 1j, (c, abs(c))), w[0], z),
    "repeated": lambda z, w: lax.while_loop(
        lambda c: abs(c[0]).sum() < 1e3, lambda c: (c[0] * w * 3, c[1] + 1), (z, 0)
    ),
    "branched": lambda z, w: [lax.cond(z[0, 0].real > 0, lambda a, b: a * b, lambda a, b: a, z, w)],
    "constant": lambda z, w: [
        z * W,
        z + 1j,
        jnp.array([1j, 2]) * z[0, 0],
        lax.scan(lambda c, x: (c * W[0], x), z[0], z)[0],
    ],
    "gradients": lambda z, w: polyax.vjp(lambda z, w: jnp.sin(z) * w / (z + 3), z, w)[1](w),
    "called": lambda z, w: [polyax.jit(lambda z: z * 2j)(z), polyax.checkpoint(lambda z: jnp.exp(z))(w)],
    "by scalars": lambda z, w: [z / w[0, 0], z[0, 0] / w, z[0, 0] * w, z**2.5, w[0, 0] ** z, z.sum() ** 2],
    "by rows": lambda z, w: [lax.div(z[:1], w), lax.div(z, w[:, :1]), lax.pow(z[:1, :1], w), lax.mul(z, w[:1])],
    "results of others": lambda z, w: [z, w.real, lax.complex(z.real, w.imag)],
    "empty": lambda z, w: [z[:0] * w[:0], z[:0].sum(0), z[:, :0] @ w[:, :0].T],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    fun = lambda z, w: polyax.tree.leaves(PROGRAMS[name](z, w))
    with polyax.enable_x64(True):
        pairs = zip(on_kernels(fun, [Z, W]), on_reference(fun, [Z, W]), strict=True)
    for found, want in pairs:
        assert (found.shape, found.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(found, want, 1e-12 if found.dtype.itemsize > 8 else 1e-6, 1e-12)


def test_elementwise_programs_are_one_kernel() -> None:
    def fun(z, w):
        return basis.mul(basis.add(elementwise.exp(z), w), z)

    (step,) = planned(NumpyKernelBackend(), traced(fun, [Z, W])).steps
    assert isinstance(step, KernelStep)


def test_libraries_read_what_is_in_memory() -> None:
    """Words are neither taken apart nor put together for a library alone."""
    with polyax.enable_x64(True):
        (step,) = planned(NumpyKernelBackend(), traced(jnp.fft.fft, [Z])).steps
    assert isinstance(step, CallStep)
    assert step.primitive.name == "fft"
    assert step.arg_avals[0].dtype == step.out_avals[0].dtype == np.dtype("complex128")


UPDATES = {
    "slice": lambda x, y: lax.dynamic_update_slice(x, y, (1, 2)),
    "set": lambda x, y: x.at[jnp.array([2, 0])].set(y),
    "add": lambda x, y: x.at[jnp.array([2, 2])].add(y),
    "one by one": lambda x, y: x.at[jnp.array([1, 2, 2]), jnp.array([0, 3, 3])].add(2j),
}
MOVES = {
    "slice": lambda z: z[::2, 1:3],
    "repeat": lambda z: jnp.repeat(z, 2),
    "joined": lambda z: jnp.pad(z, ((0, 0), (2, 1)), mode="edge"),
    "broadcast": lambda z: jnp.broadcast_to(z[:, None], (3, 2, 4)),
    "reflected": lambda z: jnp.pad(z, ((0, 0), (2, 1)), mode="reflect"),
    "one column": lambda z: z[::2, 1],
}


@pytest.mark.parametrize("name", UPDATES)
def test_what_is_updated_is_not_taken_apart(name: str) -> None:
    y = Z[:2] if name != "slice" else Z[:2, :2]
    args = [Z.astype("complex64"), y.astype("complex64")]
    np.testing.assert_allclose(on_kernels(UPDATES[name], args), on_reference(UPDATES[name], args), 1e-6)
    steps = planned(NumpyKernelBackend(), traced(UPDATES[name], args)).steps
    assert not any("part" in map(str, step.kernel.primitives) for step in steps if isinstance(step, KernelStep))


def test_products_with_slices_that_do_not_meet_are_kernels() -> None:
    times = lambda x, y: x.at[::2].multiply(y)
    args = [Z.astype("complex64"), W[::2].astype("complex64")]
    np.testing.assert_allclose(on_kernels(times, args), on_reference(times, args), 1e-6)
    assert not any(isinstance(step, CallStep) for step in planned(NumpyKernelBackend(), traced(times, args)).steps)


@pytest.mark.parametrize("name", MOVES)
def test_doubles_are_moved_whole(name: str) -> None:
    """A kernel reads and writes both parts of a number as one row of two."""
    np.testing.assert_array_equal(on_kernels(MOVES[name], [Z]), on_reference(MOVES[name], [Z]))
    with polyax.enable_x64(True):
        steps = planned(NumpyKernelBackend(), traced(MOVES[name], [Z])).steps
    kernels = [step.kernel for step in steps if isinstance(step, KernelStep)]
    assert kernels and all(len(stage.stores) == 1 for kernel in kernels for stage in kernel.stages)


def test_what_arithmetic_reads_is_moved_as_parts() -> None:
    """Nothing is stored in between, and one kernel does all."""
    product = lambda z: z[:, :2] * z[:, 2:]
    np.testing.assert_allclose(on_kernels(product, [Z]), on_reference(product, [Z]), 1e-14)
    with polyax.enable_x64(True):
        (step,) = planned(NumpyKernelBackend(), traced(product, [Z])).steps
    assert isinstance(step, KernelStep)


def test_programs_without_complex_numbers_stay() -> None:
    from polyax_kernels.lower.complexes.rewrite import as_pairs

    closed = traced(convert.copy, [Z.real])
    assert as_pairs(closed, None) is closed  # type: ignore[arg-type]


@pytest.mark.parametrize("shapes", [((1, 4), (3, 4)), ((3, 4), (1, 4)), ((), (3, 4))], ids=str)
def test_parts_are_stretched(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    """As vmap binds them, where one part is the same for all."""
    re, im = (RNG.standard_normal(shape) for shape in shapes)
    (found,) = on_kernels(convert.complex_p.bind1, [re, im])
    np.testing.assert_array_equal(found, re + 1j * im)


def test_infinity_to_real_powers_is_real():
    x, y = np.full(3, np.inf + 0j), np.array([2, 0.5, -1]) + 0j
    assert on_kernels(elementwise.pow, [x, y])[0].tolist() == [np.inf + 0j, np.inf + 0j, 0]


def test_complex_numbers_that_are_results_as_they_are_written() -> None:
    assert polyax.jit(lambda x: (x, 2j))(1.0) == (1.0, 2j)
    assert polyax.jit(lambda x: lax.cond(x > 0, lambda: 1j, lambda: 2j))(1.0) == 1j


def test_products_of_what_is_moved() -> None:
    with polyax.default_device("cpu"), polyax.enable_x64(True):
        found = polyax.jit(lambda z: (z.T @ z, z[::2].T @ z[1:], z[:, ::2] @ z[:, 1:3].T))(Z)
    for x, want in zip(found, (Z.T @ Z, Z[::2].T @ Z[1:], Z[:, ::2] @ Z[:, 1:3].T), strict=True):
        np.testing.assert_allclose(x, want, 1e-12)
