"""Every kernel that a test makes for a GPU is compiled for CUDA as well, at the end of the session, without a GPU.

Tests that run on opencl write their kernels in CUDA C as they go, into one folder for all workers; in the end the
distinct texts are compiled with NVRTC, many at a time. One that is rejected fails the session.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

FOLDER = "POLYAX_TESTS_KERNELS"
"""The environment variable by which workers know the folder."""
AT_ONCE = 50
"""KernelTable in one program: NVRTC takes a while to start."""


def install(config: pytest.Config) -> None:
    """For ``pytest_configure``. Without the cuda backend and CuPy nothing happens."""
    if find_spec("polyax_cuda") is None or find_spec("cupy") is None:
        return
    if not hasattr(config, "workerinput"):
        os.environ[FOLDER] = tempfile.mkdtemp(prefix="polyax-kernels-")
        config.pluginmanager.register(Compilation(Path(os.environ[FOLDER])))
    config.pluginmanager.register(Collection(Path(os.environ[FOLDER])))


class Collection:
    """Has each kernel that this process makes for any GPU written in CUDA C, too."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen: set[Any] = set()

    def pytest_collection_finish(self) -> None:
        from polyax_kernels.gpu.kernels import KernelTable

        original = KernelTable.get

        def get(kernels: KernelTable, kernel: Any, scalars: Sequence[int] = ()) -> Any:
            self.see(kernel, scalars)
            return original(kernels, kernel, scalars)

        KernelTable.get = get

    def see(self, kernel: Any, scalars: Sequence[int]) -> None:
        from polyax_cuda.check import H100
        from polyax_cuda.emitter import CudaEmitter
        from polyax_kernels.gpu.emitter import gpu_source
        from polyax_kernels.gpu.schedule import choose
        from polyax_kernels.ir.keys import structural_key

        schedule = choose(kernel, H100, scalars)
        key = structural_key(kernel), schedule
        if key not in self.seen:
            self.seen.add(key)
            text = gpu_source(kernel, schedule, CudaEmitter).encode()
            (self.folder / f"{hashlib.sha256(text).hexdigest()}.cu").write_bytes(text)


class Compilation:
    """The end of the session, in its first process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[str] = []

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        texts = [path.read_text() for path in sorted(self.folder.iterdir())]
        shutil.rmtree(self.folder)
        if not texts:
            return
        began = time.perf_counter()
        batches = [texts[n : n + AT_ONCE] for n in range(0, len(texts), AT_ONCE)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            logs = [log for log in pool.map(rejected, batches) if log is not None]
        seconds = time.perf_counter() - began
        self.lines = [f"cuda: {len(texts)} kernels given to NVRTC, which took {seconds:.0f} s", *logs]
        if logs:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for line in self.lines:
            terminalreporter.write_line(line, red=len(self.lines) > 1)


def rejected(texts: Sequence[str]) -> str | None:
    """What NVRTC says about the first of these kernels that it doesn't accept."""
    from polyax_cuda.check import compile_all
    from polyax_kernels.gpu.runtime import KernelRejected

    try:
        compile_all(texts)
    except KernelRejected as e:
        return str(e)
    return None
