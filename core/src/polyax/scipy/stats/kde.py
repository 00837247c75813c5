"""Densities that are estimated from samples, by a normal distribution around each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from polyax import numpy as jnp
from polyax import random
from polyax.lax import lenient as lax
from polyax.nn.normalize import logsumexp
from polyax.numpy.promotion import inexact
from polyax.scipy import special
from polyax.scipy.stats import multivariate_normal
from polyax.trace.register import register_pytree_node_class

__all__ = ["gaussian_kde"]


@register_pytree_node_class
class gaussian_kde:
    """A density estimated from samples.

    Args:
      dataset: samples, one a column; or a vector of numbers.
      bw_method: 'scott' (by default) or 'silverman', a factor for the covariance's root, or a function of this object
        that gives one.
      weights: of the samples; equal by default.

    Raises:
      ValueError: too few samples, or weights or ``bw_method`` that don't fit.
      NotImplementedError: complex samples.

    >>> import numpy as np
    >>> print(gaussian_kde(np.array([0.0, 1.0, 2.0])).evaluate(1.0).shape)
    (1,)
    """

    neff: Any
    dataset: Any
    weights: Any
    covariance: Any
    inv_cov: Any

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        dataset = jnp.atleast_2d(inexact("gaussian_kde", dataset)[0])
        if jnp.issubdtype(dataset.dtype, jnp.complexfloating):
            raise NotImplementedError("gaussian_kde does not support complex data")
        if dataset.size <= 1:
            raise ValueError("`dataset` input should have multiple elements.")
        count = dataset.shape[1]
        weights = jnp.full(count, 1 / count, dataset.dtype) if weights is None else inexact("gaussian_kde", weights)[0]
        if weights.ndim != 1:
            raise ValueError(f"`weights` input should be one-dimensional; got shape {weights.shape}")
        if weights.shape != (count,):
            raise ValueError(f"`weights` input should be of length n; got shape {weights.shape} for n = {count}")
        self.dataset, self.weights = dataset, (weights / jnp.sum(weights)).astype(dataset.dtype)
        self.neff = 1 / jnp.sum(self.weights**2)
        factor = _bandwidth(self, bw_method)
        spread = jnp.atleast_2d(jnp.cov(dataset, bias=False, aweights=self.weights))
        self.covariance = spread * factor**2
        self.inv_cov = jnp.linalg.inv(spread) / factor**2

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """Its arrays."""
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: tuple[Any, ...]) -> gaussian_kde:
        """The density with these arrays."""
        kde = object.__new__(cls)
        kde.neff, kde.dataset, kde.weights, kde.covariance, kde.inv_cov = children
        return kde

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of samples."""
        return self.dataset.shape[1]

    def logpdf(self, x: Any) -> Any:
        """The logarithm of the density at points, one a column; or at numbers.

        Raises:
          ValueError: their dimension isn't that of the samples.
        """
        points = self._points(x)
        factor = jnp.linalg.cholesky(self.covariance)
        offset = points[:, :, None] - self.dataset[:, None, :]
        y = lax.linalg.triangular_solve(factor, offset.reshape(self.d, -1), left_side=True, lower=True)
        distance = jnp.sum(y * y, 0).reshape(offset.shape[1:])
        scale = 0.5 * self.d * math.log(2 * math.pi) + jnp.sum(jnp.log(jnp.diagonal(factor)))
        return logsumexp(-0.5 * distance, axis=1, b=self.weights) - scale

    def evaluate(self, points: Any) -> Any:
        """The density at points, one a column; or at numbers."""
        return jnp.exp(self.logpdf(points))

    def pdf(self, x: Any) -> Any:
        """As ``evaluate``."""
        return self.evaluate(x)

    __call__ = evaluate

    def _points(self, x: Any) -> Any:
        points = jnp.atleast_2d(inexact("gaussian_kde", x)[0].astype(self.dataset.dtype))
        if points.shape[0] != self.d and points.shape == (1, self.d):
            points = points.T  # one point
        if points.shape[0] != self.d:
            raise ValueError(f"points have dimension {points.shape[0]}, dataset has dimension {self.d}")
        return points

    def resample(self, key: Any, shape: tuple[int, ...] = ()) -> Any:
        """Random points of this density, of shape ``(d, *shape)``."""
        first, second = random.split(key)
        chosen = random.choice(first, self.n, shape, p=self.weights)
        noise = random.multivariate_normal(
            second, jnp.zeros(self.d, self.dataset.dtype), self.covariance, shape, self.dataset.dtype
        )
        return self.dataset[:, chosen] + jnp.moveaxis(noise, -1, 0)

    def integrate_gaussian(self, mean: Any, cov: Any) -> Any:
        """The integral of the density times that of a normal distribution.

        Raises:
          ValueError: its dimension is another.
        """
        mean, cov = jnp.atleast_1d(jnp.squeeze(jnp.asarray(mean))), jnp.atleast_2d(jnp.asarray(cov))
        for name, value, shape in (("mean", mean, (self.d,)), ("covariance", cov, (self.d, self.d))):
            if value.shape != shape:
                raise ValueError(f"{name} does not have dimension {self.d}, got shape {value.shape}")
        values = multivariate_normal.pdf(self.dataset.T, mean, self.covariance + cov)
        return jnp.sum(values * self.weights)

    def integrate_box_1d(self, low: Any, high: Any) -> Any:
        """The probability between two numbers.

        Raises:
          ValueError: there is more than one dimension.
        """
        if self.d != 1:
            raise ValueError("integrate_box_1d() only handles 1D pdfs")
        deviation = jnp.sqrt(self.covariance[0, 0])
        low, high = (special.ndtr((jnp.squeeze(jnp.asarray(b)) - self.dataset) / deviation) for b in (low, high))
        return jnp.sum(self.weights * (high - low))

    def integrate_kde(self, other: gaussian_kde) -> Any:
        """The integral of the product of two densities.

        Raises:
          ValueError: they differ in dimension.
        """
        if other.d != self.d:
            raise ValueError("KDEs are not the same dimensionality")
        total, zero = self.covariance + other.covariance, jnp.zeros(self.d, self.dataset.dtype)
        gaps = (self.dataset[:, :, None] - other.dataset[:, None, :]).reshape(self.d, -1)
        values = multivariate_normal.pdf(gaps.T, zero, total).reshape(self.n, other.n)
        return self.weights @ values @ other.weights

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> Any:
        """Not there, as in JAX: raises ``NotImplementedError``."""
        raise NotImplementedError("only 1D box integrations are supported; use `integrate_box_1d`")

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Not there, as in JAX: raises ``NotImplementedError``."""
        raise NotImplementedError("dynamically changing the bandwidth method is not supported")


def _bandwidth(kde: gaussian_kde, method: str | float | Callable[[Any], Any] | None) -> Any:
    if method in (None, "scott"):
        return kde.neff ** (-1.0 / (kde.d + 4))
    if method == "silverman":
        return (kde.neff * (kde.d + 2) / 4.0) ** (-1.0 / (kde.d + 4))
    if callable(method):
        return method(kde)
    if isinstance(method, str) or jnp.ndim(method):
        raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar, or a callable.")
    return method
