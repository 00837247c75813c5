"""From ``mpiexec`` to a group of processes: who takes part, where they run, and who watches over them."""

from __future__ import annotations

import atexit
import os
import secrets
import socket
import sys
import traceback
from types import TracebackType

import mpi4py

if "mpi4py.MPI" not in sys.modules:  # it would take leave of MPI in processes that were forked off as well
    mpi4py.rc.finalize = False
from mpi4py import MPI

from polyax.backend import Alone, ProcessGroup, Wanted
from polyax_mpi.group import MpiGroup
from polyax_mpi.watching import Watch, start_watchman


def connected(wanted: Wanted) -> ProcessGroup:
    """The group of all processes of ``mpiexec``.

    Raises:
      ValueError: another number of processes was started, or this one has another number, than was asked for.
    """
    comm = MPI.COMM_WORLD.Dup()
    _check(wanted, comm)
    if comm.size == 1:
        return Alone()
    watch = _watched(comm, wanted)
    group = MpiGroup(comm, tuple(range(comm.size)), watch)
    _end_all_on_errors(group)
    atexit.register(_finalize, os.getpid())
    os.register_at_fork(after_in_child=group.leave_to_parent)
    return group


def _finalize(pid: int) -> None:
    """Takes leave of MPI in the process that came to it, unless that is done by whoever imported mpi4py first."""
    if os.getpid() == pid and mpi4py.rc.finalize is False and not MPI.Is_finalized():
        MPI.Finalize()


def _check(wanted: Wanted, comm: MPI.Intracomm) -> None:
    for asked, found, what, option in (
        (wanted.num_processes, comm.size, "there are", "num_processes"),
        (wanted.process_id, comm.rank, "this one has number", "process_id"),
    ):
        if asked not in (None, found):
            raise ValueError(
                f"distributed.initialize was given {option}={asked}, and {what} {found} by MPI (process {comm.rank} of "
                f"{comm.size}). Leave {option} out, or start as many with mpiexec -n."
            )


def _watched(comm: MPI.Intracomm, wanted: Wanted) -> Watch:
    """The first process starts the watchman, and tells all where it listens."""
    host = socket.gethostname()
    hosts = comm.allgather(host)
    token, port = secrets.token_hex(16), 0
    if comm.rank == 0:
        address = "127.0.0.1" if len(set(hosts)) == 1 else ""
        port = start_watchman(comm.size, token, address, wanted.initialization_timeout)
    token, port = comm.bcast((token, port))
    at = "127.0.0.1" if host == hosts[0] else hosts[0]
    watch = Watch((at, port), token, comm.rank, f"{host}, pid {os.getpid()}", wanted.heartbeat_timeout)
    comm.Barrier()
    return watch


def _end_all_on_errors(group: MpiGroup) -> None:
    """An error that nobody catches ends this process; the others would wait for it for ever."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        before(kind, error, trace)
        if not group.closed:
            group.abort("".join(traceback.format_exception_only(error)).strip())

    sys.excepthook = hook
