"""``check_fuser``: programs with a fuser of somebody's, its graphs and its results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

import polyax
from polyax.backend import PluginError
from polyax_conformance.parts.bringing import brought
from polyax_conformance.parts.findings import Findings, Wrong, difference, raised, told
from polyax_conformance.parts.programs import programs
from polyax_conformance.parts.running import kernel_backend
from polyax_conformance.specs.callbacks import Log
from polyax_kernels.api.fusers import Fuser, Graph, check_graph

OWNER = "check_fuser"
RTOL = 2e-5
"""Between two ways to fuse."""

Program = Callable[..., Any]


def check_fuser(
    fuser: Any, *, platform: str = "cpu", cases: Mapping[str, tuple[Program, Sequence[Any]]] | None = None
) -> Findings:
    """Compiles programs with a fuser, alone and after those of the platform, and compares them with the reference.

    Found are graphs that can't run or don't compute what they should (values that nobody computes, or too late; others'
    types, effects that are dropped or in another order, kernels over the limits, more bytes moved), graphs that are
    changed in place, wrong results, and what raises. ``lacking`` has the programs in which it changed nothing.

    Args:
      fuser: has a ``name`` and ``run(graph, limits)``.
      platform: the name of one that is made of kernels.
      cases: functions and arguments, by name; without them those of ``parts.programs``.

    Raises:
      TypeError: the platform isn't made of kernels.

    >>> from types import SimpleNamespace
    >>> forgetful = SimpleNamespace(name="forgetful", run=lambda graph, limits: graph.with_nodes(graph.nodes[:-1]))
    >>> print(check_fuser(forgetful).wrong[0].fault)  # doctest: +ELLIPSIS
    it made a wrong program: the result v... is computed by nobody: ... did before this pass
    """
    backend = kernel_backend(platform)
    found = Findings(f"fuser {fuser.name} on {platform}")
    log = Log()
    beside = WatchedFuser(fuser)
    orders = {"alone": [], "after the others": [name for name in backend.fusers if name != fuser.name]}

    def polyax_fusers(_: Any) -> Iterable[Fuser]:
        return [Fuser(beside.name, beside.run)]

    with brought(platform, OWNER, polyax_fusers):
        for (name, (program, args)), (where, others) in product((cases or programs(log)).items(), orders.items()):
            with polyax.config.override(fusers=",".join([*others, beside.name])):
                _check(f"{name}, {where}", program, args, platform, beside, log, found)
    return found


class WatchedFuser:
    """A fuser that is looked at while it works: what is wrong with its graphs is kept, and they aren't run."""

    def __init__(self, fuser: Any) -> None:
        self.fuser = fuser
        self.name = f"checked_{fuser.name}"
        """Not its own: it may be installed as well."""
        self.faults: list[str] = []
        self.changed = 0

    def run(self, graph: Graph, limits: Any) -> Graph:
        nodes, decisions = list(graph.nodes), list(graph.decisions)
        try:
            made = self.fuser.run(graph, limits)
            if not isinstance(made, Graph):
                raise PluginError(f"it gave {made!r}, not a Graph")
        except Exception as e:
            self.faults.append(str(e) if isinstance(e, PluginError) else raised(e))
            return graph
        if graph.nodes != nodes or graph.decisions != decisions:
            self.faults.append("it changed the graph that it was given; graph.with_nodes gives another one")
            graph.nodes[:], graph.decisions[:] = nodes, decisions
            return graph
        return made if made is graph or self._can_run(made, graph, limits) else graph

    def _can_run(self, made: Graph, graph: Graph, limits: Any) -> bool:
        self.changed += made.nodes != graph.nodes
        try:
            check_graph(made, "it", graph, limits)
        except Exception as e:
            self.faults.append(str(e).partition(". The fault is")[0])
            return False
        return True


def _check(
    name: str, program: Program, args: Sequence[Any], platform: str, fuser: WatchedFuser, log: Log, found: Findings
) -> None:
    polyax.clear_caches()
    log.take()
    with polyax.default_device("reference"):
        want = list(map(np.asarray, polyax.tree_util.tree_leaves(polyax.jit(program)(*args))))
    noted = log.take()
    fuser.faults.clear()
    fuser.changed = 0
    found.checked += 1
    try:
        with polyax.default_device(platform):
            got = list(map(np.asarray, polyax.tree_util.tree_leaves(polyax.jit(program)(*args))))
        faults = list(_differences(got, want, args)) if not fuser.faults else []
    except Exception as e:
        faults = [(raised(e), told(args))]
    if (seen := log.take()) != noted:
        faults.append((f"its effects are {seen}, expected {noted}", told(args)))
    faults = [*((fault, "") for fault in fuser.faults), *faults]
    found.wrong += [Wrong(name, fault, given, str(polyax.make_jaxpr(program)(*args))) for fault, given in faults[:1]]
    if not fuser.changed and not faults:
        found.lacking[name] = "it changed nothing"


def _differences(got: Sequence[Any], want: Sequence[Any], args: Sequence[Any]) -> Iterable[tuple[str, str]]:
    for n, (g, w) in enumerate(zip(got, want, strict=True)):
        fault = difference(g, w, RTOL if w.dtype.kind in "fc" else 0.0, args)
        if fault is not None:
            yield f"result {n}: {fault[0]}", fault[1]
