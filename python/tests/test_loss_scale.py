"""f16 with a loss scale (``amp.level`` ``"f16"``) beside `jax.jit` in f32.

Under test: training steps on CPU ranks. Losses of the example's GPT stay within
0.02 of those of f32. A step in which a gradient leaves the range of f16 changes
nothing, on all ranks, and halves the scale; the scale goes on in the next step,
behind a checkpoint and in whale-run.
"""

import pathlib
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import staged_models
from safetensors.numpy import load_file, save_file
from test_amp import IS_FULL, STAGES, STEPS, gpt_step, jitted, train

import whale as wh

BIN = pathlib.Path(__file__).parents[2] / "build/bin"
WIDTH, ROWS = 16, 8
# What f16 has at most.
LARGEST = 65504.0


@pytest.fixture(scope="module")
def expected():
    """Losses of `jax.jit` in f32."""
    return train(jax.jit(gpt_step(False)), STEPS)[0]


@pytest.mark.parametrize(
    "cluster, strategy, annotate, config",
    [
        pytest.param(
            *(1, None, False, {"amp.loss_scale": 1024}),
            marks=pytest.mark.long,
        ),
        (2, wh.replicate(), True, {}),
        (4, None, False, STAGES),
        (4, wh.replicate(), False, {"zero.level": "v2", "num_micro_batch": 2}),
        pytest.param(
            *(2, wh.replicate(), False, {"communication.bf16": True}),
            marks=pytest.mark.long,
        ),
    ],
    ids=["fixed", "split", "stages", "zero", "wire"],
)
def test_gpt(expected, cluster, strategy, annotate, config):
    step = jitted(
        gpt_step(annotate), cluster, strategy, **{"amp.level": "f16"}, **config
    )
    losses, _ = train(step, STEPS)
    assert np.mean(np.abs(losses - expected)[-50:]) < 0.02
    assert np.any(losses != expected)


def loss(params, x, factor):
    for w in params:
        x = jnp.tanh(x @ w)
    return jnp.sum(x * factor)


def step(state, x, factor):
    """One of momentum; the loss has a factor that makes gradients large."""
    params, moments, count = state
    value, grads = jax.value_and_grad(loss)(params, x, factor)
    moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, grads)
    params = jax.tree.map(lambda p, m: p - 1e-3 * m, params, moments)
    return (params, moments, count + 1), value


def start():
    keys = jax.random.split(jax.random.key(0), 5)
    params = [jax.random.normal(k, (WIDTH, WIDTH)) * 0.05 for k in keys[:4]]
    moments = jax.tree.map(jnp.zeros_like, params)
    x = jax.random.normal(keys[4], (ROWS, WIDTH))
    return (params, moments, jnp.zeros((), jnp.int32)), x


def jitted_step(cluster, *, stages=False, function=step, **config):
    wh.init(wh.Config({"amp.level": "f16"} | config))
    if not stages:
        wh.set_default_strategy(wh.replicate())
    return wh.jit(function, cluster=cluster, donate_argnums=0, batch_argnums=1)


def host(tree):
    return jax.tree.map(np.array, tree)


def same(one, other):
    return all(
        np.array_equal(a, b)
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other))
    )


# Times a scale of 2^15, beyond f16; times 2^14, within.
FACTOR = 1.5 * LARGEST / 2**15


@pytest.mark.parametrize(
    "cluster, stages, config",
    [
        (1, False, {}),
        (2, False, {"zero.level": "v1"}),
        (4, True, STAGES),
        (2, False, {"communication.fp16": True, "amp.loss_scale": 128}),
    ],
    ids=["alone", "zero", "stages", "wire"],
)
def test_a_step_that_overflows_changes_nothing(cluster, stages, config):
    own_step = jitted_step(cluster, stages=stages, **config)
    state, x = start()
    expected = state
    state = jax.tree.map(jnp.copy, state)
    for factor in (1.0, 1e9, 0.5, float("nan"), 1.0):
        before = host(state)
        state, _ = own_step(state, x, factor)
        is_kept = same(before, host(state))
        assert is_kept == (factor not in (0.5, 1.0))
        if not is_kept:
            expected, _ = jax.jit(step)(expected, x, factor)
    for mine, theirs in zip(jax.tree.leaves(state), jax.tree.leaves(expected)):
        np.testing.assert_allclose(mine, theirs, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("level", ["v0", "v1", "v2"])
def test_flags_of_gradients_are_one_reduction(level):
    """Beside the loss one element, which says whether all are finite."""
    state, x = start()
    for cluster in (2, 3):
        own_step = jitted_step(cluster, **{"zero.level": level})
        plan = own_step.lower(state, x, 1.0).plan()
        assert plan["collectives"]["all_reduce"] == {"count": 2, "bytes": 5}


def test_what_another_argument_was_is_state():
    """As the parameters of the step before."""

    def averaged(state, x, factor):
        inner, _ = state
        after, value = step(inner, x, factor)
        return (after, inner[0]), value

    own_step = jitted_step(2, function=averaged)
    inner, x = start()
    state = (inner, jax.tree.map(jnp.copy, inner[0]))
    state, _ = own_step(state, x, 1.0)
    before = host(state)
    state, _ = own_step(state, x, 1e9)
    assert same(before, host(state))


def test_the_scale_is_halved():
    own_step = jitted_step(2)
    state, x = start()
    kept = []
    for _ in range(3):
        before = host(state)
        state, _ = own_step(state, x, FACTOR)
        kept.append(same(before, host(state)))
    # Of a fixed scale, none would change the state.
    assert kept == [True, False, False]


def test_a_fixed_scale_stays():
    own_step = jitted_step(2, **{"amp.loss_scale": 2**15})
    state, x = start()
    before = host(state)
    for _ in range(3):
        state, _ = own_step(state, x, FACTOR)
    assert same(before, host(state))


def test_small_gradients_count():
    """What f16 would round to zero without a scale."""

    def tiny(w, x):
        return w - jax.grad(lambda w: jnp.sum(x @ w) * 1e-8)(w) * 1e8

    w, x = jnp.zeros((4, 4)), jnp.ones((8, 4))
    for scale, expected in ((1, 0), (2**15, -8)):
        own_step = jitted_step(2, function=tiny, **{"amp.loss_scale": scale})
        np.testing.assert_allclose(own_step(w, x), expected, rtol=1e-3)


def test_checkpoints_keep_the_scale(tmp_path):
    own_step = jitted_step(2)
    state, x = start()
    state, _ = own_step(state, x, FACTOR)
    checkpointer = wh.Checkpointer(tmp_path)
    checkpointer.save(1, state)
    checkpointer.wait()
    for cluster in (2, 1):
        again = jitted_step(cluster)
        restored = checkpointer.restore(start()[0])
        before = host(restored)
        after, _ = again(restored, x, FACTOR)
        assert not same(before, host(after))
    fresh = jitted_step(2, function=lambda s, x, f: step(s, x, f))
    state, x = start()
    before = host(state)
    assert same(before, host(fresh(state, x, FACTOR)[0]))


def run_steps(tmp_path, program, arrays, count, *options):
    save_file(arrays, tmp_path / "in.safetensors")
    subprocess.run(
        [
            BIN / "whale-run",
            program,
            f"--inputs={tmp_path}/in.safetensors",
            f"--outputs={tmp_path}/out.safetensors",
            f"--steps={count}",
            *options,
        ],
        check=True,
    )
    return load_file(tmp_path / "out.safetensors")


def test_programs_keep_the_scale(tmp_path):
    """The scale is the last argument of a saved program, and its result."""
    state, x = start()
    program = jitted_step(2).lower(state, x, FACTOR).compile()
    path = tmp_path / "step.whale"
    program.save(path)
    leaves = jax.tree.leaves((state, x, np.float32(FACTOR)))
    arrays = {f"arg{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
    own = f"arg{len(leaves)}"
    result = f"result{len(jax.tree.leaves(state)) + 1}"
    results = run_steps(tmp_path, path, arrays, 3)
    np.testing.assert_array_equal(results[result], [2**14, 2])
    # It may be given, and is doubled after 2000 good steps.
    arrays[own] = np.array([1024, 1998], np.float32)
    results = run_steps(tmp_path, path, arrays, 1)
    np.testing.assert_array_equal(results[result], [1024, 1999])
    checkpoints = f"--checkpoint-dir={tmp_path}/saved"
    run_steps(tmp_path, path, arrays, 2, checkpoints, "--checkpoint-every=1")
    results = run_steps(tmp_path, path, arrays, 4, checkpoints, "--resume")
    np.testing.assert_array_equal(results[result], [2048, 2])
    # A loaded program begins anew, and keeps it too.
    loaded = wh.load(path)
    for is_kept in (True, False):
        before = host(state)
        state, _ = loaded(state, x, FACTOR)
        assert same(before, host(state)) == is_kept


def test_attention_is_formed():
    """Of f16, and of its gradient."""

    def attend(q, k, v):
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 4
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)

    def loss(q, k, v):
        return jnp.sum(jnp.sin(attend(q, k, v)))

    keys = jax.random.split(jax.random.key(0), 3)
    inputs = [jax.random.normal(k, (2, 72, 2, 16)) for k in keys]
    expected = jax.grad(loss, (0, 1, 2))(*inputs)
    wh.init(wh.Config({"amp.level": "f16"}))
    wh.set_default_strategy(wh.replicate())
    own_step = wh.jit(
        jax.grad(loss, (0, 1, 2)), cluster=2, batch_argnums=(0, 1, 2)
    )
    text = own_step.lower(*inputs).as_text()
    found = subprocess.run(
        [BIN / "whale-opt", "-whale-annotated"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "whale.attention_gradient" in found
    for mine, theirs in zip(own_step(*inputs), expected):
        np.testing.assert_allclose(mine, theirs, rtol=2e-2, atol=2e-2)


def test_errors():
    for config, message in (
        ({"loss_scale": 8}, "loss_scale belongs with amp.level"),
        ({"level": "bf16", "loss_scale": "dynamic"}, "belongs with amp.level"),
    ):
        wh.init(wh.Config({"amp": config}))
        with pytest.raises(wh.CompileError, match=message):
            wh.jit(lambda x: x * 2, cluster=1)(jnp.ones(4))
    with pytest.raises(ValueError, match="'dynamic' or a whole number from 1"):
        wh.Config({"amp": {"level": "f16", "loss_scale": 0.5}})

    @jax.custom_vjp
    def clipped(x):
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -1, 1),))

    def clipping(w, x):
        return w - jax.grad(lambda w: jnp.sum((clipped(x @ w) @ w) ** 2))(w)

    own_step = jitted_step(2, function=clipping)
    with pytest.raises(wh.CompileError, match="proportional to the loss"):
        own_step(jnp.ones((4, 4)), jnp.ones((8, 4)))


# With f16, debug_nans is an error.
OTHERS = {
    "batch_norm": "micro",
    "communication.bucket_bytes": 0,
    "communication.fp16": True,
    "debug_nans": True,
    "gpu.epilogues": False,
    "gpu.tf32": True,
    "num_micro_batch": 2,
    "optimizer.num_apply_group": 2,
    "zero.level": "v2",
}


@pytest.mark.parametrize("level", ["bf16", "f16"])
@pytest.mark.parametrize("name", OTHERS)
def test_with_other_options(level, name):
    state, x = start()
    config = {"amp.level": level, "amp.debug_log": True, name: OTHERS[name]}
    own_step = jitted_step(2, **config)
    if (level, name) == ("f16", "debug_nans"):
        with pytest.raises(wh.CompileError, match="exclude one another"):
            own_step.lower(state, x, 1.0).compile()
        return
    expected = jax.jit(step)(state, x, 1.0)
    given = jax.tree.map(jnp.copy, state)
    close = {"rtol": 2e-2, "atol": 2e-2}
    for mine, theirs in zip(
        jax.tree.leaves(own_step(given, x, 1.0)), jax.tree.leaves(expected)
    ):
        np.testing.assert_allclose(mine, theirs, **close)


@pytest.mark.parametrize(
    "name",
    list(staged_models.MODELS) if IS_FULL else ["gpt scan tied remat"],
)
def test_chains_of_models(name):
    """Through loops, what is computed again, gathers and scatters."""
    make, options, _ = staged_models.MODELS[name]
    model = make(staged_models.nowhere, 8, **options)
    gradient = jax.value_and_grad(model.loss)
    wh.init(wh.Config({"amp": {"level": "f16", "loss_scale": 1024}}))
    wh.set_default_strategy(wh.replicate())
    own_step = wh.jit(
        gradient,
        cluster=2,
        batch_argnums=tuple(range(1, 1 + len(model.inputs))),
    )
    results = own_step(model.params, *model.inputs)
    expected = jax.jit(gradient)(model.params, *model.inputs)
    for mine, theirs in zip(
        jax.tree.leaves(results), jax.tree.leaves(expected)
    ):
        scale = np.max(np.abs(theirs)) + 1e-6
        np.testing.assert_allclose(mine / scale, theirs / scale, atol=2e-2)


def test_chains_of_pooling():
    def loss(w, x):
        y = jax.lax.conv(x, w, (1, 1), "SAME")
        y = jax.lax.reduce_window(
            y, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "SAME"
        )
        return jnp.mean(jnp.tanh(y))

    w = jax.random.normal(jax.random.key(0), (4, 3, 3, 3))
    x = jax.random.normal(jax.random.key(1), (4, 3, 8, 8))
    wh.init(wh.Config({"amp.level": "f16"}))
    wh.set_default_strategy(wh.replicate())
    mine = wh.jit(jax.grad(loss), cluster=2, batch_argnums=1)(w, x)
    np.testing.assert_allclose(mine, jax.grad(loss)(w, x), atol=1e-3)
