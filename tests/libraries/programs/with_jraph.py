"""jraph: message passing on graphs."""

import jax
import jax.numpy as jnp
import jraph
import numpy as np
from common import program


def _graph(n, edges, seed):
    rng = np.random.default_rng(seed)
    return jraph.GraphsTuple(
        nodes=rng.normal(size=(n, 4)).astype(np.float32),
        edges=rng.normal(size=(edges, 3)).astype(np.float32),
        senders=rng.integers(0, n, edges),
        receivers=rng.integers(0, n, edges),
        globals=np.ones((1, 2), np.float32),
        n_node=np.array([n]),
        n_edge=np.array([edges]),
    )


def _dense(p, *xs):
    return jnp.tanh(jnp.concatenate(xs, -1) @ p)


@program(rtol=1e-3)  # steps that overshoot: JAX itself is 1.5e-4 from what it gives in 64 bits
def graph_network_trained():
    batch = jraph.pad_with_graphs(jraph.batch([_graph(5, 8, 0), _graph(3, 4, 1)]), 12, 16, 4)
    keys = jax.random.split(jax.random.PRNGKey(0), 3)
    params = {
        "edge": jax.random.normal(keys[0], (13, 3)) * 0.3,
        "node": jax.random.normal(keys[1], (12, 4)) * 0.3,
        "all": jax.random.normal(keys[2], (9, 2)) * 0.3,
    }
    mask = jraph.get_graph_padding_mask(batch)

    def apply(p, g):
        net = jraph.GraphNetwork(
            update_edge_fn=lambda e, s, r, u: _dense(p["edge"], e, s, r, u),
            update_node_fn=lambda n, s, r, u: _dense(p["node"], n, s, r, u),
            update_global_fn=lambda n, e, u: _dense(p["all"], n, e, u),
        )
        return net(net(g))

    @jax.jit
    def step(p):
        def loss_of(p):
            out = apply(p, batch).globals.sum(-1)
            return jnp.sum(jnp.where(mask, (out - jnp.arange(4.0)) ** 2, 0.0))

        loss, grads = jax.value_and_grad(loss_of)(p)
        return jax.tree.map(lambda x, g: x - 0.02 * g, p, grads), loss

    losses = []
    for _ in range(10):
        params, loss = step(params)
        losses.append(loss)
    return {"losses": jnp.stack(losses), "nodes": apply(params, batch).nodes[:8], "graphs": len(jraph.unbatch(batch))}


@program()
def attention_and_convolution():
    g = _graph(6, 12, 2)
    w = jnp.linspace(-1, 1, 16).reshape(4, 4)
    attention = jraph.GAT(
        attention_query_fn=lambda n: n @ w,
        attention_logit_fn=lambda s, r, e: jax.nn.leaky_relu(jnp.sum(s * r, -1, keepdims=True)),
        node_update_fn=lambda n: n,
    )
    convolution = jraph.GraphConvolution(update_node_fn=lambda n: n @ w, add_self_edges=True)
    plain = g._replace(edges=None)
    return {
        "gat": jax.jit(attention)(plain).nodes,
        "gcn": jax.jit(convolution)(g).nodes,
        "grad": jax.grad(lambda n: jnp.sum(convolution(g._replace(nodes=n)).nodes ** 2))(g.nodes),
        "softmax": jraph.segment_softmax(jnp.arange(5.0), jnp.array([0, 0, 1, 1, 1]), 2),
        "variance": jraph.segment_variance(jnp.arange(5.0), jnp.array([0, 0, 1, 1, 1]), 2),
    }
