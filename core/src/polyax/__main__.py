"""``python -m polyax``, also installed as ``polyax``: what is installed, what works, and why something does not."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence

from polyax.commands import UsageError, explain_function
from polyax.runtime.contract.hooks import Command
from polyax.runtime.contract.tracebacks import warn_user
from polyax.runtime.plugins.loader import Plugin
from polyax.runtime.plugins.registry import registry
from polyax.runtime.telling.info import report

ELSEWHERE = {
    **dict.fromkeys(("check", "new-backend", "new-fuser", "new-lowering"), "polyax-conformance"),
    **dict.fromkeys(("profile", "scale"), "polyax-inspect"),
}
"""Commands that other distributions bring."""


def _info(_: argparse.Namespace) -> int:
    print(report())
    return 0


def _lacking(options: argparse.Namespace) -> int:
    raise UsageError(f"`pip install {ELSEWHERE[options.command]}` brings this command")


def _explain(options: argparse.Namespace) -> int:
    explain_function(options.function, options.arguments, options.draw)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="polyax", description="Transformations of numerical Python programs.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", dest="command")
    info = commands.add_parser("info", help="platforms, devices, plugins, versions and settings in force")
    info.set_defaults(run=_info)
    explain = commands.add_parser("explain", help="show what a function is compiled to")
    explain.add_argument("function", metavar="FILE:FUNCTION")
    explain.add_argument("arguments", nargs="*", metavar="TYPE", help="types as f32[8,16], or numbers")
    explain.add_argument("--draw", metavar="PATH", help="save a drawing, .svg or .html, too")
    explain.set_defaults(run=_explain)
    for plugin, command in _from_plugins():
        if command.name in commands.choices:
            warn_user(f"{plugin.title} brings a command {command.name!r}, which there is already: it is left out")
            continue
        added = commands.add_parser(command.name, help=command.help)
        command.add_arguments(added)
        added.set_defaults(run=command.run)
    for name in sorted(ELSEWHERE.keys() - commands.choices.keys()):
        lacking = commands.add_parser(name, help=f"needs {ELSEWHERE[name]}")
        lacking.add_argument("arguments", nargs=argparse.REMAINDER)
        lacking.set_defaults(run=_lacking)
    return parser


def _from_plugins() -> Iterator[tuple[Plugin, Command]]:
    for plugin, commands in registry.ask("any", "polyax_commands"):
        for command in commands:
            yield plugin, command


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        status = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has seen enough: `polyax info | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is flushed there at exit
        return 0
    except (UsageError, OSError) as e:
        print(f"polyax {options.command}: {e}", file=sys.stderr)
        return 2
    return status


if __name__ == "__main__":
    sys.exit(main())
