"""JAX MD: particles in a periodic box."""

import jax
import jax.numpy as jnp
from common import program
from jax_md import energy, minimize, partition, quantity, simulate, space

BOX, COUNT = 8.0, 48


def particles():
    displacement, shift = space.periodic(BOX)
    positions = jax.random.uniform(jax.random.PRNGKey(0), (COUNT, 2), maxval=BOX)
    return displacement, shift, positions, energy.soft_sphere_pair(displacement)


@program()
def at_rest():
    displacement, shift, positions, total = particles()
    begin, step = minimize.fire_descent(total, shift)
    rest = jax.lax.fori_loop(0, 100, lambda _, s: step(s), begin(positions)).position
    lattice = jax.jit(jax.hessian(total))(positions).reshape(2 * COUNT, 2 * COUNT)
    near = quantity.pair_correlation(displacement, jnp.linspace(0.1, 2.0, 10), 0.1)(positions)
    return {
        "energy": total(positions),
        "forces": quantity.force(total)(positions),
        "rest": total(rest),
        "trace": jnp.trace(lattice),
        "near": near,
    }


@program()
def neighbours():
    displacement, _, positions, total = particles()
    listing = partition.neighbor_list(displacement, BOX, 1.0, dr_threshold=0.2, format=partition.Dense)
    found = jax.jit(listing.update)(positions, listing.allocate(positions))
    return {"count": jnp.sum(found.idx < COUNT), "overflow": found.did_buffer_overflow, "energy": total(positions)}


@program(rtol=1e-3)
def in_motion():
    _, shift, positions, total = particles()
    begin, step = simulate.nve(total, shift, 1e-3)
    state = begin(jax.random.PRNGKey(1), positions, kT=0.1)
    moved = jax.jit(lambda s: jax.lax.fori_loop(0, 50, lambda _, s: step(s), s))(state)
    begin, step = simulate.nvt_nose_hoover(total, shift, 1e-3, 0.1)
    state = begin(jax.random.PRNGKey(1), positions)
    held = jax.jit(lambda s: jax.lax.fori_loop(0, 50, lambda _, s: step(s), s))(state)
    return {
        "moved": total(moved.position) + quantity.kinetic_energy(momentum=moved.momentum),
        "held": simulate.nvt_nose_hoover_invariant(total, held, 0.1),
    }
