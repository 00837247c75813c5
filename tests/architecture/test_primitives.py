"""Each primitive is complete: every rule is there, or a reason why it can't be."""

from __future__ import annotations

import pytest

import polyax  # noqa: F401  (defines the primitives)
from polyax.ir.primitive import FIRST_ORDER_RULES, HIGHER_ORDER_RULES, PRIMITIVES, RULES, Primitive

OWN = [p for p in PRIMITIVES if not p.name.startswith("test_")]


def missing(p: Primitive) -> list[str]:
    wanted = RULES + (HIGHER_ORDER_RULES if p.higher_order else FIRST_ORDER_RULES)
    return [rule for rule in wanted if getattr(p, rule) is None and not p.absent.get(rule)]


@pytest.mark.parametrize("primitive", OWN, ids=str)
def test_each_rule_exists_or_has_a_reason(primitive: Primitive) -> None:
    assert not missing(primitive), f"{primitive} lacks {', '.join(missing(primitive))}: write it, or declare why not"


@pytest.mark.parametrize("primitive", [p for p in OWN if p.absent], ids=str)
def test_reasons_are_sentences_about_absent_rules(primitive: Primitive) -> None:
    for rule, reason in primitive.absent.items():
        assert getattr(primitive, rule) is None, f"{primitive} declares {rule} absent and has it"
        assert len(reason.split()) >= 2, f"{primitive}: {reason!r} doesn't say why {rule} can't exist"


def test_names_are_unique() -> None:
    names = [p.name for p in OWN]
    assert len(names) > 50
    assert sorted(names) == sorted(set(names))
