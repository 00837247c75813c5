"""Tests whose processes hang must fail themselves, and say where."""

from __future__ import annotations

import pytest

from support.process import run


def test_a_process_that_hangs_with_its_child_ends_and_says_where() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"it hangs: (?s:.)*line 4 in wait_for_ever"):
        run(
            """
            import os, time
            def wait_for_ever():
                time.sleep(1000)
            os.fork()
            wait_for_ever()
            """,
            timeout=2,
        )
