"""Backends, lowerings and fusers with one fault each, registered as a stranger's plugin for as long as a test runs."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import polyax
from polyax.reference.backend import ReferenceBackend, ReferenceExecutable
from polyax.runtime.contract.backend import BackendSpec, Device
from polyax.runtime.contract.hooks import hookimpl
from polyax.runtime.contract.queue import HostBuffer
from polyax.runtime.plugins.registry import registry

OWNER = "plugin 'broken' of polyax-broken 1.2.3"


def plugin(**hooks: Callable[..., Any]) -> types.SimpleNamespace:
    implementations = {name: hookimpl(function) for name, function in hooks.items()}
    return types.SimpleNamespace(**implementations, polyax_requires=">=1,<2")


@contextlib.contextmanager
def registered(brought: Any, entry: str = "broken") -> Generator[Any]:
    record = registry.register(brought, entry, distribution="polyax-broken", version="1.2.3")
    try:
        yield record
    finally:
        registry.unregister(record)
        polyax.clear_caches()  # what was compiled for it


@contextlib.contextmanager
def backend(kind: type[Any], name: str = "broken") -> Generator[Device]:
    """The first device of a platform, which is the default."""

    def polyax_backends() -> list[BackendSpec]:
        return [BackendSpec(name, probe=lambda: None, open=kind)]

    with registered(plugin(polyax_backends=polyax_backends), name):
        device = polyax.devices(name)[0]
        with polyax.default_device(device):
            yield device


class Working(ReferenceBackend):
    """What the broken ones derive from."""

    name = "broken"


def launching(launch: Callable[[Any, Sequence[Any], Any], Any]) -> type[Working]:
    """A backend whose executables do ``launch(right, buffers, queue)``, where ``right(buffers, queue)`` is right."""

    class Executable(ReferenceExecutable):
        def launch(self, buffers: Sequence[Any], queue: Any) -> Any:
            return launch(super().launch, buffers, queue)

    class Broken(Working):
        def compile(self, jaxpr: Any, options: Any) -> Any:
            return Executable(jaxpr, options)

    return Broken


def giving(change: Callable[[list[HostBuffer]], Any]) -> type[Working]:
    """A backend whose launches give ``change`` of the right results."""

    def launch(right: Any, buffers: Sequence[Any], queue: Any) -> Any:
        outs, token = right(buffers, queue)
        for out in outs:
            out.wait()
        return change(outs), token

    return launching(launch)


def method(name: str, function: Callable[..., Any]) -> type[Working]:
    """A backend with one method replaced."""
    return type("Broken", (Working,), {name: function})


@contextlib.contextmanager
def lowering(table: Mapping[Any, Any], entry: str = "hello_c.broken") -> Generator[Device]:
    """A device of a backend made of kernels, for which a stranger brings lowerings; ``entry`` begins with its name."""

    def polyax_lowerings(backend: Any) -> Mapping[Any, Any]:
        return table

    with registered(plugin(polyax_lowerings=polyax_lowerings), entry):
        device = polyax.devices(entry.partition(".")[0])[0]
        with polyax.default_device(device):
            yield device


@contextlib.contextmanager
def fuser(run: Callable[[Any, Any], Any], entry: str = "hello_c.broken", others: str = "") -> Generator[Device]:
    """A device of a backend made of kernels, whose only fuser is a stranger's, unless it runs behind ``others``."""

    def polyax_fusers(backend: Any) -> list[Any]:
        return [types.SimpleNamespace(name="mine", run=run)]

    with registered(plugin(polyax_fusers=polyax_fusers), entry):
        device = polyax.devices(entry.partition(".")[0])[0]
        with polyax.default_device(device), polyax.config.override(fusers=f"{others}mine"):
            yield device
