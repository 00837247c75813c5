"""``python -m polyax new-backend``, ``new-lowering`` and ``new-fuser``: write a project, and say what to do next."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

from polyax.backend import Command
from polyax_conformance.authoring import KINDS, PARTS, new_backend, new_part

NEXT = """\
{project} is a plugin that works. Next:

  cd {project}
  pip install -e ".[test]"
  pytest

README.md says how to go on from there."""


def commands() -> list[Command]:
    """All of them."""
    made = [Command("new-backend", "write the project of a new backend, which works", _backend_arguments, _backend)]
    for part in PARTS:
        told = f"write the project of a new {part}, which works"
        made.append(Command(f"new-{part}", told, _arguments, partial(_part, part)))
    return made


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="what it is called: small letters, digits and _")
    parser.add_argument("--into", type=Path, default=Path(), metavar="FOLDER", help="where its folder is made; here")


def _backend_arguments(parser: argparse.ArgumentParser) -> None:
    _arguments(parser)
    kinds = "; ".join(f"{kind}: {meaning}" for kind, meaning in KINDS.items())
    parser.add_argument("--kind", default="host", help=f"{kinds}. Without it: host")


def _backend(options: argparse.Namespace) -> int:
    return _told(lambda: new_backend(options.name, options.kind, options.into))


def _part(part: str, options: argparse.Namespace) -> int:
    return _told(lambda: new_part(options.name, part, options.into))


def _told(make: Callable[[], Path]) -> int:
    print(NEXT.format(project=make()))
    return 0
