"""What a backend that is made of kernels does to a user if a kernel of it is broken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("polyax_hello_c")

from plugins.faults.broken import OWNER, backend

import polyax
import polyax.numpy as jnp
from polyax.ir.errors import PluginError
from polyax_hello_c.backend import HelloCBackend
from polyax_hello_c.compiler import CompileError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Trap(Exception):
    """The machine's own."""


def fails(*_: Any, **__: Any) -> Any:
    raise Trap("unreachable")


def kernels(**methods: Any) -> type[Any]:
    own = {"__init__": lambda self: HelloCBackend.__init__(self, "broken"), "__module__": HelloCBackend.__module__}
    return type("Broken", (HelloCBackend,), own | methods)


@pytest.mark.parametrize(
    "kind, error, doing",
    [
        (kernels(compile_function=fails), Trap, "compiled for"),
        (kernels(source=fails), Trap, "compiled for"),
        (kernels(source=lambda self, kernel: "this is no C"), CompileError, "compiled for"),
        (kernels(compile_function=lambda self, kernel: None), PluginError, "compiled for"),
        (kernels(compile_function=lambda self, kernel: fails), Trap, "run on"),
    ],
)
@pytest.mark.parametrize("loop", [False, True], ids=["alone", "in a loop"])
def test_the_kernel_is_named(kind: type[Any], error: type[Exception], doing: str, loop: bool) -> None:
    def body(x: Any) -> Any:
        return jnp.sin(x) + 1

    def repeated(x: Any) -> Any:
        return polyax.lax.while_loop(lambda x: jnp.sum(x) < 3, body, x)

    with backend(kind), pytest.raises(error) as caught:
        polyax.block_until_ready(polyax.jit(repeated if loop else body)(X - 10))
    (note,) = [n for n in caught.value.__notes__ if n.startswith("In plugin")]
    name = "repeated" if loop else "body"
    assert note.startswith(f"In {OWNER}, while program '{name}' was {doing} broken:0: kernel '"), note
    assert "; primitives " in note and f"asked for at {__file__}" in note
