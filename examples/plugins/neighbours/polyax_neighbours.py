"""One fuser for backends that somebody else wrote: kernels that follow each other and need nothing of each other
become one, which spares a launch.

It runs where it is asked for: ``POLYAX_FUSERS=instruction,merger,sibling,producer_consumer,neighbours``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polyax

NAME = "neighbours"


@polyax.hookimpl
def polyax_fusers(backend: Any) -> Iterable[Any]:
    """Asked once for each backend in use; the name is what ``POLYAX_FUSERS`` and decisions call it."""
    from polyax_kernels.api.fusers import Fuser

    return [Fuser(NAME, run)]


def run(graph: Any, limits: Any) -> Any:
    """The graph with each kernel merged into the one before it, where the edit says that it can be.

    Nodes stand in an order in which they can run, and between two neighbours is no third that could depend on one
    and be needed by the other.
    """
    from polyax.backend import Decision
    from polyax_kernels.api.fusers import merge, why_not_merge

    nodes, decisions = list(graph.nodes[:1]), []
    for node in graph.nodes[1:]:
        reason = why_not_merge(nodes[-1], node, limits)
        decisions.append(Decision(NAME, nodes[-1].name, node.name, reason))
        if reason is None:
            nodes[-1] = merge(nodes[-1], node)
        else:
            nodes.append(node)
    return graph.with_nodes(nodes, decisions)
