"""Opening the door: from then on ``import jax`` means polyax in this process."""

from __future__ import annotations

import os
import sys

from polyax.door.aliases import extended, own_name
from polyax.door.finding import AliasFinder, LastFinder
from polyax.door.naming import in_jax_names
from polyax.door.places import PLACES
from polyax.door.version import __version__
from polyax.ir.config import config
from polyax.runtime.arrays.array import Array
from polyax.runtime.contract.tracebacks import retell
from polyax.trace.tracer import Tracer


def install() -> None:
    """Makes ``import jax`` mean polyax in this process; the second time it does nothing.

    Random bits then have the layout that JAX's have today, unless ``POLYAX_THREEFRY_PARTITIONABLE`` or
    ``JAX_THREEFRY_PARTITIONABLE`` says otherwise.

    Raises:
      ImportError: JAX itself is imported already.
    """
    polyax = sys.modules["polyax"]
    if sys.modules.get("jax") is polyax:
        return
    _refuse_the_other(sys.modules.get("jax"))
    sys.meta_path.insert(0, AliasFinder())
    sys.meta_path.append(LastFinder())
    for alias in PLACES:  # as with JAX, what is imported with it needn't be imported by name
        if alias.startswith("jax") and (module := sys.modules.get(own_name(alias))) is not None:
            sys.modules[alias] = extended(module, alias)
    retell(in_jax_names)
    for kind in (Array, Tracer, *Tracer.__subclasses__()):
        kind.__module__ = "jax"  # by the first part of it libraries tell whose arrays they are given
    vars(polyax)["__version__"] = __version__  # from now on that of the interface, not polyax's own
    if not {"POLYAX_THREEFRY_PARTITIONABLE", "JAX_THREEFRY_PARTITIONABLE"} & os.environ.keys():
        config.update("threefry_partitionable", True)


def _refuse_the_other(imported: object) -> None:
    if imported is None or getattr(imported, "__polyax_stub__", False):
        return
    where = getattr(imported, "__file__", None) or "no file"
    version = getattr(imported, "__version__", "of an unknown version")
    raise ImportError(
        f"polyax can't take the name of jax: jax {version} is imported already, from {where}, and arrays of both don't "
        "mix. Import polyax.as_jax before anything that imports jax, or run `python -m polyax.as_jax SCRIPT`"
    )
