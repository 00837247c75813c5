"""Many processes look for programs that fail: none is forgotten, and one that dies is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from fuzz import several
from fuzz.search import Found, search
from fuzz.several import Crew, Tried
from fuzz.troubled import attempt


@pytest.fixture
def crew(monkeypatch: pytest.MonkeyPatch) -> Iterator[Crew]:
    monkeypatch.setattr(several, "CHUNK", 20)
    monkeypatch.setattr(several, "PATIENCE", 5.0)
    with closing(Crew(attempt, ["cpu"], jobs=2, seed=100)) as made:
        yield made


def test_each_seed_is_tried_once_and_failures_are_told(crew: Crew) -> None:
    tried: list[Tried] = []
    while not {*range(100, 140)} <= {t.seed for t in tried}:
        tried += crew.tried(1.0)
    seeds = [t.seed for t in tried]
    assert len(seeds) == len(set(seeds))
    failures = {t.seed: t.failure for t in tried if t.failure and t.seed < 140}
    assert failures == {
        **dict.fromkeys((107, 127), "the process died (-9)"),
        **dict.fromkeys((111, 131), "the process said nothing for 5 seconds"),
        **{n: f"ValueError: {n} is wrong" for n in (103, 123)},
    }


def test_a_search_goes_on_where_the_last_one_ended(crew: Crew, tmp_path: Path) -> None:
    kept = tmp_path / "made/found.json"
    found = Found(programs=30, seed=100)
    failures = search(crew, found, kept, seconds=60, programs=38)  # four or more of them by one process
    assert failures == len(found.failures) > 0
    found.seed = crew.seed
    found.write(kept)
    again = Found.read(kept)
    assert again == found and again.programs >= 38 and again.seed == 140
    wrong = {f"{n}": f"ValueError: {n} is wrong" for n in (103, 123)}
    assert wrong.items() & again.failures.items()
    assert Found.read(tmp_path / "nothing.json") == Found()
