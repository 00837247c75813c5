"""Memory that is recycled, inputs that vanish, threads and forks: results stay what they are."""

from __future__ import annotations

from support.process import output


def test_a_child_process_computes_after_fork() -> None:
    program = """
        import os, signal
        import polyax as jax, polyax.numpy as jnp
        f = jax.jit(lambda x: jnp.sin(x).sum())
        x = jnp.ones((2000, 500))
        want = float(f(x))
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(0 if float(f(x)) == want else 1)
        print(os.waitpid(child, 0)[1])
    """
    assert output(program, POLYAX_PLATFORMS="cpu").split() == ["0"]
