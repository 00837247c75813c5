"""Drawings: well-formed, complete, and in agreement with the report."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fuzz.programs import Program

import polyax as jax
import polyax.numpy as jnp
from polyax_inspect.diagram import make_diagram
from support.process import output

SVG = "{http://www.w3.org/2000/svg}"
X = jax.ShapeDtypeStruct((8, 16), "float32")
W = jax.ShapeDtypeStruct((16, 16), "float32")


def loss(params: Any, x: Any) -> Any:
    for w in params:
        x = jnp.tanh(x @ w)
    return (jax.nn.softmax(x) ** 2).sum()


def step(params: Any, x: Any) -> Any:
    return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params, x))


PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "softmax": (jax.nn.softmax, (X,)),
    "a training step": (step, ([W] * 4, X)),
    "nested calls": (lambda x: jax.jit(jnp.sin)(jax.jit(jnp.sin)(x)) + 1, (X,)),
    "an equation nobody needs": (lambda x: (jnp.cos(x), x * 2)[1], (X,)),
    "equal equations": (lambda x: jnp.sin(x) + jnp.sin(x), (X,)),
    "several results of one value": (lambda x: (x, x + 1, x), (X,)),
    "constants and numbers": (lambda x: (x + jnp.arange(16.0), 3.0), (X,)),
    "pieces": (lambda x: jnp.concatenate([x, x * 2, jnp.zeros((1, 16))]), (X,)),
    "an update": (lambda x: x.at[2].set(0.0), (X,)),
    "a large sum": (lambda x: jnp.sum(x * x), (jax.ShapeDtypeStruct((1 << 20,), "float32"),)),
    "nothing": (lambda: (), ()),
}


@pytest.fixture(params=PROGRAMS)
def drawing(request: pytest.FixtureRequest) -> Any:
    fun, args = PROGRAMS[request.param]
    return jax.draw(fun)(*args)


def elements(drawing: Any, attribute: str) -> list[str]:
    tree = ElementTree.fromstring(drawing.svg)
    return [e.get(attribute, "") for e in tree.iter(f"{SVG}g") if e.get(attribute)]


def test_each_equation_is_drawn_once(drawing: Any) -> None:
    numbers = Counter(map(int, elements(drawing, "data-equation")))
    assert numbers == Counter(range(len(drawing.report.program.lines)))


def test_groups_are_the_kernels_of_the_report(drawing: Any) -> None:
    numbers = Counter(int(k) for group in elements(drawing, "data-kernels") for k in group.split())
    assert numbers == Counter(range(len(drawing.report.kernels)))


def test_a_group_holds_what_its_kernels_compute(drawing: Any) -> None:
    diagram = make_diagram(drawing.report.program, drawing.report)
    for group in diagram.groups:
        mine = {diagram.nodes[n].equation for n in group.nodes} - {None}
        computed = {e for k in group.kernels for e in drawing.report.kernels[k].equations}
        assert mine <= computed or not group.kernels


def test_values_flow_from_what_makes_them(drawing: Any) -> None:
    program = drawing.report.program
    diagram = make_diagram(program, drawing.report)
    makers = {v: n for n, line in reversed([*enumerate(program.lines)]) for v in line.outs}
    for wire in diagram.wires:
        source = diagram.nodes[wire.source].equation
        assert source == makers.get(wire.value) and (source is not None or wire.value in program.inputs)
    arriving = Counter(diagram.nodes[w.target].equation for w in diagram.wires)
    for n, line in enumerate(program.lines):
        assert arriving[n] == len({v for v in line.inputs if v not in program.literals})


@pytest.mark.sample
def test_every_platform_can_be_drawn(platform: str) -> None:
    drawing = jax.draw(loss)([W], X)
    assert len(elements(drawing, "data-equation")) == len(drawing.report.program.lines)
    assert drawing.report.backend == platform


def test_tooltips_tell_equation_line_and_kernel() -> None:
    svg = jax.draw(lambda x: jnp.sin(x) * 2)(X).svg
    titles = [e.text or "" for e in ElementTree.fromstring(svg).iter(f"{SVG}title")]
    (sine,) = (t for t in titles if "= sin a" in t)
    assert "b:f32[8,16] = sin a" in sine and Path(__file__).name in sine and "kernel #0" in sine


def test_lines_through_memory_tell_why() -> None:
    drawing = jax.draw(lambda x, w: jnp.tanh(x @ w) + 1, device=jax.devices("cpu")[0])(X, W)
    titles = [e.text or "" for e in ElementTree.fromstring(drawing.svg).iter(f"{SVG}title")]
    assert any("not fused by instruction: dot_general is a library call" in t for t in titles)


def test_another_plugin_can_draw() -> None:
    program = """
        import polyax
        from polyax.runtime.plugins.registry import register
        sketch = type("sketch", (), {"polyax_draw": staticmethod(polyax.hookimpl(lambda event: event.name))})
        register(sketch, "any.sketch")
        print(polyax.draw(polyax.numpy.sin)(1.0))
    """
    settings = {"POLYAX_DISABLE_PLUGINS": "polyax-inspect", "POLYAX_PLATFORMS": "reference"}
    assert output(program, **settings) == "sin"


def test_library_calls_are_marked() -> None:
    svg = jax.draw(lambda x, w: x @ w, device=jax.devices("cpu")[0])(X, W).svg
    assert '<g class="call"' in svg


def test_the_page_needs_nothing_else() -> None:
    html = jax.draw(jax.nn.softmax, device=jax.devices("cpu")[0])(X).html
    assert "<svg" in html and "before fusion" in html and "<details>" in html
    assert "src=" not in html and "href=" not in html and "<script" not in html


def test_saving(tmp_path: Path) -> None:
    drawing = jax.draw(jnp.sin)(X)
    assert drawing.save(tmp_path / "a.svg").read_text() == drawing.svg == drawing._repr_html_()
    assert drawing.save(str(tmp_path / "a.html")).read_text() == drawing.html
    with pytest.raises(ValueError, match="as .svg or .html"):
        drawing.save(tmp_path / "a.png")


def test_names_are_escaped() -> None:
    def odd(x: Any) -> Any:
        return x + 1

    odd.__name__ = '<b>&"'
    html = jax.draw(odd)(X).html
    assert "<b>" not in html and "&lt;b&gt;&amp;" in html


def test_without_the_plugin_the_error_says_what_to_install() -> None:
    program = """
        import polyax
        try:
            polyax.draw(lambda x: x + 1)(1.0)
        except ImportError as e:
            print(e)
    """
    text = output(program, POLYAX_DISABLE_PLUGINS="polyax-inspect", POLYAX_PLATFORMS="reference")
    assert "pip install polyax-inspect" in text and "polyax[inspect]" in text and "POLYAX_DISABLE_PLUGINS" in text


def test_nothing_that_draws_is_imported_before_it_is_needed() -> None:
    program = "import sys, polyax.numpy as jnp; jnp.ones(3) + 1; print('polyax_inspect.svg' in sys.modules)"
    assert output(program, POLYAX_PLATFORMS="reference") == "False"


@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed: int) -> None:
    program = Program(seed, jax, steps=14)
    drawing = jax.draw(program)(*program.args)
    test_each_equation_is_drawn_once(drawing)
    test_groups_are_the_kernels_of_the_report(drawing)
    test_values_flow_from_what_makes_them(drawing)


def nested(xs: Any, w: Any) -> Any:
    def body(c: Any, x: Any) -> Any:
        y = jnp.tanh(c @ w + x)
        return jax.lax.cond(y.sum() > 0, jnp.sin, lambda z: z * 2, y), y.sum()

    return jax.lax.scan(body, jnp.zeros(16), xs)


def test_loops_and_branches_show_what_is_in_them() -> None:
    drawing = jax.draw(nested)(X, W)
    inside = [n for n in elements(drawing, "data-equation") if not n.isdigit()]
    loop = drawing.report.kernels[-1]
    (body,) = loop.programs
    assert sum(n.startswith("1.body ") and n.count(".") == 1 for n in inside) == len(body.program.lines)
    assert any("branch 0 " in n for n in inside) and any("branch 1 " in n for n in inside)
    kernels = {n for group in elements(drawing, "data-kernels") for n in group.split() if n.isdigit()}
    assert {str(k) for k in range(len(drawing.report.kernels))} <= kernels
    assert drawing.svg.count(">tanh<") == 1


def test_exchanges_of_a_program_on_a_mesh() -> None:
    """They stand out, and the page says what is moved and why."""
    program = """
        import numpy as np
        import polyax as jax
        from polyax.sharding import Mesh, NamedSharding, PartitionSpec
        mesh = Mesh(np.array(jax.devices()), ("i",))
        x = jax.device_put(np.ones((8, 8), "float32"), NamedSharding(mesh, PartitionSpec("i")))
        drawing = jax.draw(lambda a: a.sum(0) * 2)(x)
        print(drawing.svg.count('class="exchange"'), "psum" in drawing.svg, "exchanged" in drawing.html)
    """
    assert output(program, POLYAX_DEVICE="cpu", POLYAX_NUM_CPU_DEVICES="4").split() == ["1", "True", "True"]
