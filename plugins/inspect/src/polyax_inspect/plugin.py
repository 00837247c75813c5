"""The hooks of this distribution. Imports nothing that draws until a program is drawn."""

from __future__ import annotations

from typing import Any

from polyax.backend import Command, CompileEvent, config, hookimpl

polyax_requires = ">=1,<2"


@hookimpl
def polyax_commands() -> list[Command]:
    """``scale``."""
    from polyax_inspect.scale import command

    return [Command("scale", "predict what a program takes on many devices", command.add_arguments, command.run)]


@hookimpl
def polyax_draw(event: CompileEvent) -> Any:
    """A ``Drawing``."""
    from polyax_inspect.drawing import Drawing

    return Drawing(event)


@hookimpl
def polyax_compiled(event: CompileEvent) -> None:
    """Writes the program to the directory that ``POLYAX_DUMP`` names."""
    if config.dump is not None:
        from polyax_inspect.dump import dump

        dump(event, config.dump)
