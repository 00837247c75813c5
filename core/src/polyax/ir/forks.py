"""Forks wait for work that must not be cut in two, such as compiling.

A child process gets the locks of its parent as they are when it forks, but not the threads that would open them: LLVM,
a driver or the registry would wait for ever there. So a fork begins when no other thread is within such work, and no
thread begins it meanwhile. Users' functions aren't run within, which might wait for the thread that forks.
"""

from __future__ import annotations

import concurrent.futures.thread as _executors  # noqa: F401 - it and logging hold locks of theirs while processes fork
import logging as _logging  # noqa: F401
import os
import threading


class Uncut:
    """Work that forks wait for. A thread that is within may begin more of it, or a fork would wait for ever."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._within: dict[int, int] = {}  # how deep each thread is within such work
        self._forking: int | None = None

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self._changed:
            if me not in self._within:
                self._changed.wait_for(lambda: self._forking is None)
            self._within[me] = self._within.get(me, 0) + 1

    def __exit__(self, *_: object) -> None:
        me = threading.get_ident()
        with self._changed:
            self._within[me] -= 1
            if not self._within[me]:
                del self._within[me]
                self._changed.notify_all()

    def before_fork(self) -> None:
        me = threading.get_ident()
        with self._changed:
            self._changed.wait_for(lambda: self._forking is None)
            self._forking = me
            self._changed.wait_for(lambda: self._within.keys() <= {me})

    def after_in_parent(self) -> None:
        with self._changed:
            self._forking = None
            self._changed.notify_all()

    def after_in_child(self) -> None:
        """The thread that forked is the only one, and may be within."""
        me = threading.get_ident()
        self._changed, self._forking = threading.Condition(), None
        self._within = {me: self._within[me]} if me in self._within else {}


uncut = Uncut()
"""``with uncut:`` around work that holds locks. It takes them within and leaves none taken."""

if hasattr(os, "register_at_fork"):  # after the modules above, so that this waits before it takes what they hold
    os.register_at_fork(
        before=uncut.before_fork, after_in_parent=uncut.after_in_parent, after_in_child=uncut.after_in_child
    )


class UncutLock:
    """A lock that its holder may take again, never held by another thread when a process forks."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        uncut.__enter__()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        uncut.__exit__()
