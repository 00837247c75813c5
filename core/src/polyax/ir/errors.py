"""Error classes, named as in JAX. Their texts are written where they are raised, and only then."""

from __future__ import annotations


class PolyaxTypeError(TypeError):
    """Base of the errors about traced values."""


class ConcretizationTypeError(PolyaxTypeError):
    """A traced value was used where a concrete one is needed."""


class TracerArrayConversionError(PolyaxTypeError):
    """``numpy.asarray`` or the like was called on a traced value."""


class TracerBoolConversionError(ConcretizationTypeError):
    """Python control flow (``if``, ``while``, ``and``) on a traced value."""


class TracerIntegerConversionError(PolyaxTypeError):
    """A traced value was used as a Python integer or index."""


class PolyaxIndexError(IndexError):
    """Base of the errors about indices."""


class NonConcreteBooleanIndexError(PolyaxTypeError, PolyaxIndexError):
    """A traced boolean mask was used as an index: its result would have an unknown shape."""


class UnexpectedTracerError(PolyaxTypeError):
    """A tracer was used after its transformation had ended."""


class KeyReuseError(PolyaxTypeError):
    """A random key was used twice."""


class InconclusiveDimensionOperation(Exception):
    """A comparison of symbolic dimensions has no definite answer."""


class PolyaxRuntimeError(RuntimeError):
    """A computation failed on its device."""


class NoLowering(NotImplementedError):
    """A backend has no way to run a primitive; the text lists every place looked at, with its reason."""


class JaxprTypeError(PolyaxTypeError):
    """A jaxpr is ill-typed: a rule of a primitive or a transformation is wrong."""


class InternalError(RuntimeError):
    """A pass of a compiler made a wrong program; the text names the pass, the place and the remedy."""


class Disagreement(RuntimeError):
    """A backend computes something else than the reference: ``config.debug_backend`` looks for that."""


class ProgramMismatch(RuntimeError):
    """Processes that compute together are about to run different programs."""


class ShardingTypeError(PolyaxTypeError):
    """Types of operands, which tell how these are cut along explicit axes of a mesh, don't tell it of the result."""


class PluginError(RuntimeError):
    """A plugin can't be used; the text names it, its version, the cause and the remedy."""
