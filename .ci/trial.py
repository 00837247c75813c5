"""A small program for a fresh installation: run it with the platform that is to be found there.

With only the core installed, everything runs on the reference backend and one note says how to get a compiled one.
"""

import subprocess
import sys

import numpy as np

import polyax

PROGRAM = "import polyax; import polyax.numpy as jnp; print(polyax.devices()[0].platform, jnp.sin(1.0) + jnp.ones(2))"


def note_is_given_once() -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert run.stderr.count("polyax[cpu]") == 1, f"expected one note on the compiled backend, got: {run.stderr!r}"


def code_was_shipped() -> None:
    from polyax_cpu import processors, shipped

    usual = any(processors.runs(target, processors.host()) for target in processors.TARGETS)
    found = shipped.objects()
    assert (found is not None and len(found) > 200) == usual, "the wheel of polyax-cpu has no object code"


def main(platform: str) -> None:
    jnp = polyax.numpy
    found = polyax.devices()[0].platform
    assert found == platform, f"expected a device of {platform}, got {found}"
    x = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)

    def loss(w: object) -> object:
        return jnp.sum(jnp.tanh(x @ w) ** 2)

    w = np.ones(4, np.float32)
    got = polyax.jit(polyax.grad(loss))(jnp.asarray(w))
    t = np.tanh(x @ w)
    np.testing.assert_allclose(np.asarray(got), (2 * t * (1 - t * t)) @ x, rtol=1e-5)
    if platform == "reference":
        note_is_given_once()
    if platform == "cpu":
        code_was_shipped()
    print(f"a fresh installation computes on {platform}")


if __name__ == "__main__":
    main(sys.argv[1])
