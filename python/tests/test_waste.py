"""What a step would waste is a warning that says what to write.

Judged by the warnings of lowering and compiling without code: which there are,
what they say, at which line, and that a step without waste has none, nor one
with ``Config({"warnings": False})``, nor a call that is known.
"""

import pathlib
import warnings

import jax
import jax.numpy as jnp
import optax
import pytest
from flax import nnx

import whale as wh

W, X = jnp.ones((64, 64)), jnp.ones((8, 64))
GPUS = {
    "nodes": [
        {
            "devices": [
                {"kind": "V100-SXM2-32GB", "count": 1},
                {"kind": "P100-PCIE-16GB", "count": 1},
            ]
        }
    ]
}


def step(w, x):
    value, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(w)
    return w - 0.1 * gradient, value


def warnings_of(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert all(w.filename == __file__ for w in caught)
    return [str(w.message) for w in caught if w.category is wh.WhaleWarning]


def compiled(function=step, *args, cluster=2, target="none", **options):
    """The warnings of a step's compilation."""
    jitted = wh.jit(function, cluster=cluster, target=target, **options)
    return warnings_of(lambda: jitted.lower(*(args or (W, X))).compile())


def replicated(**options):
    wh.set_default_strategy(wh.replicate())
    return compiled(**options)


def test_nothing_is_wasted():
    assert replicated(batch_argnums=1) == []
    assert compiled(cluster=1) == []
    # There is no batch in what makes the first state.
    key = jax.random.key(0)
    assert compiled(lambda key: jax.random.normal(key, (8, 8)), key) == []


def test_nothing_has_a_strategy():
    (found,) = compiled()
    assert "all 2 ranks compute the whole of it" in found
    assert "wh.set_default_strategy(wh.replicate())" in found
    assert "batch_argnums= for what carries it (args[1]?)" in found
    (found,) = compiled(batch_argnums=1)
    assert "batch_argnums" not in found


def test_stages_beside_a_few_scalars():
    """What is left of an optimizer is on all ranks, and next to nothing."""
    optimizer = optax.adam(0.01)

    def staged(w, state, x):
        def loss(w):
            with wh.replicate(1, name="front"):
                h = jnp.tanh(x @ w)
            with wh.replicate(1, name="back"):
                return jnp.mean((h @ w) ** 2)

        value, gradient = jax.value_and_grad(loss)(w)
        update, state = optimizer.update(gradient, state, w)
        return optax.apply_updates(w, update), state, value

    wh.init(wh.Config({"num_micro_batch": 2}))
    assert (
        compiled(
            staged,
            W,
            optimizer.init(W),
            X,
            batch_argnums=2,
            donate_argnums=(0, 1),
        )
        == []
    )


def test_devices_without_a_sample():
    wh.set_default_strategy(wh.replicate())
    (found,) = compiled(step, W, X[:2], cluster=3, batch_argnums=1)
    assert "device 2 (cpu) has no work in 'default'" in found
    assert "a larger mini-batch" in found


def test_one_sample():
    wh.set_default_strategy(wh.replicate())
    (found,) = compiled(step, W, X[:1], cluster=3, batch_argnums=1)
    assert "a mini-batch of one sample is not shared out: 3 ranks" in found


def test_a_dry_run_warns_too():
    (found,) = warnings_of(lambda: wh.explain(step, W, X, cluster=2))
    assert "all 2 ranks compute the whole of it" in found
    wh.set_default_strategy(wh.replicate())
    jitted = wh.jit(step, cluster=3, batch_argnums=1)
    (found,) = warnings_of(lambda: wh.explain(jitted, W, X[:2]))
    assert "device 2 (cpu) has no work in 'default'" in found
    assert warnings_of(lambda: wh.explain(jitted, W, X)) == []


def test_no_argument_carries_the_batch():
    (found,) = replicated()
    assert "no argument carries the mini-batch, so 2 ranks" in found
    assert "(args[1]?)" in found


def test_off():
    wh.init({"warnings": False})
    assert replicated(cluster=GPUS, target="cpu") == []
    assert "warnings" not in wh.jit(step).lower(W, X).as_text()


def test_one_process_warns(monkeypatch):
    monkeypatch.setattr("whale.distributed.process_index", lambda: 1)
    assert replicated() == []


def test_devices_without_work():
    with wh.cluster([[0]]):
        (found,) = replicated(cluster=3, batch_argnums=1)
    assert found.startswith("devices 1-2 (2 × cpu) have no work")


def test_a_stage_of_a_few_operations():
    def stages(w, x):
        with wh.replicate(1, "body"):
            for _ in range(32):
                x = jnp.tanh(x @ w)
        with wh.replicate(1, "end"):
            return x.mean()

    (found,) = compiled(stages, batch_argnums=1)
    assert found.startswith("device 1 (cpu) has little to do: 'end' has ")


def test_gpus_on_the_cpu():
    wh.set_default_strategy(wh.replicate())
    found = compiled(cluster=GPUS, target=None, batch_argnums=1)
    assert any(
        "1 × V100-SXM2-32GB, 1 × P100-PCIE-16GB, and" in f for f in found
    )
    assert compiled(cluster=GPUS, target="cpu", batch_argnums=1) == []


def test_a_default_strategy_that_is_forgotten():
    wh.set_default_strategy(wh.replicate(2))
    (found,) = warnings_of(wh.init)
    assert "call wh.set_default_strategy after wh.init" in found
    # One that steps have had is meant to end.
    assert replicated(batch_argnums=1) == []
    assert warnings_of(wh.init) == []


def lowered(function, *args):
    return warnings_of(lambda: wh.jit(function).lower(*args))


def test_arguments_that_are_changed_in_place():
    def keeps(state, x):
        state["w"] = state["w"] + x.sum()
        return x.sum()

    (found,) = lowered(keeps, {"w": W}, X)
    assert found.startswith("the step assigns to its argument args[0]['w'];")
    assert "return the new values" in found

    def returns(state, x):
        state["w"] = state["w"] + x.sum()
        return state

    assert lowered(returns, {"w": W}, X) == []


def test_modules_that_are_changed_in_place():
    def train(model, x):
        model.kernel[...] = model.kernel[...] + x.sum()
        return model(x).sum()

    (found,) = lowered(train, nnx.Linear(64, 2, rngs=nnx.Rngs(0)), X)
    assert "take wh.nnx_jit" in found


def test_values_that_are_put_outside():
    class Trainer:
        def __init__(self):
            self.w, self.rate = W, 0.1

        def step(self, x):
            self.w = self.w - self.rate * x.sum()
            return self.w.sum()

    log = []

    def logged(w, x):
        log.append((w @ w.T).sum())
        return w * x.sum()

    (found,) = warnings_of(lambda: wh.jit(Trainer().step).lower(X))
    assert "puts a value into self.w;" in found and "return the value" in found
    (found,) = warnings_of(lambda: wh.jit(logged).lower(W, X))
    assert "puts a value into log;" in found
    assert warnings_of(lambda: wh.jit(lambda w: w * len(log)).lower(W)) == []


def test_state_that_is_not_returned():
    def warnings_with(function):
        jitted = wh.jit(function, donate_argnums=0)
        return warnings_of(lambda: jitted.lower({"w": W, "b": W[0]}, X))

    def evaluate(state, x):
        return (x @ state["w"] + state["b"]).sum()

    (found,) = warnings_with(evaluate)
    assert "in the place of args[0]['b'] and another, which are dona" in found
    assert "return the new values, or don't donate what they rep" in found
    (found,) = warnings_with(lambda state, x: (state["w"] + x.sum(), 1))
    assert "in the place of args[0]['b'], which is donated" in found
    # Each of two values of one shape needs a result of its own.
    (found,) = warnings_of(
        lambda: wh.jit(
            lambda p, m, x: p + m + x.sum(), donate_argnums=(0, 1)
        ).lower(W, W, X)
    )
    assert "in the place of args[1], which is donated" in found
    assert warnings_with(lambda state, x: (state, x.sum())) == []


def test_errors_end_in_the_frame_of_the_user(tmp_path):
    """Also those of what is called before and beside steps."""
    jitted = wh.jit(lambda w, x: x @ w, cluster=1)
    for fails in (
        lambda: wh.explain(jitted, W, X, cluster="no.json"),
        lambda: wh.jit(3),
        lambda: wh.load(str(tmp_path / "no.whale")),
        lambda: wh.replicate(0),
        lambda: wh.init({"num_micro_batch": 0}),
        lambda: wh.set_default_strategy("replicate"),
        lambda: jitted.plan,
        lambda: wh.visualize(3),
    ):
        with pytest.raises(Exception) as error:
            fails()
        assert error.traceback[-1].path.name == pathlib.Path(__file__).name


@pytest.mark.parametrize(
    "name", ["jax_disable_jit", "jax_debug_infs", "jax_no_execution"]
)
def test_switches_of_jax(name):
    was = getattr(jax.config, name)
    jax.config.update(name, True)
    try:
        (found,) = lowered(lambda x: x + 1, X)
    finally:
        jax.config.update(name, was)
    assert found.startswith(f"{name}=True is not followed by wh.jit; ")


def test_a_known_call_says_nothing(fake):
    ours = wh.jit(step, cluster=1)
    ours(W, X)
    with jax.debug_infs(True):
        pass
    jax.config.update("jax_log_compiles", True)
    try:
        assert warnings_of(lambda: ours(W, X)) == []
    finally:
        jax.config.update("jax_log_compiles", False)


def batch_of(function, *args, **options):
    """The leaves that carry the batch, and the warnings."""
    jitted = wh.jit(function, batch_argnums="auto", **options)
    texts = []
    found = warnings_of(lambda: texts.append(jitted.lower(*args).as_text()))
    main = next(line for line in texts[0].splitlines() if "@main" in line)
    arguments = main.split("%arg")[1:]
    return ["whale.batch_dim" in a for a in arguments], found


def test_the_batch_is_found():
    found = batch_of(step, W, X)
    assert found[0] == [False, True]
    (said,) = found[1]
    assert "takes args[1] for the mini-batch of 8 samples" in said
    assert "batch_argnums=(1,)" in said

    def train(params, state, x, y, key, rate):
        loss = jnp.mean((x @ params["w"]) ** 2) + y.sum() + state * rate
        return {"w": params["w"] * loss}, state, jax.random.bits(key)

    marks, _ = batch_of(
        train,
        {"w": W},
        jnp.ones(()),
        X,
        jnp.ones(8, int),
        jax.random.PRNGKey(0),
        0.1,
        donate_argnums=(0, 1),
    )
    assert marks == [False, False, True, True, False, False]


def test_the_batch_is_ambiguous():
    def train(w, x, table):
        return w + x.sum() + table.sum()

    with pytest.raises(ValueError, match=r"\(8 in args\[1\], 3 in args\[2\]\)"):
        batch_of(train, W, X, jnp.ones(3))
    with pytest.raises(ValueError, match="no argument but the state"):
        batch_of(lambda w: w + 1, W)
    for options in (
        {"batch_argnums": "auto", "batch_argnames": "x"},
        {"batch_argnums": "auto", "in_axes": 0},
        {"batch_argnums": "all"},
    ):
        with pytest.raises(ValueError, match="batch_argnums"):
            wh.jit(step, **options)


def test_a_batch_may_come_back_in_its_shape():
    """As of a norm, whose parameters have as many rows as one another."""
    scale, x = jnp.ones(8), jnp.ones((32, 8))

    def norm(scale, x):
        return (x - x.mean(-1, keepdims=True)) * scale

    with pytest.raises(
        ValueError, match=r"may be args\[0\], or args\[1\], which a result"
    ):
        batch_of(norm, scale, x)


def test_a_frozen_parameter_with_as_many_rows():
    """A product sums over its first dimension, with features of the batch."""
    square = jnp.ones((8, 8))

    def train(w, frozen, x):
        def loss(w):
            return jnp.mean((jnp.tanh(x @ frozen) @ w) ** 2)

        return w - jax.grad(loss)(w)

    with pytest.raises(ValueError, match=r"args\[1\] may have the 8 rows"):
        batch_of(train, square, square, square, donate_argnums=0)
    # Samples are summed with samples, also of what was transposed.
    marks, _ = batch_of(
        lambda w, x, y: w - x.T @ (x @ w - y) - x.T @ y,
        *(square, square, square),
        donate_argnums=0,
    )
    assert marks == [False, True, True]
