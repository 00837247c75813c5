"""The threads of the native runtime, and the jobs that they share.

The thread that asks takes part, so a job ends even if all workers are busy; pieces never wait for anything.

Where other processes run, a worker may lose its core in the middle of a piece for some milliseconds. Short jobs would
last hundreds of times as long: who has waited so for one computes them alone for a while (``crowded``). So does who
lost its own core: workers go to sleep then, and the system moves it to one of theirs.
"""

from __future__ import annotations

import contextlib
import ctypes
import resource
import time
from collections.abc import Generator

from polyax_cpu.llvm import Builder, IrValue, Module
from polyax_cpu.records import ADDRESS, FUNCTION_PARAMS, INTEGER, Record

SPINS = 20_000
"""How often an idle worker looks for work before it sleeps (some hundreds of microseconds). Programs that follow each
other then find it awake; one that sleeps is often woken on the core of the thread that wakes it, and waits for it."""
PATIENCE = 256
"""How often the thread that asked looks whether the others are done before it yields."""
SHORT = 100_000
"""Nanoseconds that a piece of a short job takes at most."""
ALONE = 8
"""How many times as long as it waited a thread computes short jobs alone: on a crowded machine, waiting then takes a
ninth of the time at most. One that lost its own core does so only if the job before was short, as this one would be."""
LOST, SLICE = 1_000_000, 5_000_000
"""Nanoseconds for which a thread loses its core to another process at least and at most, or about that."""


class Moment(ctypes.Structure):
    """``struct timespec``."""

    _fields_ = [("seconds", INTEGER), ("nanoseconds", INTEGER)]


class Usage(ctypes.Structure):
    """``struct rusage``: the last field counts how often a thread lost its core."""

    _fields_ = [("times", INTEGER * 4), ("counts", INTEGER * 13), ("switches", INTEGER)]


class Job(ctypes.Structure):
    """A call in pieces of ``size``: how many are taken, and which ``workers`` are at it. Lives on a stack."""

    _fields_ = [
        ("function", ADDRESS),
        *((name, ADDRESS if type == "ptr" else INTEGER) for type, name in FUNCTION_PARAMS),
        ("size", INTEGER),
        ("pieces", INTEGER),
        ("taken", INTEGER),
        ("workers", INTEGER),
        ("next", ADDRESS),
    ]


class JobList(ctypes.Structure):
    """Jobs that workers may join: ``lock`` is 1 while somebody changes the list. ``asleep`` workers wait for
    ``condition``; that and ``mutex`` have room for any platform's. ``crowded``: until when short ones aren't offered.
    ``switches``: how often who asked last had lost its core; ``lasted``: how long the last job kept its asker."""

    _fields_ = [
        ("mutex", ctypes.c_char * 128),
        ("condition", ctypes.c_char * 128),
        ("asleep", INTEGER),
        ("crowded", INTEGER),
        ("switches", INTEGER),
        ("lasted", INTEGER),
        ("apart", ctypes.c_char * 32),
        ("first", ADDRESS),
        ("lock", INTEGER),
    ]


def define_pool(module: Module, triple: str) -> None:
    module.top(f"@jobs = internal global [{ctypes.sizeof(JobList)} x i8] zeroinitializer, align 64")
    _pause(module, triple)
    for define in (
        define_now,
        _start,
        _work,
        _spin,
        _lock,
        _join,
        _sleep,
        _piece,
        _take,
        _remove,
        _parallel,
        _switched,
        _offer,
        _wait,
    ):
        define(module)


def _pause(module: Module, triple: str) -> None:
    """A processor without a known instruction yields its time slice."""
    b = module.function("void", "rest", [], "alwaysinline")
    match triple.split("-")[0]:
        case "x86_64":
            b.call("void", "llvm.x86.sse2.pause")
        case "aarch64":
            b.call("void", "llvm.aarch64.hint", b.const(1, "i32"))
        case _:
            b.call("i32", "sched_yield")
    b.ret()


def define_now(module: Module) -> None:
    """Nanoseconds of a clock that nobody sets."""
    b = module.function("i64", "now", [])
    moment = Record(Moment, b.alloca("i8", ctypes.sizeof(Moment)))
    b.call("i32", "clock_gettime", b.const(time.CLOCK_MONOTONIC, "i32"), moment.pointer)
    b.ret(moment.seconds * 1_000_000_000 + moment.nanoseconds)


def _jobs(b: Builder) -> Record:
    return Record(JobList, b.pointer("@jobs"))


@contextlib.contextmanager
def _locked(b: Builder) -> Generator[None, None, None]:
    """While the list is changed, which takes some nanoseconds: a mutex would put to sleep who meets another."""
    b.call("void", "lock")
    yield
    atomic_store(b.const(0, "i64"), _jobs(b).at("lock"), "release")


def _lock(module: Module) -> None:
    b = module.function("void", "lock", [])
    lock = _jobs(b).at("lock")
    with b.forever():
        with b.loop(0, b.const(PATIENCE, "i64")):
            with b.when(atomic_load(lock, "i64").compare("==", 0)):
                before = b.emit("i64", f"atomicrmw xchg {lock}, i64 1 acquire")
                with b.when(before.compare("==", 0)):
                    b.ret()
            b.call("void", "rest")
        b.call("i32", "sched_yield")


def atomic_load(pointer: IrValue, type: str = "ptr", order: str = "monotonic") -> IrValue:
    return pointer.b.emit(type, f"load atomic {type}, {pointer} {order}, align 8")


def atomic_store(value: IrValue, pointer: IrValue, order: str = "monotonic") -> None:
    pointer.b.line(f"store atomic {value}, {pointer} {order}, align 8")


def atomic_add(pointer: IrValue, n: IrValue | int, order: str = "monotonic") -> IrValue:
    """Returns what was there before."""
    added = n if isinstance(n, IrValue) else pointer.b.const(n, "i64")
    return pointer.b.emit("i64", f"atomicrmw add {pointer}, {added} {order}")


def _start(module: Module) -> None:
    """Starts the workers; returns how many. The list is made anew, so that a child process can call it after fork."""
    b = module.function("i64", "polyax_start", [("i64", "workers")])
    jobs, null, thread = _jobs(b), b.pointer("null"), b.alloca("i64")
    size = b.const(ctypes.sizeof(JobList), "i64")
    b.call("void", "llvm.memset.p0.i64", jobs.pointer, b.const(0, "i8"), size, b.const(False, "i1"))
    b.call("i32", "pthread_mutex_init", jobs.at("mutex"), null)
    b.call("i32", "pthread_cond_init", jobs.at("condition"), null)
    with b.loop(0, b.args[0]) as n:
        failed = b.call("i32", "pthread_create", thread, null, b.pointer("@work"), null)
        with b.when(failed.compare("!=", 0)):
            b.ret(n)
        b.call("i32", "pthread_detach", b.load(thread, "i64"))
    b.ret(b.args[0])


def _work(module: Module) -> None:
    """A worker: looks for a job a while, and sleeps where there is none."""
    b = module.function("ptr", "work", [("ptr", "unused")])
    null = b.pointer("null")
    with b.forever():
        b.call("void", "spin")
        job = Record(Job, b.call("ptr", "join"))
        with b.when(job.pointer.compare("==", null)):
            b.call("void", "sleep")
        with b.when(job.pointer.compare("!=", null)):
            b.call("void", "take", job.pointer)
            atomic_add(job.at("workers"), -1, "release")


def _spin(module: Module) -> None:
    """Returns when there seems to be a job, or after a while."""
    b = module.function("void", "spin", [])
    with b.loop(0, b.const(SPINS, "i64")):
        with b.when(atomic_load(_jobs(b).at("first")).compare("!=", b.pointer("null"))):
            b.ret()
        b.call("void", "rest")
    b.ret()


def _join(module: Module) -> None:
    """The first job, which won't end without this worker now; null if there is none."""
    b = module.function("ptr", "join", [])
    found = b.alloca("ptr")
    with _locked(b):
        job = Record(Job, atomic_load(_jobs(b).at("first")))
        b.store(job.pointer, found)
        with b.when(job.pointer.compare("!=", b.pointer("null"))):
            atomic_add(job.at("workers"), 1)
    b.ret(b.load(found, "ptr"))


def _sleep(module: Module) -> None:
    """Until there is a job: who offers one looks afterwards whether somebody sleeps, as who sleeps looks for one."""
    b = module.function("void", "sleep", [])
    jobs = _jobs(b)
    b.call("i32", "pthread_mutex_lock", jobs.at("mutex"))
    atomic_add(jobs.at("asleep"), 1, "seq_cst")
    with b.when(atomic_load(jobs.at("first"), "ptr", "seq_cst").compare("==", b.pointer("null"))):
        b.call("i32", "pthread_cond_wait", jobs.at("condition"), jobs.at("mutex"))
    atomic_add(jobs.at("asleep"), -1)
    b.call("i32", "pthread_mutex_unlock", jobs.at("mutex"))
    b.ret()


def _piece(module: Module) -> None:
    """Computes a piece of a job; returns 0 if none was left. Who finds that first takes the job off the list."""
    b = module.function("i64", "piece", [("ptr", "job")])
    job = Record(Job, b.args[0])
    n = atomic_add(job.at("taken"), 1)
    with b.when(n >= job.pieces):
        with b.when(n.compare("==", job.pieces)), _locked(b):
            b.call("void", "remove", job.pointer)
        b.ret(b.const(0, "i64"))
    begin = job.begin + n * job.size
    end = b.intrinsic("smin", begin + job.size, job.end)
    b.invoke("void", job.function, job.buffers, job.scalars, begin, end)
    b.ret(b.const(1, "i64"))


def _take(module: Module) -> None:
    """Computes pieces of a job until none is left."""
    b = module.function("void", "take", [("ptr", "job")])
    with b.forever(), b.when(b.call("i64", "piece", b.args[0]).compare("==", 0)):
        b.ret()


def _remove(module: Module) -> None:
    """Takes a job off the list, if it is still there. The lock is held."""
    b = module.function("void", "remove", [("ptr", "job")])
    link = b.alloca("ptr")
    b.store(_jobs(b).at("first"), link)
    with b.forever():
        here = b.load(link, "ptr")
        job = Record(Job, atomic_load(here))
        with b.when(job.pointer.compare("==", b.pointer("null"))):
            b.ret()
        with b.when(job.pointer.compare("==", b.args[0])):
            atomic_store(job.next, here)
            b.ret()
        b.store(job.at("next"), link)


def _parallel(module: Module) -> None:
    """Runs a function over a range in pieces, here and on workers that are free; returns when all are done. ``brief``:
    the job may be a short one; whoever runs a piece to see that keeps a worker from a long one."""
    params = [("ptr", "function"), *FUNCTION_PARAMS, ("i64", "size"), ("i64", "pieces")]
    b = module.function("void", "polyax_parallel", [*params, ("i64", "brief")])
    *given, brief = b.args
    job, none = Record(Job, b.alloca("i8", ctypes.sizeof(Job))), b.const(0, "i64")
    job.set(**{name: value for (_, name), value in zip(params, given, strict=True)}, taken=none, workers=none)
    began, crowded, lasted = b.call("i64", "now"), _jobs(b).at("crowded"), _jobs(b).at("lasted")
    with b.when(brief.compare("!=", 0) & (atomic_load(crowded, "i64") > began)):
        b.call("i64", "piece", job.pointer)
        with b.when(b.call("i64", "now") - began < SHORT):
            b.call("void", "take", job.pointer)
            b.ret()
    b.call("void", "offer", job.pointer)
    b.call("void", "take", job.pointer)
    own, before = b.call("i64", "now"), atomic_load(lasted, "i64")
    atomic_store(own - began, lasted)
    b.call("void", "wait", job.pointer)
    ended = b.call("i64", "now")
    with b.when(own - began < SHORT):
        with b.when(ended - own > SHORT):
            atomic_store(ended + (ended - own) * ALONE, crowded)
        b.ret()
    with b.when(own - began > LOST):
        lost = b.call("i64", "switched").compare("!=", 0) & (before < SHORT)
        with b.when(lost):
            atomic_store(ended + b.intrinsic("smin", own - began, b.const(SLICE, "i64")) * ALONE, crowded)
    b.ret()


def _switched(module: Module) -> None:
    """Whether this thread has lost its core since somebody asked that before."""
    b = module.function("i64", "switched", [])
    usage, seen = Record(Usage, b.alloca("i8", ctypes.sizeof(Usage))), _jobs(b).at("switches")
    who = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)
    b.call("i32", "getrusage", b.const(who, "i32"), usage.pointer)
    before = atomic_load(seen, "i64")
    atomic_store(usage.switches, seen)
    b.ret(b.convert("zext", usage.switches.compare("!=", before), "i64"))


def _offer(module: Module) -> None:
    """Puts a job on the list, and wakes the workers that sleep."""
    b = module.function("void", "offer", [("ptr", "job")])
    jobs, job = _jobs(b), Record(Job, b.args[0])
    with _locked(b):
        job.set(next=jobs.first)
        atomic_store(job.pointer, jobs.at("first"), "seq_cst")
    with b.when(atomic_load(jobs.at("asleep"), "i64", "seq_cst").compare("!=", 0)):
        b.call("i32", "pthread_mutex_lock", jobs.at("mutex"))
        b.call("i32", "pthread_cond_broadcast", jobs.at("condition"))
        b.call("i32", "pthread_mutex_unlock", jobs.at("mutex"))
    b.ret()


def _wait(module: Module) -> None:
    """Returns when no worker is at a job any more."""
    b = module.function("void", "wait", [("ptr", "job")])
    with b.forever():
        with b.loop(0, b.const(PATIENCE, "i64")):
            with b.when(atomic_load(Record(Job, b.args[0]).at("workers"), "i64", "acquire").compare("==", 0)):
                b.ret()
            b.call("void", "rest")
        b.call("i32", "sched_yield")
