"""Puts object code of the kernels that everybody needs into the wheel of the CPU backend in ``dist/``.

Takes a Python that has the backend. Calls what users call operation by operation, and makes the kernels of that, which
serve arrays of most shapes, the parts of the native runtime, and products of matrices: for each of the usual
processors, whichever this one is.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from wheel.wheelfile import WheelFile

import polyax as jax
import polyax.numpy as jnp
from polyax import nn, random
from polyax_cpu import compiler, kernels, pool, processors, shipped
from polyax_cpu.libraries import products
from polyax_kernels.ir.kernel import Kernel
from projects import DIST

UNARY = """
abs arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil cos cosh exp exp2 expm1 floor isfinite isinf isnan log log10
log1p log2 negative reciprocal round sign sin sinh sqrt square tan tanh
"""
BINARY = "arctan2 divide hypot power"
WHOLE = """
add equal floor_divide greater greater_equal less less_equal maximum minimum mod multiply not_equal subtract
"""
ACTIVATIONS = "elu gelu leaky_relu log_sigmoid relu sigmoid silu softplus"
DTYPES = ("float32", "int32", "bool")
SHAPES = ((), (300,), (33, 70))


def results() -> Iterator[Any]:
    """Of what users call."""
    for shape in SHAPES:
        yield from of_floats(jax.device_put(np.ones(shape, "float32")))
        yield from of_others(shape)
    matrix = jax.device_put(np.ones(SHAPES[2], "float32"))
    yield from of_matrices(matrix)
    yield from of_parts(matrix)
    yield from of_parts(matrix[0])
    yield from of_sizes(len(matrix))


def of_floats(x: Any) -> Iterator[Any]:
    for module, names in ((jnp, UNARY), (nn, ACTIVATIONS)):
        yield from (getattr(module, name)(x) for name in names.split())
    for name in (*BINARY.split(), *WHOLE.split()):
        f = getattr(jnp, name)
        yield from (f(x, x), f(x, 2.0), f(2.0, x))
    yield from (x**2, x**3, x**0.5, jnp.where(x > 0, x, x), jnp.where(x > 0, x, 0.0), jnp.clip(x, -1, 1))
    yield from (jnp.zeros_like(x), jnp.ones_like(x), jnp.copy(x))


def of_others(shape: tuple[int, ...]) -> Iterator[Any]:
    x, n, b = (jax.device_put(np.ones(shape, dtype)) for dtype in DTYPES)
    yield from (y.astype(dtype) for y, dtype in itertools.product((x, n, b), DTYPES))
    for f in (getattr(jnp, name) for name in WHOLE.split()):
        yield from (f(n, n), f(n, 2))
    yield from (b & b, b | b, b ^ b, ~b, -n, abs(n), jnp.where(b, x, x), jnp.where(b, n, n))
    yield from (jnp.zeros(shape), jnp.ones(shape), jnp.full(shape, 2.0))
    yield from (f(random.key(0), shape) for f in (random.uniform, random.normal))


def of_matrices(x: Any) -> Iterator[Any]:
    for y in (x[0], x[:, :1]):
        yield from (x + y, x - y, x * y, x / y)
    yield from (x.T, x.ravel(), x[:, 0])


def of_parts(x: Any) -> Iterator[Any]:
    yield from (x[0], x[1:], x[2:5], x[::2], x.at[0].set(1.0), x.at[0].add(1.0))


def of_sizes(n: int) -> Iterator[Any]:
    yield from (jnp.arange(n), jnp.arange(float(n)), jnp.eye(n), jnp.linspace(0, 1, n))
    yield from (random.split(random.key(0)), random.fold_in(random.key(0), 1))


def needed() -> list[Kernel]:
    """The kernels that are written for these, in a process that has written none of them."""
    found, write = list[Kernel](), kernels.module_of

    def noted(kernel: Kernel, *schedule: Any) -> Any:
        found.append(kernel)
        return write(kernel, *schedule)

    kernels.module_of = noted
    try:
        for result in results():
            jax.block_until_ready(result)
    finally:
        kernels.module_of = write
    return found


def made_for(target: processors.Host, needed: list[Kernel]) -> dict[str, bytes]:
    """Object code by its name."""
    with processors.made_for(target):
        texts = [(text, 0) for text in (*(part.source() for part in pool.PARTS), *map(products.source, "sd"))]
        modules = map(kernels.module_of, needed)
        texts += [(kernels.named(module)[1], module.level) for module in modules]
        return {shipped.name_of(text, level, True): compiler.compile(text, level) for text, level in texts}


def put(wheel: Path, folder: Path) -> None:
    """The files of ``folder`` into the package, with what was there."""
    with tempfile.TemporaryDirectory() as temporary:
        whole, new = Path(temporary) / "whole", Path(temporary) / wheel.name  # its name says where its record is
        with WheelFile(wheel) as before:
            before.extractall(whole)
        shutil.copytree(folder, whole / "polyax_cpu" / shipped.FOLDER.name, dirs_exist_ok=True)
        with WheelFile(new, "w") as after:
            after.write_files(str(whole))
        shutil.copy(new, wheel)


def main() -> None:
    (wheel,) = DIST.glob("polyax_cpu-*.whl")
    jax.config.update("jax_compilation_cache", False)  # kernels that are on disk aren't written
    with jax.default_device(jax.devices("cpu")[0]), tempfile.TemporaryDirectory() as folder:
        found = needed()
        for target in processors.TARGETS:
            made = made_for(target, found)
            shipped.write(Path(folder), target, made)
            print(f"{target.cpu}: {len(made)} objects, {sum(map(len, made.values())) // 1000:,} kB")
        put(wheel, Path(folder))
    print(f"{wheel.name}: {wheel.stat().st_size // 1000:,} kB")


if __name__ == "__main__":
    main()
