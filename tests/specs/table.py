"""The suite's cases, those of primitives that only the core makes, and the primitives that can't have one."""

from __future__ import annotations

from polyax.experimental.sparse.composed import COMPOSED
from polyax.meshes.axes import AbstractMesh
from polyax.meshes.resharding import resharded
from polyax.meshes.sharding import NamedSharding
from polyax.meshes.spec import UNCONSTRAINED, PartitionSpec
from polyax.ops.collective import unreduced_psum_p
from polyax.ops.constraint import constrain
from polyax.ops.keys import ON_WORDS
from polyax.ops.memories import put_into
from polyax.ops.parts import all_gather_invariant_p, all_gather_reduced_p, unreduced_reduce_scatter_p
from polyax.ops.recurrence import linear_recurrence
from polyax.ops.sums import preduced_p, vary_unreduced_cast_p
from polyax.trace.varying import reduced_vary_cast_p
from polyax_conformance.specs.case import Case, case
from polyax_conformance.specs.primitives import table
from polyax_conformance.specs.primitives.data import X, Y

ROWS = NamedSharding(AbstractMesh((3, 1), ("x", "y")), PartitionSpec("x", UNCONSTRAINED))
OF_THE_CORE = {
    "arrays: device_put": case(lambda x: put_into(x, "pinned_host"), X),
    "arrays: reshard": case(lambda x: resharded(x, ROWS), X),
    "arrays: linear_recurrence": case(lambda x, y: linear_recurrence(x, y, 1, reverse=True), X, Y),
    "arrays: sharding_constraint": case(lambda x: constrain(x, ROWS), X),
}
CASES: dict[str, Case] = table.CASES | OF_THE_CORE

OF_SUMS = (
    all_gather_invariant_p,
    all_gather_reduced_p,
    preduced_p,
    reduced_vary_cast_p,
    unreduced_psum_p,
    unreduced_reduce_scatter_p,
    vary_unreduced_cast_p,
)

OF_REFS = "new_ref", "empty_ref", "freeze", "free_ref", "get", "swap", "addupdate"

WITHOUT_A_CASE = (
    {
        "custom_lin": "stands in linear programs for a user's backward rule, until they are transposed",
        "closed_call": "stands in programs of interpreters written for JAX: see tests/core/extend/test_linear_util.py",
        "call": "the same under another name",
        "random_gamma": "gives random numbers: see tests/core/random/test_binomials.py",
        "rng_bit_generator": "gives random numbers: see tests/core/random/test_generators.py",
        "rng_uniform": "gives other numbers each time: see tests/core/random/test_generators.py",
        "composite": "isn't differentiated: see tests/core/lax/test_composites.py",
        "platform_index": "has no operands: see tests/core/lax/test_composites.py",
        "custom_partitioning": "isn't differentiated or mapped: see tests/core/experimental/custom_partitioning",
        "check": "is of errors: see tests/core/experimental/checkify/test_checkify.py",
        "dim_as_value": "is of symbolic dimensions, which are exported: see tests/core/export/test_symbolic.py",
    }
    | dict.fromkeys(OF_REFS, "is of references, which NumPy has no type for: see tests/core/control/refs")
    | dict.fromkeys(
        ("part", "words", "library"), "is of complex numbers in kernels: see tests/kernels/lower/test_complexes.py"
    )
    | dict.fromkeys(
        (
            "tiled_convolution",
            "convolution_in_planes",
            "direct_convolution",
            "depthwise_convolution",
            "gradient_by_weights",
            "packed_weights",
        ),
        "stands for convolutions on the cpu: see tests/cpu/test_convolutions.py and those of each kind",
    )
    | {p.name: "is of sums still to be made, on meshes: see tests/core/meshes/sums_cases.py" for p in OF_SUMS}
    | {p.name: "is of keys, for which NumPy has no type: see tests/core/random/test_typed_keys.py" for p in ON_WORDS}
    | {p.name: "is a program of others: see tests/core/experimental/sparse" for p in COMPOSED}
)
