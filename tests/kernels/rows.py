"""Row-wise programs, and a fuser that stacks whatever can be stacked: whether it pays is not asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from kernels.numpy_backend import NumpyKernelBackend

import polyax.numpy as jnp
from polyax import lax, nn
from polyax.runtime.contract.hooks import Chosen
from polyax_fusion.instruction import instruction_fusion
from polyax_kernels.ir.edits import stack, why_not_stack
from polyax_kernels.ir.graph import Fuser, Graph, KernelNode
from polyax_kernels.ir.limits import Limits

RNG = np.random.default_rng(7)


def stack_all(graph: Graph, limits: Limits) -> Graph:
    """Every producer goes into the first kernel that reads it, if it may; what others need is written too."""
    nodes = dict(enumerate(graph.nodes))
    for n in range(len(graph.nodes)):
        first, *others = [m for m in nodes if m > n and set(nodes[m].inputs) & set(nodes[n].outs)] or [None]
        needed = {*graph.outputs, *(v for m in others for v in nodes[m].inputs)}
        keep = [v for v in nodes[n].outs if v in needed]
        if first is not None and why_not_stack(nodes[n], nodes[first], limits, keep) is None:
            nodes[first] = stack(nodes.pop(n), nodes[first], keep)
    return graph.with_nodes(nodes.values())


class Stacking:
    """Mixed into a backend: its programs are stacked as far as they can be."""

    stacking = True

    def chosen_fusers(self) -> list[Chosen]:
        fusers = [instruction_fusion, Fuser("stack_all", stack_all)] if self.stacking else [instruction_fusion]
        return [Chosen("the tests", f) for f in fusers]


class NumpyStacking(Stacking, NumpyKernelBackend):
    pass


class Separate(NumpyStacking):
    """Producers are inlined, nothing is stacked."""

    stacking = False


def stages(graph: Graph) -> list[int]:
    """How many stages each kernel has."""
    return [len(node.stages) for node in graph.nodes if isinstance(node, KernelNode) and node.alias is None]


def layer_norm(x: Any) -> list[Any]:
    """The result, the mean and the reciprocal deviation."""
    mean = x.mean(-1, keepdims=True)
    rstd = lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)
    return [(x - mean) * rstd, mean[..., 0], rstd[..., 0]]


def softmax_and_total(x: Any) -> list[Any]:
    high = x.max(-1, keepdims=True)
    e = jnp.exp(x - high)
    total = e.sum(-1, keepdims=True)
    return [e / total, jnp.log(total) + high, e]


def masked_softmax(x: Any) -> Any:
    return nn.softmax(x, where=x > 0)


def above_average(x: Any) -> list[Any]:
    high = x > x.mean(-1, keepdims=True)
    return [high & ~jnp.all(high, -1, keepdims=True), jnp.argmax(jnp.where(high, x, -1), -1)]


def shifted(x: Any) -> Any:
    """A row is read at other points than the own one, some of them outside."""
    e = jnp.exp(x - x.max(-1, keepdims=True))
    padded = jnp.pad(e, [(0, 0)] * (x.ndim - 1) + [(1, 1)])
    return padded[..., :-2] + padded[..., 2:] + e


def columns(x: Any) -> Any:
    return nn.softmax(x, axis=0)


def softmax_twice(x: Any) -> Any:
    return nn.softmax(jnp.sin(nn.softmax(x)))


PROGRAMS: tuple[Callable[..., Any], ...] = (
    nn.softmax, nn.log_softmax, layer_norm, softmax_and_total, masked_softmax, above_average, shifted, columns,
    softmax_twice,
)  # fmt: skip
SHAPES = ((5, 100), (64, 1), (1, 9), (3, 4, 5), (2, 1, 70), (0, 7), (130,))


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)
