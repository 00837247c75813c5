"""Names of JAX's public interface that polyax doesn't have, each with the reason. ``docs/gaps.md`` shows them."""

from __future__ import annotations

_TOKENS = "programs order their effects by themselves: no tokens go through them"
_NO_PRIMITIVE = "what it stands for is made of other primitives here"
_CALLS = "primitives that hold functions say how these become programs (docs/primitives.md)"
_TREES = "JAX's takes flat trees of a private kind; polyax.jvp and polyax.linearize take functions of any pytrees"
_LOWERING = "programs become kernels by lowerings of backends, which plugins bring (docs/primitives.md)"
_XLA = "it is about programs of XLA"
_ASYNC = "kernels run on one thread, place after place: nothing is waited for, and no other core is there"
_ONE_MAKER = "kernels aren't compiled for one maker's devices (docs/pallas.md)"
_COSTS = "costs are told by compiled.cost_analysis and polyax-inspect (docs/profiling.md)"
_WRITERS = "programs aren't written as MLIR: lowering rules are functions of arrays (docs/primitives.md)"
_NO_HOSTS = "its functions work on arrays, outside of programs"
_BY_CHANCE = "what JAX's module imports for itself stands there by chance"
_LIVENESS = "a process whose peers have ended is ended, with an error that says so (docs/processes.md)"
_HIJAX = "types of values that users define aren't built"


def _several(module: str, names: str, reason: str) -> dict[str, str]:
    return dict.fromkeys((f"{module}.{name}" for name in names.split()), reason)


GAPS = {
    "array_garbage_collection_guard": "what Python's collector frees isn't logged",
    "ffi": "functions of other languages are called through callbacks (buffer_callback) or come with plugins",
    "jax2tf_associative_scan_reductions": "there is no jax2tf",
    "softmax_custom_jvp": "the derivative of softmax has no other form to choose",
    "thread_guard": "processes check that they run the same programs, in whatever thread",
    "lax.after_all": _TOKENS,
    "lax.after_all_p": _TOKENS,
    "lax.create_token": _TOKENS,
    "lax.create_token_p": _TOKENS,
    "lax.psend": "devices meet in collectives, such as lax.ppermute; one alone can't send",
    "lax.precv": "devices meet in collectives, such as lax.ppermute; one alone can't receive",
    "lax.approx_top_k_p": _NO_PRIMITIVE,
    "lax.device_put_p": "arrays are put somewhere outside of programs, and constrained within them",
    "lax.ragged_all_to_all_p": _NO_PRIMITIVE,
    "lax.select_and_scatter_p": _NO_PRIMITIVE,
    "lax.stack_p": _NO_PRIMITIVE,
    "lax.stage_p": _NO_PRIMITIVE,
    "lax.tile_p": _NO_PRIMITIVE,
    "lax.unstack_p": _NO_PRIMITIVE,
    "experimental.EArray": _HIJAX,
    "experimental.cur_qdd": _HIJAX,
    "experimental.primal_tangent_dtype": _HIJAX,
    "experimental.control_deps": _XLA,
    "experimental.fused": "programs are fused by rule (docs/passes.md), not by order",
    "experimental.jax2tf": "there is no TensorFlow behind it; polyax.export saves programs (docs/export.md)",
    "experimental.mosaic": "kernels for one maker's devices come as plugins (docs/plugins.md)",
    "experimental.pallas.DeviceIdType": _ASYNC,
    "experimental.pallas.core_map": _ASYNC,
    "experimental.pallas.delay": _ASYNC,
    "experimental.pallas.get_global": _ASYNC,
    "experimental.pallas.kernel": _ASYNC,
    "experimental.pallas.semaphore": _ASYNC,
    "experimental.pallas.semaphore_read": _ASYNC,
    "experimental.pallas.semaphore_signal": _ASYNC,
    "experimental.pallas.semaphore_wait": _ASYNC,
    "experimental.pallas.Indirect": "blocks are slices; a kernel can gather from an array that it sees whole",
    "experimental.pallas.enable_debug_checks": "checkify decides which checks are made (polyax.experimental.checkify)",
    "experimental.pallas.enable_poison_buffers": "what isn't written always holds NaN or the least integer",
    "experimental.pallas.estimate_cost": _COSTS,
    "experimental.pallas.lower_as_mlir": _LOWERING,
    "experimental.pallas.pallas_call_p": "kernels become loops of ordinary primitives where they are called",
    "experimental.pallas.pallas_export_experimental": "kernels are exported as the loops that they become",
    "experimental.pallas.select_ref": "it is for copies between cores",
    **_several(
        "experimental.pallas.tpu",
        "BufferType BufferedRef BufferedRefBase CoreType SEMAPHORE SemaphoreType async_copy "
        "async_remote_copy core_barrier create_tensorcore_mesh dma_semaphore emit_pipeline "
        "emit_pipeline_with_allocations get_barrier_semaphore make_async_copy make_async_remote_copy "
        "run_on_first_core",
        _ASYNC,
    ),
    **_several(
        "experimental.pallas.tpu",
        "ChipVersion InterpretParams LoweringException SideEffectType Tiling TpuInfo bitcast einshape "
        "force_tpu_interpret_mode get_tpu_info get_tpu_info_for_chip is_tpu_device matmul_acc_lhs "
        "matmul_pop matmul_push_rhs pack_elementwise reset_tpu_interpret_mode_state "
        "set_tpu_interpret_mode touch trace_value unpack_elementwise with_memory_space_constraint",
        _ONE_MAKER,
    ),
    **_several(
        "experimental.pallas.tpu",
        "prng_random_bits prng_seed sample_block stateful_bernoulli stateful_bits stateful_normal "
        "stateful_uniform stochastic_round to_pallas_key",
        "random numbers of kernels are those of polyax.random",
    ),
    "experimental.pallas.triton.elementwise_inline_asm": _ONE_MAKER,
    "experimental.profiler": "profiles aren't XLA's; polyax.profiler reads them (docs/profiling.md)",
    "experimental.roofline": _COSTS,
    "experimental.source_mapper": "polyax-inspect shows what lines of source become (docs/inspecting.md)",
    "experimental.sparse.test_util": "it is what JAX's own tests are made of",
    "experimental.transfer": "arrays go between processes of one program in collectives (docs/processes.md)",
    "extend.lowering": _LOWERING,
    "extend.mlir": _LOWERING,
    "extend.pallas": _LOWERING,
    "extend.sharding": "shardings have no form in XLA's messages",
    "extend.xla": _XLA,
    "extend.backend.backend_xla_version": "backends aren't made of XLA",
    "extend.backend.get_compile_options": "they are XLA's; polyax.jit takes compiler_options",
    "extend.backend.register_backend_cache": "executables are kept with their programs, in caches of one kind",
    "extend.backend.register_backend_factory": "backends come as plugins (docs/plugins.md)",
    "extend.core.AbstractToken": _TOKENS,
    "extend.core.Token": _TOKENS,
    "extend.core.CallPrimitive": _CALLS,
    "extend.core.call_impl": _CALLS,
    "experimental.jet.weakref_lru_cache": _BY_CHANCE,
    "interpreters.ad.jvp": _TREES,
    "interpreters.ad.linearize": _TREES,
    "interpreters.partial_eval.partial_eval_jaxpr_custom_rules": (
        "what checkpoint saves is its policy's choice: primitives have no rules for it"
    ),
    **_several(
        "interpreters.mlir",
        """
        AxisContext ConstantHandler DEVICE_TO_DEVICE_TYPE LoweringParameters LoweringResult LoweringRule Mesh
        MeshAxisName ModuleContext RECV_FROM_HOST_TYPE SEND_TO_HOST_TYPE SPMDAxisContext ShapePolyLoweringState
        ShardingContext Token TokenSet Value aval_to_ir_type aval_to_ir_types core_call_lowering dense_int_array
        dense_int_elements dtype_to_ir_type emit_python_callback flatten_ir_types flatten_ir_values i32_attr i64_attr
        ir_attribute ir_constant ir_constants ir_tree_registry ir_type_handlers jaxpr_subcomp lower_jaxpr_to_fun
        lower_jaxpr_to_module lowerable_effects make_ir_context merge_mlir_modules module_to_bytecode module_to_string
        register_constant_handler shape_tensor token_type unflatten_ir_values_like_types
        """,
        _WRITERS,
    ),
    **_several(
        "experimental.multihost_utils",
        """
        global_array_to_host_local_array_impl global_array_to_host_local_array_p gtl_abstract_eval
        host_local_array_to_global_array_impl host_local_array_to_global_array_p ltg_abstract_eval ltg_batcher
        """,
        _NO_HOSTS,
    ),
    **_several("experimental.multihost_utils", "ProcessFailureError live_devices", _LIVENESS),
    **_several("experimental.multihost_utils", "P lru_cache", _BY_CHANCE),
}
