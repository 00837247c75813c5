"""docs/notebooks.md as a notebook that a kernel of Jupyter runs: its code, and what cells show of the values that it
names."""

from __future__ import annotations

from typing import Any

import pytest

from gallery import BLOCK
from support.sources import ROOT

nbformat = pytest.importorskip("nbformat", reason="make env brings it")
nbclient = pytest.importorskip("nbclient", reason="make env brings it")
pytest.importorskip("ipykernel", reason="make env brings it")
PAGE = ROOT / "docs/notebooks.md"
SHOWN = {
    "jax.make_jaxpr(jnp.sin)(1.0)": "<pre",
    "jax.make_jaxpr(jnp.sin)(1.0).jaxpr": "<pre",
    "jax.explain(jnp.sin)(1.0)": "<details",
    "jax.draw(jnp.sin)(1.0)": "<svg",
    "jax.devices()[0]": "bytes in use",
    "jnp.arange(3.0)": None,
}
"""The last line of a cell, and what its HTML has; None: it has only text."""


@pytest.fixture(scope="module")
def cells() -> list[Any]:
    """The page's code and then one cell for each value, all with their outputs."""
    code = [*BLOCK.findall(PAGE.read_text()), *SHOWN]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in code])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    return notebook.cells


def test_the_page_runs(cells: list[Any]) -> None:
    assert cells[0].source.startswith("import polyax")
    assert not [o for cell in cells for o in cell.outputs if o.output_type == "error"]


@pytest.mark.parametrize("number, source, html", [(n, *item) for n, item in enumerate(SHOWN.items())])
def test_values_are_shown(cells: list[Any], number: int, source: str, html: str | None) -> None:
    cell = cells[number - len(SHOWN)]
    assert cell.source == source
    (shown,) = [o.data for o in cell.outputs if o.output_type == "execute_result"]
    assert html in shown["text/html"] if html else set(shown) == {"text/plain"}


def test_nothing_is_told_twice(cells: list[Any]) -> None:
    """What a value shows isn't printed as well."""
    assert not [o.text for cell in cells[-len(SHOWN) :] for o in cell.outputs if o.output_type == "stream"]


def test_loops_show_bars(cells: list[Any]) -> None:
    (progress,) = [cell for cell in cells if "debug.progress" in cell.source]
    assert "integrating" in str(progress.outputs)
