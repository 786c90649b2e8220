"""Calls into Python from inside a step, beside those that jax.jit makes."""

import functools
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify, io_callback

import whale as wh
from whale import callbacks

CALLS: list[tuple] = []


def note(name, *values):
    CALLS.append((name, *[np.array(value) for value in values]))


def calls_of(step, *args):
    """The results of a step and the calls that it makes."""
    CALLS.clear()
    results = jax.block_until_ready(step(*args))
    jax.effects_barrier()
    return results, list(CALLS)


def assert_same(step, jitted, *args):
    """Compares results and calls, in order those of ordered ones."""
    results, calls = calls_of(step, *args)
    expected, made = calls_of(jax.jit(jitted), *args)
    for one, other in zip(jax.tree.leaves(results), jax.tree.leaves(expected)):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)

    def by_name(entries):
        def key(entry):
            name, *values = entry
            ordered = name == "round"
            return name, [] if ordered else [v.tolist() for v in values]

        return sorted(entries, key=key)

    assert [c[0] for c in by_name(calls)] == [c[0] for c in by_name(made)]
    for call, other in zip(by_name(calls), by_name(made)):
        assert [v.dtype for v in call[1:]] == [v.dtype for v in other[1:]]
        for one, value in zip(call[1:], other[1:]):
            np.testing.assert_allclose(one, value, rtol=1e-5, atol=1e-6)


def say(name, *values, ordered=False):
    jax.debug.callback(functools.partial(note, name), *values, ordered=ordered)


def train_step(devices, params, x, y):
    """Two scopes on so many devices each, and calls of all kinds."""

    def loss(params):
        with wh.replicate(devices, name="a"):
            h = jnp.tanh(x @ params["a"])
            say("samples", h)
            say("sum", h.sum(), h > 0.5)
        with wh.replicate(devices, name="b"):
            value = jnp.mean((h @ params["b"] - y) ** 2)
        return value

    value, grads = jax.value_and_grad(loss)(params)
    new = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
    say("loss", value)
    say("update", params["a"], grads["b"])
    say("nothing")

    def body(total, step):
        say("round", total, step, ordered=True)
        jax.lax.cond(step == 1, lambda: say("inner", step), lambda: None)
        return total + step, total

    total, _ = jax.lax.scan(body, value, jnp.arange(3.0))
    io_callback(functools.partial(note, "round"), None, total, ordered=True)
    jax.lax.cond(value > 0.1, lambda: say("taken", value), lambda: None)
    jax.lax.cond(value > 1e9, lambda: say("not taken", value), lambda: None)
    jax.vmap(lambda p: say("row", p))(params["b"][:2])
    return new, value


def arguments(batch):
    k = jax.random.split(jax.random.key(0), 3)
    params = {
        "a": jax.random.normal(k[0], (4, 6)),
        "b": jax.random.normal(k[1], (6, 2)),
    }
    return params, jax.random.normal(k[2], (batch, 4)), jnp.ones((batch, 2))


@pytest.mark.parametrize(("devices", "micro_batches"), [(1, 1), (3, 1), (2, 2)])
def test_calls_are_those_of_jax(devices, micro_batches):
    """On one rank, on uneven shares, and on 2 x 2 ranks with micro-batches."""
    wh.init({"num_micro_batch": micro_batches})
    function = functools.partial(train_step, devices)
    step = wh.jit(
        function,
        cluster=devices * micro_batches,
        batch_argnums=(1, 2),
        donate_argnums=0,
    )
    assert_same(step, function, *arguments(8))


@pytest.mark.parametrize("debug_nans", [False, True])
def test_loops_in_branches_in_loops(debug_nans):
    """A branch is taken once for all rounds of a loop in it."""

    def step(x):
        def inner(c, r):
            say("round", c, r)
            return c + r, None

        def outer(c, _):
            return jax.lax.cond(
                c > 2,
                lambda c: jax.lax.scan(inner, c, jnp.arange(3.0))[0],
                lambda c: c + 1,
                c,
            ), None

        taken = jax.lax.cond(
            x > 0,
            lambda c: jax.lax.scan(inner, c, jnp.arange(2.0))[0],
            lambda c: c,
            x,
        )
        return jax.lax.scan(outer, taken, None, length=3)[0]

    wh.init({"debug_nans": debug_nans})
    ours = wh.jit(step, cluster=1)
    for x in (1, -1):
        assert_same(ours, step, jnp.float32(x))


def test_prints_appear_once(capsys):
    def step(x):
        jax.debug.print("mean {m:.2f} of {}", x.shape[0], m=x.mean())
        return x * 2

    wh.set_default_strategy(wh.replicate())
    wh.jit(step, cluster=2, batch_argnums=0)(jnp.arange(4.0))
    assert capsys.readouterr().out == "mean 1.50 of 4\n"


def test_a_function_that_raises_ends_the_step():
    def check(x):
        if x > 3:
            raise ValueError("too much")

    def step(x):
        jax.debug.callback(check, x.sum())
        return x * 2

    wh.set_default_strategy(wh.replicate())
    jitted = wh.jit(step, cluster=2, batch_argnums=0)
    line = check.__code__.co_firstlineno + 5
    message = (
        rf"debug_callback at test_callbacks.py:{line} raised ValueError: "
        "too much"
    )
    with pytest.raises(wh.RuntimeError, match=message) as raised:
        jitted(jnp.ones(4))
    assert isinstance(raised.value.__cause__, ValueError)
    np.testing.assert_array_equal(jitted(jnp.zeros(4)), np.zeros(4))


@pytest.mark.parametrize(
    ("micro_batches", "debug_nans"), [(1, False), (2, False), (1, True)]
)
def test_equinox_errors(micro_batches, debug_nans):
    def step(w, x):
        x = eqx.error_if(x, x.sum() > 3, "too much")
        x = eqx.error_if(x, (x < 0).any(), "negative")
        return (x * w).sum()

    wh.init({"num_micro_batch": micro_batches, "debug_nans": debug_nans})
    wh.set_default_strategy(wh.replicate())
    jitted = wh.jit(jax.grad(step), cluster=2, batch_argnums=1)
    w = jnp.float32(2)
    for bad, message in ((jnp.ones(4), "too much"), (-jnp.ones(4), "negative")):
        with pytest.raises(wh.RuntimeError, match=f"Error: {message}$"):
            jitted(w, bad)
    np.testing.assert_allclose(jitted(w, jnp.full(4, 0.5)), 2.0)


def test_checkify():
    def step(x):
        checkify.check(x.sum() < 3, "the sum is {}", x.sum())
        return jnp.log(x).sum()

    checked = checkify.checkify(
        step, errors=checkify.user_checks | checkify.float_checks
    )
    wh.set_default_strategy(wh.replicate())
    jitted = wh.jit(checked, cluster=2, batch_argnums=0)
    error, value = jitted(jnp.full(4, 0.5))
    error.throw()
    np.testing.assert_allclose(value, 4 * np.log(0.5), rtol=1e-6)
    for bad, message in (
        (jnp.ones(4), "the sum is 4.0"),
        (-jnp.ones(4), "nan"),
    ):
        with pytest.raises(checkify.JaxRuntimeError, match=message):
            jitted(bad)[0].throw()


def shaped(x):
    return jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x))


def step_with_functions(w, x):
    """Functions of samples, of sums over them, of neither, and in order."""
    counted = functools.partial(io_callback, ordered=True)

    def count(value):
        note("count", value)
        return np.float32(sum(call[0] == "count" for call in CALLS))

    def sine(h):
        note("sine", h)
        return np.sin(np.asarray(h))

    def halves(_):
        return np.float32(0.5), np.arange(3, dtype=np.int8)

    def loss(w):
        h = jnp.tanh(x @ w)
        before = counted(count, shaped(0.0), 1)
        s = jax.pure_callback(sine, shaped(h), jax.lax.stop_gradient(h))
        after = counted(count, shaped(0.0), s.sum())
        half, numbers = jax.pure_callback(
            halves, (shaped(0.0), jax.ShapeDtypeStruct((3,), jnp.int8)), 0
        )
        return jnp.mean((h + s * half) ** 2) + 10 * before + after, numbers

    (value, numbers), grads = jax.value_and_grad(loss, has_aux=True)(w)
    return w - 0.1 * grads, value, numbers


@pytest.mark.parametrize("devices", [1, 2, 3])
def test_results_of_functions(devices):
    wh.set_default_strategy(wh.replicate())
    w, x = arguments(8)[0]["a"], arguments(8)[1]
    step = wh.jit(step_with_functions, cluster=devices, batch_argnums=1)
    assert_same(step, step_with_functions, w, x)


def test_functions_between_stages():
    """On device 0, whatever the stages are on; of no samples, once."""

    def step(rate, w, x):
        with wh.replicate(1, name="a"):
            h = jnp.tanh(x @ w)
        own = io_callback(
            lambda r: (note("rate", r), np.asarray(r) / 2)[1],
            shaped(rate),
            rate,
        )
        with wh.replicate(1, name="b"):
            return jnp.mean(h**2) * own

    w, x = arguments(8)[0]["a"], arguments(8)[1]
    for micro_batches in (1, 2):
        wh.init({"num_micro_batch": micro_batches})
        ours = wh.jit(step, cluster=4, batch_argnums=2)
        assert_same(ours, step, jnp.float32(3), w, x)


def test_functions_in_a_loop_of_one_rank():
    def step(x):
        def more(x):
            return jax.pure_callback(
                lambda x: np.asarray(x) < 10, shaped(True), x
            )

        def body(x):
            x = eqx.error_if(x, x == 4, "four")
            return io_callback(lambda x: np.asarray(x) * 2, shaped(x), x)

        return jax.lax.while_loop(more, body, x)

    jitted = wh.jit(step, cluster=1)
    np.testing.assert_array_equal(jitted(jnp.float32(3)), 12)
    with pytest.raises(wh.RuntimeError, match="Error: four"):
        np.asarray(jitted(jnp.float32(1)))
    wh.set_default_strategy(wh.replicate())
    with pytest.raises(
        wh.CompileError, match="is made on device 0, and a loop"
    ):
        wh.jit(step, cluster=2)(jnp.float32(3))


def test_a_function_that_raises_in_the_middle():
    def fail(x):
        if x > 3:
            raise ValueError("too much")
        return np.asarray(x)

    def step(x):
        return x * jax.pure_callback(fail, shaped(x.sum()), x.sum())

    wh.set_default_strategy(wh.replicate())
    jitted = wh.jit(step, cluster=2, batch_argnums=0)
    with pytest.raises(wh.RuntimeError, match="raised ValueError: too much"):
        np.asarray(jitted(jnp.ones(4)))
    np.testing.assert_allclose(jitted(jnp.full(4, 0.5)), np.ones(4))


@pytest.mark.parametrize(("devices", "debug_nans"), [(2, False), (1, True)])
def test_calls_without_users(devices, debug_nans):
    """Functions of no effect are not called; those of effects are."""

    def pure(x):
        return jax.pure_callback(
            lambda x: (note("pure", x), np.asarray(x))[1], shaped(x), x
        )

    def counted(x):
        return io_callback(
            lambda x: (note("count", x), np.asarray(x))[1], shaped(x), x
        )

    def step(w, x):
        def loss(w):
            return jnp.mean((x @ w) ** 2), counted(jnp.float32(2)) * 2

        (value, _), grads = jax.value_and_grad(loss, has_aux=True)(w)
        pure(value)
        jax.lax.cond(value > 0, pure, lambda v: v, value)
        eqx.error_if(value, value > 0, "nobody looks")

        def body(carry, r):
            total, unused = carry
            return (total + r, pure(unused)), (counted(r), pure(r))

        (total, _), _ = jax.lax.scan(body, (value, value), jnp.arange(2.0))
        return w - 0.1 * grads, total

    wh.init({"debug_nans": debug_nans})
    wh.set_default_strategy(wh.replicate())
    w, x = arguments(8)[0]["a"], arguments(8)[1]
    ours = wh.jit(step, cluster=devices, batch_argnums=1)
    assert_same(ours, step, w, x)


def test_a_step_with_calls_has_ended():
    """Else the end of the process might come before the last call."""

    def slow(x):
        time.sleep(0.3)
        note("slow", x)
        return np.asarray(x)

    def step(x):
        return x, io_callback(slow, shaped(x), x, ordered=True)

    CALLS.clear()
    wh.jit(step, cluster=1)(jnp.float32(1))
    assert len(CALLS) == 1


def test_a_function_calls_steps():
    """Another one; its own step waits for it."""
    other = wh.jit(jnp.negative, cluster=1)
    jitted = wh.jit(
        lambda x: jax.pure_callback(
            lambda x: np.asarray((jitted if x > 0 else other)(x)), shaped(x), x
        ),
        cluster=1,
    )
    np.testing.assert_array_equal(jitted(jnp.float32(-1)), 1)
    with pytest.raises(wh.RuntimeError, match="calls runs that step"):
        jitted(jnp.float32(1))


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_nans_have_a_place(micro_batches):
    def step(w, x):
        def loss(w):
            h = x @ w
            masked = jnp.where(h > 0, jnp.log(h), 0)

            def body(c, r):
                return c + jnp.sqrt(r), c

            total, _ = jax.lax.scan(body, masked.mean(), w[:, 0])
            return total

        return w - 0.1 * jax.grad(loss)(w)

    wh.init({"num_micro_batch": micro_batches, "debug_nans": True})
    wh.set_default_strategy(wh.replicate())
    jitted = wh.jit(step, cluster=2, batch_argnums=1)
    w, x = jnp.ones((4, 3)), jnp.ones((4, 4))
    np.testing.assert_allclose(jitted(w, x), jax.jit(step)(w, x), rtol=1e-5)
    line = step.__code__.co_firstlineno + 6
    with pytest.raises(
        FloatingPointError, match=f"a NaN was made by sqrt at .*:{line}"
    ):
        jitted(w.at[2, 0].set(-1), x)


def test_nans_by_the_switch_of_jax():
    with jax.debug_nans(True):
        with pytest.raises(FloatingPointError, match="made by log"):
            wh.jit(jnp.log, cluster=1)(jnp.float32(-1))
    wh.init({"debug_nans": True})
    with pytest.raises(FloatingPointError, match="there is a NaN in result"):
        wh.jit(lambda x: x[::-1], cluster=1)(jnp.full(2, jnp.nan))


def test_what_is_refused(tmp_path):
    def endless(x):
        def body(x):
            jax.debug.print("{}", x)
            return x * 2

        return jax.lax.while_loop(lambda x: x < 10, body, x)

    line = endless.__code__.co_firstlineno + 2
    with pytest.raises(
        wh.CompileError,
        match=rf"test_callbacks.py:{line}:.* in a loop whose number of rounds",
    ):
        wh.jit(endless, cluster=1)(jnp.float32(1))

    def step(x):
        jax.debug.print("{}", x)
        return x

    line = step.__code__.co_firstlineno + 1
    program = wh.jit(step, cluster=1).lower(jnp.ones(2)).compile()
    with pytest.raises(
        wh.RuntimeError, match=rf"\(debug_print at test_callbacks.py:{line}\)"
    ):
        program.save(tmp_path / "p.whale")


def test_functions_at_another_place_of_jax():
    """A version of JAX that is not known yet."""

    class Lowered:
        pass

    assert callbacks.functions_of(Lowered(), "func.func @main()") == []
    with pytest.raises(wh.WhaleError, match="which functions of Python"):
        callbacks.functions_of(Lowered(), "@xla_ffi_python_cpu_callback")
