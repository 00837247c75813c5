"""Settings on the command line, as ``--jax_NAME=VALUE``; and in the flags of ``absl``, where that is installed."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator

from polyax.ir.flags import ALIASES, FLAGS

PREFIX = "--jax_"


def settings() -> Iterator[tuple[str, str]]:
    """The names and texts of settings among the arguments of this process, up to a ``--``."""
    given = list(itertools.takewhile(lambda a: a != "--", sys.argv[1:]))
    for n, argument in enumerate(given):
        if argument.startswith(PREFIX):
            name, sign, text = argument.removeprefix("--").partition("=")
            following = given[n + 1] if n + 1 < len(given) and not given[n + 1].startswith("-") else "1"
            yield name, text if sign else following


def tell_absl(parsed: bool) -> None:
    """Defines the settings as flags, since ``absl.app.run`` refuses those that nobody has; ``parsed``: it may be asked
    for them, and for those of others, from now on."""
    try:
        from absl import flags  # pyright: ignore[reportMissingImports, reportMissingModuleSource]
    except ImportError:
        return
    for name in (*FLAGS, *ALIASES):
        if f"jax_{name}" not in flags.FLAGS:
            flags.DEFINE_string(f"jax_{name}", None, f"polyax: {name}", short_name=None)
    if parsed and not flags.FLAGS.is_parsed():
        flags.FLAGS(["", *(f"--{name}={text}" for name, text in settings())], known_only=True)
