"""Networks of jraph, on one padded graph a sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import client
import jax
import jax.numpy as jnp
from client import BATCH, Client, Program, normal, numbers, weights

# The latest release of jraph calls what JAX has moved since.
jax.__dict__.setdefault("tree_map", jax.tree.map)
import jraph  # noqa: E402

NODES, EDGES, WIDTH = 6, 10, 4


def graphs() -> Any:
    """A graph a sample, its last node a padding one."""
    valid = jnp.full((BATCH, 1), NODES - 1)
    edges = jnp.full((BATCH, 1), EDGES - 2)
    padded = jnp.array(NODES - 1)
    is_edge = jnp.arange(EDGES) < EDGES - 2
    senders = numbers(3, NODES - 1, BATCH, EDGES)
    receivers = numbers(4, NODES - 1, BATCH, EDGES)
    return jraph.GraphsTuple(
        nodes=normal(0, BATCH, NODES, WIDTH),
        edges=normal(1, BATCH, EDGES, WIDTH),
        globals=normal(2, BATCH, 2, WIDTH),
        senders=jnp.where(is_edge, senders, padded),
        receivers=jnp.where(is_edge, receivers, padded),
        n_node=jnp.concatenate([valid, jnp.ones_like(valid)], 1),
        n_edge=jnp.concatenate([edges, EDGES - edges], 1),
    )


def params() -> Any:
    names = ("node", "edge", "global")
    made = {n: weights(i, 16, WIDTH) for i, n in enumerate(names)}
    return made | {"query": weights(3, WIDTH, WIDTH), "score": weights(4, 8, 1)}


def mixed(params: Any, name: str) -> Callable[..., Any]:
    """A layer on all that a function of jraph is given."""

    def update(*parts: Any) -> Any:
        x = jnp.concatenate([p for p in parts if p is not None], -1)
        return jnp.tanh(x @ params[name][: x.shape[-1]])

    return update


def net(make: Callable[[Any], Any]) -> Client:
    def build() -> Program:
        def apply(params: Any, graphs: Any) -> Any:
            done = jax.vmap(make(params))(graphs)
            done = jax.vmap(jraph.zero_out_padding)(done)
            return done.nodes, done.edges, done.globals

        return client.layer(apply, params(), graphs())

    return Client(build)


def network(params: Any, **options: Any) -> Any:
    return jraph.GraphNetwork(
        update_edge_fn=mixed(params, "edge"),
        update_node_fn=mixed(params, "node"),
        update_global_fn=mixed(params, "global"),
        **options,
    )


def attention(params: Any) -> Any:
    return jraph.GraphNetwork(
        update_edge_fn=mixed(params, "edge"),
        update_node_fn=mixed(params, "node"),
        attention_logit_fn=lambda edges, *_: edges @ params["query"][:, :1],
        attention_reduce_fn=lambda edges, weights: edges * weights,
    )


def gat(params: Any) -> Any:
    def scored(sent: Any, received: Any, edges: Any) -> Any:
        x = jnp.concatenate([sent, received], -1)
        return jax.nn.leaky_relu(x @ params["score"])

    return jraph.GAT(lambda nodes: nodes @ params["query"], scored)


def convolution(params: Any) -> Any:
    return jraph.GraphConvolution(
        lambda nodes: nodes @ params["query"],
        add_self_edges=True,
        symmetric_normalization=True,
    )


def one_graph() -> Program:
    """Nodes of one graph, which no rank has a share of as a batch."""
    one = jax.tree.map(lambda leaf: leaf[0], graphs())

    def step(params: Any, graph: Any) -> Any:
        def loss(params: Any) -> Any:
            done = network(params)(graph)
            return jnp.mean(done.nodes**2) + jnp.mean(done.globals)

        value, grads = jax.value_and_grad(loss)(params)
        params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
        return params, graph, value

    return Program(step, (params(), one), ())


CASES = {
    "graph_network": net(network),
    "maximum": net(
        lambda p: network(p, aggregate_edges_for_nodes_fn=jraph.segment_max)
    ),
    "mean": net(
        lambda p: network(
            p,
            aggregate_edges_for_nodes_fn=jraph.segment_mean,
            aggregate_nodes_for_globals_fn=jraph.segment_variance,
        )
    ),
    "softmax": net(attention),
    "gat": net(gat),
    "convolution": net(convolution),
    "interaction": net(
        lambda p: jraph.InteractionNetwork(mixed(p, "edge"), mixed(p, "node"))
    ),
    "relation": net(
        lambda p: jraph.RelationNetwork(mixed(p, "edge"), mixed(p, "global"))
    ),
    "deep_sets": net(
        lambda p: jraph.DeepSets(mixed(p, "node"), mixed(p, "global"))
    ),
    "one_graph": Client(one_graph, runs=client.WHOLE),
}
