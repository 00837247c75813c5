"""Score cards: what a platform passes, level by level; as text, as JSON, and as a badge."""

from __future__ import annotations

import html
import json
from dataclasses import asdict, dataclass, field

from polyax.backend import PluginError
from polyax_conformance.names import LEVELS


@dataclass
class Score:
    """Of a level: how many tests pass, fail, are gaps, and aren't for this machine."""

    passed: int = 0
    failed: int = 0
    gaps: int = 0
    skipped: int = 0

    @property
    def whole(self) -> bool:
        return not self.failed and self.passed > 0


@dataclass
class Card:
    """What a platform is worth."""

    platform: str
    plugin: str
    polyax: str
    levels: dict[str, Score] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    """The tests that failed, with the first line of why."""
    speed: dict[str, float] = field(default_factory=dict)
    """How many times as fast as NumPy, by what was done."""

    @property
    def level(self) -> int:
        """The highest level that is passed, with all below it; -1 if none is."""
        reached = -1
        for n, name in enumerate(LEVELS):
            if name not in self.levels or not self.levels[name].whole:
                break
            reached = n
        return reached

    @property
    def share(self) -> float:
        """What passes, of all that isn't left to others; gaps count as not passed."""
        counts = [(s.passed, s.passed + s.failed + s.gaps) for s in self.levels.values()]
        total = sum(all_ for _, all_ in counts)
        return sum(passed for passed, _ in counts) / total if total else 0.0

    def text(self) -> str:
        """The table that a terminal shows."""
        lines = [f"{self.platform}: {self.plugin}, polyax {self.polyax}", ""]
        lines.append(f"{'level':<20}{'passed':>8}{'failed':>8}{'gaps':>8}{'skipped':>9}")
        for n, name in enumerate(LEVELS):
            if name in self.levels:
                s = self.levels[name]
                lines.append(f"{n} {name:<18}{s.passed:>8}{s.failed:>8}{s.gaps:>8}{s.skipped:>9}")
        lines += ["", *(f"failed: {failure}" for failure in self.failures)]
        lines += [f"{what:<40}{times:>10.2f} x NumPy" for what, times in self.speed.items()]
        reached = f"level {self.level} ({LEVELS[self.level]})" if self.level >= 0 else "no level"
        return "\n".join([*lines, "", f"reached: {reached}; {self.share:.1%} of all tests pass"])

    def to_json(self) -> str:
        """All of it, for machines."""
        return json.dumps(asdict(self) | {"level": self.level, "share": self.share}, indent=2)

    @staticmethod
    def from_json(text: str) -> Card:
        """What ``to_json`` gave.

        Raises:
          PluginError: it isn't that.
        """
        try:
            found = json.loads(text)
            del found["level"], found["share"]
            return Card(**found | {"levels": {name: Score(**s) for name, s in found["levels"].items()}})
        except (ValueError, KeyError, TypeError) as e:
            raise PluginError(f"this is no score card: {e}") from None

    def svg(self) -> str:
        """A badge: the platform, its level, and how much of all passes."""
        left = html.escape(f"polyax {self.platform}")
        right = f"level {self.level} · {self.share:.0%}" if self.level >= 0 else f"no level · {self.share:.0%}"
        colour = "#3a7d44" if self.level == len(LEVELS) - 1 else "#b58900" if self.level >= 0 else "#b03a2e"
        one, two = 7 * len(left) + 12, 7 * len(right) + 12
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{one + two}" height="20" role="img" '
            f'aria-label="{left}: {right}"><rect width="{one}" height="20" fill="#444"/>'
            f'<rect x="{one}" width="{two}" height="20" fill="{colour}"/>'
            f'<g fill="#fff" font-family="monospace" font-size="11"><text x="6" y="14">{left}</text>'
            f'<text x="{one + 6}" y="14">{right}</text></g></svg>\n'
        )
