"""Writing programs: symbols stand for arrays, and what is done with them becomes steps of the function being written.

Shapes and dtypes come from the abstract evaluation of each step by the module that programs are written for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from fuzz.plain import Plain
from fuzz.rules import own_jvp, own_vjp
from fuzz.source import NAMES, Function, Step, index_text, literal


def namespace(module: Any, plain: bool = False) -> dict[str, Any]:
    """The globals of a program's text."""
    names = {"jax": module, "jnp": module.numpy, "lax": module.lax, "np": np}
    names |= {"own_jvp": own_jvp(module), "own_vjp": own_vjp(module)}
    return names | Plain(module).namespace() if plain else names


def compiled(function: Function, module: Any, plain: bool = False) -> Callable[..., Any]:
    names = namespace(module, plain)
    exec(compile(str(function), "<random program>", "exec"), names)
    return names[function.name]


_known: dict[tuple[Any, ...] | None, Any] = {}
"""Types of results by what they depend on: to trace steps takes a third of the time in which programs are tried."""


class Recorder:
    """The function being written, and the types of all names so far."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.types: dict[str, Any] = {}
        self.steps: list[Step] = []
        self.number = 0

    def name(self, letter: str = "v") -> str:
        self.number += 1
        return f"{letter}{self.number}"

    def symbol(self, aval: Any, name: str | None = None) -> Symbol:
        name = name or self.name()
        self.types[name] = self.module.ShapeDtypeStruct(aval.shape, aval.dtype)
        return Symbol(self, name)

    @contextmanager
    def nested(self) -> Iterator[list[Step]]:
        """Steps go into the list given, which becomes a function."""
        outer, self.steps = self.steps, []
        try:
            yield self.steps
        finally:
            self.steps = outer

    def type_of(self, text: str, functions: tuple[Function, ...] = ()) -> Any:
        step = Step("v", text, functions)
        free = tuple(sorted(step.used))
        key = None if functions else self._key(text, free)
        if key not in _known:
            found = self._traced(step, free)
            if key is None:
                return found
            _known[key] = found
        return _known[key]

    def _key(self, text: str, free: tuple[str, ...]) -> tuple[Any, ...]:
        """Steps with equal ones have results of the same type, whatever their arguments are called."""
        places = {name: f"v{n}" for n, name in enumerate(free)}
        types = tuple((self.types[n].shape, np.dtype(self.types[n].dtype)) for n in free)
        wide = self.module.numpy.result_type(float)  # whether numbers have 64 bits
        return self.module, wide, NAMES.sub(lambda found: places[found[0]], text), types

    def _traced(self, step: Step, free: tuple[str, ...]) -> Any:
        function = Function("f", free, (step,), "v")
        try:
            return self.module.eval_shape(compiled(function, self.module), *(self.types[n] for n in free))
        except Exception as e:
            known = ", ".join(f"{n}: {self.types[n]}" for n in free)
            e.add_note(f"a random program can't be traced:\n{function}# {known}")
            raise

    def record(self, text: str, *functions: Function) -> Any:
        """The symbols of what ``text`` evaluates to, in its structure."""
        made = self.named(self.type_of(text, functions))
        self.steps.append(Step(literal(made), text, functions))
        return made

    def call(self, called: str, args: Sequence[Symbol], *functions: Function) -> Any:
        return self.record(f"{called}({', '.join(map(literal, args))})", *functions)

    def named(self, avals: Any) -> Any:
        if isinstance(avals, tuple | list):
            return tuple(map(self.named, avals))
        return self.symbol(avals)


class Namespace:
    """``jnp`` or ``lax``: calls of its functions are recorded."""

    def __init__(self, recorder: Recorder, path: str) -> None:
        self.recorder, self.path = recorder, path

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return Method(self.recorder, f"{self.path}.{name}")


@dataclass
class Method:
    recorder: Recorder
    name: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        functions = [a for x in args for a in (x if isinstance(x, list) else [x]) if isinstance(a, Function)]
        texts = [*map(literal, args), *(f"{k}={literal(x)}" for k, x in kwargs.items())]
        return self.recorder.record(f"{self.name}({', '.join(texts)})", *functions)


def operation(sign: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The methods of a binary operator and of its reflection."""
    forward = lambda self, other: self.recorder.record(f"{self.name} {sign} {literal(other)}")
    backward = lambda self, other: self.recorder.record(f"{literal(other)} {sign} {self.name}")
    return forward, backward


class Symbol:
    """Stands for an array of known type."""

    def __init__(self, recorder: Recorder, name: str) -> None:
        self.recorder, self.name = recorder, name

    @property
    def shape(self) -> tuple[int, ...]:
        return self.recorder.types[self.name].shape

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.recorder.types[self.name].dtype)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def at(self) -> At:
        return At(self)

    def __getitem__(self, index: Any) -> Symbol:
        return self.recorder.record(f"{self.name}[{index_text(index)}]")

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return Method(self.recorder, f"{self.name}.{method}")

    __add__, __radd__ = operation("+")
    __sub__, __rsub__ = operation("-")
    __mul__, __rmul__ = operation("*")
    __truediv__, __rtruediv__ = operation("/")
    __mod__, __rmod__ = operation("%")
    __matmul__, __rmatmul__ = operation("@")
    __gt__ = operation(">")[0]


class At:
    def __init__(self, symbol: Symbol) -> None:
        self.symbol = symbol

    def __getitem__(self, index: Any) -> Namespace:
        return Namespace(self.symbol.recorder, f"{self.symbol.name}.at[{index_text(index)}]")
