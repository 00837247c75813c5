"""A call returns before its computation ends; results, order and errors are those of waiting at once."""

from __future__ import annotations

import pytest

from support.process import output


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cpu", "reference"])
def test_eight_virtual_devices_compute_at_the_same_time(name: str) -> None:
    """Each device waits for the others' results in turn, more programs than there are cores to run them."""
    program = f"""
        import numpy as np
        import polyax as jax, polyax.numpy as jnp
        devices = jax.devices({name!r})
        assert len(devices) == 8 and len({{d.id for d in devices}}) == 8
        f = jax.jit(lambda x: jnp.tanh(x @ x * 1e-3) + 1.0)
        values = [jax.device_put(np.full((128, 128), i, np.float32), d) for i, d in enumerate(devices)]
        for _ in range(5):
            values = [f(v) for v in values]
        assert [v.devices() for v in values] == [{{d}} for d in devices]
        moved = [jax.device_put(v, devices[(i + 1) % 8]) for i, v in enumerate(values)]
        sums = [float(jnp.sum(f(v))) for v in moved]
        want = np.stack([np.full((128, 128), i, np.float64) for i in range(8)])
        for _ in range(6):
            want = np.tanh(want @ want * 1e-3) + 1.0
        np.testing.assert_allclose(sums, want.sum((1, 2)), rtol=1e-4)
        print("done")
    """
    assert output(program, timeout=90, POLYAX_NUM_CPU_DEVICES="8", POLYAX_PLATFORMS=name) == "done"


@pytest.mark.slow
def test_eight_threads_share_eight_devices() -> None:
    program = """
        import threading, numpy as np
        import polyax as jax, polyax.numpy as jnp
        results = {}

        def work(i, device):
            with jax.default_device(device):
                x = jnp.full((64, 64), 0.01 * (i + 1))
                for _ in range(20):
                    x = jnp.sin(x @ x) + 0.5
                results[i] = np.asarray(x)

        threads = [threading.Thread(target=work, args=(i, d)) for i, d in enumerate(jax.devices())]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
        assert len(results) == 8
        print(all(np.isfinite(v).all() for v in results.values()))
    """
    assert output(program, timeout=90, POLYAX_NUM_CPU_DEVICES="8", POLYAX_PLATFORMS="cpu") == "True"
