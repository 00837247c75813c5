"""Names of ``jax`` itself that polyax doesn't use of itself: the version that is followed."""

from polyax.door.version import __version__ as __version__
from polyax.door.version import __version_info__ as __version_info__
