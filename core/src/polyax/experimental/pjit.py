"""``polyax.experimental.pjit``: the name that ``jit`` had for programs on several devices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import EllipsisType
from typing import Any

from polyax.api.jit import PjitFunction, jit
from polyax.api.stages import Traced
from polyax.ir.config import config
from polyax.ir.primitive import ambient
from polyax.meshes.current import get_abstract_mesh
from polyax.meshes.mesh import Mesh
from polyax.meshes.spec import PartitionSpec
from polyax.trace.tree import tree_map

__all__ = ["pjit"]


class _OnEnteredMesh(PjitFunction):
    """Runs on the devices of the mesh that was entered as ``with mesh:``, if one was, whatever lies elsewhere."""

    _within: PjitFunction
    _refuses_meshes = False  # as in JAX, but where a mesh was entered

    @classmethod
    def of(cls, outside: PjitFunction, within: PjitFunction) -> _OnEnteredMesh:
        made = cls.__new__(cls)
        made.__dict__.update(outside.__dict__, _within=within)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        mesh = config.get("entered_mesh")
        if mesh is None:
            return super().__call__(*args, **kwargs)
        with _entered(mesh):
            return self._within(*args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        mesh = config.get("entered_mesh")
        if mesh is None:
            return super().trace(*args, **kwargs)
        with _entered(mesh):
            return self._within.trace(*args, **kwargs)


@contextmanager
def _entered(mesh: Mesh) -> Generator[None]:
    """Puts in force the mesh that was entered, also amid a trace, unless one is in force there already."""
    if ambient.trace is not None and not get_abstract_mesh().empty:
        yield
        return
    before = config.override_until_restored(mesh=mesh, abstract_mesh=mesh.abstract_mesh)
    try:
        yield
    finally:
        config.restore(before)


def pjit(fun: Callable[..., Any] | EllipsisType = ..., /, **options: Any) -> Any:
    """``jit``, for which the mesh of ``with mesh:`` is the one in force.

    There, a sharding that is given as None is that of what is the same everywhere.

    >>> import polyax
    >>> from polyax.sharding import Mesh
    >>> with Mesh(polyax.devices()[:1], ("x",)):
    ...     print(pjit(lambda x: x + 1, out_shardings=None)(1).sharding.spec)
    P()
    """
    if fun is ...:
        return functools.partial(pjit, **options)
    given = {name: _said(options[name]) for name in ("in_shardings", "out_shardings") if name in options}
    return _OnEnteredMesh.of(jit(fun, **options), jit(fun, **options | given))


def _said(shardings: Any) -> Any:
    return tree_map(lambda s: PartitionSpec() if s is None else s, shardings, is_leaf=lambda s: s is None)
