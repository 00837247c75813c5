"""What users have without, and with, the plugins that are installed beside the core."""

from __future__ import annotations

import numpy as np

from support.process import output, run

PLUGINS = ",".join(
    f"polyax-{name}"
    for name in ("cpu", "opencl", "cuda", "fusion", "hello-c", "wasm", "onnx", "inspect", "mpi", "conformance")
)
PROGRAM = """
    import numpy as np
    import polyax as jax, polyax.numpy as jnp
    w, x = jnp.ones((4, 3)), jnp.arange(12.0).reshape(3, 4)
    loss = lambda w, x: jnp.mean(jnp.tanh(x @ w) ** 2)
    step = jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0)))
    print(jax.devices()[0].platform, *np.asarray(step(w, x).sum((0, 1))), sep=",")
"""


def numbers(line: str) -> tuple[str, list[float]]:
    platform, *values = line.split(",")
    return platform, [float(v) for v in values]


def test_the_core_alone_runs_on_the_reference_backend() -> None:
    platform, alone = numbers(output(PROGRAM, POLYAX_DISABLE_PLUGINS=PLUGINS))
    assert platform == "reference"
    _, default = numbers(output(PROGRAM))
    np.testing.assert_allclose(alone, default, rtol=1e-4, atol=1e-6)


def test_a_note_says_once_how_to_get_a_compiled_backend() -> None:
    done = run(PROGRAM, POLYAX_DISABLE_PLUGINS=PLUGINS)
    assert done.stderr.count("polyax[cpu]") == 1, done.stderr


def test_no_note_where_a_platform_was_asked_for() -> None:
    assert "polyax[cpu]" not in run(PROGRAM, POLYAX_PLATFORMS="reference").stderr
