"""Types are checked strictly in every distribution."""

from __future__ import annotations

import tomllib

from support.sources import PACKAGES, ROOT


def test_no_distribution_is_left_out() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    sources = [p for member in tool["uv"]["workspace"]["members"] for p in ROOT.glob(f"{member}/src")]
    found = {p.relative_to(ROOT).as_posix() for p in sources}
    assert found == {p.parent.relative_to(ROOT).as_posix() for p in PACKAGES.values()}, (
        "a package that tests don't know"
    )
    assert tool["pyright"]["typeCheckingMode"] == "strict"
    assert set(tool["pyright"]["include"]) == found
    assert set(tool["pyright"]["extraPaths"]) == found
