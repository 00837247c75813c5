"""How polyax finds out that it was started by ``mpiexec``, and connects the processes. Imports no MPI until then."""

from __future__ import annotations

import importlib.util
import os

import polyax
from polyax.backend import ProcessGroup, ProcessSpec, Wanted

polyax_requires = ">=1,<2"

LAUNCHED = (
    "PMI_RANK",  # MPICH, Intel MPI, Slurm
    "PMIX_RANK",  # Open MPI 5, PRRTE, Slurm
    "OMPI_COMM_WORLD_RANK",
    "MV2_COMM_WORLD_RANK",
    "PALS_RANKID",
)
"""Variables that launchers give to each process; which of them depends on the MPI."""


@polyax.hookimpl
def polyax_processes() -> ProcessSpec:
    return ProcessSpec("mpi4py", why_not, connect)


def why_not() -> str | None:
    if not any(name in os.environ for name in LAUNCHED):
        return f"it wasn't started by mpiexec: none of {', '.join(LAUNCHED)} is set"
    if importlib.util.find_spec("mpi4py") is None:
        return "mpi4py isn't installed: pip install mpi4py"
    return None


def connect(wanted: Wanted) -> ProcessGroup:
    from polyax_mpi.connecting import connected

    return connected(wanted)
