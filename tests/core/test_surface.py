"""Small public names: types for annotations, classes of errors and effects, answers of policies, the environment."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import ad_checkpoint, debug, errors, typing
from support.process import output


def test_annotations() -> None:
    assert isinstance(jnp.ones(2), typing.ArrayLike) and isinstance(1.5, typing.ArrayLike)
    assert isinstance(np.float32(1), typing.ArrayLike) and not isinstance([1], typing.ArrayLike)
    assert str in get_args(typing.DTypeLike) and np.dtype in get_args(typing.DTypeLike)


def test_a_traced_value_is_like_an_array() -> None:
    seen: list[bool] = []
    polyax.jit(lambda x: seen.append(isinstance(x, typing.ArrayLike)) or x)(1.0)
    assert seen == [True]


def test_classes_of_errors() -> None:
    assert issubclass(errors.ConcretizationTypeError, errors.JAXTypeError)
    assert issubclass(errors.NonConcreteBooleanIndexError, errors.JAXIndexError)
    assert issubclass(errors.JaxRuntimeError, RuntimeError)
    with pytest.raises(errors.JAXIndexError, match="boolean"):
        polyax.jit(lambda x: x[x > 0])(jnp.ones(2))


@pytest.mark.parametrize("name", ["device_put_replicated", "device_put_sharded"])
def test_names_that_are_gone_tell_what_to_use(name: str) -> None:
    with pytest.raises(
        AttributeError, match=rf"^polyax\.{name} is deprecated; use polyax\.device_put instead: .*Named"
    ):
        getattr(polyax, name)
    with pytest.raises(ImportError):
        exec(f"from polyax import {name}")
    assert not hasattr(polyax, name) and name not in dir(polyax)


def test_effects_of_prints() -> None:
    program = polyax.make_jaxpr(lambda x: debug.print("{}", x))(1.0)
    ordered = polyax.make_jaxpr(lambda x: debug.print("{}", x, ordered=True))(1.0)
    assert [type(e) for e in program.effects] == [debug.DebugEffect] and program.effects == {debug.DebugEffect()}
    assert [type(e) for e in ordered.effects] == [debug.OrderedDebugEffect]
    assert str(debug.DebugEffect()) == "Debug" and debug.OrderedDebugEffect().ordered


def kept_with(answer: Any) -> int:
    f = polyax.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=lambda *_, **__: answer)
    return len(ad_checkpoint.saved_residuals(f, 1.0))


def test_answers_of_policies() -> None:
    assert kept_with(ad_checkpoint.Saveable) == kept_with(True) > kept_with(ad_checkpoint.Recompute) == kept_with(False)
    assert repr(ad_checkpoint.Saveable) == "Saveable" and ad_checkpoint.Offloadable("a", "b").dst == "b"
    assert kept_with(ad_checkpoint.Offloadable("device", "pinned_host")) == kept_with(True)
    with pytest.raises(NotImplementedError, match="use `static_argnums`"):
        polyax.checkpoint(lambda x: x, concrete=True)


def test_the_environment(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYAX_SOMETHING", "1")
    text = polyax.print_environment_info(return_string=True)
    assert text is not None and "local devices" in text and "POLYAX_SOMETHING=1" in text and np.__version__ in text
    assert polyax.print_environment_info() is None
    assert capsys.readouterr().out.strip() == text


def test_submodules_are_found_and_not_loaded_before() -> None:
    names = ["api_util", "dlpack", "example_libraries", "typing"]
    program = (
        f"import polyax, sys; print([n for n in {names} if 'polyax.' + n in sys.modules], polyax.api_util.__name__)"
    )
    found = output(program)
    assert found == "[] polyax.api_util" and set(names) <= set(dir(polyax))
    with pytest.raises(AttributeError, match="module 'polyax' has no attribute 'no_such_name'"):
        polyax.no_such_name  # noqa: B018  # pyright: ignore
