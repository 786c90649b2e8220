"""The text that the compiler reads.

Under test: the attributes of arguments and module, the feedback that is found,
dimensions of the batch, and when scopes are read. The text is parsed and
compared exactly, with that of JAX where Whale adds nothing. A failure means
that the compiler is told something else than the user has said. Nothing is
compiled or run.
"""

import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from name_paths import operations

import whale as wh

W = jnp.ones((4, 4))
X = jnp.ones((8, 4))
PARAMS = {"b": jnp.zeros(4), "w": W}


def loss(params, x, y):
    return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)


OPTIMIZER = optax.adam(1e-3)


def train_step(params, opt, x, y):
    value, grads = jax.value_and_grad(loss)(params, x, y)
    updates, opt = OPTIMIZER.update(grads, opt, params)
    return optax.apply_updates(params, updates), opt, value


ARGS = (PARAMS, OPTIMIZER.init(PARAMS), X, X)


def arguments(text):
    """The attributes of each argument of @main."""
    header = re.search(r"@main\((.*?)\) (?:-> |\{)", text, re.S).group(1)
    pieces = re.split(r"%arg\d+: ", header)[1:]
    return [piece.split("loc(")[0] for piece in pieces]


def content(text):
    """What a text says, without the call stacks of its locations."""
    return arguments(text), [(op.name, op.path) for op in operations(text)]


def value(attributes, name):
    found = re.search(rf"whale\.{name} = (\d+) : i64", attributes)
    return int(found.group(1)) if found else None


def fed_by(step, *args, **kwargs):
    text = step.lower(*args, **kwargs).as_text()
    return [value(a, "fed_by") for a in arguments(text)]


def batch_dims(step, *args, **kwargs):
    text = step.lower(*args, **kwargs).as_text()
    return [value(a, "batch_dim") for a in arguments(text)]


def test_arguments_of_a_train_step():
    step = wh.jit(
        train_step, donate_argnums=(0, 1), batch_argnums=(2, 3), cluster=2
    )
    text = step.lower(*ARGS).as_text()
    args = arguments(text)
    assert ["whale.donated" in a for a in args] == [True] * 7 + [False] * 2
    assert [value(a, "fed_by") for a in args] == [*range(7), None, None]
    assert [value(a, "batch_dim") for a in args] == [None] * 7 + [0, 0]
    assert "tf.aliasing_output" not in text
    assert "loc(\"params['w']\")" in text
    assert "@jit_train_step" in text


def test_donation_changes_nothing_but_donation():
    plain = wh.jit(train_step, batch_argnums=(2, 3)).lower(*ARGS)
    donated = wh.jit(
        train_step, batch_argnums=(2, 3), donate_argnums=(0, 1)
    ).lower(*ARGS)
    text = donated.as_text()
    assert text.count("whale.donated") == 7
    assert content(text.replace("whale.donated, ", "")) == content(
        plain.as_text()
    )


def test_module_attributes():
    step = wh.jit(train_step)
    assert "whale." not in re.sub(
        r"whale\.fed_by", "", step.lower(*ARGS).as_text()
    )
    wh.init(wh.Config({"num_micro_batch": 8, "num_task_graph": 2}))
    wh.set_default_strategy(wh.replicate(8, name="all"))
    text = step.lower(*ARGS).as_text()
    assert (
        "whale.config = {num_micro_batch = 8 : i64, num_task_graph = 2 : i64}"
        in text
    )
    assert (
        'whale.default_strategy = #whale.replicate<devices = 8, name = "all">'
        in text
    )


def test_the_text_is_jaxs():
    ours = wh.jit(loss).lower(PARAMS, X, X).as_text()
    theirs = (
        jax.jit(loss, keep_unused=True)
        .lower(PARAMS, X, X)
        .as_text(debug_info=True)
    )
    assert content(ours)[1] == content(theirs)[1]


def test_locations_name_the_users_code_only():
    text = wh.jit(loss).lower(PARAMS, X, X).as_text()
    assert "test_lowering.py" in text
    assert "whale/api.py" not in text and "whale/lowering.py" not in text


def test_lowering_is_deterministic_and_leaves_jax_alone():
    def scoped(x):
        with wh.split(2):
            return jnp.sin(x)

    step = wh.jit(scoped, batch_argnums=0)
    first = content(step.lower(X).as_text())
    assert first == content(step.lower(X).as_text())
    assert "whale.batch_dim" not in jax.jit(scoped).lower(X).as_text()


def test_shape_structs_lower_as_arrays_do():
    step = wh.jit(train_step, batch_argnums=(2, 3))
    structs = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), ARGS
    )
    assert content(step.lower(*structs).as_text()) == content(
        step.lower(*ARGS).as_text()
    )


def test_numpy_and_python_values():
    step = wh.jit(lambda a, b, c: (a * b, c))
    text = step.lower(np.ones(3), 2.0, True).as_text()
    assert "tensor<3xf32>" in arguments(text)[0]
    assert "tensor<f32>" in arguments(text)[1]
    assert "tensor<i1>" in arguments(text)[2]


def test_unused_arguments_stay():
    text = wh.jit(lambda a, b: a).lower(X, W).as_text()
    assert len(arguments(text)) == 2


def test_typed_keys():
    def step(key, x):
        key, use = jax.random.split(key)
        return key, x + jax.random.normal(use, x.shape)

    text = wh.jit(step, batch_argnums=1).lower(jax.random.key(0), X).as_text()
    assert "tensor<2xui32>" in arguments(text)[0]
    assert value(arguments(text)[0], "fed_by") == 0


# Feedback


def test_feedback_is_the_one_match():
    def momentum(params, velocity, x):
        return params, velocity, x.sum()

    assert fed_by(wh.jit(momentum, batch_argnums=2), W, W, X) == [0, 1, None]


def test_feedback_of_one_result():
    assert fed_by(wh.jit(lambda p, x: p * x.sum()), PARAMS["w"], 2 * X) == [
        0,
        None,
    ]


def test_feedback_is_left_open_where_it_is_not_unique():
    def step(params, target, x):
        return params, x.sum()

    assert fed_by(wh.jit(step), W, W, X) == [None] * 3
    assert fed_by(wh.jit(step, feedback={0: 0}), W, W, X) == [0, None, None]
    assert fed_by(wh.jit(step, feedback={1: 0}), W, W, X) == [None, 0, None]
    assert fed_by(wh.jit(step, feedback={}), W, W, X) == [None] * 3


def test_a_setting_is_not_fed_by_the_loss():
    def step(params, rate, x):
        return params * rate, jnp.sum(x)

    assert fed_by(wh.jit(step), W, 0.1, X) == [0, None, None]
    assert fed_by(wh.jit(step), W, jnp.float32(0.1), X) == [0, 1, None]


def test_batches_are_not_fed():
    def step(params, x):
        return params, x

    assert fed_by(wh.jit(step), W, X) == [0, 1]
    assert fed_by(wh.jit(step, batch_argnums=1), W, X) == [0, None]


def test_feedback_by_keyword():
    step = wh.jit(train_step, batch_argnums=(2, 3))
    params, opt, x, y = ARGS
    assert fed_by(step, params, opt=opt, x=x, y=y) == [*range(7), None, None]


@pytest.mark.parametrize(
    ("feedback", "message"),
    [
        ({7: 0}, "no argument 7"),
        ({0: 9}, "no result 9"),
        ({0: True}, "not a position: True"),
        ({"0": 0}, "not a position: '0'"),
        ({0: 2}, "result 2 is not of the tree"),
        ({1: 0}, "result 0 is not of the tree"),
    ],
)
def test_bad_feedback(feedback, message):
    with pytest.raises(ValueError, match=message):
        wh.jit(train_step, feedback=feedback).lower(*ARGS)


# The mini-batch


def test_batch_leaves_of_rank_0_carry_none():
    step = wh.jit(lambda p, b: p, batch_argnums=1)
    batch = {"x": X, "weight": jnp.float32(1)}
    assert batch_dims(step, W, batch) == [None, None, 0]


def test_batch_by_keyword():
    step = wh.jit(train_step, batch_argnums=(2, 3))
    params, opt, x, y = ARGS
    assert batch_dims(step, params, opt, y=y, x=x)[-2:] == [0, 0]


@pytest.mark.parametrize("axes", [(None, 1), [None, 1], (None, {"a": 1})])
def test_in_axes(axes):
    step = wh.jit(lambda p, x: p, in_axes=axes)
    assert batch_dims(step, PARAMS, {"a": X}) == [None, None, 1]


def test_in_axes_within_an_argument():
    step = wh.jit(lambda p, x: p, in_axes=(None, {"a": 0, "b": None}))
    assert batch_dims(step, W, {"a": X, "b": X}) == [None, 0, None]
    step = wh.jit(lambda p, x: p, in_axes=(None, (0, -1)))
    assert batch_dims(step, W, (X, X.T)) == [None, 0, 1]


def test_in_axes_for_all():
    assert batch_dims(wh.jit(lambda p, x: p, in_axes=0), X, X) == [0, 0]
    step = wh.jit(lambda p, x: p, in_axes=(None, 0))
    assert batch_dims(step, None, X) == [0]
    step = wh.jit(lambda p, x: (p, x), in_axes=(None, 0))
    assert batch_dims(step, PARAMS, x=X) == [None, None, 0]


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ((None,), "1 entries for 2"),
        ((None, 2), r"2 is no dimension of argument args\[1\]"),
        ((None, "x"), "'x' is no dimension"),
        ((None, True), "True is no dimension"),
        ([False, None], "False is no dimension"),
        ({"x": True}, r"True is no dimension of argument args\[1\]"),
        ((None, [False]), "no prefix"),
        (True, "True is no dimension"),
        ((None, {"a": 0}), "no prefix"),
    ],
)
def test_bad_in_axes(axes, message):
    with pytest.raises(ValueError, match=message):
        wh.jit(lambda p, x: p, in_axes=axes).lower(W, X)


def test_one_mini_batch_size():
    with pytest.raises(ValueError, match=r"8 samples in args\[0\] and 4 in"):
        wh.jit(lambda x, y: x, batch_argnums=(0, 1)).lower(X, W)


# Strategies are read when lowered


def test_two_strategies_of_one_function():
    strategy = wh.replicate(2, name="first")

    @jax.jit
    def inner(w, x):
        with strategy:
            return jax.checkpoint(lambda x: jnp.tanh(x @ w))(x)

    def step(w, x):
        return jax.grad(lambda w: inner(w, x).sum())(w)

    outer = wh.jit(step)
    first = outer.lower(W, X).as_text()
    strategy = wh.split(2, name="second")
    second = outer.lower(W, X).as_text()
    again = wh.jit(step).lower(W, X).as_text()
    assert ":first" in first and ":second" not in first
    assert ":second" in second and ":first" not in second
    assert content(second) == content(again)


def test_jaxs_own_cache_does_not_answer():
    strategy = wh.replicate(2, name="first")

    @jax.jit
    def inner(x):
        with strategy:
            return jnp.sin(x)

    inner(X)
    strategy = wh.split(2, name="second")
    assert ":second" in wh.jit(inner).lower(X).as_text()


def test_default_strategy_set_inside_the_step():
    def step(x):
        wh.set_default_strategy(wh.split(3))
        return x + 1

    text = wh.jit(step).lower(X).as_text()
    assert "#whale.split<devices = 3>" in text
