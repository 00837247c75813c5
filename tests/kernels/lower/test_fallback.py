"""What happens to primitives without kernels: the host, with a warning, or an error that names all places."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from kernels.numpy_backend import NumpyKernelBackend
from kernels.programs import assert_same, compiled, on_kernels, on_reference, traced

from polyax.engines import host
from polyax.ir.config import config
from polyax.ir.errors import NoLowering
from polyax.ir.primitive import Primitive
from polyax.ops import elementwise
from polyax.ops.sort import sort
from polyax.reference.table import RULES

X = np.array([3, 1, 2], "f4")
UNUSUAL = Primitive("test_unusual")
UNUSUAL.abstract_eval = lambda x: [x]


@pytest.fixture(autouse=True)
def _as_if_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_warned", set())
    monkeypatch.setitem(RULES, UNUSUAL, lambda x: [x[::-1] + 1])


def unusual(x):
    return UNUSUAL.bind_all(elementwise.sin(x))


def test_what_has_no_kernels_runs_on_the_host() -> None:
    with config.override(host_fallback="allow"):
        assert_same(on_kernels(unusual, [X]), [np.sin(X)[::-1] + 1])


def test_the_warning_names_the_primitive_and_comes_once() -> None:
    closed = traced(unusual, [X])
    with config.override(host_fallback="warn"):
        with pytest.warns(
            UserWarning, match="'test_unusual' runs in NumPy on the host, not on numpy_kernels: it has no kernel"
        ):
            compiled(NumpyKernelBackend(), closed)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compiled(NumpyKernelBackend(), closed)


def test_the_error_names_all_places_looked_at() -> None:
    with config.override(host_fallback="error"), pytest.raises(NoLowering) as caught:
        compiled(NumpyKernelBackend(), traced(unusual, [X]))
    text = str(caught.value)
    assert "'test_unusual' on (float32[3]) can't run on numpy_kernels" in text
    assert "the plugins of numpy_kernels: no rule" in text
    assert "the shared kernel rules: no rule" in text
    assert "its decomposition: none" in text
    assert "the host: config.host_fallback is 'error'" in text


def test_library_functions_are_no_fallback_on_the_host() -> None:
    def f(x):
        return elementwise.sin(sort(elementwise.cos(x)))

    with config.override(host_fallback="error"):
        assert_same(on_kernels(f, [X]), on_reference(f, [X]))
