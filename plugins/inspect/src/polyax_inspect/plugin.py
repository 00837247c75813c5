"""The hooks of this distribution. Imports nothing that draws until a program is drawn."""

from __future__ import annotations

from typing import Any

from polyax.backend import Command, CompileEvent, config, hookimpl

polyax_requires = ">=1,<2"


@hookimpl
def polyax_commands() -> list[Command]:
    """``profile`` and ``scale``."""
    from polyax_inspect.profile import command as profile
    from polyax_inspect.scale import command as scale

    return [
        Command("profile", "run a script and show what its time and memory go to", profile.add_arguments, profile.run),
        Command("scale", "predict what a program takes on many devices", scale.add_arguments, scale.run),
    ]


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
