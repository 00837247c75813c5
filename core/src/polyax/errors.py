"""The error classes, as ``jax.errors`` has them. Re-exports only."""

from polyax.ir.errors import ConcretizationTypeError as ConcretizationTypeError
from polyax.ir.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from polyax.ir.errors import JaxprTypeError as JaxprTypeError
from polyax.ir.errors import KeyReuseError as KeyReuseError
from polyax.ir.errors import NoLowering as NoLowering
from polyax.ir.errors import NonConcreteBooleanIndexError as NonConcreteBooleanIndexError
from polyax.ir.errors import PluginError as PluginError
from polyax.ir.errors import PolyaxIndexError as JAXIndexError
from polyax.ir.errors import PolyaxRuntimeError as JaxRuntimeError
from polyax.ir.errors import PolyaxTypeError as JAXTypeError
from polyax.ir.errors import ProgramMismatch as ProgramMismatch
from polyax.ir.errors import ShardingTypeError as ShardingTypeError
from polyax.ir.errors import TracerArrayConversionError as TracerArrayConversionError
from polyax.ir.errors import TracerBoolConversionError as TracerBoolConversionError
from polyax.ir.errors import TracerIntegerConversionError as TracerIntegerConversionError
from polyax.ir.errors import UnexpectedTracerError as UnexpectedTracerError
