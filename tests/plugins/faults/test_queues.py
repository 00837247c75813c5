"""What devices, queues, buffers and tokens of a stranger have to offer, and that no more is asked of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from plugins.faults.broken import OWNER, Working, backend, launching

import polyax
import polyax.numpy as jnp
from polyax.backend import Buffer, Device, HostQueue, PluginError, Queue, Token

X = np.arange(6, dtype=np.float32)


def program() -> np.ndarray:
    return np.asarray(polyax.jit(lambda x: jnp.sin(x) + 1)(X))


def queued(queue: Any) -> type[Working]:
    """A backend whose device has ``queue``."""

    class Broken(Working):
        def __init__(self) -> None:
            super().__init__()
            self._devices = (Device(self, 0, kind="mine", queue=queue),)

    return Broken


class Own(Queue):
    """A queue with what ``Queue`` says, and nothing else."""

    def __init__(self) -> None:
        self.ran = 0

    def run(self, work: Callable[[], None], inputs: Any, cost: int) -> None:
        for b in inputs:
            b.wait()
        work()
        self.ran += 1

    def synchronize(self) -> None:
        return


class Narrow(Own):
    def run(self, work: Callable[[], None]) -> None:  # type: ignore[override]
        work()


class Endless:
    run = Own.run


@pytest.mark.parametrize(
    "queue, told",
    [
        (object(), "without run and synchronize"),
        (Endless(), "without synchronize"),
        (Narrow(), r"can't be asked to run\(work, inputs, cost\) and to synchronize\(\): too many positional"),
    ],
)
def test_a_queue_is_looked_at_when_its_device_is_opened(queue: Any, told: str) -> None:
    with pytest.warns(UserWarning, match=told), pytest.raises(RuntimeError, match=told) as caught:
        backend(queued(queue)).__enter__()
    text = str(caught.value)
    assert OWNER in text and "give Device a polyax.backend.Queue, such as HostQueue(name), or none" in text


def test_no_more_is_asked_of_a_queue_than_it_says() -> None:
    queue = Own()
    with backend(queued(queue)) as device:
        np.testing.assert_allclose(program(), np.sin(X) + 1, rtol=1e-6)
        polyax.pmap(lambda x: x * 2, devices=[device])(X[None])
        polyax.effects_barrier()
    assert queue.ran > 1


def test_a_launch_that_waits_for_devices_that_are_launched_after_it() -> None:
    """It may wait, if it must, for what meets nobody."""

    def launch(right: Any, buffers: Any, queue: Any) -> Any:
        outs, token = right(buffers, queue)
        for out in outs:
            out.wait()
        return outs, token

    with polyax.config.override(num_cpu_devices=2), backend(launching(launch)) as device:
        devices = device.client.devices()
        doubled = polyax.pmap(lambda x: x * 2, "i", devices=devices)(X.reshape(2, 3))
        np.testing.assert_array_equal(doubled, X.reshape(2, 3) * 2)
        with pytest.raises(PluginError) as caught:
            polyax.pmap(lambda x: polyax.lax.psum(x, "i"), "i", devices=devices)(X.reshape(2, 3))
    text = str(caught.value)
    assert OWNER in text and "launch of 'pmap(<lambda>)' waits for what it has put into the queue" in text
    assert "waits in psum for devices" in text and "The remedy: let launch return at once" in text


def test_a_device_without_a_queue_works_in_the_thread_that_asks() -> None:
    ran = []

    def launch(right: Any, buffers: Any, queue: Queue) -> Any:
        assert queue.run(lambda: ran.append(threading.get_ident()), buffers, 10**9) is None
        return right(buffers, queue)

    class Without(launching(launch)):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self._devices = (Device(self, 0, kind="mine"),)

    with backend(Without) as device:
        np.testing.assert_allclose(program(), np.sin(X) + 1, rtol=1e-6)
        assert isinstance(device.queue, Queue)
    assert set(ran) == {threading.get_ident()}


class Plain(Buffer):
    """A buffer that is no host buffer; its contents come when ``gate`` opens."""

    def __init__(self, gate: threading.Event, error: Exception | None = None) -> None:
        self.gate = gate
        self.error = error

    @property
    def nbytes(self) -> int:
        return 0

    def ready(self) -> bool:
        return self.gate.is_set()

    def wait(self) -> None:
        assert self.gate.wait(10)
        if self.error is not None:
            raise self.error


def test_queues_wait_for_anybodys_buffers() -> None:
    gate, seen = threading.Event(), []
    task = HostQueue("mine").run(lambda: seen.append(gate.is_set()), [Plain(gate)], 0)
    assert task is not None and not task.done
    gate.set()
    task.wait()
    assert seen == [True]
    assert HostQueue("mine").run(lambda: seen.append(True), [Plain(gate)], 0) is None, "nothing to wait for"


def test_errors_of_anybodys_buffers_are_those_of_what_reads_them() -> None:
    gate = threading.Event()
    task = HostQueue("mine").run(lambda: None, [Plain(gate, OSError("burnt"))], 0)
    assert task is not None
    gate.set()
    with pytest.raises(OSError, match="burnt"):
        task.wait()


class Mute(Token):
    """A token that says nothing of what became of the effects."""

    def wait(self) -> None:
        return


def test_a_token_tells_what_became_of_the_effects() -> None:
    def launch(right: Any, buffers: Any, queue: Any) -> Any:
        return right(buffers, queue)[0], Mute()

    def noting(x: Any) -> Any:
        polyax.debug.callback(lambda y: None, x)
        return x

    with backend(launching(launch)), pytest.raises(PluginError) as caught:
        polyax.jit(noting)(X)
    text = str(caught.value)
    assert OWNER in text and "as its token, without done, error, told" in text and "The remedy: " in text


def test_devices_of_the_host_have_queues_of_the_host() -> None:
    pytest.importorskip("polyax_hello_c")
    from polyax_hello_c.backend import HelloCBackend

    class Strange(HelloCBackend):
        __module__ = HelloCBackend.__module__  # its package, whose lines errors leave out, isn't this folder

        def __init__(self) -> None:
            super().__init__("broken")
            self._devices = (Device(self, 0, kind="mine", queue=Own()),)

    with backend(Strange), pytest.raises(PluginError, match="not a HostQueue") as caught:
        program()
    assert OWNER in str(caught.value) and "host_devices(backend, kind)" in str(caught.value)
