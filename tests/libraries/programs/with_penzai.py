"""penzai and treescope: models as trees to look at and to change, with named axes."""

import jax
import jax.numpy as jnp
import numpy as np
import treescope
from common import program
from penzai import pz


@program(rtol=1e-3)
def named_axes():
    x = pz.nx.wrap(jnp.arange(12.0).reshape(3, 4), "row", "column")
    y = pz.nx.nmap(lambda v: v / v.sum())(x.untag("column")).tag("column")
    z = pz.nx.nmap(jnp.dot)(x.untag("column"), y.untag("column"))
    joined = pz.nx.concatenate([x, x * 2], "row")
    return {
        "y": y.unwrap("row", "column"),
        "z": z.unwrap("row"),
        "joined": joined.named_shape["row"],
        "picked": x[{"row": 1}].unwrap("column"),
        "jitted": jax.jit(lambda a: (a + 1.0).untag("row").sum().unwrap("column"))(x),
        "key": pz.nx.random_split(jax.random.key(0), {"batch": 3}).named_shape["batch"],
    }


@program(rtol=1e-3)
def model_trained_and_changed():
    from penzai.models import simple_mlp

    model = simple_mlp.MLP.from_config(
        name="mlp", init_base_rng=jax.random.key(0), feature_sizes=[3, 8, 2], activation_fn=jax.nn.relu
    )
    model, variables = pz.unbind_params(model)
    x = pz.nx.wrap(jnp.sin(jnp.arange(15.0)).reshape(5, 3), "batch", "features")

    @jax.jit
    def loss(variables):
        return jnp.mean(pz.bind_variables(model, variables)(x).unwrap("batch", "features") ** 2)

    frozen = tuple(v.freeze() for v in variables)
    value, grads = jax.value_and_grad(loss)(frozen)
    bound = pz.bind_variables(model, frozen)
    count = len(pz.select(bound).at_instances_of(pz.nn.Affine).get_sequence())
    changed = pz.select(bound).at_instances_of(pz.nn.Elementwise).apply(lambda _: pz.nn.Elementwise(jnp.tanh))
    return {
        "value": value,
        "grads": [float(np.abs(g.value.data_array).sum()) for g in grads],
        "affine": count,
        "changed": changed(x).unwrap("batch", "features"),
    }


@program()
def trees_drawn():
    tree = {"a": jnp.arange(6.0).reshape(2, 3), "b": [jax.random.key(0), jnp.float32(2)], "f": jax.jit(jnp.sin)}
    text = treescope.render_to_text(tree)
    html = treescope.render_to_html(tree)
    array = treescope.render_array(jnp.sin(jnp.arange(12.0)).reshape(3, 4))
    return {"text": "float32" in text and "(2, 3)" in text, "html": len(html) > 1000, "array": array is not None}
