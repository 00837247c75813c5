"""polyax: composable transformations of Python programs, compiled by plugins for any device."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

import polyax.refusals as _refusals
from polyax import ad_checkpoint as ad_checkpoint
from polyax import boundaries as _boundaries
from polyax import boundaries as boundaries
from polyax import core as core
from polyax import custom_batching as custom_batching
from polyax import custom_derivatives as custom_derivatives
from polyax import debug as debug
from polyax import distributed as distributed
from polyax import dtypes as dtypes
from polyax import errors as errors
from polyax import experimental as experimental
from polyax import extend as extend
from polyax import interpreters as interpreters
from polyax import late as _late
from polyax import lax as lax
from polyax import numpy as numpy
from polyax import scipy as scipy
from polyax import sharding as sharding
from polyax import stages as stages
from polyax import tree as tree
from polyax import tree_util as tree_util
from polyax.api import draw as draw
from polyax.api import eval_shape as eval_shape
from polyax.api import explain as explain
from polyax.api import fwd_and_bwd as fwd_and_bwd
from polyax.api import grad as grad
from polyax.api import hessian as hessian
from polyax.api import jacfwd as jacfwd
from polyax.api import jacobian as jacobian
from polyax.api import jacrev as jacrev
from polyax.api import jit
from polyax.api import jvp as jvp
from polyax.api import linear_transpose as linear_transpose
from polyax.api import linearize as linearize
from polyax.api import make_jaxpr as make_jaxpr
from polyax.api import pmap as pmap
from polyax.api import reshard as reshard
from polyax.api import typeof as typeof
from polyax.api import value_and_grad as value_and_grad
from polyax.api import vjp as vjp
from polyax.api import vmap as vmap
from polyax.api.ahead import ShapeDtypeStruct as ShapeDtypeStruct
from polyax.api.compile_time import ensure_compile_time_eval as ensure_compile_time_eval
from polyax.api.jit import clear_caches as clear_caches
from polyax.api.meshes import make_mesh as make_mesh
from polyax.api.settings import allow_f16_reductions as allow_f16_reductions
from polyax.api.settings import auto_pcast as auto_pcast
from polyax.api.settings import check_tracer_leaks as check_tracer_leaks
from polyax.api.settings import checking_leaks as checking_leaks
from polyax.api.settings import debug_infs as debug_infs
from polyax.api.settings import debug_key_reuse as debug_key_reuse
from polyax.api.settings import debug_nans as debug_nans
from polyax.api.settings import default_matmul_precision as default_matmul_precision
from polyax.api.settings import default_prng_impl as default_prng_impl
from polyax.api.settings import disable_jit as disable_jit
from polyax.api.settings import enable_checks as enable_checks
from polyax.api.settings import enable_custom_prng as enable_custom_prng
from polyax.api.settings import enable_x64 as enable_x64
from polyax.api.settings import explain_cache_misses as explain_cache_misses
from polyax.api.settings import legacy_prng_key as legacy_prng_key
from polyax.api.settings import log_compiles as log_compiles
from polyax.api.settings import make_user_context as make_user_context
from polyax.api.settings import no_execution as no_execution
from polyax.api.settings import no_tracing as no_tracing
from polyax.api.settings import numpy_dtype_promotion as numpy_dtype_promotion
from polyax.api.settings import numpy_rank_promotion as numpy_rank_promotion
from polyax.api.settings import remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type
from polyax.api.settings import threefry_partitionable as threefry_partitionable
from polyax.api.settings import transfer_guard as transfer_guard
from polyax.api.settings import transfer_guard_device_to_device as transfer_guard_device_to_device
from polyax.api.settings import transfer_guard_device_to_host as transfer_guard_device_to_host
from polyax.api.settings import transfer_guard_host_to_device as transfer_guard_host_to_device
from polyax.api.shard_map import shard_map as shard_map
from polyax.api.shard_map import smap as smap
from polyax.control.calls.closures import closure_convert as closure_convert
from polyax.control.calls.closures import custom_gradient as custom_gradient
from polyax.control.calls.custom_jvp import custom_jvp as custom_jvp
from polyax.control.calls.custom_vjp import custom_vjp as custom_vjp
from polyax.control.calls.remat import checkpoint as checkpoint
from polyax.control.calls.remat import checkpoint as remat
from polyax.control.inner.policies import checkpoint_policies as checkpoint_policies
from polyax.ir.config import config as config
from polyax.ir.dtypes import float0 as float0
from polyax.meshes.current import set_mesh as set_mesh
from polyax.meshes.sharding import NamedSharding as NamedSharding
from polyax.meshes.spec import PartitionSpec as P
from polyax.ops.naming import named_call as named_call
from polyax.ops.naming import named_scope as named_scope
from polyax.runtime.arrays.array import Array as Array
from polyax.runtime.arrays.assembling import make_array_from_callback as make_array_from_callback
from polyax.runtime.arrays.assembling import make_array_from_process_local_data as make_array_from_process_local_data
from polyax.runtime.arrays.assembling import (
    make_array_from_single_device_arrays as make_array_from_single_device_arrays,
)
from polyax.runtime.arrays.devices import block_until_ready as block_until_ready
from polyax.runtime.arrays.devices import copy_to_host_async as copy_to_host_async
from polyax.runtime.arrays.devices import default_backend as default_backend
from polyax.runtime.arrays.devices import device_count as device_count
from polyax.runtime.arrays.devices import device_get as device_get
from polyax.runtime.arrays.devices import devices as devices
from polyax.runtime.arrays.devices import effects_barrier as effects_barrier
from polyax.runtime.arrays.devices import host_count as host_count
from polyax.runtime.arrays.devices import host_id as host_id
from polyax.runtime.arrays.devices import host_ids as host_ids
from polyax.runtime.arrays.devices import live_arrays as live_arrays
from polyax.runtime.arrays.devices import local_device_count as local_device_count
from polyax.runtime.arrays.devices import local_devices as local_devices
from polyax.runtime.arrays.devices import process_count as process_count
from polyax.runtime.arrays.devices import process_index as process_index
from polyax.runtime.arrays.devices import process_indices as process_indices
from polyax.runtime.arrays.placing import device_put as device_put
from polyax.runtime.arrays.shards import Shard as Shard
from polyax.runtime.contract.backend import Device as Device
from polyax.runtime.contract.hooks import hookimpl as hookimpl
from polyax.runtime.plugins.default_device import default_device as default_device
from polyax.runtime.running.callbacks import pure_callback as pure_callback
from polyax.transforms.wanted import ad as ad

if _TYPE_CHECKING:  # the others in _LATE are rarer
    from polyax import nn as nn
    from polyax import random as random

_LATE = (
    _late.submodules("polyax", "api_util", "dlpack", "example_libraries", "export", "image", "memory", "monitoring")
    | _late.submodules("polyax", "nn", "profiler", "random", "ref", "typing")
    | _late.names_of("polyax.runtime.telling.environment", "__version__", "print_environment_info")
    | _late.names_of("polyax.ref", "Ref", "empty_ref", "free_ref", "freeze", "new_ref")
    | _late.names_of("polyax.control.refs.slices", "ds")
)

_REMOVED = {
    "device_put_replicated": "use polyax.device_put instead: polyax.device_put(x, NamedSharding(mesh, P())) puts all "
    "of x on each device; for an argument of pmap, stack copies of it and cut them along an axis of a mesh.",
    "device_put_sharded": "use polyax.device_put instead: polyax.device_put(polyax.numpy.stack(shards), "
    "NamedSharding(mesh, P('x'))) on a mesh of those devices with the axis 'x'.",
}


def __getattr__(name: str) -> _Any:
    return _late.load(__name__, _LATE, name, _REMOVED)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
