"""Names that there aren't: each with its reason, in the error and in ``docs/gaps.md``."""

from __future__ import annotations

import importlib

import pytest

from polyax.gaps import GAPS
from support.sources import ROOT


@pytest.mark.parametrize("name", GAPS)
def test_the_error_says_why(name):
    home, _, last = f"polyax.{name}".rpartition(".")
    with pytest.raises(AttributeError, match=f"has no attribute '{last}': JAX has it, polyax doesn't, because ") as e:
        getattr(importlib.import_module(home), last)
    assert GAPS[name] in str(e.value) and "docs/gaps.md" in str(e.value)


def test_the_page_lists_them():
    rows = [line for line in (ROOT / "docs/gaps.md").read_text().splitlines() if line.startswith("| `")]
    listed = {}
    for row in rows:
        names, reason = row.strip("| ").split(" | ")
        listed |= dict.fromkeys(names.replace("`", "").split(", "), reason)
    assert listed == GAPS


def test_other_names_are_plainly_not_there():
    with pytest.raises(AttributeError) as e:
        importlib.import_module("polyax").warp  # noqa: B018
    assert str(e.value) == "module 'polyax' has no attribute 'warp'"
