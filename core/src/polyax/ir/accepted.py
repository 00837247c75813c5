"""JAX's settings that say how XLA or its devices are to be used: they can be set and read, and mean nothing here.

So programs that set them run. Settings that would change what a program computes aren't among them.
"""

from __future__ import annotations

from typing import Any

from polyax.ir.flags import Flag, parse_bool

_DEFAULTS: dict[str, dict[str, Any]] = {
    "of XLA's compiler": {
        "compiler_enable_remat_pass": True,
        "disable_most_optimizations": False,
        "exec_time_optimization_effort": 0.0,
        "memory_fitting_effort": 0.0,
        "memory_fitting_level": "O2",
        "optimization_level": "UNKNOWN",
        "embedded_constants_max_bytes": 32,
        "captured_constants_warn_bytes": 2000000000,
        "captured_constants_report_frames": 0,
        "use_simplified_jaxpr_constants": False,
        "include_full_tracebacks_in_locations": True,
        "traceback_in_locations_limit": 100,
        "include_debug_info_in_dumps": True,
        "dump_ir_to": "",
        "dump_ir_modes": "stablehlo",
        "hlo_source_file_canonicalization_regex": None,
        "xla_profile_version": 0,
        "enable_pgle": False,
        "pgle_profiling_runs": 3,
        "pgle_aggregation_percentile": 90,
        "threefry_gpu_kernel_lowering": False,
        "use_shardy_partitioner": True,
        "remove_custom_partitioning_ptr_from_cache_key": False,
        "bcoo_cusparse_lowering": False,
        "use_magma": "auto",
        "ragged_dot_use_gpu_pallas_triton_lowering": False,
        "ragged_dot_use_ragged_dot_instruction": True,
        "mosaic_allow_hlo": False,
        "pallas_use_mosaic_gpu": True,
        "pallas_enable_debug_checks": False,
        "pallas_verbose_errors": False,
    },
    "of the format of XLA's cache": {
        "compilation_cache_check_contents": False,
        "compilation_cache_expect_pgle": False,
        "compilation_cache_include_metadata_in_key": False,
        "compilation_cache_max_size": -1,
        "persistent_cache_enable_xla_caches": "xla_gpu_per_fusion_autotune_cache_dir",
        "persistent_cache_min_compile_time_secs": 1.0,
        "persistent_cache_min_entry_size_bytes": 0,
        "raise_persistent_cache_errors": False,
        "share_binary_between_hosts": False,
        "share_binary_between_hosts_timeout_ms": 1200000,
    },
    "of XLA's devices and processes": {
        "cpu_collectives_implementation": "gloo",
        "cpu_enable_async_dispatch": True,
        "cpu_get_global_topology_timeout_minutes": 5,
        "cpu_get_local_topology_timeout_minutes": 2,
        "cuda_visible_devices": "all",
        "rocm_visible_devices": "all",
        "oneapi_visible_devices": "all",
        "pjrt_client_create_options": None,
        "backend_target": "",
        "xla_backend": "",
        "check_proxy_envs": True,
        "distributed_debug": False,
        "enable_preemption_service": True,
        "enable_recoverability": False,
        "debug_leaked_clients_on_clear_backends": False,
        "sort_devices_by_process_index": True,
        "send_traceback_to_runtime": "off",
    },
    "of how JAX is built inside": {
        "custom_vjp3": False,
        "remat3": False,
        "scan3": False,
        "refs_to_pins": False,
        "use_direct_linearize": True,
        "disable_vmap_shmap_error": False,
        "log_checkpoint_residuals": False,
        "logging_level": "NOTSET",
        "debug_log_modules": "",
        "pprint_use_color": True,
        "source_url_schema": None,
        "tracer_error_num_traceback_frames": 5,
        "jax2tf_associative_scan_reductions": False,
        "jax2tf_default_native_serialization": True,
        "export_ignore_forward_compatibility": False,
        "serialization_version": 0,
        "softmax_custom_jvp": False,
        "array_garbage_collection_guard": None,
        "thread_guard": False,
        "eager_constant_folding": False,
        "mutable_array_checks": True,
    },
}


def accepted(name: str) -> Flag | None:
    """The flag of this name, without a prefix; None if there is none."""
    for what, defaults in _DEFAULTS.items():
        if name in defaults:
            return Flag(name, defaults[name], _parser(defaults[name]), f"{what}; means nothing here")
    return None


def all_accepted() -> dict[str, Any]:
    """Their defaults by name, without a prefix."""
    return {name: value for defaults in _DEFAULTS.values() for name, value in defaults.items()}


def _parser(default: Any) -> Any:
    return parse_bool if isinstance(default, bool) else str if default is None else type(default)
