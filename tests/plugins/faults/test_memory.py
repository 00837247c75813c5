"""Kernels that write where they must not: what is said next names plugin, kernel and remedy, be it the last words."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("polyax_fusion")

from plugins.faults.broken import OWNER, backend
from plugins.faults.interpreted import Interpreted

import polyax
import polyax.numpy as jnp
from polyax.backend import PluginError
from support.process import run

NAME = "numpy_kernels"
X = np.arange(64, dtype=np.float32)
CRASHES = """
import ctypes

import numpy
import polyax
from plugins.faults.broken import backend
from plugins.faults.interpreted import Interpreted


class Wild(Interpreted):
    def compile_function(self, kernel):
        return lambda pointers, scalars, begin, end: ctypes.memset(8, 0, 1)


with backend(Wild, "numpy_kernels"):
    polyax.jit(lambda x: polyax.numpy.sin(x) * 2)(numpy.ones(3, "float32")).block_until_ready()
"""


def writing(nbytes: int, at: Callable[[int, int], int], base: type[Any] = Interpreted) -> type[Any]:
    """A backend whose kernels also write ``nbytes`` at ``at(begin, end)`` of their first operand."""

    class Trespassing(base):
        __module__ = base.__module__  # what a backend's own module asks for is no user's line

        def compile_function(self, kernel: Any) -> Any:
            right = super().compile_function(kernel)
            (size,) = {4 * int(np.prod(o.shape)) for o in kernel.operands[:1]}

            def run(pointers: Any, scalars: Any, begin: int, end: int) -> None:
                right(pointers, scalars, begin, end)
                ctypes.memset(at(pointers[0], pointers[0] + size), 0, nbytes)

            return run

    return Trespassing


@pytest.mark.parametrize(
    "at, told",
    [
        (lambda begin, end: end, "4 of the 256 bytes behind a block of 256"),
        (lambda begin, end: begin - 4, "4 of the 256 bytes before a block of 256"),
        (lambda begin, end: end + 128, "4 of the 256 bytes behind a block of 256"),
    ],
)
def test_what_is_written_beside_operands_is_found(at: Any, told: str) -> None:
    with backend(writing(4, at), NAME), pytest.raises(PluginError, match=f"the kernel wrote to {told}") as caught:
        polyax.jit(lambda x: jnp.sin(x) * 2)(X).block_until_ready()
    (note,) = [n for n in caught.value.__notes__ if "In plugin" in n]
    assert OWNER.replace("broken' of", f"{NAME}' of") in note and "kernel 'mul_sin'" in note.replace(
        "sin_mul", "mul_sin"
    )
    assert "the remedy: update or uninstall polyax-broken" in note


@pytest.mark.parametrize("at", [lambda begin, end: end, lambda begin, end: begin - 4])
def test_memory_that_a_backend_has_of_its_own_is_guarded_as_well(at: Any) -> None:
    pytest.importorskip("wasmtime")
    from polyax_wasm.backend import WasmBackend

    kind = writing(4, at, WasmBackend)
    with backend(lambda: kind(NAME), NAME), pytest.raises(PluginError, match="the kernel wrote to 4 of the 256 bytes"):
        polyax.jit(lambda x: jnp.sin(x) * 2)(X).block_until_ready()


def test_what_stays_inside_is_not() -> None:
    with backend(writing(4, lambda begin, end: begin), NAME):
        found = np.asarray(polyax.jit(lambda x: jnp.sin(x) * 2)(X))
    np.testing.assert_allclose(found[1:], 2 * np.sin(X[1:]), rtol=1e-6)


def test_the_last_words_of_a_process_name_the_kernel() -> None:
    path = os.pathsep.join(["tests", os.environ.get("PYTHONPATH", "")])
    done = run(CRASHES, PYTHONPATH=path, PYTHONFAULTHANDLER="", POLYAX_CHECKS="1")
    assert done.returncode < 0 and "Fatal Python error: Segmentation fault" in done.stderr
    lines = done.stderr.splitlines()
    (kernel,) = [line for line in lines if " in kernel 'sin_mul' (sin, mul)" in line]
    assert "asked for at <string>:16" in kernel
    (program,) = [line for line in lines if " in program '<lambda>' on numpy_kernels:0" in line]
    assert "of plugin 'numpy_kernels' of polyax-broken 1.2.3; the remedy: update or uninstall polyax-broken" in program
