"""flowjax: densities by flows."""

import jax
import jax.numpy as jnp
from common import program
from flowjax.bijections import RationalQuadraticSpline
from flowjax.distributions import Normal
from flowjax.flows import block_neural_autoregressive_flow, coupling_flow, masked_autoregressive_flow
from flowjax.train import fit_to_data


def flow(kind, **options):
    return kind(jax.random.key(0), base_dist=Normal(jnp.zeros(2)), **options)


def points():
    return jax.random.normal(jax.random.key(1), (200, 2)) * jnp.array([1.0, 0.5]) + 1.0


@program()
def densities_and_samples():
    splines = {"transformer": RationalQuadraticSpline(knots=5, interval=3)}
    flows = {
        "masked": flow(masked_autoregressive_flow, **splines),
        "coupled": flow(coupling_flow, **splines),
        "blocks": flow(block_neural_autoregressive_flow),
    }
    found = {name: made.log_prob(points()[:5]) for name, made in flows.items()}
    return found | {"samples": flows["masked"].sample(jax.random.key(2), (3,))}


@program(rtol=5e-3)
def trained():
    made = flow(coupling_flow, transformer=RationalQuadraticSpline(knots=5, interval=3))
    _, told = fit_to_data(jax.random.key(3), made, points(), max_epochs=3, learning_rate=1e-2, show_progress=False)
    return {"losses": jnp.stack(told["train"])}
