"""``polyax.extend``: what programs need that add primitives or interpret programs. Re-exports only."""

from polyax.extend import core as core
