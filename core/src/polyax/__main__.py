"""``python -m polyax``, also installed as ``polyax``: what is installed, what works, and why something does not."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from polyax.runtime.info import report


def _info(_: argparse.Namespace) -> int:
    print(report())
    return 0


def _check(options: argparse.Namespace) -> int:
    print(f"polyax: the conformance suite isn't built yet, so {options.platform!r} can't be checked", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="polyax", description="Transformations of numerical Python programs.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    info = commands.add_parser("info", help="platforms, devices, plugins, versions and settings in force")
    info.set_defaults(run=_info)
    check = commands.add_parser("check", help="run the conformance suite on a platform")
    check.add_argument("platform")
    check.set_defaults(run=_check)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    options = _parser().parse_args(arguments)
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main())
