"""Backwards that compute values of the forward again
(``gradient_checkpoint.type``).

Under test: steps on CPU ranks with and without the option, beside `jax.jit`.
Parameters must be those of `jax.jit` up to rounding, and of the step without
the option bit for bit, as what is computed again is the same. What devices hold
must fit the memory that the cluster file gives them, where it does not without
the option.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.ad_checkpoint import checkpoint_name

import whale as wh

WIDTH, ROWS, LAYERS, STEPS = 32, 256, 6, 2


def block(params, x, name=None):
    up, down = params
    x = x + jax.nn.gelu(jnp.sin(x @ up)) @ down
    return x if name is None else checkpoint_name(x, name)


def deep_loss(params, x, name=None):
    for layer in params:
        x = block(layer, x, name)
    return jnp.mean(x**2)


def attention_loss(params, x):
    """Softmax of products, norms, and a mask."""
    x = x.reshape(-1, 16, WIDTH)
    mask = jnp.tril(jnp.ones((16, 16), bool))
    for up, down in params:
        h = x - x.mean(-1, keepdims=True)
        h = h * jax.lax.rsqrt(jnp.square(h).mean(-1, keepdims=True) + 1e-5)
        q, k, v, _ = jnp.split(h @ up, 4, -1)
        scores = jnp.where(mask, q @ k.mT * q.shape[-1] ** -0.5, -1e9)
        x = x + jax.nn.softmax(scores) @ v @ down[:WIDTH]
        x = x + jnp.tanh(x @ up) @ down
    return jnp.mean(x**2)


def staged_loss(params, x):
    """Two stages, one device each."""
    for number in range(2):
        with wh.replicate(1, name=f"stage{number}"):
            for layer in params[number::2]:
                x = block(layer, x)
            if number == 1:
                return jnp.mean(x**2)


def split_loss(params, x):
    for number, layer in enumerate(params):
        if number % 2:
            with wh.split(2, name=f"layer{number}"):
                x = block(layer, x)
        else:
            x = block(layer, x)
    return jnp.mean(x**2)


def scan_loss(params, x):
    """Layers in a loop, between others."""
    x = block(params[0], block(params[1], x))
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *params[2:])
    x, _ = jax.lax.scan(lambda x, layer: (block(layer, x), None), x, stacked)
    return jnp.mean(jnp.cos(x) ** 2)


def checkpointed_loss(params, x):
    """Some layers under the user's own jax.checkpoint."""
    for number, layer in enumerate(params):
        one = jax.checkpoint(block) if number in (2, 3) else block
        x = one(layer, x)
    return jnp.mean(x**2)


def make_step(loss):
    def step(params, x):
        grads = jax.grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    return step


def arguments():
    keys = iter(jax.random.split(jax.random.key(0), 2 * LAYERS + 1))
    params = [
        (
            jax.random.normal(next(keys), (WIDTH, 4 * WIDTH)) / 6,
            jax.random.normal(next(keys), (4 * WIDTH, WIDTH)) / 12,
        )
        for _ in range(LAYERS)
    ]
    return params, jax.random.normal(next(keys), (ROWS, WIDTH))


def lowered(loss, ranks, memory, strategy=wh.replicate, plan=None, **config):
    """The step, on devices of so many bytes."""
    wh.init(wh.Config(config))
    wh.set_default_strategy(None if strategy is None else strategy())
    kind = {"flops": {"f32": 1e11}, "memory_bytes": memory}
    kind["memory_bandwidth"] = 1e10
    cluster = {
        "kinds": {"small": kind},
        "nodes": [{"devices": [{"kind": "small", "count": ranks}]}],
    }
    return wh.jit(
        make_step(loss),
        cluster=cluster,
        batch_argnums=1,
        donate_argnums=0,
        plan=plan,
    )


def peaks(plan):
    return [sum(device["memory"].values()) for device in plan["devices"]]


def run(step):
    params, x = arguments()
    for _ in range(STEPS):
        params = step(params, x)
    return jax.tree.map(np.asarray, params)


def check(loss, ranks, share, **config):
    """Runs the step with this share of the memory that it needs without the
    option; returns its plan, and the peak without."""
    roomy = lowered(loss, ranks, 10**9, **config)
    expected = run(roomy)
    whole = max(peaks(roomy.plan))
    memory = int(whole * share)
    with pytest.raises(wh.CompileError, match=" lacks "):
        lowered(loss, ranks, memory, **config).lower(*arguments()).compile()
    config = {"gradient_checkpoint.type": "auto"} | config
    step = lowered(loss, ranks, memory, **config)
    got = run(step)
    assert max(peaks(step.plan)) <= memory
    # What ranks have taken, with what is in their arenas.
    for rank in step.stats["ranks"]:
        assert rank["peak_bytes"] <= memory
    params, x = arguments()
    other = jax.jit(make_step(loss))
    for _ in range(STEPS):
        params = other(params, x)
    for mine, same, theirs in zip(
        *map(jax.tree.leaves, (got, expected, params)), strict=True
    ):
        np.testing.assert_array_equal(mine, same)
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)
    return step.plan, whole


@pytest.mark.parametrize(
    "loss, ranks, share, config",
    [
        (deep_loss, 1, 0.8, {}),
        (deep_loss, 1, 0.45, {}),
        (deep_loss, 2, 0.5, {}),
        pytest.param(attention_loss, 1, 0.6, {}, marks=pytest.mark.long),
        (attention_loss, 4, 0.65, {}),
        (checkpointed_loss, 1, 0.6, {}),
        (scan_loss, 1, 0.9, {}),
        (split_loss, 2, 0.7, {}),
        (deep_loss, 2, 0.7, {"num_micro_batch": 4}),
        (staged_loss, 2, 0.6, {"strategy": None, "num_micro_batch": 4}),
        (
            staged_loss,
            4,
            0.6,
            {
                "strategy": None,
                "num_micro_batch": 4,
                "pipeline.strategy": "1f1b",
            },
        ),
        (
            staged_loss,
            2,
            0.7,
            {
                "strategy": None,
                "num_micro_batch": 4,
                "pipeline.strategy": "zero-bubble",
            },
        ),
        (deep_loss, 2, 0.6, {"zero.level": "v2"}),
        pytest.param(
            *(deep_loss, 2, 0.6, {"optimizer.num_apply_group": 2}),
            marks=pytest.mark.long,
        ),
    ],
)
def test_fits(loss, ranks, share, config):
    check(loss, ranks, share, **config)


def test_step_that_fits_keeps_all():
    """Nothing changes: the same plan, without a word of recomputation."""
    plain = lowered(deep_loss, 1, 10**9)
    option = lowered(
        deep_loss, 1, 10**9, **{"gradient_checkpoint": {"type": "auto"}}
    )
    given = arguments()
    assert peaks(plain.lower(*given).plan()) == peaks(
        option.lower(*given).plan()
    )


def test_less_memory_is_held_and_more_time_taken():
    """The tighter the memory, the more is computed again. What is element-wise
    comes first: it takes less time than reading it.
    """
    config = {"gradient_checkpoint.type": "auto"}
    given = arguments()
    plenty = lowered(deep_loss, 1, 10**9, **config).lower(*given).plan()
    whole = max(peaks(plenty))
    held, seconds = [], []
    for share in (0.8, 0.55, 0.5, 0.4):
        memory = int(whole * share)
        plan = lowered(deep_loss, 1, memory, **config).lower(*given).plan()
        held.append(max(peaks(plan)))
        seconds.append(plan["step_time_s"])
        assert held[-1] <= memory
    assert held == sorted(held, reverse=True)
    assert seconds == sorted(seconds)
    assert seconds[0] <= plenty["step_time_s"] < seconds[-1]


def checkpointed(policy):
    """The loss with `jax.checkpoint` of each block, as users write it."""

    def loss(params, x):
        for layer in params:
            x = jax.checkpoint(block, policy=policy)(layer, x)
        return jnp.mean(x**2)

    return loss


@pytest.mark.parametrize(
    "policy", [None, jax.checkpoint_policies.dots_saveable]
)
def test_no_slower_than_checkpoints_by_hand(policy):
    """In the memory that they take, by the model of a step. Of all of a block
    recomputed a little more: what kernels keep is not chosen with it.
    """
    given = arguments()
    by_hand = lowered(checkpointed(policy), 1, 10**9).lower(*given).plan()
    memory = int(1.05 * max(peaks(by_hand)))
    config = {"gradient_checkpoint.type": "auto"}
    plan = lowered(deep_loss, 1, memory, **config).lower(*given).plan()
    assert plan["step_time_s"] <= 1.002 * by_hand["step_time_s"]


def test_table_of_memory_says_what_is_saved(capfd):
    config = {"gradient_checkpoint.type": "auto"}
    step = lowered(deep_loss, 1, 2_000_000, **config)
    step.lower(*arguments()).compile(explain="memory")
    assert "MB less than without recomputation" in capfd.readouterr().err


def test_too_little_memory_names_what_recomputation_saves():
    config = {"gradient_checkpoint.type": "auto"}
    step = lowered(deep_loss, 1, 500_000, **config)
    with pytest.raises(wh.CompileError) as error:
        step.lower(*arguments()).compile()
    assert "device 0 (small) lacks" in str(error.value)
    assert "recomputation (gradient_checkpoint.type) saves" in str(error.value)


@pytest.mark.parametrize(
    "ranks, config",
    [(1, {}), (2, {"num_micro_batch": 4}), (2, {"num_task_graph": 2})],
)
def test_collection(ranks, config):
    """Values between those that are named are computed again."""

    def loss(params, x):
        return deep_loss(params, x, "layer")

    strategy = None if "num_task_graph" in config else wh.replicate
    plain = lowered(loss, ranks, 10**9, strategy, **config)
    expected = run(plain)
    option = {"gradient_checkpoint.type": "collection"}
    step = lowered(loss, ranks, 10**9, strategy, **option, **config)
    jax.tree.map(np.testing.assert_array_equal, run(step), expected)
    assert max(peaks(step.plan)) < 0.8 * max(peaks(plain.plan))


def test_collection_without_names_is_an_error():
    option = {"gradient_checkpoint.type": "collection"}
    step = lowered(deep_loss, 1, 10**9, **option)
    with pytest.raises(wh.CompileError, match="the step names none"):
        step.lower(*arguments()).compile()


def test_plan_says_what_is_recomputed():
    """Given back it is carried out, and with less of it too much is held."""
    config = {"gradient_checkpoint.type": "auto"}
    params, x = arguments()
    tight = lowered(deep_loss, 2, 1_200_000, **config)
    plan = tight.lower(params, x).plan()
    (chosen,) = plan["decisions"]["recomputed"]
    assert chosen["devices"] == [[0, 1]]
    assert len(chosen["operations"]) > 20

    def given(plan):
        return lowered(deep_loss, 2, 1_200_000, plan=plan, **config)

    same = given(plan)
    assert same.lower(params, x).plan()["decisions"] == plan["decisions"]
    expected = run(tight)
    jax.tree.map(np.testing.assert_array_equal, run(same), expected)
    # What a plan says is not decided again, even where it does not fit.
    fewer = [{**chosen, "operations": chosen["operations"][9:]}]
    with pytest.raises(wh.CompileError, match="lacks"):
        given(plan.edited(recomputed=fewer)).lower(params, x).plan()
    missing = [{**chosen, "operations": [100_000]}]
    with pytest.raises(wh.CompileError, match="operation 100000 is not there"):
        given(plan.edited(recomputed=missing)).lower(params, x).plan()
    elsewhere = [{**chosen, "devices": [[0], [1]]}]
    with pytest.raises(wh.CompileError, match="no backward is on these"):
        given(plan.edited(recomputed=elsewhere)).lower(params, x).plan()
