"""e3nn-jax: functions of vectors that turn with them."""

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp
from common import program


@program()
def products_of_representations():
    x = e3nn.normal("2x0e+1o+2e", jax.random.PRNGKey(0), (5,))
    y = e3nn.normal("0e+1o", jax.random.PRNGKey(1), (5,))
    product = e3nn.tensor_product(x, y)
    turn = e3nn.Irreps("1o+2e").D_from_angles(0.1, 0.2, 0.3)
    gated = e3nn.gate(e3nn.normal("3x0e+2x0e+2x1o", jax.random.PRNGKey(4), ()))
    return {
        "product": product.array,
        "turn": turn,
        "norms": e3nn.norm(x).array,
        "gated": gated.array,
        "coupling": e3nn.clebsch_gordan(1, 1, 2),
        "sums": e3nn.scatter_sum(x, dst=jnp.array([0, 1, 0, 1, 0]), output_size=2).array,
    }


@program()
def spherical_harmonics():
    v = jnp.array([1.0, 2.0, 3.0])
    of = lambda v: e3nn.spherical_harmonics("2e", v, True).array.sum()
    many = e3nn.spherical_harmonics("0e+1o+2e+3o", jax.random.normal(jax.random.PRNGKey(2), (4, 3)), True)
    return {"many": many.array, "slope": jax.grad(of)(v), "bend": jax.jit(jax.hessian(of))(v)}


@program()
def a_layer_that_turns_along():
    x = e3nn.normal("2x0e+1o+2e", jax.random.PRNGKey(0), (5,))
    layer = e3nn.flax.Linear("3x0e+2x1o")
    weights = layer.init(jax.random.PRNGKey(3), x)
    turned = layer.apply(weights, x.transform_by_angles(0.3, 0.2, 0.1))
    before = layer.apply(weights, x)
    apart = jnp.abs(turned.array - before.transform_by_angles(0.3, 0.2, 0.1).array).max()
    return {"before": before.array, "apart": apart}
