"""``jaxlib._jax`` and ``jaxlib.xla_client``: classes that libraries name in annotations and ask values for."""

from polyax.api.jit import PjitFunction as PjitFunction
from polyax.errors import JaxRuntimeError as XlaRuntimeError
from polyax.runtime.arrays.array import Array as ArrayImpl
from polyax.runtime.contract.backend import Device as Device
from polyax.sharding import NamedSharding as NamedSharding
from polyax.sharding import Sharding as Sharding
from polyax.sharding import SingleDeviceSharding as SingleDeviceSharding

__all__ = [
    "ArrayImpl",
    "Device",
    "NamedSharding",
    "PjitFunction",
    "Sharding",
    "SingleDeviceSharding",
    "XlaRuntimeError",
]
