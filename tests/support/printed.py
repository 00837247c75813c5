"""What a program printed, as documents show it: but for times, line numbers, and where lines are broken."""

from __future__ import annotations

import re

TIMES = re.compile(r"^compiled in .*\n|[\d.]+(?= ms|%)", re.MULTILINE)
LINES = re.compile(r"(?:<string>|\w+\.py):\d+(?::\d+)?")


def words(text: str) -> list[str]:
    return LINES.sub("", TIMES.sub("", text)).split()
