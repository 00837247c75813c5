"""Makes installed-looking distributions in a folder: what an installer would leave behind, without installing."""

from __future__ import annotations

import textwrap
from pathlib import Path

BACKEND = """
    import polyax.runtime.contract.backend as contract
    from polyax.runtime.contract.hooks import hookimpl
    from polyax.reference.backend import ReferenceBackend

    class FakeBackend(ReferenceBackend):
        name = {name!r}

    @hookimpl
    def polyax_backends():
        how = dict(open=FakeBackend, priority={priority}, requires={requires!r})
        return [contract.BackendSpec({name!r}, lambda: {reason!r}, **how)]
"""


def make(folder: Path, distribution: str, source: str, *, entry: str, version: str = "1.0") -> Path:
    """A distribution with one module, named by ``entry``, and one entry point of the group ``polyax``."""
    module = distribution.replace("-", "_")
    information = folder / f"{module}-{version}.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    (information / "entry_points.txt").write_text(f"[polyax]\n{entry} = {module}\n")
    (folder / f"{module}.py").write_text(textwrap.dedent(source))
    return folder


def backend(name: str, *, reason: str | None = None, priority: int = 50, requires: str = ">=1,<2") -> str:
    """The source of a plugin that brings a backend, which runs on NumPy."""
    return BACKEND.format(name=name, reason=reason, priority=priority, requires=requires)
