"""``jax._src.effects``: effects by kind, and where they are allowed."""

from __future__ import annotations

from polyax.ir.effects import Effect as Effect


class EffectTypeSet:
    """Classes of effects."""

    def __init__(self) -> None:
        self._types: set[type[Effect]] = set()

    def add_type(self, effect_type: type[Effect]) -> None:
        """Adds a class, and with it those that derive from it."""
        self._types.add(effect_type)

    def contains(self, effect: Effect) -> bool:
        """Whether the effect is of one of the classes."""
        return isinstance(effect, tuple(self._types))

    __contains__ = contains


control_flow_allowed_effects = EffectTypeSet()
lowerable_effects = EffectTypeSet()
remat_allowed_effects = EffectTypeSet()
custom_derivatives_allowed_effects = EffectTypeSet()
