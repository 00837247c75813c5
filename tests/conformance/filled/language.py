"""``language.py`` of a ``new-backend`` project, filled in: the system's compiler makes a function of a C program."""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from pathlib import Path

from polyax_kernels.api.host import FUNCTION, Function

FLAGS = ("-std=gnu11", "-O1", "-fwrapv", "-ffp-contract=off", "-fPIC", "-shared", "-w")
"""Integers wrap, and two kernels that compute one value agree on it to the last bit."""


def load(text: str) -> Function:
    """The function ``kernel`` of ``text``.

    Raises:
      RuntimeError: the compiler refuses it; the message has its complaint and the program.
    """
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "kernel.so")
        command = [os.environ.get("CC", "cc"), *FLAGS, "-x", "c", "-", "-o", str(library), "-lm"]
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}\nThe program:\n{text}")
        return FUNCTION(("kernel", ctypes.CDLL(str(library))))  # it stays loaded after its file is gone
