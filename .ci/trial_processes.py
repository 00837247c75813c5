"""A small program for a fresh installation with ``polyax[mpi]``: run it under mpiexec with two processes."""

import numpy as np

import polyax

polyax.distributed.initialize()
assert polyax.process_count() == 2, f"expected two processes, got {polyax.process_count()}"
total = polyax.pmap(lambda x: polyax.lax.psum(x, "i"), "i")(np.full(1, polyax.process_index() + 1.0, np.float32))
assert float(total[0]) == 3, total
if polyax.process_index() == 0:
    print("a fresh installation computes in two processes")
