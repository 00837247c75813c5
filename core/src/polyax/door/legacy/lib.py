"""``jax.lib`` and ``jaxlib``: nothing native is behind polyax, so only the version is here."""

from polyax.door.version import __version__ as __version__

version_str = __version__
