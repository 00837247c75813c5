"""``polyax.export``: functions as data, to be saved and called elsewhere. Re-exports only."""

from polyax.export.exported import DisabledSafetyCheck as DisabledSafetyCheck
from polyax.export.exported import Exported as Exported
from polyax.export.exported import deserialize as deserialize
from polyax.export.exporting import default_export_platform as default_export_platform
from polyax.export.exporting import export as export
from polyax.export.exporting import (
    maximum_supported_calling_convention_version as maximum_supported_calling_convention_version,
)
from polyax.export.exporting import (
    minimum_supported_calling_convention_version as minimum_supported_calling_convention_version,
)
from polyax.export.scopes import SymbolicScope as SymbolicScope
from polyax.export.symbols import symbolic_args_specs as symbolic_args_specs
from polyax.export.symbols import symbolic_shape as symbolic_shape
from polyax.export.trees import register_namedtuple_serialization as register_namedtuple_serialization
from polyax.export.trees import register_pytree_node_serialization as register_pytree_node_serialization
from polyax.ir.dims import is_symbolic_dim as is_symbolic_dim
