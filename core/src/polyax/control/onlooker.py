"""Values of a function on blocks while it is being traced, for those who print them or branch on them.

Outside of programs, all arguments of ``shard_map`` are known. Who looks at a value there runs what was recorded so far;
what nobody looks at costs nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from polyax.control.inner.programs import derived, hoisted, run
from polyax.control.inner.untyped import without_vma
from polyax.control.spmd import axes_bound, manual, shard_map_p
from polyax.ir.primitive import ambient
from polyax.meshes.current import get_abstract_mesh, use_abstract_mesh
from polyax.meshes.mesh import Mesh
from polyax.meshes.spec import Cuts
from polyax.ops.basis import expand_dims
from polyax.trace.context import set_trace
from polyax.trace.recording import DynamicJaxprTracer


class Onlooker:
    """Sees what each device has of a value. ``looked``: whether anybody did, so that the program is for these arguments
    alone."""

    def __init__(self, params: dict[str, Any], ins: Sequence[Cuts], args: Sequence[Any]) -> None:
        self.params = params
        self.ins = ins
        self.args = args
        self.mesh = get_abstract_mesh()
        self.looked = False

    def text(self, x: DynamicJaxprTracer) -> str:
        """The blocks, one below the other."""
        stacked, mesh = self._run(x)
        found = {s.device: np.asarray(s.data)[0] for s in stacked.addressable_shards}
        head = f"({', '.join(map(str, mesh.axis_names))},)"
        places = [(index, d) for index, d in np.ndenumerate(mesh.devices) if d in found]
        return "\n".join(f"On {d} at mesh coordinates {head} = {index}:\n{found[d]}\n" for index, d in places)

    def value(self, x: DynamicJaxprTracer) -> Any:
        """That of a scalar which is the same on all devices; else None."""
        if not self.params["check_vma"] or x.aval.vma:
            return None
        return np.asarray(self._run(x)[0].addressable_shards[0].data)[0]

    def _run(self, x: DynamicJaxprTracer) -> tuple[Any, Mesh]:
        """The blocks of all devices along a dimension of their own."""
        self.looked = True
        axes = manual(self.params["mesh"], self.params["manual_axes"])
        with _outside(self):
            program = without_vma(x.recorded())
            with axes_bound(axes):
                stacked = derived(program, lambda *args: [expand_dims(run(program, args)[0], (0,))], program.in_avals)
            closed, consts = hoisted(stacked)
            params = self.params | {"jaxpr": closed, "check_vma": False}
            params["in_specs"] = (*(((),) * a.ndim for a in closed.in_avals[: len(consts)]), *self.ins)
            params["out_specs"] = ((tuple(name for name, _ in axes), *((),) * x.aval.ndim),)
            result = shard_map_p.bind1(*consts, *self.args, **params)
        return result, result.sharding.mesh


@contextlib.contextmanager
def _outside(onlooker: Onlooker) -> Generator[None]:
    """As it was around the call."""
    before = ambient.axis_env, ambient.varying, ambient.source
    ambient.axis_env, ambient.varying = {}, frozenset()
    try:
        with set_trace(None), use_abstract_mesh(onlooker.mesh):
            yield
    finally:
        ambient.axis_env, ambient.varying, ambient.source = before
