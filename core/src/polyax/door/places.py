"""Where names of JAX are found that polyax doesn't have in the same place: one table.

``jax.a.b`` is ``polyax.a.b``, if there is such a module. What that lacks, or all of it if there is none, is in the
modules that the table gives, the first that has the name. Modules of one place are that module, not a copy.
"""

from __future__ import annotations

_LEGACY = "polyax.door.legacy"

_PUBLIC = (
    "ad_checkpoint", "api_util", "custom_batching", "custom_derivatives", "debug", "distributed", "dlpack", "dtypes",
    "errors", "example_libraries", "experimental", "experimental.buffer_callback",
    "experimental.compilation_cache.compilation_cache", "experimental.compute_on", "experimental.custom_partitioning",
    "experimental.layout", "experimental.mesh_utils", "experimental.multihost_utils", "experimental.pallas",
    "experimental.pallas.tpu", "experimental.pallas.triton", "experimental.random",
    "experimental.rnn", "experimental.scheduling_groups", "experimental.serialize_executable",
    "experimental.shard_alike", "experimental.topologies", "experimental.xla_metadata", "extend", "extend.backend",
    "extend.core", "extend.core.primitives", "extend.linear_util", "extend.random", "extend.source_info_util",
    "flatten_util", "image", "interpreters",
    "interpreters.ad", "interpreters.batching", "interpreters.mlir", "interpreters.partial_eval", "lax",
    "lax.linalg", "monitoring", "nn", "nn.initializers", "numpy", "numpy.fft", "numpy.linalg", "ops", "random", "ref",
    "scipy", "scipy.cluster", "scipy.fft", "scipy.integrate", "scipy.interpolate", "scipy.linalg", "scipy.ndimage",
    "scipy.optimize", "scipy.signal", "scipy.sparse", "scipy.sparse.linalg", "scipy.spatial", "scipy.special",
    "scipy.stats", "sharding", "stages", "test_util", "tree", "tree_util", "typing",
)  # fmt: skip
"""Modules of JAX's interface that polyax has: what they lack is told with the list of gaps."""

_EXTENDED = {
    "jax": (f"{_LEGACY}.top",),
    "jax.core": (f"{_LEGACY}.core",),
    "jax.experimental.array_serialization": (),
    "jax.experimental.array_serialization.serialization": (f"{_LEGACY}.experimental.serialization",),
    "jax.experimental.colocated_python": (f"{_LEGACY}.experimental.colocated",),
    "jax.experimental.colocated_python.func": (f"{_LEGACY}.experimental.colocated",),
    "jax.experimental.colocated_python.serialization": (f"{_LEGACY}.experimental.colocated",),
    "jax.experimental.hijax": (f"{_LEGACY}.experimental.hijax",),
    "jax.experimental.sparse.transform": (
        "polyax.experimental.sparse.sparsifying.sparsify",
        "polyax.experimental.sparse.sparsifying.tracer",
    ),
    "jax.experimental.sparse.util": ("polyax.experimental.sparse.base",),
    "jax.extend.ifrt_programs": (f"{_LEGACY}.experimental.colocated",),
    "jax.interpreters.pxla": (f"{_LEGACY}.pxla",),
    "jax.interpreters.xla": (f"{_LEGACY}.xla",),
    "jax.lib": (f"{_LEGACY}.lib",),
    "jax.version": ("polyax.door.version",),
    "jaxlib": (f"{_LEGACY}.lib",),
    "jaxlib._jax": (f"{_LEGACY}.native",),
    "jaxlib.xla_client": (f"{_LEGACY}.native",),
    "jaxlib.version": ("polyax.door.version",),
}

_PRIVATE = {
    "": (),
    "ad_checkpoint": ("polyax.ad_checkpoint",),
    "ad_util": ("polyax.interpreters.ad", "polyax.extend.core.primitives", "polyax.lax", "polyax.custom_derivatives"),
    "api": ("polyax", "polyax.api"),
    "api_util": ("polyax.api_util", f"{_LEGACY}.api_util"),
    "array": ("polyax.runtime.arrays.array", "polyax"),
    "basearray": ("polyax",),
    "callback": ("polyax", "polyax.experimental"),
    "checkify": ("polyax.experimental.checkify",),
    "compiler": (),
    "config": (f"{_LEGACY}.config",),
    "core": ("polyax.core", "polyax.extend.core", f"{_LEGACY}.core", f"{_LEGACY}.private_core"),
    "custom_batching": ("polyax.custom_batching",),
    "custom_derivatives": ("polyax.custom_derivatives",),
    "custom_partitioning": ("polyax.experimental.custom_partitioning",),
    "custom_partitioning_sharding_rule": (
        "polyax.experimental.custom_partitioning",
        "polyax.experimental.custom_partitioning.parsing",
    ),
    "debugging": ("polyax.debug",),
    "dispatch": (f"{_LEGACY}.dispatch",),
    "distributed": ("polyax.distributed", f"{_LEGACY}.distributed"),
    "dlpack": ("polyax.dlpack",),
    "dtypes": ("polyax.dtypes", f"{_LEGACY}.dtypes", "polyax.numpy"),
    "effects": (f"{_LEGACY}.effects",),
    "errors": ("polyax.errors",),
    "flatten_util": ("polyax.flatten_util",),
    "hijax": (f"{_LEGACY}.experimental.hijax",),
    "interpreters": (),
    "interpreters.ad": ("polyax.interpreters.ad",),
    "interpreters.batching": ("polyax.interpreters.batching",),
    "interpreters.mlir": ("polyax.interpreters.mlir",),
    "interpreters.partial_eval": ("polyax.interpreters.partial_eval",),
    "interpreters.pxla": (f"{_LEGACY}.pxla",),
    "interpreters.xla": (f"{_LEGACY}.xla",),
    "lax": ("polyax.lax",),
    "lax.lax": ("polyax.lax",),
    "layout": ("polyax.experimental.layout",),
    "lib": (f"{_LEGACY}.lib",),
    "lib._jax": (f"{_LEGACY}.native",),
    "lib.xla_client": (f"{_LEGACY}.native",),
    "linear_util": ("polyax.extend.linear_util",),
    "literals": (f"{_LEGACY}.literals",),
    "mesh": ("polyax.sharding", f"{_LEGACY}.mesh"),
    "monitoring": ("polyax.monitoring",),
    "named_sharding": ("polyax.sharding",),
    "nn": ("polyax.nn",),
    "numpy": ("polyax.numpy",),
    "partition_spec": ("polyax.sharding",),
    "pjit": ("polyax", "polyax.extend.core.primitives", "polyax.sharding"),
    "prng": ("polyax.random", "polyax.ir.prng"),
    "public_test_util": ("polyax.test_util",),
    "random": ("polyax.random",),
    "scipy": ("polyax.scipy",),
    "sharding": ("polyax.sharding",),
    "sharding_impls": ("polyax.sharding", f"{_LEGACY}.pxla"),
    "source_info_util": ("polyax.extend.source_info_util",),
    "stages": ("polyax.stages",),
    "state": ("polyax.ref",),
    "state.types": ("polyax.ref",),
    "traceback_util": (f"{_LEGACY}.traceback_util",),
    "tree": ("polyax.tree",),
    "tree_util": ("polyax.tree_util", f"{_LEGACY}.tree_util"),
    "typing": ("polyax.typing", f"{_LEGACY}.typing"),
    "util": (f"{_LEGACY}.util", "polyax.extend.core"),
    "xla_bridge": (f"{_LEGACY}.xla_bridge",),
}
"""Modules of ``jax._src``."""

PLACES: dict[str, tuple[str, ...]] = (
    {f"jax.{name}": () for name in _PUBLIC}
    | _EXTENDED
    | {f"jax._src.{name}".rstrip("."): places for name, places in _PRIVATE.items()}
)
