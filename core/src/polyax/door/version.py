"""The version of JAX whose interface polyax follows, as ``jax.version``."""

__version__ = "0.10.2"
__version_info__ = (0, 10, 2)
_version = __version__
