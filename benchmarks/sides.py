"""Modules that compute the operations of the sweep, each in a process of its own: JAX's kind, NumPy and PyTorch.

``python sides.py MODULE`` serves cases over its standard input and output, one JSON value a line.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

PATIENCE = 120
"""Seconds after which a case is given up."""
SETTINGS = {
    "POLYAX_THREEFRY_PARTITIONABLE": "1",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # of a GPU that sides share
    "PYTHONWARNINGS": "ignore",
}
DEVELOPING = ("POLYAX_CHECKS", "POLYAX_HOST_FALLBACK")
SPINNING, GLANCE = 1.0, 0.005
"""Seconds that threads may go on after the last call, and between looks at them."""
Call = Callable[[], Any]


class JaxStyle:
    """polyax, JAX, and what has their interface: compiled functions, and their gradients."""

    def __init__(self, module: str) -> None:
        self.m = importlib.import_module(module)
        for name in ("numpy", "lax", "nn", "random", "ops", "scipy.special", "scipy.linalg"):
            importlib.import_module(f"{module}.{name}")

    def prepare(self, operation: Any, arrays: tuple[Any, ...], gradient: bool) -> Call:
        m = self.m
        f = lambda *a: operation.call(m, *a)
        if gradient:
            f = m.grad(lambda *a, f=f: total(m, f(*a)))
        compiled, placed = m.jit(f), [m.numpy.asarray(a) for a in arrays]
        m.block_until_ready(placed)
        return lambda: m.block_until_ready(compiled(*placed))


def total(m: Any, results: Any) -> Any:
    """One real number, for a gradient; squares, so that no gradient is a constant."""
    return sum(m.numpy.sum(m.numpy.real(x) ** 2) for x in m.tree_util.tree_leaves(results))


class NumPy:
    """What NumPy has under the same name."""

    def prepare(self, operation: Any, arrays: tuple[Any, ...], gradient: bool) -> Call:
        if gradient:
            raise NotImplementedError("NumPy has no gradients")
        namespace = type("m", (), {"numpy": np})
        return lambda: operation.call(namespace, *arrays)


class PyTorch:
    """Eager, for the operations that say how."""

    def __init__(self) -> None:
        self.t = importlib.import_module("torch")

    def prepare(self, operation: Any, arrays: tuple[Any, ...], gradient: bool) -> Call:
        t, call = self.t, operation.torch
        if call is None:
            raise NotImplementedError(f"{operation.name} isn't written for PyTorch")
        placed = [self._placed(a) for a in arrays]
        if not gradient:
            with t.no_grad():
                return lambda: call(t, *placed)
        placed[0].requires_grad_()
        return lambda: t.autograd.grad(call(t, *placed).square().sum(), placed[0])[0]  # as ``total``

    def _placed(self, a: np.ndarray) -> Any:
        if a.dtype.name != "bfloat16":
            return self.t.from_numpy(a.copy())
        return self.t.from_numpy(a.astype("float32")).to(self.t.bfloat16)


class Inductor(PyTorch):
    """The same, compiled by ``torch.compile``: a program, or the loss whose gradient is asked for."""

    def prepare(self, operation: Any, arrays: tuple[Any, ...], gradient: bool) -> Call:
        t, call = self.t, operation.torch
        if call is None:
            raise NotImplementedError(f"{operation.name} isn't written for PyTorch")
        t.compiler.reset()  # of the cases before
        placed = [self._placed(a) for a in arrays]
        if not gradient:
            compiled = t.compile(lambda *a: call(t, *a))
            return t.no_grad()(lambda: compiled(*placed))
        placed[0].requires_grad_()
        loss = t.compile(lambda *a: call(t, *a).square().sum())
        return lambda: t.autograd.grad(loss(*placed), placed[0])[0]


def made(module: str) -> Any:
    return {"numpy": NumPy, "torch": PyTorch, "inductor": Inductor}.get(module, lambda: JaxStyle(module))()


def serve(module: str) -> None:
    """Answers until the input ends. What programs print goes to standard error."""
    from sweep import find

    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    side, call = made(module), None
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if "name" in asked:
                operation = find(asked["name"])
                call = side.prepare(operation, operation.inputs(asked["elements"]), asked["gradient"])
                seconds, result = timed(call)
                told = {"first": seconds, "size": fingerprint(result)}
            else:
                assert call is not None
                told = {"steady": steady(call, asked["seconds"])}
                rest()
        except Exception as e:  # told to whoever asked; the next case may run
            told = {"error": f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"[:200]}
        out.write(json.dumps(told) + "\n")
        out.flush()


def timed(call: Call) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def steady(call: Call, seconds: float) -> float:
    """The median of calls for about so long, three at least."""
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        times.append(timed(call)[0])
    return sorted(times)[len(times) // 2]


def rest() -> None:
    """Waits for threads that look for work after the last call: OpenBLAS's do for a tenth of a second, on a core that
    the next side would have had."""
    end = time.perf_counter() + SPINNING
    while time.perf_counter() < end:
        before = time.process_time()
        time.sleep(GLANCE)
        if time.process_time() - before < GLANCE / 4:
            return


def fingerprint(result: Any) -> float:
    """The mean size of the elements: enough to see that two sides don't compute the same."""
    leaves = result if isinstance(result, (tuple, list)) else [result]
    arrays = [np.asarray(x.float() if "bfloat16" in str(x.dtype) and hasattr(x, "float") else x) for x in leaves]
    kinds = [a.astype("complex128" if a.dtype.kind == "c" else "float64") for a in arrays]
    return float(np.mean([np.mean(np.nan_to_num(np.abs(a))) if a.size else 0.0 for a in kinds]))


class Side:
    """A process that computes cases with one module; it is started again after it died or took too long."""

    def __init__(self, module: str, python: str, platform: str = "cpu") -> None:
        self.module, self.python = module, python
        self.settings = SETTINGS | {"POLYAX_PLATFORMS": platform, "JAX_PLATFORMS": platform}
        self._process: subprocess.Popen[str] | None = None

    def prepare(self, name: str, elements: int, gradient: bool) -> dict[str, Any]:
        return self._ask({"name": name, "elements": elements, "gradient": gradient})

    def steady(self, seconds: float) -> dict[str, Any]:
        return self._ask({"seconds": seconds})

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _ask(self, what: dict[str, Any]) -> dict[str, Any]:
        process = self._process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(what) + "\n")
            process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
        line = process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        self.close()
        return {"error": "the process died" if ready else f"no answer in {PATIENCE} seconds"}

    def _start(self) -> subprocess.Popen[str]:
        env = {k: v for k, v in os.environ.items() if k not in DEVELOPING} | self.settings
        command = [self.python, __file__, self.module]
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, text=True, env=env)


if __name__ == "__main__":
    serve(sys.argv[1])
