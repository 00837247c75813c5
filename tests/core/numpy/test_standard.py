"""What the array API standard asks for: the namespace of arrays, its dtypes, and results of the standard's types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp

INFO = jnp.__array_namespace_info__()
WIDE = {"int64", "uint64", "float64", "complex128"}


def test_arrays_and_tracers_know_their_namespace() -> None:
    assert jnp.__array_api_version__ == "2024.12"
    assert jnp.ones(2).__array_namespace__() is jnp
    seen: list[Any] = []
    polyax.jit(lambda x: seen.append(x.__array_namespace__(api_version="2024.12")) or x)(1.0)
    assert seen == [jnp]
    with pytest.raises(ValueError, match="api_version='1999.1' is not available"):
        jnp.ones(2).__array_namespace__(api_version="1999.1")


def test_dtypes_by_kind() -> None:
    assert set(INFO.dtypes(kind=("real floating", "bool"))) == {"float32", "bool"}
    assert len(INFO.dtypes()) == 9 and not WIDE & set(INFO.dtypes())
    assert INFO.default_dtypes()["complex floating"] == np.complex64
    with polyax.enable_x64(True):
        assert len(INFO.dtypes()) == 13 and set(INFO.dtypes(kind="integral")) > {"int64", "uint8"}
        assert {d.itemsize for d in INFO.default_dtypes().values()} == {8, 16}
    with pytest.raises(KeyError):
        INFO.dtypes(kind="decimal")


def test_devices_begin_with_the_default() -> None:
    first, *rest = INFO.devices()
    assert first is None is INFO.default_device() and set(polyax.devices()) <= set(rest)
    assert INFO.capabilities()["data-dependent shapes"] is False


def test_decompositions_have_names() -> None:
    a = jnp.array([[2.0, 1.0], [1.0, 3.0]])
    eigh = jnp.linalg.eigh(a)
    np.testing.assert_allclose(a @ eigh.eigenvectors, eigh.eigenvectors * eigh.eigenvalues, 1e-5)
    svd, qr, slogdet = jnp.linalg.svd(a), jnp.linalg.qr(a), jnp.linalg.slogdet(a)
    np.testing.assert_allclose((svd.U * svd.S) @ svd.Vh, a, 1e-5)
    np.testing.assert_allclose(qr.Q @ qr.R, a, 1e-5)
    np.testing.assert_allclose(slogdet.sign * np.exp(slogdet.logabsdet), 5, 1e-5)
    assert type(jnp.linalg.eig(a)).__name__ == "EigResult"
    assert type(polyax.jit(jnp.linalg.svd)(a)) is type(svd)


A = np.array([3, 1, 2, 1])
INDICES: dict[str, Any] = {
    "argsort": lambda: jnp.argsort(A),
    "lexsort": lambda: jnp.lexsort((A, A)),
    "nonzero": lambda: jnp.nonzero(A)[0],
    "nonzero of a size": lambda: polyax.jit(lambda a: jnp.nonzero(a, size=5, fill_value=7)[0])(A),
    "argwhere": lambda: jnp.argwhere(A),
    "unique": lambda: jnp.stack(jnp.unique(A[:3], True, True, True)),
    "unique of none": lambda: jnp.unique_all(A[:0]).counts,
    "bincount": lambda: jnp.bincount(A),
    "tril_indices": lambda: jnp.tril_indices(3)[1],
    "diag_indices": lambda: jnp.diag_indices(3)[0],
}


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("x64", [False, True])
def test_indices_have_the_default_integer_type(name: str, x64: bool) -> None:
    with polyax.enable_x64(x64):
        assert INDICES[name]().dtype == ("int64" if x64 else "int32")


def test_running_sums_of_small_integers_are_wider() -> None:
    x = np.array([100, 100], np.int8)
    assert jnp.cumulative_sum(x, include_initial=True).tolist() == [0, 100, 200]
    assert jnp.cumulative_sum(x, dtype="int8").dtype == jnp.cumulative_prod(x).dtype == np.int8


def test_edges_of_the_standard() -> None:
    assert jnp.unique_inverse(jnp.array(4)).inverse_indices.shape == ()
    assert jnp.diff(A, n=0, prepend=1).tolist() == A.tolist()
    assert jnp.hypot(np.array([np.inf, np.nan]), np.array([np.nan, -np.inf])).tolist() == [np.inf] * 2
    assert jnp.can_cast(jnp.ones(2), "float64") and not jnp.can_cast(np.float64, "int8")
    assert jnp.can_cast(jnp.ones(2, "int8"), jnp.ones(2, "int16"))


@pytest.mark.parametrize("name", ["log2", "log10"])
def test_logarithms_of_infinite_complex_numbers(name: str) -> None:
    x = np.array([complex(0, 0), complex(np.inf, 0), complex(0, np.inf)])
    unit = getattr(np, name)(np.e)
    with polyax.default_device(polyax.devices("reference")[0]):
        found: Any = np.asarray(getattr(jnp, name)(x))
    assert found.real.tolist() == [-np.inf, np.inf, np.inf]
    np.testing.assert_allclose(found.imag, [0, 0, np.pi / 2 * unit], 1e-6)


CAPSULES: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no copy": ({"copy": False, "dl_device": (2, 0)}, ValueError, r"copy=False isn't possible from .* device \(2, 0\)"),
    "old": ({"max_version": (0, 1)}, BufferError, r"any version below \(0, 5\)"),
    "stream": ({"stream": 3}, BufferError, "stream=3"),
    "device": ({"dl_device": (99, 0)}, BufferError, ""),
}


@pytest.mark.parametrize("case", CAPSULES)
def test_capsules_that_cannot_be_had(case: str) -> None:
    options, error, text = CAPSULES[case]
    with pytest.raises(error, match=text):
        jnp.ones(2).__dlpack__(**options)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "complex64"])
def test_capsules_hold_a_copy(dtype: str) -> None:
    x = jnp.ones((2, 3), dtype)
    taken = np.from_dlpack(x, copy=True)
    assert taken.dtype == x.dtype and taken.tolist() == x.tolist()
    taken[...] = 0
    assert x.all()


@pytest.mark.parametrize("name", ["sin", "mean", "linspace", "true_divide"])
def test_integers_of_64_bits_alone_become_float64(name: str) -> None:
    with polyax.enable_x64(True):
        for dtype in ("bool", "int8", "uint32", "int32", "int64", "uint64", "float16", "float32"):
            x = jnp.ones(2, dtype)
            found = getattr(jnp, name)(x, x) if name in ("linspace", "true_divide") else getattr(jnp, name)(x)
            assert found.dtype == (dtype if "float" in dtype else "float64" if "64" in dtype else "float32")
        assert (jnp.ones(2, bool) / 2).dtype == jnp.sin(1).dtype == np.float64
