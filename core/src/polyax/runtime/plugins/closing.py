"""The end of backends, which comes with that of the process."""

from __future__ import annotations

import atexit
import os
import sys

from polyax.runtime.contract import effects
from polyax.runtime.contract.backend import Backend
from polyax.runtime.contract.whose import owner


def close_at_exit(backend: Backend) -> None:
    """If it has anything to do then; those that were opened last are closed first."""
    if type(backend).close is not Backend.close:
        atexit.register(_close, backend, os.getpid())


def _close(backend: Backend, process: int) -> None:
    """Closes it once what was started has ended; not in a fork, nor after Ctrl-C, which waits for nothing."""
    if process != os.getpid() or getattr(sys, "last_type", None) is KeyboardInterrupt:
        return
    try:
        effects.barrier()
    finally:
        _end(backend)


def _end(backend: Backend) -> None:
    try:
        for device in backend.devices():
            if device.is_addressable:
                backend.synchronize(device)
        backend.close()
    except Exception as e:
        whose = owner(backend)  # nobody is left who could catch it
        print(f"polyax: {whose.title} couldn't close {backend.name!r}: {e!r}; {whose.remedy}", file=sys.stderr)
