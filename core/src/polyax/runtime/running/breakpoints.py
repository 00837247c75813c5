"""``breakpoint``: a prompt at a point of a running program, which knows the values of the user's local variables.

Arrays among them are operands of the program; the rest is as it was while tracing.
"""

from __future__ import annotations

import cmd
import pprint
import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any, ClassVar

from polyax.control.callback import debug_callback
from polyax.ir.aval import is_array_like
from polyax.ir.source import is_internal


@dataclass
class _Frame:
    """A frame of the user's: where it is, and what it knows."""

    place: str
    names: dict[str, Any]
    known: dict[str, Any]


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    **kwargs: Any,
) -> Any:
    """Stops the program here, each time that it comes by, and reads commands: ``p EXPRESSION``, ``pp``, ``bt``, ``u``,
    ``d``, ``c`` to go on and ``q`` to end the program with an error.

    Args:
      backend: ``"cli"``, the one there is.
      filter_frames: leave out frames of polyax itself.
      num_frames: how many frames are known, from here upwards.
      ordered: breakpoints and prints happen in the order of the program.
      token: not built.
      stdin, stdout: where commands come from, and answers go to.
    """
    if backend not in (None, "cli"):
        raise ValueError(f"debug.breakpoint: unknown backend {backend!r}; there is 'cli'")
    if token is not None:
        raise NotImplementedError("debug.breakpoint: token isn't built; use ordered=True")
    frames = _frames(sys._getframe(1), filter_frames)[:num_frames]
    arrays = [frame.names for frame in frames]
    debug_callback(lambda values: _Prompt(frames, values, **kwargs).cmdloop(), arrays, ordered=ordered)


def _frames(innermost: FrameType, filter_frames: bool) -> list[_Frame]:
    found: list[_Frame] = []
    frame: FrameType | None = innermost
    while frame is not None:
        code = frame.f_code
        if not (filter_frames and is_internal(code.co_filename)):
            arrays = {k: v for k, v in frame.f_locals.items() if is_array_like(v)}
            place = f"{code.co_filename}:{frame.f_lineno} ({code.co_name})"
            found.append(_Frame(place, arrays, {**frame.f_globals, **frame.f_locals}))
        frame = frame.f_back
    return found


class _Prompt(cmd.Cmd):
    prompt = "(pdb) "
    short: ClassVar[dict[str, str]] = {"c": "continue", "q": "quit", "u": "up", "d": "down", "bt": "where"}

    def __init__(self, frames: list[_Frame], values: list[dict[str, Any]], stdin: Any = None, stdout: Any = None):
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self.frames = frames
        self.values = values
        self.at = 0
        self.intro = f"Entering the debugger at {frames[0].place}"

    def say(self, text: Any) -> None:
        self.stdout.write(f"{text}\n")

    def precmd(self, line: str) -> str:
        word, _, rest = line.partition(" ")
        return f"{self.short.get(word, word)} {rest}".strip() if line != "EOF" else "quit"

    def evaluate(self, text: str) -> Any:
        try:
            return eval(text, {**self.frames[self.at].known, **self.values[self.at]})
        except Exception as e:  # shown to whoever asked
            return f"{type(e).__name__}: {e}"

    def do_p(self, text: str) -> None:
        """p EXPRESSION: its value"""
        self.say(self.evaluate(text))

    def do_pp(self, text: str) -> None:
        """pp EXPRESSION: its value, laid out"""
        self.say(pprint.pformat(self.evaluate(text)))

    def do_where(self, _: str) -> None:
        """bt: the frames"""
        for n, frame in enumerate(self.frames):
            self.say(f"{'>' if n == self.at else ' '} {frame.place}")

    def do_up(self, _: str) -> None:
        """u: to the caller"""
        self.at = min(self.at + 1, len(self.frames) - 1)
        self.say(self.frames[self.at].place)

    def do_down(self, _: str) -> None:
        """d: back towards the breakpoint"""
        self.at = max(self.at - 1, 0)
        self.say(self.frames[self.at].place)

    def do_continue(self, _: str) -> bool:
        """c: goes on"""
        return True

    def do_quit(self, _: str) -> bool:
        """q: ends the program"""
        raise RuntimeError("the program was ended in the debugger")
