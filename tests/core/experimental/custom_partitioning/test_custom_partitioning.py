"""``custom_partitioning``: sharding rules, errors, and on eight devices in a process of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.experimental.custom_partitioning import (
    BATCHING,
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
    factoring,
)
from polyax.experimental.custom_partitioning.parsing import str_to_sdy_sharding_rule
from support import process

CASES = Path(__file__).with_name("custom_partitioning_cases.py")


@pytest.mark.parametrize("platform_name", ["cpu", "reference"])
def test_on_eight_virtual_devices(platform_name: str) -> None:
    process.cases(CASES, POLYAX_DEVICE=platform_name, POLYAX_NUM_CPU_DEVICES="8")


def anything(*_: Any) -> Any:
    raise AssertionError("nobody asks for it on one device")


def twice() -> custom_partitioning:
    return custom_partitioning(lambda x: 2 * x)


def test_on_one_device_it_is_the_function() -> None:
    f = twice()
    f.def_partition(anything, sharding_rule="... -> ...")
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(f(x), 2 * x)
    np.testing.assert_array_equal(polyax.jit(lambda x: f(x) + 1)(x), 2 * x + 1)
    assert "custom_partitioning" in str(polyax.make_jaxpr(f)(x))


def test_names_and_defaults_of_arguments() -> None:
    @custom_partitioning
    def f(x: Any, y: Any = 3.0) -> Any:
        """Adds."""
        return x + y

    f.def_partition(anything, sharding_rule=", ->")
    assert (f.__name__, f.__doc__, f(1.0).item(), f(y=1.0, x=1.0).item()) == ("f", "Adds.", 4.0, 2.0)


def test_rules_as_text() -> None:
    rule = str_to_sdy_sharding_rule("...1 (a b) j, j -> ...1 j", a=2, b=3, reduction_factors=("a",))
    assert rule.operand_mappings == (("…1", ("a", "b"), "j"), ("j",))
    assert str(rule).endswith("{'a': 2, 'b': 3} reduction_factors=('a',))")
    assert str_to_sdy_sharding_rule("-> ").operand_mappings == (ArrayMapping(),)


def test_rules_become_factors() -> None:
    rule = str_to_sdy_sharding_rule("... (a b) j, j -> ... j", a=2, b=3, reduction_factors=("a",))
    aval = polyax.ShapeDtypeStruct
    ins, outs = [aval((5, 6, 4), "float32"), aval((4,), "float32")], [aval((5, 4), "float32")]
    found = factoring.factors_of(rule, ins, outs)
    assert found.ins == (((0,), (1, 2), (3,)), ((3,),))
    assert found.outs == (((0,), (3,)),)
    assert found.reduced == {1: "sum"}
    assert found.sizes == {0: 5, 1: 2, 2: 3, 3: 4}


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("i j", {}, "There is no -> in rule: 'i j'"),
        ("i..->i", {}, "Character '.' must be used inside ellipsis '...'"),
        (f"{BATCHING} -> i", {}, f"Unknown character '{BATCHING}'"),
        ("i (j->i", {}, r"Brackets are not balanced in rule: 'i \(j'"),
        ("(i) -> i", {}, "Brackets should contain at least two factors"),
        ("i) -> i", {}, "Brackets are not balanced"),
        ("1i -> i", {}, "Factor names have to start with a letter, but got '1'"),
        ("_i -> i", {}, "Factor names have to start with a letter, but got '_'"),
        ("i$ -> i", {}, r"Unknown character '\$'"),
        ("a ... -> i", {}, "Ellipsis can only be used at the beginning of a dimension"),
        ("((a b)) -> a", {}, "nested brackets are not allowed"),
        ("i -> i", {"j": 3}, "Factor j is not used in the rule, but size is provided"),
        ("i -> i", {"i": 3}, "Factor i represents a whole dimension; do not specify its size"),
        ("(i j) -> ", {"i": 3}, "Factor j is only used in compound factors; must specify its size"),
        ("i -> i", {"reduction_factors": ("j",)}, "Factor j in reduction_factors is not used in the rule"),
        ("i -> i", {"reduction_factors": "i"}, "reduction_factors must be a tuple of factors"),
        ("i -> i", {"reduction_factors": ("i", "i")}, "reduction_factors contains duplicated factors"),
        (
            "i -> i",
            {"reduction_factors": ("i",), "permutation_factors": ("i",)},
            "Factor i can only be in one of the reduction, need replication, or permutation factor sets.",
        ),
        (None, {"j": 2}, "Unknown keyword arguments: {'j': 2}"),
    ],
)
def test_rules_that_cannot_be(text: str | None, more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        twice().def_partition(anything, sharding_rule=text, **more)


def test_parts_of_rules_that_cannot_be() -> None:
    with pytest.raises(TypeError, match="rule must be a str, but got <class 'int'>"):
        twice().def_partition(anything, sharding_rule=3)
    with pytest.raises(TypeError, match="factor_sizes must be a dict of str to int"):
        twice().def_partition(anything, sharding_rule="(i j) ->", i=2, j="3")
    with pytest.raises(ValueError, match="at least two factors"):
        CompoundFactor("a")
    with pytest.raises(ValueError, match="Ellipsis can't be used in a compound factor"):
        CompoundFactor("a", BATCHING)
    with pytest.raises(ValueError, match="must be a str or CompoundFactor"):
        ArrayMapping(("a", "b"))
    with pytest.raises(ValueError, match="Ellipsis can only be used at the beginning"):
        ArrayMapping("a", BATCHING)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("i, j -> i", "Sharding rule has 2 operands, but the operation has 1 operands"),
        ("i j -> i j, i", "Sharding rule has 2 results, but the operation has 1 results"),
        ("i -> i", "Sharding rule 0th operand has rank 1, but the operation 0th operand has rank 2"),
        ("i j -> i", "Sharding rule 0th result has rank 1, but the operation 0th result has rank 2"),
        ("... -> ... i", "Ellipsis represents different number of leading dimensions 2 and 1"),
        ("(i k) j -> (k i) j", r"0th operand actual size 8 doesn't match the size 6 .* \('i', 'k'\)"),
    ],
)
def test_rules_of_other_types(rule: str, message: str) -> None:
    sizes = {"i": 3, "k": 2} if "(" in rule else {}
    found = str_to_sdy_sharding_rule(rule, **sizes)
    aval = polyax.ShapeDtypeStruct((8, 16), "float32")
    with pytest.raises(ValueError, match=message):
        factoring.factors_of(found, [aval], [aval])


def test_what_it_cannot_do() -> None:
    f = twice()
    with pytest.raises(AttributeError, match="No partition rule defined for custom_partitioning function <lambda>"):
        f(1.0)
    f.def_partition(anything, sharding_rule="... -> ...")
    with pytest.raises(NotImplementedError, match="Differentiation rule for 'custom_partitioning' not implemented"):
        polyax.grad(f)(1.0)
    with pytest.raises(NotImplementedError, match="Batching rule for 'custom_partitioning' not implemented"):
        polyax.vmap(f)(jnp.ones(3))
    f.def_partition(anything, infer_sharding_from_operands=anything)
    with pytest.raises(NotImplementedError, match="Need to provide sharding_rule to migrate to Shardy"):
        f(1.0)


def test_traced_values_come_as_arguments() -> None:
    @polyax.jit
    def outer(y: Any) -> Any:
        f = custom_partitioning(lambda x: x + y)
        f.def_partition(anything, sharding_rule="->")
        return f(1.0)

    with pytest.raises(polyax.errors.UnexpectedTracerError, match="closes over a value that is traced"):
        outer(1.0)
    g = custom_partitioning(lambda x, n: x * n, static_argnums=(1,))
    g.def_partition(anything, sharding_rule="->")
    assert g(2.0, 3).item() == 6.0
    with pytest.raises(polyax.errors.UnexpectedTracerError, match="indicated as static by static_argnums"):
        polyax.jit(lambda n: g(2.0, n))(3)


def test_its_rule_object() -> None:
    rule = SdyShardingRule((ArrayMapping(BATCHING, "i"),), (ArrayMapping("i"),), need_replication_factors=("i",))
    assert str(rule) == "SdyShardingRule((('…', 'i'),), (('i',),), {} need_replication_factors=('i',))"
