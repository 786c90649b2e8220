"""Updates of the state that stand behind their gradients.

Under test: how much the planned memory of a deep MLP's step falls, and that its
results stay those of `jax.jit`, for optimizers of optax on CPU ranks. A plan
keeps all gradients where a value needs all of them (a global norm), and those
of a group under `optimizer.num_apply_group`.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from layers import ROWS, WIDTH, arguments, make_step

import whale as wh

LAYERS, STEPS = 8, 2
OPTIMIZERS = {
    "sgd": lambda: optax.sgd(0.1),
    "adam": lambda: optax.adam(1e-2),
    "lamb": lambda: optax.lamb(1e-2),
    "clipped": lambda: optax.chain(
        optax.clip_by_global_norm(0.1), optax.adamw(1e-2)
    ),
}
# Of all matrices; biases are reduced in one exchange.
GRADIENTS = 4 * LAYERS * WIDTH**2


def lowered(name, ranks, **config):
    """A step, and what it is called with."""
    optimizer = OPTIMIZERS[name]()
    # Else all gradients, which are small, are reduced in one exchange.
    wh.init(wh.Config({"communication.bucket_bytes": 0} | config))
    wh.set_default_strategy(wh.replicate())
    step = wh.jit(
        make_step(optimizer),
        cluster=ranks,
        batch_argnums=2,
        donate_argnums=(0, 1),
    )
    return step, arguments(optimizer, LAYERS)


def bytes_held(name, ranks, **config):
    """Bytes of activations and gradients at the peak of the plan."""
    step, given = lowered(name, ranks, **config)
    memory = step.lower(*given).plan()["devices"][0]["memory"]
    return memory["activations and gradients"]


@pytest.mark.parametrize("name", ["sgd", "adam", "lamb"])
def test_gradients_are_not_kept(name):
    # A few at a time, beside the activations, of which devices have parts.
    activations = 4 * LAYERS * ROWS * WIDTH
    for ranks in (1, 4):
        least = activations // ranks + GRADIENTS // 3
        assert bytes_held(name, ranks) <= least


def test_groups():
    alone = bytes_held("adam", 4)
    groups = bytes_held("adam", 4, **{"optimizer.num_apply_group": 3})
    together = bytes_held("adam", 4, optimizer={"num_apply_group": 1})
    assert alone < groups < together
    assert together >= GRADIENTS


def test_norm_of_all():
    assert bytes_held("clipped", 4) >= GRADIENTS


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize(
    "config",
    [
        {},
        {"optimizer.num_apply_group": 2},
        {"num_micro_batch": 3},
        {"num_micro_batch": 3, "num_task_graph": 2, "zero.level": "v0"},
    ],
)
def test_results(name, config):
    if name == "sgd":
        config = {k: v for k, v in config.items() if k != "zero.level"}
    step, (params, state, batch) = lowered(name, 4, **config)
    expected = jax.jit(make_step(OPTIMIZERS[name]()))
    own = jax.tree.map(jnp.copy, (params, state))
    other = params, state
    for _ in range(STEPS):
        *own, _ = step(*own, batch)
        *other, _ = expected(*other, batch)
    for mine, theirs in zip(jax.tree.leaves(own), jax.tree.leaves(other)):
        np.testing.assert_allclose(mine, theirs, rtol=2e-3, atol=2e-5)


def test_bad_groups():
    with pytest.raises(ValueError, match="from 1 to 32768"):
        wh.Config({"optimizer.num_apply_group": 0})
