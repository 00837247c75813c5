"""``custom_partitioning``: a function that is one equation in programs on meshes, and says how devices compute it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.control.calls.custom import CustomFunction
from polyax.control.calls.family import CallLike
from polyax.control.inner.programs import run
from polyax.experimental.custom_partitioning.factoring import factors_of
from polyax.experimental.custom_partitioning.mappings import SdyShardingRule
from polyax.experimental.custom_partitioning.parsing import str_to_sdy_sharding_rule
from polyax.experimental.custom_partitioning.placing import Partitioning, on_blocks, results_asked
from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax.ir.errors import UnexpectedTracerError
from polyax.ir.primitive import Primitive
from polyax.meshes.factors import Factors
from polyax.partition.emit import NESTED
from polyax.partition.propagate import ASKED
from polyax.trace.tracer import Tracer
from polyax.trace.traces import Traces
from polyax.trace.tree import tree_leaves, tree_structure, tree_unflatten

custom_partitioning_p = Primitive("custom_partitioning", higher_order=True)
"""``custom_partitioning[call owner] *args``: what ``call`` computes, on one device; ``owner`` says how it is done on
several."""


class custom_partitioning(CustomFunction):
    """A function that says itself how the devices of a mesh compute it.

    On one device, and where it isn't part of a program on a mesh, it is what ``fun`` computes.

    Args:
      static_argnums: positions of arguments that aren't arrays; all callbacks are given these first.

    >>> import polyax, numpy as np, polyax.numpy as jnp
    >>> from polyax.sharding import Mesh, NamedSharding, PartitionSpec as P
    >>> @custom_partitioning
    ... def spectrum(x):
    ...     return jnp.abs(jnp.fft.rfft(x))
    >>> def partition(mesh, args, result):
    ...     rows = NamedSharding(mesh, P(*args[0].sharding.spec[:1], None))
    ...     return mesh, spectrum.fun, rows, (rows,)
    >>> spectrum.def_partition(partition, sharding_rule="i j -> i k") is partition
    True
    >>> mesh = Mesh(polyax.devices()[:1], ("x",))
    >>> x = polyax.device_put(np.eye(4, dtype=np.float32), NamedSharding(mesh, P("x")))
    >>> polyax.jit(spectrum)(x).sharding.spec
    P('x',)
    """

    kind = "custom_partitioning"

    def __init__(self, fun: Callable[..., Any], static_argnums: Sequence[int] = ()) -> None:
        super().__init__(fun, tuple(static_argnums))
        self.static_argnums = static_argnums
        self.partition: Callable[..., Any] | None = None
        self.infer_sharding_from_operands: Callable[..., Any] | None = None
        self.propagate_user_sharding: Callable[..., Any] | None = None
        self.decode_shardings = True
        self.sharding_rule: Any = None
        self._traces = Traces()

    def def_partition(
        self,
        partition: Callable[..., Any],
        infer_sharding_from_operands: Callable[..., Any] | None = None,
        propagate_user_sharding: Callable[..., Any] | None = None,
        decode_shardings: bool = True,
        sharding_rule: Any = None,
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ) -> Callable[..., Any]:
        """Sets how devices compute the function.

        Args:
          partition: ``(mesh, arg_shapes, result_shape) -> (mesh, on_blocks, result_shardings, arg_shardings)``: from
            types with the shardings that the partitioner suggests to a function of blocks, in which the mesh's axes
            have names, and to how its results and arguments are cut.
          infer_sharding_from_operands: ``(mesh, arg_shapes, result_shape) -> result_shardings``; asked where
            ``config.use_shardy_partitioner`` is False, instead of ``sharding_rule``.
          propagate_user_sharding, decode_shardings: nobody asks for these; shardings are always named ones.
          sharding_rule: an ``SdyShardingRule``, a text as einops has them, or a function
            ``(mesh, arg_shapes, result_shapes)`` that gives one of these.
          reduction_factors, need_replication_factors, permutation_factors, factor_sizes: as of ``SdyShardingRule``.

        Raises:
          ValueError: the rule can't be read, or more goes with one that isn't a text.
        """
        named = {
            "reduction_factors": reduction_factors,
            "need_replication_factors": need_replication_factors,
            "permutation_factors": permutation_factors,
        }
        more = {**factor_sizes, **{name: found for name, found in named.items() if len(found)}}
        if sharding_rule is None or callable(sharding_rule) or isinstance(sharding_rule, SdyShardingRule):
            if more:
                raise ValueError(f"Unknown keyword arguments: {more}")
        else:
            sharding_rule = str_to_sdy_sharding_rule(sharding_rule, **more)
        self.partition = partition
        self.infer_sharding_from_operands = infer_sharding_from_operands
        self.propagate_user_sharding = propagate_user_sharding
        self.decode_shardings = decode_shardings
        self.sharding_rule = sharding_rule
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.partition is None:
            raise AttributeError(
                f"No partition rule defined for custom_partitioning function {self.__name__} using def_partition."
            )
        call = self.split(args, kwargs)
        static, dynamic = self._apart(self.signature.positional(args, kwargs))
        made = self._traces.of(call)
        if any(isinstance(c, Tracer) for c in made.closed.consts):
            raise UnexpectedTracerError(
                f"The custom_partitioning function {self.__name__} closes over a value that is traced; pass it as an "
                "argument."
            )
        owner = Partitioning(
            self.partition, self._asked(), self._rule(), static, tree_structure(dynamic), made.out_tree, self.__name__
        )
        return tree_unflatten(made.out_tree, custom_partitioning_p.bind(*call.leaves, call=made.closed, owner=owner))

    def _apart(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        static = tuple([args[n] for n in self.static_argnums])
        if any(isinstance(x, Tracer) for x in tree_leaves(static)):
            raise UnexpectedTracerError(
                f"Found a JAX Tracer object passed as an argument to a custom_partitioning function, {self.__name__}, "
                "in a position indicated as static by static_argnums."
            )
        return static, tuple([x for n, x in enumerate(args) if n not in self.static_argnums])

    def _asked(self) -> Callable[..., Any] | None:
        return None if config.use_shardy_partitioner else self.infer_sharding_from_operands

    def _rule(self) -> Any:
        if not config.use_shardy_partitioner:
            return None
        asked = self.infer_sharding_from_operands or self.propagate_user_sharding
        if self.sharding_rule is None and asked is not None:
            raise NotImplementedError(
                "Shardy is used, but sharding propagation callbacks instead of sharding_rule are provided. Need to "
                "provide sharding_rule to migrate to Shardy."
            )
        return self.sharding_rule


class _CustomPartitioning(CallLike):
    def decompose(self, *args: Any, **params: Any) -> list[Any]:
        return run(params["call"], args)


def _factors(*avals: ShapedArray, call: Any, owner: Partitioning) -> Factors | None:
    """As the user's rule says."""
    rule = owner.rule
    if callable(rule):
        rule = rule(*owner.static, owner.mesh_in_force(), list(avals), list(call.out_avals))
        rule, more = rule if isinstance(rule, (list, tuple)) and len(rule) == 2 else (rule, {})
        rule = str_to_sdy_sharding_rule(rule, **more) if isinstance(rule, str) else rule
        if not isinstance(rule, SdyShardingRule):
            raise ValueError(
                "sharding_rule callable must produce either an SdyShardingRule object or an Einsum-like notation "
                f"string. Got {rule!r}"
            )
    return None if rule is None else factors_of(rule, avals, call.out_avals)


_CustomPartitioning(custom_partitioning_p, "call").install("abstract_eval", "impl", "decompose", "sub_jaxprs")
custom_partitioning_p.factors = _factors
for _name in ("jvp", "transpose", "partial_eval"):
    custom_partitioning_p.never(_name, "its partition rule says nothing of derivatives; custom_vjp around it does")
custom_partitioning_p.never("batch", "its partition rule is of arrays of these dimensions; custom_vmap around it helps")
custom_partitioning_p.never("dce", "it is one operation with all its results")
NESTED[custom_partitioning_p] = on_blocks
ASKED[custom_partitioning_p] = results_asked
