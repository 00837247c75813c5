"""Programs over several processes: their connection, made once for each set of devices, and whether all mean the same.

Processes that run different programs would wait for each other for ever, or compute nonsense: before the first run of
each program they compare what they are about to run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from polyax.ir.errors import ProgramMismatch
from polyax.runtime.contract import processes
from polyax.runtime.contract.backend import Device
from polyax.runtime.contract.processes import ProcessGroup

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def connection(devices: Sequence[Device], name: str, program: Any) -> ProcessGroup | None:
    """What connects the processes of these devices, once they agree on the program; None if there is one process.

    Raises:
      ProgramMismatch: theirs differ; the text shows both.
      ValueError: none of the devices is in this process.
    """
    ranks = sorted({d.process_index for d in devices})
    if len(ranks) == 1 and devices[0].is_addressable:
        return None
    here = processes.here()
    if here.rank not in ranks:
        raise ValueError(
            f"{name}: none of its devices {', '.join(map(str, devices))} is in this process, number {here.rank}; "
            "call it in the processes that have one."
        )
    compare(here.among(ranks, "agreement"), name, _text(program))  # programs that run may be using the other one
    return here.among(ranks, tuple(d.id for d in devices))


def _text(program: Any) -> str:
    return _ADDRESS.sub("", "\n".join(map(str, program)))


def compare(link: ProcessGroup, name: str, text: str) -> None:
    """Raises ``ProgramMismatch`` in all processes unless they have the same program."""
    import hashlib  # when it is needed: `import polyax` stays quick

    told = f"{name}\n{text}".encode()
    if len(set(link.gather(hashlib.sha256(told).digest(), f"compiling {name}"))) == 1:
        return
    texts = [t.decode() for t in link.gather(told, f"comparing {name}")]
    raise ProgramMismatch(_described(link.ranks, texts))


def _described(ranks: Sequence[int], texts: Sequence[str]) -> str:
    """Which processes run which program, and the first two side by side."""
    kinds: dict[str, list[int]] = {}
    for rank, text in zip(ranks, texts, strict=True):
        kinds.setdefault(text, []).append(rank)
    groups = [f"{_listed(who)}: {text.partition(chr(10))[0]}" for text, who in kinds.items()]
    (one, who), (other, others) = list(kinds.items())[:2]
    import difflib  # when it is needed: `import polyax` stays quick

    diff = difflib.unified_diff(one.splitlines(), other.splitlines(), _listed(who), _listed(others), lineterm="", n=50)
    return "\n".join(
        [
            f"The processes are about to run different programs together ({'; '.join(groups)}). Each must call the "
            "same functions in the same order, with arguments of the same types. They differ here:",
            *diff,
        ]
    )


def _listed(ranks: Sequence[int]) -> str:
    return f"process{'es' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"
