"""What the engine takes of a program."""

import numpy as np
import polyax


def test_programs_are_cut():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    told = polyax.explain(lambda x: polyax.lax.erf(x * 2) + 1, device=polyax.devices("newcomer")[0])(x)
    assert [(step.name, step.primitives) for step in told.report.kernels] == [
        ("engine", ("mul",)),
        ("host", ("erf",)),
        ("engine", ("add",)),
    ]
