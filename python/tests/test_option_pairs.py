"""Every pair of Config keys: both act, or an error says why they cannot.

Under test: training steps on CPU ranks with two options each, beside `jax.jit`.
Which pairs exclude one another is what config_keys.json says, from which the
table of docs/options.md is made; all others must compute the same. A failure
means that two options spoil one another, or that the table is wrong. A sample
of the pairs is run, and all of them with --full.
"""

import functools
import itertools
import os

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.ad_checkpoint import checkpoint_name
from layers import one_node

import whale as wh
from whale import config

IS_FULL = "WHALE_TEST_FULL" in os.environ
WIDTH, ROWS, LAYERS, STEPS = 16, 96, 4, 2
# Values of each key that act; the first one is in the sample.
VALUES = {
    "num_micro_batch": [4],
    "batch_norm": ["micro"],
    "num_task_graph": [2],
    "pipeline.strategy": [
        "1f1b",
        "gpipe",
        "backward-optimizer",
        "interleaved",
        "zero-bubble",
    ],
    "cluster.uneven_replicas": [True],
    "communication.bucket_bytes": [0],
    "communication.bf16": [True],
    "communication.fp16": [True],
    "communication.fp16_scale": [16],
    "optimizer.num_apply_group": [2],
    "zero.level": ["v1", "v0", "v2"],
    "offload.level": ["state", "weights"],
    "gradient_checkpoint.type": ["auto", "collection"],
    "fit": ["auto"],
    "amp.level": ["bf16", "f16"],
    "amp.loss_scale": [1024, "dynamic"],
    "amp.debug_log": [True],
    "debug_nans": [True],
    "warnings": [False],
    "gpu.epilogues": [False],
    "gpu.tf32": [True],
}
HALVES = ("communication.bf16", "communication.fp16", "amp.level")
# How many of all pairs are in the sample, besides those that have gone wrong.
SAMPLE = 8
WRONG = [{"batch_norm": "micro", "debug_nans": True}]


def loss_of(scopes, params, x):
    """Layers in scopes; each is normalized over the batch if it has a scale."""
    size = len(params) // len(scopes)
    for number, scope in enumerate(scopes):
        with scope():
            for w, b, scale in params[number * size : (number + 1) * size]:
                x = checkpoint_name(x @ w + b, "layer")
                if scale is not None:
                    mean = jnp.mean(x, 0)
                    variance = jnp.mean((x - mean) ** 2, 0)
                    x = scale * (x - mean) * jax.lax.rsqrt(variance + 1e-2)
                x = jnp.tanh(x)
    return jnp.mean(x**2)


def make_step(loss):
    """A step of momentum: its updates are linear in gradients."""
    optimizer = optax.sgd(0.1, momentum=0.9)

    def step(params, state, x):
        value, grads = jax.value_and_grad(loss)(params, x)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    return step, optimizer


def arguments(optimizer, is_normed):
    keys = jax.random.split(jax.random.key(0), LAYERS + 1)
    # Behind the last layer statistics would be those of the whole batch.
    params = [
        (
            jax.random.normal(key, (WIDTH, WIDTH)) / WIDTH**0.5,
            jnp.zeros(WIDTH),
            jnp.ones(WIDTH) if is_normed and number + 1 < LAYERS else None,
        )
        for number, key in enumerate(keys[:-1])
    ]
    return (
        params,
        optimizer.init(params),
        jax.random.normal(keys[-1], (ROWS, WIDTH)),
    )


def with_needs(options):
    """The options, with those that they say that they belong with."""
    whole = dict(options)
    for key in options:
        for needed, values in config.KEYS[key].needs.items():
            if needed not in whole:
                whole[needed] = values[0]
    if "pipeline.strategy" in whole or "batch_norm" in whole:
        whole.setdefault("num_micro_batch", 4)
    if whole.get("pipeline.strategy") == "interleaved":
        if "num_task_graph" in whole:  # Several on each stage's device.
            whole["num_task_graph"] = 4
    return whole


def place(options):
    """The scopes of a step, its default strategy, and its number of ranks."""
    if options.get("num_task_graph") == 4:
        scope = functools.partial(jax.named_scope, "all")
        return [scope], wh.replicate(1), 2
    if "num_task_graph" in options:
        return [functools.partial(jax.named_scope, "all")], None, 4
    if options.get("pipeline.strategy") == "interleaved":
        return [functools.partial(wh.replicate, 2)] * 4, None, 4
    if "cluster.uneven_replicas" in options:
        return [functools.partial(wh.replicate, 1)] * 2, None, 3
    if "pipeline.strategy" in options:
        return [functools.partial(wh.replicate, 1)] * 2, None, 4
    return [functools.partial(jax.named_scope, "all")], wh.replicate(), 2


def jitted(options, memory):
    """The step with options, on devices with so much memory."""
    scopes, strategy, ranks = place(options)
    wh.init(wh.Config(options))
    if strategy is not None:
        wh.set_default_strategy(strategy)
    step, _ = make_step(functools.partial(loss_of, scopes))
    return wh.jit(
        step,
        cluster=one_node([{"kind": "k", "count": ranks}], memory),
        donate_argnums=(0, 1),
        batch_argnums=2,
    )


def expected_of(options, given):
    """Steps of `jax.jit`; of each micro-batch by itself where statistics are
    its own."""
    count = options.get("num_micro_batch", 1) if "batch_norm" in options else 1
    scope = functools.partial(jax.named_scope, "all")
    plain = functools.partial(loss_of, [scope])

    def loss(params, x):
        parts = x.reshape(count, -1, WIDTH)
        return sum(plain(params, part) for part in parts) / count

    return run(jax.jit(make_step(loss)[0]), given)


def run(step, given):
    params, state, x = given
    params, state = jax.tree.map(jnp.copy, (params, state))
    for _ in range(STEPS):
        params, state, value = step(params, state, x)
    return jax.tree.map(np.asarray, (params, state, value))


def reason(options):
    """Why these are an error, by the table; None if they are none."""
    for key, other in itertools.permutations(options, 2):
        for entry in config.KEYS[key].excludes:
            if entry.key == other and entry.is_about(options[other]):
                return entry.why
        values = config.KEYS[key].needs.get(other)
        if values and options[other] not in values:
            return f"{key} belongs with {other} "
    return None


def tighten(options, lean, memory, given):
    """So little memory that these options have to save some, if they can."""
    less = {key: value for key, value in options.items() if key not in lean}
    plan = jitted(less, memory).lower(*given).plan()
    least = max(each["peak_memory_bytes"] for each in plan["devices"]) - 1
    try:
        jitted(options, least).lower(*given).plan()
    except wh.CompileError as error:
        # What is held at the peak is nothing that they save.
        assert "lacks" in str(error)
        return memory
    return least


def check(pair):
    options = with_needs(pair)
    given = arguments(make_step(None)[1], "batch_norm" in options)
    lean = {"gradient_checkpoint.type", "fit"} & options.keys()
    memory = 1 << 30
    why = reason(options)
    if why is not None:
        with pytest.raises(wh.CompileError) as error:
            jitted(options, memory).lower(*given).compile()
        assert "whale.config" in str(error.value) and why in str(error.value)
        return
    if lean:
        memory = tighten(options, lean, memory, given)
    halves = any(options.get(key) for key in HALVES)
    tolerance = 5e-2 if halves else 1e-4
    found = run(jitted(options, memory), given)
    for mine, theirs in zip(
        jax.tree.leaves(found), jax.tree.leaves(expected_of(options, given))
    ):
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)


def pairs():
    """All pairs of values of two keys, those of the sample first."""
    first, others = [], []
    for one, two in itertools.combinations(VALUES, 2):
        for i, j in itertools.product(
            range(len(VALUES[one])), range(len(VALUES[two]))
        ):
            pair = {one: VALUES[one][i], two: VALUES[two][j]}
            (others if i or j else first).append(pair)
    return first, others


def name_of(pair):
    return "-".join(f"{key}={value}" for key, value in pair.items())


def chosen():
    first, others = pairs()
    if IS_FULL:
        return first + others
    return [*WRONG, *first[:: len(first) // SAMPLE]]


@pytest.mark.parametrize("pair", chosen(), ids=name_of)
def test_pair(pair):
    check(pair)


def test_every_key_is_there():
    assert VALUES.keys() == config.KEYS.keys()
    for key, values in VALUES.items():
        assert all(config.KEYS[key].check(value) for value in values)
