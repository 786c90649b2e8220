"""Calling, caching, saving and reading, with the extension replaced."""

import collections
import copy
import functools
import json
import pickle

import flax.struct
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import optax
import pytest
from test_lowering import ARGS, PARAMS, W, X, train_step

import whale as wh

pytestmark = pytest.mark.usefixtures("fake")


def same(ours, theirs):
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs)):
        assert isinstance(a, wh.Array)
        assert a.shape == b.shape and a.dtype == b.dtype
        if not jax.dtypes.issubdtype(a.dtype, jax.dtypes.prng_key):
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_a_train_step_gives_what_jax_gives():
    step = wh.jit(train_step, cluster=2, batch_argnums=(2, 3))
    same(step(*ARGS), jax.jit(train_step)(*ARGS))
    state = step(*ARGS)[:2]
    same(step(*state, X, X), jax.jit(train_step)(*state, X, X))


def test_programs_are_kept_by_signature(monkeypatch, fake):
    count = collections.Counter()
    compile_ = fake.compile

    def counted(*args, **options):
        count["compiled"] += 1
        return compile_(*args, **options)

    monkeypatch.setattr("whale.compiler.compile", counted)
    step = wh.jit(lambda x, n: x + n, cluster=2, static_argnums=1)
    for arguments, expected in [
        ((X, 1), 1),
        ((X + 1, 1), 1),
        ((np.ones((8, 4), np.float32), 1), 1),
        ((X, 2), 2),
        ((W, 2), 3),
        ((X.astype(jnp.bfloat16), 2), 4),
        ((X, 1), 4),
    ]:
        step(*arguments)
        assert count["compiled"] == expected
    wh.set_default_strategy(wh.replicate(2))
    step(X, 1)
    assert count["compiled"] == 5
    step(X, 1)
    wh.init(wh.Config({"num_micro_batch": 2}))
    step(X, 1)
    assert count["compiled"] == 6
    with wh.split(2):
        step(X, 1)
    assert count["compiled"] == 7


def test_static_arguments_as_in_jax():
    def step(x, mode, *, scale, y):
        assert mode in ("add", "mul")
        return x * scale + y if mode == "add" else x * scale * y

    for options in (
        {"static_argnums": 1, "static_argnames": "scale"},
        {"static_argnames": ("mode", "scale")},
        {"static_argnums": (1,), "static_argnames": ["scale"]},
    ):
        ours = wh.jit(step, cluster=1, **options)
        theirs = jax.jit(step, **options)
        same(ours(X, "add", scale=2, y=X), theirs(X, "add", scale=2, y=X))
    options = {"static_argnames": ("mode", "scale")}
    ours = wh.jit(step, cluster=1, **options)
    theirs = jax.jit(step, **options)
    same(
        ours(X, mode="mul", y=X, scale=3),
        theirs(X, mode="mul", y=X, scale=3),
    )
    with pytest.raises(TypeError, match=r"kwargs\['mode'\] is a str"):
        wh.jit(step, cluster=1)(X, mode="add", scale=2, y=X)


def test_programs_leave_static_arguments_out():
    step = wh.jit(lambda x, n, y: x * n + y, cluster=1, static_argnums=1)
    program = step.lower(X, 3, X).compile()
    np.testing.assert_allclose(program(X, X), 4 * X)


def test_decorators_and_methods():
    @wh.jit(cluster=1)
    def double(x):
        """Doubles."""
        return 2 * x

    assert double.__name__ == "double" and double.__doc__ == "Doubles."
    assert float(double(1.0)) == 2

    class Model:
        factor = 3

        @functools.partial(wh.jit, cluster=1, static_argnums=0)
        def scale(self, x):
            return self.factor * x

    assert float(Model().scale(2.0)) == 6
    partial = functools.partial(lambda a, b: a - b, 5.0)
    assert float(wh.jit(partial, cluster=1)(2.0)) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"donate_argnums": 4}, "donate_argnums: 4"),
        ({"batch_argnums": (0, 7)}, "batch_argnums: 7"),
        ({"static_argnums": -9}, "static_argnums: -5"),
        ({"target": "gpu"}, "cpu, cuda"),
        ({"batch_argnums": 0, "in_axes": 0}, "not both"),
        ({"donate_argnums": 0, "static_argnums": 0}, r"share \[0\]"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        wh.jit(train_step, **options)


def test_bad_arguments():
    step = wh.jit(lambda x: x, cluster=1)
    with pytest.raises(TypeError, match=r"args\[0\]\['a'\] is a str"):
        step({"a": "text"})
    program = step.lower({"a": X}).compile()
    with pytest.raises(TypeError, match=r"missing args\[0\]\['a'\].*\['b'\]"):
        program({"b": X})
    with pytest.raises(TypeError, match=r"is f32\[4,4\], .* f32\[8,4\]"):
        program({"a": W})
    with pytest.raises(TypeError, match=r"args\[0\] is a value that JAX"):
        jax.jit(step)(X)
    static = wh.jit(lambda x, n: x * n[0], cluster=1, static_argnums=1)
    with pytest.raises(TypeError, match="static argument 1 is a list"):
        static(X, [3])


def test_state_that_counts_from_a_python_number():
    """As in flax's TrainState: one program, and the count is fed back."""

    def step(state, x):
        return {"w": state["w"] + x.sum(), "step": state["step"] + 1}

    step = wh.jit(step, cluster=1)
    state = {"w": W, "step": 0}
    assert step.lower(state, X).as_text().count("whale.fed_by") == 2
    for _ in range(2):
        state = step(state, X)
    assert len(step._programs) == 1
    assert int(state["step"]) == 2


def test_clusters(tmp_path):
    def fit(cluster):
        return wh.jit(lambda x: x, cluster=cluster).lower(X).compile()

    spec = {"nodes": [{"devices": [{"kind": "cpu", "count": 2}]}]}
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(spec))
    assert json.loads(fit(spec).plan["cluster"]) == spec
    for cluster in (file, str(file)):
        assert fit(cluster).plan["cluster"] == str(file)
    assert fit(4).plan["cluster"] == "4"
    for cluster, message in [
        (0, "at least 1"),
        (True, "not a cluster"),
        (1.5, "expected a path"),
        (tmp_path / "none.json", "none.json"),
        (None, "no cluster to compile for"),
    ]:
        with pytest.raises(ValueError, match=message):
            fit(cluster)


def test_diagnostics_become_compile_errors():
    with pytest.raises(wh.CompileError, match="error: no fft"):
        wh.jit(jnp.fft.fft, cluster=1)(X)


# Arrays


def test_arrays_are_gathered_once_and_when_read():
    (result,) = wh.jit(lambda x: (x + 1,), cluster=1)(X)
    handle = result.handle()
    assert result.shape == (8, 4) and result.ndim == 2 and len(result) == 8
    assert result.size == 32 and handle.gathers == 0
    np.asarray(result)
    assert handle.gathers == 1
    assert handle.gathers == 1
    assert np.asarray(result).dtype == np.float32
    assert handle.gathers == 1
    assert not np.asarray(result).flags.writeable
    assert np.array(result).flags.writeable


def test_jax_takes_arrays():
    array = wh.jit(lambda x: x + 1, cluster=1)(X)
    assert float(jnp.sum(array)) == 64
    assert float(jax.jit(lambda tree: tree["a"].sum())({"a": array})) == 64
    grad = jax.grad(lambda a: (a * a).sum())(array)
    np.testing.assert_array_equal(grad, 2 * np.asarray(array))
    assert jax.vmap(jnp.sum)(array).shape == (8,)
    assert jax.eval_shape(jnp.sum, array).shape == ()
    assert (X * array).shape == (np.ones((8, 4)) * array).shape == X.shape
    assert jnp.stack([array, X]).shape == (2, 8, 4)
    assert jax.device_put(array).shape == array.shape
    assert jax.tree.map(jnp.shape, {"a": array}) == {"a": (8, 4)}
    np.testing.assert_array_equal(
        jax.jit(lambda a, b: a @ b)(X, wh.jit(lambda x: x, cluster=1)(W)), X @ W
    )
    key = wh.jit(lambda k: k, cluster=1)(jax.random.key(0))
    expected = jax.random.normal(jax.random.key(0), (3,))
    np.testing.assert_array_equal(jax.random.normal(key, (3,)), expected)
    np.testing.assert_array_equal(
        jax.random.key_data(jax.random.split(key, 2)),
        jax.random.key_data(jax.random.split(jax.random.key(0), 2)),
    )
    assert jax.random.key_impl(key) == "threefry2x32"
    closed = jax.jit(lambda x: x + array)(X)
    np.testing.assert_array_equal(closed, X + array)


def test_arrays_behave_as_arrays():
    step = wh.jit(lambda x: (x, x.sum()), cluster=1)
    array, total = step(X)
    assert float(total) == 32 and int(total) == 32 and bool(total)
    assert f"{total:.2f}" == "32.00" and total.item() == 32
    np.testing.assert_array_equal(array + array, 2 * X)
    np.testing.assert_array_equal(1 - array, 0 * X)
    np.testing.assert_array_equal(array @ W, X @ W)
    np.testing.assert_array_equal(array[0], X[0])
    assert (array == X).all() and not (array != X).any()
    assert array.mean() == 1 and array.T.shape == (4, 8)
    assert len(list(array)) == 8
    assert "whale.Array" in repr(array)
    assert array.astype(jnp.bfloat16).dtype == jnp.bfloat16
    assert np.asarray(array, np.float64).dtype == np.float64
    assert isinstance(array.__jax_array__(), jax.Array)
    with pytest.raises(AttributeError, match="nothing"):
        array.nothing  # noqa: B018


@pytest.mark.parametrize(
    "dtype",
    (
        "bool int8 uint8 int16 int32 uint32 float16 bfloat16 float32 "
        "complex64 float8_e4m3fn int4"
    ).split(),
)
def test_dtypes(dtype):
    x = jnp.arange(6).reshape(2, 3).astype(dtype)
    result = wh.jit(lambda x: x, cluster=1)(x)
    assert result.dtype == x.dtype
    assert np.asarray(result).dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(result), np.asarray(x))
    if dtype == "bfloat16":
        assert np.asarray(result).dtype == ml_dtypes.bfloat16


def test_empty_and_scalar():
    a, b = wh.jit(lambda a, b: (a, b), cluster=1)(jnp.zeros((0, 3)), 1.0)
    assert np.asarray(a).shape == (0, 3) and np.asarray(b).shape == ()


def test_copies_are_plain_arrays():
    array, key = wh.jit(lambda x, k: (x, k), cluster=1)(X, jax.random.key(3))
    for copied in (copy.deepcopy(array), pickle.loads(pickle.dumps(array))):
        assert not isinstance(copied, wh.Array)
        np.testing.assert_array_equal(copied, X)
    assert array.tolist() == X.tolist()
    assert copy.deepcopy(key).dtype == key.dtype


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_typed_keys_stay_typed(impl):
    def step(key):
        return jax.random.split(key, 3), jax.random.normal(key, (2,))

    key = jax.random.key(7, impl=impl)
    ours, theirs = wh.jit(step, cluster=1)(key), jax.jit(step)(key)
    assert ours[0].shape == (3,) and ours[0].dtype == key.dtype
    words = jax.random.key_data(ours[0])
    np.testing.assert_array_equal(words, jax.random.key_data(theirs[0]))
    np.testing.assert_array_equal(ours[1], theirs[1])
    again = wh.jit(lambda keys: keys, cluster=1)(ours[0])
    assert again.dtype == key.dtype
    with pytest.raises(TypeError, match="key_data"):
        np.asarray(again)


def test_donated_arrays_are_gone():
    step = wh.jit(lambda w: w * 2, cluster=1, donate_argnums=0)
    first = step(W)
    second = step(first)
    assert first.is_deleted() and not second.is_deleted()
    with pytest.raises(wh.RuntimeError, match="donated"):
        np.asarray(first)
    with pytest.raises(wh.RuntimeError, match="donated"):
        step(first)
    assert "donated" in repr(first)
    np.testing.assert_array_equal(second, 4 * W)


def test_an_array_is_donated_once():
    step = wh.jit(lambda a, b: (a + b, a), cluster=1, donate_argnums=0)
    array, _ = step(W, W)
    with pytest.raises(ValueError, match=r"args\[0\] and args\[1\] are one"):
        step(array, array)
    assert not array.is_deleted()


def test_float0_results():
    step = wh.jit(
        lambda n, x: jax.grad(lambda n, x: x * n, allow_int=True)(n, x),
        cluster=1,
    )
    result = step(3, 2.0)
    assert result.dtype == jax.dtypes.float0


def test_programs_without_code(tmp_path):
    step = wh.jit(lambda x: x + 1, cluster=1, target="none")
    program = step.lower(X).compile()
    program.save(tmp_path / "plan.whale")
    assert wh.load(tmp_path / "plan.whale").rank_count == 1
    with pytest.raises(wh.RuntimeError, match="it has no code"):
        program(X)


# Saved programs


Metrics = collections.namedtuple("Metrics", "loss extra")


@flax.struct.dataclass
class State:
    params: dict
    count: jax.Array


def test_saved_programs_give_the_same_trees(tmp_path):
    def step(params, opt, x, y):
        params, opt, loss = train_step(params, opt, x, y)
        extra = collections.OrderedDict(b=loss, a=[None, (loss, {3: loss})])
        return params, opt, Metrics(loss, extra)

    program = wh.jit(step, cluster=2).lower(*ARGS).compile()
    expected = program(*ARGS)
    program.save(tmp_path / "step.whale")
    loaded = wh.load(tmp_path / "step.whale")
    same(loaded(*ARGS), expected)
    program.save(tmp_path / "step.whale")
    loaded.save(str(tmp_path / "again.whale"))
    same(wh.load(str(tmp_path / "again.whale"))(*ARGS), expected)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "again.whale",
        "step.whale",
    ]


def test_saved_programs_and_custom_nodes(tmp_path):
    def step(state, x):
        return state.replace(count=state.count + 1), x.sum()

    state = State({"w": W}, jnp.int32(0))
    program = wh.jit(step, cluster=1).lower(state, X).compile()
    program.save(tmp_path / "step.whale")
    new, _ = wh.load(tmp_path / "step.whale")(state, X)
    assert isinstance(new, State) and int(new.count) == 1

    fresh = wh.jit(lambda x: State({}, x), cluster=1).lower(X).compile()
    with pytest.raises(TypeError, match="State, which a saved program"):
        fresh.save(tmp_path / "fresh.whale")
    assert not (tmp_path / "fresh.whale").exists()


def test_loading_refuses_what_it_did_not_save(tmp_path):
    with pytest.raises(wh.RuntimeError, match="none"):
        wh.load(tmp_path / "none")
    program = wh.jit(lambda x: x, cluster=1).lower(X).compile()
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileExistsError, match="not a Whale program"):
        program.save(tmp_path / "file")
    program.save(tmp_path / "step.whale")
    description = tmp_path / "step.whale" / "python.json"
    good = json.loads(description.read_text())
    for change in (
        {"version": 2},
        {"arguments": 1},
        {"arguments": [{"x": 1}]},
        {"results": []},
        {"donated": []},
    ):
        description.write_text(json.dumps(good | change))
        with pytest.raises(wh.RuntimeError):
            wh.load(tmp_path / "step.whale")
    description.write_text(json.dumps(good | {"out_tree": {"tuple": []}}))
    with pytest.raises(ValueError, match="damaged result tree"):
        wh.load(tmp_path / "step.whale")(X)
    description.unlink()
    with pytest.raises(wh.RuntimeError, match="whale-run"):
        wh.load(tmp_path / "step.whale")


def test_optimizer_states_of_optax(tmp_path):
    for optimizer in (
        optax.adamw(1e-3),
        optax.chain(optax.clip(1.0), optax.sgd(0.1, momentum=0.9)),
        optax.masked(optax.adam(1e-3), {"b": False, "w": True}),
    ):

        def step(params, state, x, optimizer=optimizer):
            grads = jax.tree.map(jnp.ones_like, params)
            updates, state = optimizer.update(grads, state, params)
            return optax.apply_updates(params, updates), state, x.sum()

        args = (PARAMS, optimizer.init(PARAMS), X)
        program = wh.jit(step, cluster=1).lower(*args).compile()
        program.save(tmp_path / "p.whale")
        same(wh.load(tmp_path / "p.whale")(*args), jax.jit(step)(*args))
