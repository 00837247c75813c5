"""``polyax.experimental.layout``: in which order an array's dimensions lie in memory. Re-exports only."""

from polyax.meshes.formats import Format as Format
from polyax.meshes.formats import Layout as Layout
