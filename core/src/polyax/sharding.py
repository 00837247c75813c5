"""``polyax.sharding``: how arrays lie on devices."""

from polyax.api.meshes import make_mesh as make_mesh
from polyax.meshes.axes import AbstractMesh as AbstractMesh
from polyax.meshes.axes import AxisType as AxisType
from polyax.meshes.current import get_abstract_mesh as get_abstract_mesh
from polyax.meshes.current import get_mesh as get_mesh
from polyax.meshes.current import set_mesh as set_mesh
from polyax.meshes.current import use_abstract_mesh as use_abstract_mesh
from polyax.meshes.mesh import Mesh as Mesh
from polyax.meshes.older import GSPMDSharding as GSPMDSharding
from polyax.meshes.older import PositionalSharding as PositionalSharding
from polyax.meshes.sharding import NamedSharding as NamedSharding
from polyax.meshes.sharding import Sharding as Sharding
from polyax.meshes.sharding import SingleDeviceSharding as SingleDeviceSharding
from polyax.meshes.sharding import make_single_device_sharding as make_single_device_sharding
from polyax.meshes.spec import PartitionSpec as PartitionSpec
