"""A pass over graphs of kernels: this module is what the entry point in pyproject.toml names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from polyax.backend import Backend, hookimpl

polyax_requires = ">=1,<2"
NAME = "newcomer"
"""What ``POLYAX_FUSERS`` and decisions call it."""


@hookimpl
def polyax_fusers(backend: Backend) -> Iterable[Any]:
    """Asked once for each backend in use that is made of kernels."""
    return [fuser()]


def fuser() -> Any:
    from polyax_kernels.api.fusers import Fuser

    return Fuser(NAME, run)


def run(graph: Any, limits: Any) -> Any:
    """The graph with neighbours merged that read the same value, which is then read once.

    Nodes stand in an order in which they can run, so that no third one is between two neighbours.
    """
    from polyax_kernels.api.fusers import merge

    nodes, decisions = list(graph.nodes[:1]), []
    for node in graph.nodes[1:]:
        decision = decide(nodes[-1], node, limits)
        decisions.append(decision)
        if decision.reason is None:
            nodes[-1] = merge(nodes[-1], node)
        else:
            nodes.append(node)
    return graph.with_nodes(nodes, decisions)


def decide(first: Any, second: Any, limits: Any) -> Any:
    """Whether two nodes become one; a refusal has its reason, which ``polyax.explain`` shows."""
    from polyax.backend import Decision
    from polyax_kernels.api.fusers import why_not_merge

    shared = set(first.inputs) & set(second.inputs)
    reason = why_not_merge(first, second, limits) if shared else "they read nothing in common"
    return Decision(NAME, first.name, second.name, reason)
