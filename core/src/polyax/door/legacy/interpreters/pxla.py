"""``jax.interpreters.pxla``: the mesh that is in force. How results are put together is not a table here."""

from polyax.door.legacy.mesh import thread_resources as thread_resources
from polyax.meshes.mesh import Mesh as Mesh
from polyax.meshes.spec import PartitionSpec as PartitionSpec
