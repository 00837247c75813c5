"""``jax.experimental.array_serialization.serialization``: JAX's older way to save arrays of several processes.

Libraries name its classes, and use orbax today. Here only the names are.
"""

from __future__ import annotations

from typing import Any


class GlobalAsyncCheckpointManagerBase:
    """Saves arrays while programs go on. It can't be made: orbax saves and restores arrays.

    Raises:
      NotImplementedError: always.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            f"{type(self).__name__} isn't built: save arrays with orbax.checkpoint, or with flax.serialization"
        )


class GlobalAsyncCheckpointManager(GlobalAsyncCheckpointManagerBase):
    """The same with tensorstore."""


def get_tensorstore_spec(ckpt_path: str, ocdbt: bool = False) -> dict[str, Any]:
    """Where tensorstore keeps an array of a directory of the file system.

    >>> get_tensorstore_spec("/tmp/x")
    {'driver': 'zarr', 'kvstore': {'driver': 'file', 'path': '/tmp/x'}}
    """
    if not ocdbt:
        return {"driver": "zarr", "kvstore": {"driver": "file", "path": ckpt_path}}
    holder, _, name = ckpt_path.rpartition("/")
    base = {"driver": "ocdbt", "base": f"file://{holder}", "path": name}
    return {"driver": "zarr", "kvstore": base}
