"""Random programs for any module with JAX's interface: ``Program(seed, module)`` has arguments and is a function.

Each choice depends on the seed, shapes and dtypes alone. Knows nothing of polyax: run with JAX as the module, the same
seeds give an oracle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from random import Random
from typing import Any

import numpy as np
from fuzz.complexes import complex_numbers
from fuzz.control import control
from fuzz.operations import OPERATIONS
from fuzz.pool import Context, Value
from fuzz.record import Recorder, compiled
from fuzz.source import Function, literal

SIZES = (0, 1, 1, 2, 3, 3, 5, 7)
DTYPES = ("float32", "float32", "float32", "int32", "bool", "uint8")


class Case:
    """A function as text that runs, and its arguments as NumPy arrays. ``types`` are those of all its names."""

    def __init__(self, function: Function, args: list[np.ndarray], types: dict[str, Any], module: Any) -> None:
        self.function, self.args, self.types, self.module = function, args, types, module
        self.text = str(function)

    def with_function(self, function: Function) -> Case:
        return Case(function, self.args, self.types, self.module)

    @cached_property
    def run(self) -> Callable[..., tuple[Any, ...]]:
        return compiled(self.function, self.module)

    @cached_property
    def plain(self) -> Callable[..., tuple[Any, ...]]:
        """The same without control flow, calls and own rules."""
        return compiled(self.function, self.module, plain=True)

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        return self.run(*map(self.module.numpy.asarray, args))

    def loss(self, *args: Any) -> Any:
        """The sum of all inexact results, which ``grad`` can be taken of."""
        return loss(self.module, self(*args))

    @property
    def inexact(self) -> tuple[int, ...]:
        return tuple(n for n, x in enumerate(self.args) if x.dtype.kind == "f")

    @property
    def forward(self) -> bool:
        """Whether the program has derivatives in forward mode; those with ``custom_vjp`` don't."""
        return "own_vjp" not in self.text

    @property
    def backward(self) -> bool:
        """Whether it has them in reverse mode; loops of unknown length don't."""
        return not ("while_loop" in self.text or "fori_loop(0, v" in self.text)

    def __str__(self) -> str:
        """What can be pasted into a test."""
        return f"{self.text}\nargs = {literal(self.args)}\n"


class Program(Case):
    """A random one.

    ``depth`` says how deep control flow nests; ``smooth`` programs have derivatives of any order everywhere, for
    ``dtype`` arguments; ``sizes`` are those that dimensions of arguments may have.
    """

    def __init__(
        self,
        seed: int,
        module: Any,
        steps: int = 10,
        depth: int = 0,
        smooth: bool = False,
        dtype: str = "float32",
        sizes: Sequence[int] = SIZES,
    ) -> None:
        random = Random(seed)
        dtypes = [random.choice(DTYPES) for _ in range(random.randint(1, 3))]
        if smooth:
            dtypes[0] = "float32"
        args = [argument(random, d, sizes) for d in dtypes]
        args = [x.astype(dtype) if x.dtype.kind == "f" else x for x in args]
        super().__init__(*written(Random(seed + 1), module, args, steps, depth, smooth), module)


def loss(module: Any, results: Any) -> Any:
    np_, total = module.numpy, module.numpy.zeros(())
    for n, x in enumerate(results):
        if np.dtype(x.dtype).kind == "f":
            total = total + np_.sum(np_.sin(x) * (n + 1))
    return total


def written(
    random: Random, module: Any, args: list[np.ndarray], steps: int, depth: int, smooth: bool
) -> tuple[Function, list[np.ndarray], dict[str, Any]]:
    """A function of ``args`` that returns its last four values, and the types of all its names."""
    recorder = Recorder(module)
    pool = [Value(recorder.symbol(x, f"x{n}"), not smooth or x.dtype.kind != "f") for n, x in enumerate(args)]
    operations = (*OPERATIONS, complex_numbers, *[control] * (depth and 12))
    context = Context(recorder, random, pool, operations, depth, smooth)
    context.grow(steps)
    params = tuple(f"x{n}" for n in range(len(args)))
    returned = literal(tuple(v.x for v in context.pool[-4:]))
    function = Function("f", params, tuple(recorder.steps), returned)
    return function.without_dead_steps(), args, recorder.types


def argument(random: Random, dtype: str, sizes: Sequence[int] = SIZES) -> np.ndarray:
    shape = tuple(random.choice(sizes) for _ in range(random.randint(0, 3)))
    values = np.random.default_rng(random.randrange(1 << 30))
    if dtype == "float32":
        return (values.integers(-12, 13, shape) / 4 + values.integers(0, 2, shape) / 64).astype(dtype)
    if dtype == "bool":
        return values.integers(0, 2, shape).astype(dtype)
    low, high = (0, 256) if dtype == "uint8" else (-9, 10)
    return values.integers(low, high, shape).astype(dtype)
