"""Errors show the user's lines; polyax's own frames go."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from polyax.ir.config import config
from polyax.ops.elementwise import add
from polyax.runtime.contract.tracebacks import NOTE, api_boundary
from support.process import run


def inner(x: Any) -> Any:
    return add(1.0, "text")


@api_boundary
def public(f: Any, x: Any) -> Any:
    """Documented."""
    return f(x)


def frames(error: BaseException) -> list[str]:
    return [f.name for f in traceback.extract_tb(error.__traceback__)]


def test_frames_of_polyax_are_removed() -> None:
    with pytest.raises(TypeError) as caught:
        public(inner, 1)
    assert frames(caught.value) == ["test_frames_of_polyax_are_removed", "public", "inner"]
    assert caught.value.__notes__ == [NOTE]


def test_frames_are_kept_on_request() -> None:
    with config.override(traceback_filtering=False), pytest.raises(TypeError) as caught:
        public(inner, 1)
    assert len(frames(caught.value)) > 4


def test_nested_boundaries_note_once_and_causes_are_filtered() -> None:
    def chained(x: Any) -> Any:
        try:
            return public(inner, x)
        except TypeError as e:
            raise ValueError("chained") from e

    with pytest.raises(ValueError) as caught:
        public(chained, 1)
    assert caught.value.__cause__ is not None
    assert caught.value.__cause__.__notes__ == [NOTE]
    assert frames(caught.value)[-1] == "chained"


def test_wrapped_function_keeps_its_name_and_results() -> None:
    assert public.__name__ == "public" and public.__doc__ == "Documented."
    assert public(lambda x: x + 1, 1) == 2


def test_what_a_user_sees() -> None:
    program = """
        from polyax.ops.elementwise import add
        from polyax.runtime.contract.tracebacks import api_boundary

        @api_boundary
        def apply(f):
            return f()

        apply(lambda: add(1.0, "text"))
    """
    shown = run(program).stderr
    assert "with_filtered_errors" not in shown and "ops/elementwise.py" not in shown
    assert 'File "<string>", line 9, in <lambda>' in shown


def test_warnings_name_the_users_line() -> None:
    shown = run(
        "from polyax.runtime.contract.cache import DiskCache\n\nDiskCache('x').get('key')\n",
        POLYAX_CACHE_DIR="/proc/none",
    )
    assert "<string>:3: UserWarning: Compiled code is not kept on disk in /proc/none: it can't be made" in shown.stderr
