"""The choice of a lowering for each use of a primitive: who is asked, in which order, and why each declined.

The one order: plugins and the backend itself, its family of devices, all kernel backends, the decomposition, the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from polyax.control.decomposition import decomposition
from polyax.ir import blame
from polyax.ir.errors import NoLowering, PluginError
from polyax.ir.jaxpr import Eqn
from polyax.ir.primitive import Primitive
from polyax.runtime.contract.hooks import Offer
from polyax_kernels.lower.lowering import Call, Family, LoweringKind, Replace, Target

SHARED_RULE, FAMILY_RULE, HOST_RULE = "shared", "family", "host"
"""What reports call the rules that all kernel backends share, those of devices alike, and NumPy's."""
COMMON = (SHARED_RULE, FAMILY_RULE)
"""Those that a backend may decline as a whole: ``KernelBackend.why_not``."""
DECOMPOSITION = "decomposition of "
WITHOUT = "POLYAX_DISABLE_PLUGINS leaves out what a plugin brings"
"""The remedy for rules that are wrong."""


def plugin_of(rule: str) -> str:
    """The plugin that brings a rule; "" for polyax's own."""
    own = rule in (SHARED_RULE, FAMILY_RULE, HOST_RULE) or rule.startswith(DECOMPOSITION)
    return "" if own else rule


def blame_rule(error: BaseException, rule: str, eqn: Eqn) -> None:
    """Notes whose rule raised it, and for which use of a primitive."""
    plugin = plugin_of(rule)
    blame.about(error, plugin=plugin, primitives=eqn.primitive.name, source=eqn.source, hint=plugin and WITHOUT)


class Rules:
    """The lowerings that there are for programs on ``target``.

    ``own``: what plugins bring, the backend's own among them, in order; ``family``: what backends of one kind share;
    ``shared``: what all do, by name; ``host``: the last resort of a primitive, or why there is none.
    """

    def __init__(
        self,
        target: Target,
        own: Mapping[Primitive, Sequence[Offer]],
        family: Family,
        shared: Mapping[str, LoweringKind | tuple[LoweringKind, ...]],
        host: Callable[[Primitive], Call | str],
    ) -> None:
        self.target = target
        self.own = own
        self.family = family
        self.shared = shared
        self.host = host

    def choose(self, eqn: Eqn) -> tuple[str, LoweringKind]:
        """Whose lowering to use, and the lowering.

        Raises:
          NoLowering: every place declined; the text holds their reasons.
        """
        for _, offers in self._places(eqn):
            for rule, lowering in offers:
                if self._declines(rule, lowering, eqn) is None:
                    return rule, lowering
        found = self.host(eqn.primitive)
        if isinstance(found, str):
            raise self._refusal(eqn, found)
        return HOST_RULE, found

    def own_choice(self, eqn: Eqn) -> LoweringKind | None:
        """The lowering that the backend, its plugins or its family bring for this use, if they do."""
        p = eqn.primitive
        offers = [self._checked(offer, p) for offer in self.own.get(p, ())]
        offers += _by(FAMILY_RULE, self.family.get(p, ()))
        return next((x for rule, x in offers if self._declines(rule, x, eqn) is None), None)

    def _declines(self, rule: str, lowering: LoweringKind, eqn: Eqn) -> str | None:
        try:
            reason: Any = self.target.declines(eqn) if rule in COMMON else None
            reason = lowering.declines(self.target, eqn) if reason is None else reason
            if reason is not None and not (isinstance(reason, str) and reason):
                raise PluginError(f"why_not of the lowering gave {reason!r}, not a reason or None")
        except BaseException as e:
            blame_rule(e, rule, eqn)
            raise
        return reason

    def _places(self, eqn: Eqn) -> Iterator[tuple[str, Sequence[tuple[str, LoweringKind]]]]:
        p = eqn.primitive
        if p not in self.own:
            yield f"the plugins of {self.target.backend}", ()
        for offer in self.own.get(p, ()):
            yield offer.rule, [self._checked(offer, p)]
        yield "the rules of devices like it", _by(FAMILY_RULE, self.family.get(p, ()))
        yield "the shared kernel rules", _by(SHARED_RULE, self.shared.get(p.name, ()))
        if p.decompose is not None:
            yield "", [(f"{DECOMPOSITION}{p.name}", Replace(lambda *_, **__: decomposition(eqn)))]

    def _checked(self, offer: Offer, primitive: Primitive) -> tuple[str, LoweringKind]:
        if isinstance(offer.lowering, LoweringKind):
            return offer.rule, offer.lowering
        error = PluginError(
            f"{offer.rule} brings {offer.lowering!r} as lowering of {primitive.name!r}; {self.target.backend} takes "
            "a Kernels, a Replace or a Call of polyax_kernels.api.lowerings"
        )
        blame.about(error, plugin=plugin_of(offer.rule), hint=WITHOUT)
        raise error

    def _refusal(self, eqn: Eqn, host: str) -> NoLowering:
        reasons: list[str] = []
        for place, offers in self._places(eqn):
            reasons += [f"{place}: {self._declines(rule, x, eqn)}" for rule, x in offers] or [f"{place}: no rule"]
        operands = ", ".join(str(a.aval) for a in eqn.invars)
        return NoLowering(
            f"'{eqn.primitive.name}' on ({operands}) can't run on {self.target.backend}. Looked at "
            + "; ".join([*reasons, "its decomposition: none", f"the host: {host}"])
            + f".{eqn.primitive.remedy}"
        )


def _by(rule: str, found: LoweringKind | tuple[LoweringKind, ...]) -> list[tuple[str, LoweringKind]]:
    return [(rule, x) for x in (found if isinstance(found, tuple) else (found,))]
