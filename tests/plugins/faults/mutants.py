"""Backends with one fault each, by the hundred: every method that answers wrongly or fails, every way in which results
can be other than they are to be. And what a user's program does with such a backend."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from plugins.faults.broken import Working

import polyax
import polyax.numpy as jnp
from polyax.backend import Device, HostBuffer
from polyax.reference.backend import ReferenceExecutable

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Failure(Exception):
    """A plugin's own."""


@dataclass(frozen=True)
class Mutant:
    """``make()`` is a backend's class."""

    name: str
    make: Callable[[], type[Any]]


def fails(*_: Any, **__: Any) -> Any:
    raise Failure("the device is on fire")


def giving(answer: Any) -> Callable[..., Any]:
    return lambda *_, **__: answer


ANSWERS: dict[str, Callable[..., Any]] = {
    "raises": fails,
    "None": giving(None),
    "3": giving(3),
    "text": giving("text"),
    "[]": giving([]),
    "()": giving(()),
    "{}": giving({}),
    "True": giving(True),
    "an object": giving(object()),
    "an array": giving(X),
    "a pair": giving((None, None)),
}
BACKEND = (
    "devices", "to_device", "adopt", "to_host", "compile", "synchronize", "copy", "collectives", "twin", "opened",
    "memory_stats", "why_no_dtype", "into_memory",
)  # fmt: skip
EXECUTABLE = ("launch", "launch_members", "native_call", "chained", "progress", "report")
BUFFER = ("ready", "wait", "share", "address")


def executing(**replaced: Any) -> type[Working]:
    """A backend whose executables have other methods."""

    class Broken(Working):
        def compile(self, jaxpr: Any, options: Any) -> Any:
            return type("Executable", (ReferenceExecutable,), replaced)(jaxpr, options)

    return Broken


def results(change: Callable[[list[HostBuffer], Sequence[HostBuffer]], Any]) -> type[Working]:
    """A backend whose launches give ``change(right, buffers)``."""

    def launch(self: Any, buffers: Sequence[Any], queue: Any) -> Any:
        outs: Any
        outs, token = ReferenceExecutable.launch(self, buffers, queue)
        for out in outs:
            out.wait()
        return change(outs, buffers), token

    return executing(launch=launch)


def buffered(**replaced: Any) -> type[Working]:
    """A backend whose programs give buffers of another class."""
    kind = type("Mine", (HostBuffer,), replaced)
    return results(lambda outs, _: [kind(b.data, b.task) for b in outs])


def answers() -> Iterator[Mutant]:
    """Every method, with every answer."""
    for how, answer in ANSWERS.items():
        for name in BACKEND:
            if (name, how) == ("why_no_dtype", "text"):  # a reason
                continue
            yield Mutant(f"{name} {how}", lambda n=name, a=answer: type("Broken", (Working,), {n: a}))
        for name in EXECUTABLE:
            yield Mutant(f"executable.{name} {how}", lambda n=name, a=answer: executing(**{n: a}))
        for name in BUFFER:
            yield Mutant(f"buffer.{name} {how}", lambda n=name, a=answer: buffered(**{n: a}))
        yield Mutant(f"buffer.nbytes {how}", lambda a=answer: buffered(nbytes=property(a)))


def natives() -> Iterator[Mutant]:
    """Functions that run calls at once, and give something else than the results."""
    for how, answer in ANSWERS.items():
        function = lambda *_, a=answer: lambda args, kwargs: a()
        yield Mutant(f"native call {how}", lambda f=function: executing(native_call=f))
    for how, change in {"another type": lambda x: x.T, "another dtype": lambda x: x.astype(int)}.items():
        function = lambda *_, f=change: lambda args, kwargs: f(jnp.asarray(args[0]))
        yield Mutant(f"native call gives {how}", lambda f=function: executing(native_call=f))


# --- results ----------------------------------------------------------------------------------------------------------


def counts(outs: list[Any]) -> dict[str, Any]:
    return {
        "none": [],
        "one less": outs[:-1],
        "one more": [*outs, outs[-1]],
        "twice": outs * 2,
        "one more, which is None": [*outs, None],
        "a tuple": tuple(outs),
        "an iterator": iter(outs),
        "by number": dict(enumerate(outs)),
        "the first for all": outs[:1] * len(outs),
        "backwards": outs[::-1],
    }


DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint32", "float16", "float32", "float64", "complex64", "object"]
SHAPES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "flat": lambda x: x.reshape(-1),
    "turned": lambda x: x.T.copy(),
    "not contiguous": lambda x: np.repeat(x[..., None], 2, -1)[..., 0],
    "with an axis more": lambda x: x[None],
    "empty": lambda x: x.reshape(-1)[:0],
    "one element": lambda x: x.reshape(-1)[:1],
    "one element less": lambda x: x.reshape(-1)[:-1],
    "too large": lambda x: np.repeat(x.reshape(-1), 2),
    "of other bytes": lambda x: np.ascontiguousarray(x).reshape(-1).view(np.uint8),
}
VALUES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "zeros": np.zeros_like,
    "one more": lambda x: x + np.ones((), x.dtype),
    "rolled": lambda x: np.roll(x.reshape(-1), 1).reshape(x.shape) + (x.size == 1),
    "swapped bytes": lambda x: x.byteswap(),
    "uninitialised": lambda x: np.full_like(x, 77),
}
NOT_BUFFERS: dict[str, Callable[[HostBuffer], Any]] = {
    "None": lambda b: None,
    "an array": lambda b: b.data,
    "a list": lambda b: b.data.tolist(),
    "bytes": lambda b: b.data.tobytes(),
    "the class": type,
    "a buffer in a list": lambda b: [b],
    "a buffer of None": lambda b: HostBuffer(None),  # type: ignore[arg-type]
    "a buffer of a list": lambda b: HostBuffer(b.data.tolist()),
    "polyax's array": lambda b: jnp.asarray(b.data),
}


def launches() -> Iterator[Mutant]:
    """Other results: of count, place, class, dtype, shape, memory and value."""
    for how in counts([0]):
        yield Mutant(f"results: {how}", lambda h=how: results(lambda outs, _: counts(outs)[h]))
    for n in (0, 1):
        for dtype in DTYPES:
            cast = lambda b, d=dtype: HostBuffer(b.data.astype(d) if b.data.dtype != d else b.data.astype("int16"))
            yield Mutant(f"result {n} as {dtype}", lambda n=n, f=cast: nth(n, f))
        for kind, table in (("", SHAPES), ("of ", VALUES)):
            for how, change in table.items():
                made = lambda b, f=change: HostBuffer(np.asarray(f(b.data)))
                yield Mutant(f"result {n} {kind}{how}", lambda n=n, f=made: nth(n, f))
        for how, other in NOT_BUFFERS.items():
            yield Mutant(f"result {n} is {how}", lambda n=n, f=other: nth(n, f))
    yield Mutant("results are inputs", lambda: results(lambda outs, ins: [*ins, *outs][: len(outs)]))
    yield Mutant("results of the launch before", lambda: results(stale()))
    yield Mutant("one buffer for all launches", lambda: results(reused()))
    yield Mutant("inputs are written to", lambda: results(overwriting))
    for how in ("3", "text", "True", "an object", "[]", "a pair"):
        yield Mutant(f"token is {how}", lambda a=ANSWERS[how]: tokened(a))
    yield Mutant("nothing is run", lambda: executing(launch=without_running))
    yield Mutant("errors are lost", lambda: executing(launch=without_errors))


def tokened(answer: Callable[[], Any]) -> type[Working]:
    return executing(launch=lambda *args: (ReferenceExecutable.launch(*args)[0], answer()))


def nth(n: int, change: Callable[[HostBuffer], Any]) -> type[Working]:
    return results(lambda outs, _: [change(b) if m == n else b for m, b in enumerate(outs)])


def stale() -> Callable[..., Any]:
    before: dict[Any, list[Any]] = {}

    def change(outs: list[HostBuffer], _: Any) -> Any:
        key = tuple((b.data.shape, b.data.dtype) for b in outs)
        before.setdefault(key, [HostBuffer(np.zeros_like(b.data)) for b in outs])
        now, before[key] = before[key], outs
        return now

    return change


def reused() -> Callable[..., Any]:
    memory: dict[Any, HostBuffer] = {}

    def keep(b: HostBuffer) -> HostBuffer:
        kept = memory.setdefault((b.data.shape, b.data.dtype), HostBuffer(b.data.copy()))
        kept.data[...] = b.data
        return kept

    return lambda outs, _: list(map(keep, outs))


def overwriting(outs: list[HostBuffer], inputs: Sequence[HostBuffer]) -> Any:
    made = [HostBuffer(b.data.copy()) for b in outs]
    for b in inputs:
        b.data = np.zeros_like(b.data)
    return made


def without_running(self: Any, buffers: Any, queue: Any) -> Any:
    outs = self.avals if hasattr(self, "avals") else [v.aval for v in self._jaxpr.outvars]
    return [HostBuffer(np.zeros(a.shape, a.dtype)) for a in outs], None


def without_errors(self: Any, buffers: Any, queue: Any) -> Any:
    outs: Any
    outs, _ = ReferenceExecutable.launch(self, buffers, queue)
    try:
        for out in outs:
            out.wait()
    except Exception:
        return without_running(self, buffers, queue)
    return outs, None


# --- memory and devices -----------------------------------------------------------------------------------------------


def memory() -> Iterator[Mutant]:
    """Transfers that give something else, and devices that aren't the backend's."""
    for kind, table in (("", SHAPES), ("of ", VALUES)):
        for how, change in table.items():
            put = lambda self, host, device, f=change: HostBuffer(np.array(f(host)))
            get = lambda self, buffer, aval, f=change: np.array(f(Working.to_host(self, buffer, aval)))
            yield Mutant(f"to_device {kind}{how}", lambda f=put: type("Broken", (Working,), {"to_device": f}))
            yield Mutant(f"to_host {kind}{how}", lambda f=get: type("Broken", (Working,), {"to_host": f}))
            over = lambda self, buffer, aval, source, target, f=change: HostBuffer(np.array(f(buffer.data)))
            yield Mutant(f"copy {kind}{how}", lambda f=over: type("Broken", (Working,), {"copy": f}))
    for dtype in DTYPES:
        get = lambda self, b, aval, d=dtype: b.data.astype(d if aval.dtype != d else "int16")
        yield Mutant(f"to_host as {dtype}", lambda f=get: type("Broken", (Working,), {"to_host": f}))
    held = lambda self, host, device: HostBuffer(host)
    yield Mutant("to_device keeps the host's memory", lambda: type("Broken", (Working,), {"to_device": held}))
    for how, devices in DEVICES.items():
        yield Mutant(f"devices: {how}", lambda f=devices: type("Broken", (Working,), {"devices": f}))


def others(self: Any) -> list[Device]:
    return list(polyax.devices("reference"))


DEVICES: dict[str, Callable[[Any], Any]] = {
    "another backend's": others,
    "its own and another's": lambda self: [*self._devices, *others(self)],
    "one twice": lambda self: [self._devices[0]] * 2,
    "of one number": lambda self: [Device(self, 0, kind="NumPy", queue=self._devices[0].queue) for _ in range(2)],
    "without queues": lambda self: [Device(self, n, kind="NumPy") for n in range(2)],
    "new ones each time": lambda self: [Device(self, 0, kind="NumPy", queue=self._devices[0].queue)],
    "an iterator": lambda self: iter(self._devices),
}


# --- a user's program -------------------------------------------------------------------------------------------------


def use(device: Device) -> list[np.ndarray]:
    """What a user does with a device, and what comes of it."""
    x, seen = polyax.device_put(X, device), list[np.ndarray]()
    two = polyax.jit(lambda x: (jnp.sin(x) + 1, x.astype(int).sum()))
    doubled = polyax.jit(lambda x: x * 2, donate_argnums=0)
    tell = polyax.jit(lambda x: (polyax.debug.callback(lambda x: seen.append(np.array(x)), x), x - 1)[1])
    got = [
        *two(x),
        doubled(jnp.array(X)),
        x + x,
        x,
        tell(x),
        *two(x + 1),
        polyax.device_put(x, device.client.devices()[-1]),
    ]
    polyax.effects_barrier()
    polyax.block_until_ready(got)
    if all(y.is_ready() for y in got):
        got.append(x)
    assert isinstance(x.unsafe_buffer_pointer(), int)
    got.append(polyax.device_put(polyax.device_put(x, polyax.memory.Space.Host), device))
    got += [kept_apart(device), *lost(x, seen)]
    got += [polyax.numpy.from_dlpack(X, device=device), polyax.device_put(x, polyax.devices("reference")[0])]
    device.client.synchronize(device)
    if stats := device.memory_stats():
        assert all(isinstance(n, int) for n in stats.values())
    assert two.lower(x).compile().report.backend
    return [*map(np.asarray, got), *seen]


def kept_apart(device: Device) -> Any:
    """An array made of memory that its owner writes to afterwards."""
    host = X.copy()
    made = polyax.device_put(host, device)
    host[...] = 0
    return made


def lost(x: Any, seen: list[np.ndarray]) -> list[Any]:
    """What a program gives whose callback fails: nothing, but its error."""

    def refuse(x: Any) -> Any:
        seen.append(np.array(x))
        raise ArithmeticError("the user's own")

    try:
        return [polyax.jit(lambda x: polyax.pure_callback(refuse, x, x))(x).block_until_ready()]
    except RuntimeError as e:
        if "the user's own" not in str(e):
            raise
        return []


def told(error: BaseException) -> str:
    """All that a user reads of an error."""
    return "".join(traceback.format_exception_only(error)) + "".join(getattr(error, "__notes__", ()))


def blamed(text: str) -> set[str]:
    """The plugins that a text names."""
    return set(re.findall(r"plugin '([^']+)'", text))
