"""What ``importlib.metadata`` tells of the distributions ``jax`` and ``jaxlib``: libraries ask for their versions."""

from __future__ import annotations

from importlib import metadata
from os import PathLike
from pathlib import Path

from polyax.door.version import __version__

NAMES = frozenset(("jax", "jaxlib"))


def metadata_of(name: str, version: str) -> str:
    """The text of the file ``METADATA`` of a distribution that stands for JAX's."""
    return (
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        "Summary: Stands for JAX, so that its libraries run on polyax; made by polyax.as_jax\nRequires-Dist: polyax\n"
    )


class StandIn(metadata.Distribution):
    """A distribution without files: behind the door JAX is there, of the version whose interface polyax follows."""

    def __init__(self, name: str) -> None:
        self._name = name

    def read_text(self, filename: str) -> str | None:
        return metadata_of(self._name, __version__) if filename == "METADATA" else None

    def locate_file(self, path: str | PathLike[str]) -> Path:
        return Path(__file__).parent / path
