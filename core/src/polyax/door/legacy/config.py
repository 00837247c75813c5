"""``jax._src.config``: the settings, and functions that set them for a block."""

from polyax.api.settings import *  # noqa: F403
from polyax.ir.config import config as config
