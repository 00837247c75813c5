"""Local distributions named ``jax`` and ``jaxlib``: ``Requires: jax`` is satisfied, and ``import jax`` opens the door.

They are a few lines each, are made in place without a network, and are never to be uploaded.
"""

from __future__ import annotations

import sysconfig
from importlib import metadata
from pathlib import Path

from polyax.door.distributions import metadata_of
from polyax.door.version import __version__

VERSION = f"{__version__}+polyax"
_SOURCES = {
    "jax": '"""Stands for JAX: importing it makes `jax` mean polyax."""\n\n'
    "__polyax_stub__ = True\n\nimport polyax.as_jax\n",
    "jaxlib": '"""Stands for jaxlib, of which polyax needs nothing."""\n\n'
    "from polyax.door.version import __version__ as __version__\n",
}


class StubError(Exception):
    """Stubs can't be made or removed; the text says why."""


def site() -> Path:
    """Where this Python's packages are."""
    return Path(sysconfig.get_path("purelib"))


def add(directory: Path) -> list[str]:
    """Makes the distributions in ``directory``; what is there of an earlier version of them is replaced.

    Returns:
      Their names and versions.

    Raises:
      StubError: JAX itself is there.
    """
    for name in _SOURCES:
        if (there := _there(directory, name)) is not None and not there.version.endswith("+polyax"):
            raise StubError(
                f"{name} {there.version} is installed in {directory}, and a stub would take its place: uninstall it "
                "first (pip uninstall jax jaxlib), or use `python -m polyax.as_jax SCRIPT`, which needs no stub"
            )
    remove(directory)
    return [_written(directory, name, source) for name, source in _SOURCES.items()]


def remove(directory: Path) -> list[str]:
    """Removes what ``add`` has made; JAX itself stays.

    Returns:
      Names and versions of what was removed.
    """
    removed: list[str] = []
    for name in _SOURCES:
        there = _there(directory, name)
        if there is None or not there.version.endswith("+polyax"):
            continue
        removed.append(f"{name} {there.version}")
        files = [Path(str(f.locate())) for f in there.files or ()]
        for file in files:
            file.unlink(missing_ok=True)
        for folder in {f.parent for f in files}:
            _remove_compiled(folder)
            folder.rmdir()
    return removed


def _there(directory: Path, name: str) -> metadata.Distribution | None:
    return next((d for d in metadata.distributions(path=[str(directory)]) if d.metadata["Name"] == name), None)


def _remove_compiled(folder: Path) -> None:
    compiled = folder / "__pycache__"
    for file in compiled.glob("*.pyc"):
        file.unlink()
    if compiled.exists():
        compiled.rmdir()


def _written(directory: Path, name: str, source: str) -> str:
    info = f"{name}-{VERSION}.dist-info"
    files = {
        f"{name}/__init__.py": source,
        f"{info}/METADATA": metadata_of(name, VERSION),
        f"{info}/INSTALLER": "polyax\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: polyax\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = f"{info}/RECORD"
    files[record] = "".join(f"{file},,\n" for file in (*files, record))
    for file, text in files.items():
        path = directory / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return f"{name} {VERSION}"
