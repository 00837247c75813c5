"""The public names against a snapshot: none comes or goes unnoticed. ``make snapshot`` accepts the present ones."""

from __future__ import annotations

import importlib
import types
from collections.abc import Iterator
from pathlib import Path

SNAPSHOT = Path(__file__).with_name("public_names.txt")
MODULES = (
    "polyax",
    "polyax.errors",
    "polyax.image",
    "polyax.lax",
    "polyax.lax.linalg",
    "polyax.nn",
    "polyax.nn.initializers",
    "polyax.numpy",
    "polyax.numpy.linalg",
    "polyax.numpy.fft",
    "polyax.random",
    "polyax.scipy",
    "polyax.scipy.cluster.vq",
    "polyax.scipy.fft",
    "polyax.scipy.integrate",
    "polyax.scipy.interpolate",
    "polyax.scipy.linalg",
    "polyax.scipy.ndimage",
    "polyax.scipy.optimize",
    "polyax.scipy.signal",
    "polyax.scipy.sparse.linalg",
    "polyax.scipy.spatial.transform",
    "polyax.scipy.special",
    "polyax.scipy.stats",
    "polyax.test_util",
    "polyax.tree",
    "polyax.tree_util",
)
CONTRACT = (
    "polyax.backend",
    *(f"polyax_kernels.api.{name}" for name in ("emitters", "fusers", "gpu", "host", "lowerings", "plans")),
)
"""What plugins may import: names are added, and never go within a version."""
REEXPORTS = ("polyax.errors", "polyax.test_util", "polyax.tree", "polyax.tree_util")


def public(name: str) -> Iterator[str]:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError:
        return
    if name in CONTRACT:
        yield from (f"{name}.{attribute}" for attribute in sorted(module.__all__))
        return
    for attribute in sorted(dir(module)):  # with what is loaded when it is asked for
        if not attribute.startswith("_") and is_own(module, getattr(module, attribute)):
            yield f"{name}.{attribute}"


def is_own(module: types.ModuleType, value: object) -> bool:
    """Modules that only re-export have no other names; the others also import what they need."""
    if isinstance(value, types.ModuleType):
        return value.__name__ in MODULES
    reexports = hasattr(module, "__path__") or module.__name__ in REEXPORTS
    return reexports or getattr(value, "__module__", None) == module.__name__


def present() -> list[str]:
    for name in MODULES:  # importing one makes it a name of its package
        importlib.import_module(name)
    return [line for name in (*MODULES, *CONTRACT) for line in public(name)]


def test_public_names_are_those_of_the_snapshot() -> None:
    recorded, found = set(SNAPSHOT.read_text().split()), set(present())
    gone, new = sorted(recorded - found), sorted(found - recorded)
    assert not gone and not new, f"gone: {gone}; new: {new}; `make snapshot` accepts this"


if __name__ == "__main__":
    SNAPSHOT.write_text("\n".join(present()) + "\n")
