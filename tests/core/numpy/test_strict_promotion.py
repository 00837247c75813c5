"""``numpy_dtype_promotion='strict'``: what users mix is refused, what functions convert by themselves isn't."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import nn
from polyax.scipy import linalg, signal, special, stats

X = np.float32([0.5, 1.5, 2.5, 0.25])
M = np.eye(4, dtype=np.float32) * 7 + np.arange(16, dtype=np.float32).reshape(4, 4) % 5
I = np.int32([3, 1, 2, 0])
C = np.complex64([1 + 1j, 2, 3, 4])
H = np.array([0.5, 1, 2, 3], jnp.bfloat16)

OWN = {
    "array_equiv": lambda: jnp.array_equiv(X, I),
    "i0": lambda: jnp.i0(H),
    "percentile": lambda: jnp.percentile(I, np.int32([25, 75])),
    "quantile": lambda: jnp.quantile(I, X / 3),
    "nanquantile": lambda: jnp.nanquantile(I, X / 3),
    "roots": lambda: jnp.roots(X),
    "fft": lambda: jnp.fft.fft(X),
    "irfft": lambda: jnp.fft.irfft(I),
    "hfft": lambda: jnp.fft.hfft(H),
    "fftn": lambda: jnp.fft.fftn(M),
    "leaky_relu": lambda: nn.leaky_relu(I, I),
    "softmax": lambda: nn.softmax(H),
    "var": lambda: jnp.var(I),
    "mean": lambda: jnp.mean(H),
    "linspace": lambda: jnp.linspace(0, 1, 5, dtype=jnp.float16),
    "logspace": lambda: jnp.logspace(0, 1, 5),
    "dawsn": lambda: special.dawsn(H),
    "expn": lambda: special.expn(H, H),
    "gammainc": lambda: special.gammainc(H, H),
    "sici": lambda: special.sici(H),
    "wofz": lambda: special.wofz(X),
    "rsf2csf": lambda: linalg.rsf2csf(M, M),
    "sqrtm": lambda: linalg.sqrtm(M),
    "csd": lambda: signal.csd(X, X),
    "welch": lambda: signal.welch(C),
    "stft": lambda: signal.stft(I),
    "detrend": lambda: signal.detrend(C),
    "multinomial": lambda: stats.multinomial.pmf(I, 5, X),
    "dot_product_attention": lambda: nn.dot_product_attention(*[jnp.ones((1, 3, 2, 4), jnp.bfloat16)] * 3),
    "normal": lambda: polyax.random.normal(polyax.random.key(0), (3,), jnp.bfloat16),
    "binomial": lambda: polyax.random.binomial(polyax.random.key(0), 5, 0.5, (3,)),
}


@pytest.mark.parametrize("call", OWN.values(), ids=OWN)
def test_conversions_of_their_own(call):
    with polyax.default_device("reference"):
        plain = call()
        with polyax.numpy_dtype_promotion("strict"):
            strict = call()
    for a, b in zip(polyax.tree.leaves(plain), polyax.tree.leaves(strict), strict=True):
        assert a.dtype == b.dtype and np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True)


@pytest.mark.parametrize(
    "mix",
    [lambda: jnp.add(X, I), lambda: jnp.where(X > 1, X, I), lambda: special.gammainc(X, H), lambda: jnp.dot(X, H)],
)
def test_what_users_mix(mix):
    mix()
    with (
        polyax.numpy_dtype_promotion("strict"),
        pytest.raises(ValueError, match="no available .*=strict"),
    ):
        mix()
