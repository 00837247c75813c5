"""Plugins for other versions of the contract are refused, whatever they bring; the error has both versions."""

from __future__ import annotations

import types
from typing import Any

import pytest

from polyax.backend import API, PluginError
from polyax.runtime.contract.hooks import HookError, hookimpl
from polyax.runtime.plugins.registry import Registry
from polyax.runtime.plugins.versions import why_not_for


@pytest.mark.parametrize(
    "requires, fits",
    [
        (">=1,<2", True),
        (">= 1.2, < 2", True),
        (">=1.4", False),
        (">=2,<3", False),
        ("<1", False),
        ("==1", True),
        ("==1.3", True),
        ("==1.2", False),
        ("!=1.3", False),
        ("~=1.2", True),
        ("~=1.4", False),
        (">1.3", False),
        ("<=1.3", True),
    ],
)
def test_ranges(requires: str, fits: bool) -> None:
    assert (why_not_for(requires, (1, 3)) is None) == fits


@pytest.mark.parametrize("requires", ["", "1", ">=1;<2", "=>1", ">=one", 1, [">=1"]])
def test_what_is_no_range(requires: Any) -> None:
    with pytest.raises(HookError, match="not a range of versions such as '>=1,<2'"):
        why_not_for(requires, (1, 0))


def bringing(hook: str, requires: Any) -> types.SimpleNamespace:
    implementations: dict[str, Any] = {
        "polyax_backends": lambda: iter(()),
        "polyax_lowerings": lambda backend: {},
        "polyax_fusers": lambda backend: [],
    }
    function = implementations[hook]
    return types.SimpleNamespace(**{hook: hookimpl(function)}, polyax_requires=requires)


@pytest.mark.parametrize("hook", ["polyax_backends", "polyax_lowerings", "polyax_fusers"])
def test_whatever_they_bring(hook: str) -> None:
    own = Registry(list)
    text = (
        r"plugin 'any.new' of polyax-new 3.0 can't be used: it was written for versions >=9,<10 of the contract of "
        rf"plugins, and this polyax has version {API[0]}.{API[1]}; install versions that fit each other"
    )
    with pytest.raises(PluginError, match=text):
        own.register(bringing(hook, ">=9,<10"), "any.new", distribution="polyax-new", version="3.0")
    record = own.register(bringing(hook, ">=1,<2"), "any.old", distribution="polyax-old", version="1.0")
    assert record.status == "loaded" and record.requires == ">=1,<2"


def test_those_that_say_nothing_are_taken() -> None:
    assert Registry(list).register(bringing("polyax_fusers", None), "any.silent").status == "loaded"
