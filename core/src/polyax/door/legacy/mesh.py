"""``jax._src.mesh``: the mesh that is in force."""

from __future__ import annotations

import numpy as np

from polyax.ir.config import config
from polyax.meshes.mesh import Mesh

EMPTY = Mesh(np.empty((), object), ())


class ThreadResources:
    """What ``with mesh:`` has entered."""

    @property
    def env(self) -> ThreadResources:
        return self

    @property
    def physical_mesh(self) -> Mesh:
        """The mesh, or an empty one."""
        return config.entered_mesh or EMPTY


thread_resources = ThreadResources()
