"""The hooks of this distribution. Imports neither pytest nor a compiler until a command is run."""

from __future__ import annotations

from polyax.backend import Command, hookimpl

polyax_requires = ">=1,<2"


@hookimpl
def polyax_commands() -> list[Command]:
    """``check``, and those that write new plugins."""
    from polyax_conformance import command, command_new

    check = Command("check", "grade a platform by the conformance suite", command.add_arguments, command.run)
    return [check, *command_new.commands()]
