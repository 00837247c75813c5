"""The public names against a snapshot: none comes or goes unnoticed. ``make snapshot`` accepts the present ones."""

from __future__ import annotations

import importlib
import types
from collections.abc import Iterator
from pathlib import Path

SNAPSHOT = Path(__file__).with_name("public_names.txt")
MODULES = (
    "polyax",
    "polyax.ad_checkpoint",
    "polyax.custom_batching",
    "polyax.custom_derivatives",
    "polyax.debug",
    "polyax.distributed",
    "polyax.dlpack",
    "polyax.dtypes",
    "polyax.errors",
    "polyax.example_libraries.optimizers",
    "polyax.example_libraries.stax",
    "polyax.experimental.checkify",
    "polyax.experimental.multihost_utils",
    "polyax.experimental.pallas",
    "polyax.experimental.sparse",
    "polyax.export",
    "polyax.flatten_util",
    "polyax.image",
    "polyax.lax",
    "polyax.lax.linalg",
    "polyax.memory",
    "polyax.monitoring",
    "polyax.nn",
    "polyax.nn.initializers",
    "polyax.numpy",
    "polyax.numpy.linalg",
    "polyax.numpy.fft",
    "polyax.profiler",
    "polyax.random",
    "polyax.ref",
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
    "polyax.sharding",
    "polyax.stages",
    "polyax.test_util",
    "polyax.tree",
    "polyax.tree_util",
)
CONTRACT = (
    "polyax.backend",
    *(f"polyax_kernels.api.{name}" for name in ("emitters", "fusers", "gpu", "host", "lowerings", "plans")),
)
"""What plugins may import: names are added, and never go within a version."""
REEXPORTS = tuple(
    f"polyax.{name}"
    for name in (
        *("ad_checkpoint", "custom_batching", "custom_derivatives", "dtypes", "errors", "ref", "sharding", "stages"),
        *("test_util", "tree", "tree_util"),
    )
)


def public(name: str) -> Iterator[str]:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError:
        return
    if hasattr(module, "__all__"):
        yield from (f"{name}.{attribute}" for attribute in sorted(module.__all__))
        return
    for attribute in sorted(dir(module)):  # with what is loaded when it is asked for
        if not attribute.startswith("_") and is_own(module, attribute):
            yield f"{name}.{attribute}"


def is_own(module: types.ModuleType, attribute: str) -> bool:
    """Modules that only re-export have no other names; the others also import what they need."""
    value = getattr(module, attribute)
    if isinstance(value, types.ModuleType):
        return value.__name__ in MODULES and value.__name__ == f"{module.__name__}.{attribute}"
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
