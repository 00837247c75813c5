"""What notebooks show: HTML of programs, explanations, drawings and devices, and of arrays only their text."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp

VOID = {"br", "img", "meta"}


class Balanced(HTMLParser):
    """Fails at elements that aren't closed in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag


def text_of(html: str) -> str:
    parser = Balanced()
    parser.feed(html)
    assert parser.open == []
    return unescape(re.sub(r"<[^>]*>", "", html))


def f(x):
    return jax.lax.scan(lambda c, x: (c * x, jnp.where(c < x, c, x)), 1.0, jnp.exp(x))


def test_programs_keep_their_text() -> None:
    closed = jax.make_jaxpr(jax.jit(f))(np.ones(3, np.float32))
    for program in (closed, closed.jaxpr):
        html = program._repr_html_()
        assert text_of(html) == repr(program)
    assert ">scan</span>" in html and ">:f32[3]</span>" in html and ">lambda</span>" in html


def test_explanations_have_table_program_and_sources(capsys: pytest.CaptureFixture[str]) -> None:
    told = jax.explain(f)(np.ones(3, np.float32))
    capsys.readouterr()
    html = told._repr_html_()
    text = text_of(html)
    assert told.text(120) in text and repr(told.jaxpr) in text
    assert html.count("<details>") == 1 + sum(bool(k.source) for k in told.report.steps())


def test_drawings_are_shown_inline() -> None:
    assert jax.draw(f)(np.ones(3, np.float32))._repr_html_().startswith("<svg")


@pytest.mark.parametrize("name", ["cpu", "reference"])
def test_devices_say_what_they_are(name: str) -> None:
    device = jax.devices(name)[0]
    text = text_of(device._repr_html_())
    assert text.startswith(repr(device)) and device.device_kind in text
    assert ("bytes in use" in text) == (device.memory_stats() is not None)


def test_arrays_are_shown_as_text_as_those_of_jax_are() -> None:
    shown = [name for name in dir(jnp.ones(3)) if name.startswith("_repr_") or name == "_ipython_display_"]
    assert shown == []
