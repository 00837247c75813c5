"""``POLYAX_LAUNCH_TIMEOUT`` says what hangs: which program, whose, where, and at what."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from plugins.faults.broken import OWNER, backend, launching, lowering

import polyax
import polyax.numpy as jnp
from polyax.runtime.contract.queue import HostBuffer

X = np.ones(3, np.float32)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Whoever waits for it hangs until the test is over."""
    found = threading.Event()
    yield found
    found.set()


def told(capfd: pytest.CaptureFixture[str]) -> str:
    """The first message; there will be one."""
    text = ""
    while "POLYAX_LAUNCH_TIMEOUT" not in text:
        time.sleep(0.01)
        text += capfd.readouterr().err
    return text


def in_thread(work: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_a_launch_that_hangs(gate: threading.Event, capfd: pytest.CaptureFixture[str]) -> None:
    def launch(right: Any, buffers: Any, queue: Any) -> Any:
        gate.wait()
        return right(buffers, queue)

    def work() -> None:
        with backend(launching(launch), "broken"), polyax.config.override(launch_timeout=0.05):
            polyax.jit(jnp.sin)(X)

    thread = in_thread(work)
    text = told(capfd)
    expected = rf"polyax: program 'sin' on broken:0 \({OWNER}\) hasn't ended after 0.05 s; it was asked .* {__file__}"
    assert re.match(expected, text), text
    assert "its launch hasn't returned" in text and "Ctrl-C ends the wait" in text
    gate.set()
    thread.join()


def test_results_that_never_come_and_who_waits_behind(gate: threading.Event, capfd: pytest.CaptureFixture[str]) -> None:
    def launch(right: Any, buffers: Any, queue: Any) -> Any:
        late = HostBuffer(np.ones(3, np.float32))
        late.task = queue.run(gate.wait, buffers, 10**9)
        return [late], None

    with backend(launching(launch)), polyax.config.override(launch_timeout=0.3):
        x = polyax.device_put(X)
        results = [polyax.jit(jnp.sin)(x), polyax.jit(jnp.cos)(x)]
        text = told(capfd)
        assert "program 'sin' on broken:0" in text and "its results aren't ready; behind it wait 'cos'" in text, text
        gate.set()
        polyax.block_until_ready(results)


def test_the_step_is_named(gate: threading.Event, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("polyax_hello_c")
    from polyax.ops.elementwise import sin_p
    from polyax_kernels.lower.lowering import Call

    def work() -> None:
        with lowering({sin_p: Call(lambda *_, **__: gate.wait())}), polyax.config.override(launch_timeout=0.05):
            polyax.jit(lambda x: jnp.sin(x) + 1)(X)

    thread = in_thread(work)
    assert "; it is at sin" in told(capfd)
    gate.set()
    thread.join()


def test_what_ends_in_time_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with polyax.config.override(launch_timeout=60.0), polyax.default_device(polyax.devices("reference")[0]):
        np.testing.assert_allclose(polyax.jit(lambda x: x + 2)(X), X + 2)
    assert not capfd.readouterr().err
