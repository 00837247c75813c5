"""Dimensions as expressions: their arithmetic, what can be told of their size, and their text."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import export
from polyax.core import max_dim, min_dim
from polyax.errors import InconclusiveDimensionOperation
from polyax.export.bounds import KnownFacts

Spec = polyax.ShapeDtypeStruct


def test_expressions_are_printed_as_jax_prints_them() -> None:
    text = "a*b + b^2 - 3*a + mod(a, 4)*floordiv(b, 2), max(a,b), min(a, 3), -a + 2*a, a+b+1, 3 - 4"
    shape = str(export.symbolic_shape(text))
    assert shape == "(floordiv(b, 2)*mod(a, 4) + a*b + b^2 - 3*a, max(a, b), min(a, 3), a, b + a + 1, -1)"
    (a,) = export.symbolic_shape("a")
    assert str((a // -2, a % -3, -7 // a)) == "(floordiv(a, - 2), mod(a, - 3), floordiv(- 7, a))"
    assert export.symbolic_shape(str(a // -2), scope=a.scope) == (a // -2,)


def test_arithmetic() -> None:
    a, b = export.symbolic_shape("a, b")
    assert (a * b + a) // (b + 1) == a and (6 * a + 4) % 3 == 1 and 2 * a - a == a and a - a == 0
    assert divmod(6 * a + 4, 3) == (2 * a + 1, 1) and -a + 1 == 1 - a and (a + b) ** 2 == a * a + 2 * a * b + b * b
    assert str(a // b) == "floordiv(a, b)" and str(7 % a) == "mod(7, a)" and a**0 == 1
    assert np.prod([a, 2], dtype=object) == 2 * a and {a: 1}[a + 0] == 1 and bool(a)
    with pytest.raises(ValueError, match="cannot be raised to negative powers"):
        a**-1
    with pytest.raises(InconclusiveDimensionOperation, match="'a' used in a context that requires a constant"):
        int(a)
    with pytest.raises(ZeroDivisionError):
        a // 0


def test_comparisons() -> None:
    a, b = export.symbolic_shape("a, b")
    assert a >= 1 and 2 * a + b >= 3 and a // 4 >= 0 and a**2 >= 1 and a * b >= 1 and not a < 1 and not a <= 0
    assert b % 3 <= 2 and b % 3 < 3 and a - 1 < a and a != b and max_dim(a, b) >= b and min_dim(a, 5) <= 5
    for question in (lambda: b >= 2, lambda: a >= b, lambda: a - b >= 0, lambda: a // 2 > 0):
        with pytest.raises(InconclusiveDimensionOperation, match="comparison '.*' is inconclusive"):
            question()


def test_constraints() -> None:
    a, b = export.symbolic_shape("a, b", constraints=["a >= 16", "b >= 8"])
    assert a + 2 * b >= 32
    a, b = export.symbolic_shape("a, b", constraints=["a >= b + 8"])
    assert a - b >= 8 and a >= 9
    a, b = export.symbolic_shape("a, b", constraints=["floordiv(a, 4) == b"])
    assert a // 4 == b and str((a // 4) * 2) == "2*b"
    (a,) = export.symbolic_shape("a", constraints=["mod(a, 2) == 0"])
    assert a % 2 == 0 and 2 * (a // 2) == a
    (a,) = export.symbolic_shape("a", constraints=["a <= 10"])
    with pytest.raises(InconclusiveDimensionOperation, match="with constraints:\n  a <= 10"):
        assert a <= 10 and a <= 5


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("a > b", "must contain one of '==' or '>=' or '<='"),
        ("a >= a + 1", "Unsatisfiable explicit constraint"),
        ("a <= 0", "Unsatisfiable constraint: a <= 0"),
        ("a + b == 3", "left-hand-side must be of the form `term [*] coefficient`"),
        ("a >=", "one dimension on each side"),
    ],
)
def test_constraints_that_are_none(text: str, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        export.SymbolicScope([text])


def test_constraints_that_do_not_go_together() -> None:
    with pytest.raises(ValueError, match="should be a sequence of strings"):
        export.SymbolicScope("a >= 3")
    with pytest.raises(ValueError, match="must be a string: got 3"):
        export.SymbolicScope([3])  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="Unsatisfiable constraint: a <= 3"):
        export.SymbolicScope(["a >= 4", "a <= 3"])


def random_expression(rng: np.random.Generator, names: list[Any], depth: int) -> Any:
    if not depth:
        return names[rng.integers(len(names))] if rng.random() < 0.7 else int(rng.integers(1, 5))
    x, y = (random_expression(rng, names, depth - 1) for _ in range(2))
    by = int(rng.integers(2, 5))
    choices = [lambda: x + y, lambda: x - y, lambda: x * y, lambda: x // by, lambda: x % by]
    return [*choices, lambda: max_dim(x, y), lambda: min_dim(x, y)][rng.integers(7)]()


@pytest.mark.parametrize("seed", range(8))
def test_bounds_hold_for_all_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(12):
        a, b = export.symbolic_shape("a, b")
        e = random_expression(rng, [a, b], 2)
        if not export.is_symbolic_dim(e):
            continue
        lower, upper = KnownFacts(a.scope).bounds(e)
        values = [e.evaluate({"a": m, "b": n}) for m, n in itertools.product(range(1, 9), repeat=2)]
        assert lower <= min(values) and max(values) <= upper, e
        assert str(export.symbolic_shape(str(e), scope=a.scope)[0]) == str(e)


# --- texts ------------------------------------------------------------------------------------------------------------


def test_specs_of_arguments() -> None:
    matrix, vector = np.ones((3, 4), np.float32), np.ones(3, np.float32)
    specs = export.symbolic_args_specs(({"w": matrix, "b": vector}, matrix), ({"w": "n, _", "b": "n"}, None))
    assert str([x.shape for x in polyax.tree.leaves(specs)]) == "[(n,), (n, 4), (3, 4)]"
    assert str([x.shape for x in export.symbolic_args_specs((matrix, vector), "a, ...")]) == "[(a, 4), (a,)]"
    with pytest.raises(ValueError, match=r"different size 5 for known dimension; like=\(3, 4\)"):
        export.symbolic_args_specs(matrix, "a, 5")
    with pytest.raises(ValueError, match="Cannot use both `scope` and `constraints`"):
        export.symbolic_args_specs(vector, "a", constraints=["a >= 2"], scope=export.SymbolicScope())
    with pytest.raises(ValueError, match="cannot resolve placeholder '_' because we parsed 1 already"):
        export.symbolic_args_specs(vector, "a, _")
    assert str(export.symbolic_shape("a, ...", like=(3,))) == "(a,)"
    with pytest.raises(
        ValueError, match=r"cannot resolve placeholder '\.\.\.' because we parsed 2 .* only 1 dimensions"
    ):
        export.symbolic_shape("a, b, ...", like=(3,))
    with pytest.raises(ValueError, match="expecting one of {ENDMARKER} but found COMMA"):
        export.symbolic_shape("..., a", like=(3,))


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("a +", "expecting one of {NAME, MINUS, NUMBER} but found ENDMARKER"),
        ("a, (b", "in dimension 1: expecting one of {NAME, MINUS, NUMBER} but found LPAR. Parsed 'a, ', remaining"),
        ("2a", "but found NAME. Parsed '2', remaining 'a'"),
        ("...", "spec contains ... but no 'like' shape was given"),
        ("mod(a, 2", "expecting one of {RPAR} but found ENDMARKER"),
        ("a, ?", "but found OP"),
        ("(a", "expecting one of {RPAR}"),
        ("a)", "expecting one of {ENDMARKER} but found RPAR"),
    ],
)
def test_texts_that_are_no_shapes(text: str, match: str) -> None:
    with pytest.raises(ValueError) as raised:
        export.symbolic_shape(text)
    assert match in str(raised.value) and f"symbolic shape {text!r}" in str(raised.value)


def test_scopes_do_not_mix() -> None:
    (a,), (b,) = export.symbolic_shape("a"), export.symbolic_shape("a", constraints=["a >= 8"])
    specs = Spec((a,), np.float32), Spec((b,), np.float32)
    for use in (lambda: a + b, lambda: a >= b, lambda: export.export(polyax.jit(jnp.add))(*specs)):
        with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes") as raised:
            use()
        assert "test_dimensions.py" in str(raised.value) and "with constraints:\n  a >= 8" in str(raised.value)
    assert str(a + export.symbolic_shape("c", scope=a.scope)[0]) == "c + a" and a != b
    with pytest.raises(ValueError, match="Cannot specify both a `scope` and `constraints`"):
        export.symbolic_shape("a", scope=a.scope, constraints=["a >= 2"])
    with pytest.raises(ValueError, match="should be None or a string"):
        export.symbolic_shape(3)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("method", ["nearest", "linear"])
def test_images_of_any_size_are_resized(method: str) -> None:
    def twice(x: Any) -> Any:
        return polyax.image.resize(x, (2 * x.shape[0],), method)

    exported = export.export(polyax.jit(twice))(Spec(export.symbolic_shape("a"), np.float32))
    assert str(exported.out_avals[0]) == "float32[2*a]"
    for n in (1, 3, 5):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_allclose(exported.call(x), twice(x), rtol=1e-5, atol=1e-5)


def _known(e: Any) -> tuple[int | None, int | None]:
    """What comparisons tell of the size of an expression."""

    def told(question: Any) -> bool:
        try:
            return question()
        except InconclusiveDimensionOperation:
            return False

    lower = [k for k in range(-60, 61) if told(lambda: e >= k)]  # noqa: B023  # called at once
    upper = [k for k in range(-60, 61) if told(lambda: e <= k)]  # noqa: B023
    return max(lower, default=None), min(upper, default=None)


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [
        ("floordiv(a + 4, -2)", None, -3),
        ("floordiv(11, a + 1)", 0, 5),
        ("floordiv(-11, a + 1)", -6, -1),
        ("floordiv(-11, -1*a)", 0, 11),
        ("floordiv(-1*b, a + 1)", None, -1),
        ("floordiv(-1*a + 7, a + 4)", None, 1),
        ("floordiv(-1*a, -2)", 0, None),
        ("-2*floordiv(-1*b, 2) - b", 0, 1),
        ("max(1 - b, 0)", 0, 0),
    ],
)
def test_bounds_of_quotients(text: str, lower: int | None, upper: int | None) -> None:
    (e,) = export.symbolic_shape(text)
    assert (e if isinstance(e, int) else _known(e)) == (0 if lower == upper else (lower, upper))


@pytest.mark.parametrize(
    ("constraints", "text", "lower", "upper"),
    [
        (["2*a >= 5", "3*a <= 10"], "5*a - 2", 13, 13),
        (["-2*a + -3*b >= -10"], "-1*a + 2*b", -1, 3),
        (["2*a == b"], "b", 2, None),
        (["a >= 2*b", "b >= 3"], "a - b", 3, None),
        (["min(a, b) == b - min(b, 2)"], "b", 3, None),
        (["4*d == a - m", "m >= 0", "m <= 3"], "a", 5, None),
        (["2*a >= 2*b + 3", "-2*a + 2*b >= -5"], "a - b - 2", 0, 0),
    ],
)
def test_bounds_that_constraints_imply(constraints: list[str], text: str, lower: int | None, upper: int | None) -> None:
    (e,) = export.symbolic_shape(text, scope=export.SymbolicScope(constraints))
    assert _known(e) == (lower, upper)


def test_equalities_of_remainders() -> None:
    a, b = export.symbolic_shape("a, b", constraints=["mod(a, b) == 0"])
    assert a % b == 0 and b * (a // b) == a
    (b,) = export.symbolic_shape("b", constraints=["min(a, b) == b - min(b, 2)"])
    assert min_dim(b, 2) == 2
    (a,) = export.symbolic_shape("a")
    with pytest.raises(InconclusiveDimensionOperation, match="Possible division by 0 in division by a - 3"):
        assert a // (a - 3) >= 0


def test_operands_keep_their_places() -> None:
    a, b = export.symbolic_shape("a, b")
    assert str((max_dim(2, b), min_dim(a, 2), max_dim(-1, a - 2 * b))) == "(max(2, b), min(a, 2), max(- 1, - 2*b + a))"
    assert str(max_dim(0, a - 4) - min_dim(a, 2)) == "max(0, a - 4) - min(a, 2)" and divmod(0, a) == (0, 0)


def test_dimensions_are_no_integers() -> None:
    (a,) = export.symbolic_shape("a")
    for question in (lambda: range(a), lambda: [0][a], lambda: np.zeros(a)):
        with pytest.raises(TypeError):
            question()
    assert not issubclass(InconclusiveDimensionOperation, ValueError)
