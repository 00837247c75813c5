"""``polyax.memory``: where values are, besides the device that computes with them."""

from polyax.meshes.memories import MemorySpace as Space

__all__ = ["Space"]
