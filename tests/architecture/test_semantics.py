"""The page on what primitives compute is what the library says of them."""

from __future__ import annotations

import re

from semantics import INWARD, PAGE

from support.process import output
from support.sources import ROOT

GONE = re.compile(r"random_\w+|\w*(reshard|unreduced|preduced|consume|sharding|_vary_cast)\w*")


def test_the_page_is_the_present_one() -> None:
    """Made in a process of its own: other tests make primitives."""
    where = ":".join(str(ROOT / folder) for folder in ("tests", "docs/_site"))
    written = output("from semantics import page; print(page())", PYTHONPATH=where)
    assert written.strip() == PAGE.read_text().strip(), "`make snapshot` writes it again"


def test_what_devices_are_given_has_words() -> None:
    rows = [line.split(" | ")[:2] for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    silent = {name.strip("| `") for name, words in rows if words == INWARD}
    assert len(rows) > 150
    assert {n for n in silent if not GONE.fullmatch(n)} == {
        "custom_lin",
        "device_put",
        "all_gather_invariant",
        "all_gather_reduced",
        "shard_map",
    }
