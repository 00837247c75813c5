"""``jax._src.config``: the settings, and functions that set them for a block, also those that mean nothing here."""

from polyax.api.settings import *  # noqa: F403
from polyax.api.settings import Setting
from polyax.ir.accepted import all_accepted
from polyax.ir.config import FLAGS
from polyax.ir.config import config as config

for _name in (*FLAGS, *all_accepted()):
    getattr(config, _name)  # those that are accepted become flags when they are asked for
    globals().setdefault(_name, Setting(_name))
