"""Calling, caching, saving and reading, with the extension replaced.

Under test: which calls compile anew, static and named arguments, bad options,
trees of results, saved signatures. Values and trees must be those of `jax.jit`
(rtol 1e-5), errors are judged by their text, compilations are counted. A
failure means that the Python side is at fault: a stand-in that runs the text
under XLA takes the compiler's place.
"""

import collections
import contextlib
import functools
import json

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax._src import config
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


def test_static_arguments_of_other_types_make_other_programs():
    def double(x, n):
        return x * n

    ours = wh.jit(double, cluster=1, static_argnums=1)
    theirs = jax.jit(double, static_argnums=1)
    x = jnp.arange(4)
    for n in (2, 2.0, 1, True):
        assert ours(x, n).dtype == theirs(x, n).dtype


def test_settings_of_jax_make_other_programs():
    def step(x):
        return jnp.sum(x, dtype=float), jax.random.normal(jax.random.key(0), 4)

    ours, theirs = wh.jit(step, cluster=1), jax.jit(step)
    for setting in (
        contextlib.nullcontext(),
        config.enable_x64(True),
        jax.threefry_partitionable(False),
    ):
        with setting:
            mine, expected = ours(X), theirs(X)
            assert mine[0].dtype == expected[0].dtype
            same(mine[1], expected[1])


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
        ({"static_argnums": -9}, "static_argnums: -9"),
        ({"target": "gpu"}, "cpu, cuda"),
        ({"batch_argnums": 0, "in_axes": 0}, "not both"),
        (
            {"donate_argnums": 0, "static_argnums": 0},
            "donate_argnums and static_argnums share 0",
        ),
        ({"batch_argnames": "x", "in_axes": 0}, "not both"),
        (
            {"donate_argnames": "x", "static_argnames": "x"},
            "donate_argnames and static_argnames share 'x'",
        ),
        (
            {"donate_argnames": ("opt", "x"), "static_argnums": -2},
            "donate_argnames has 'x', which is -2 of static_argnums",
        ),
        (
            {"batch_argnums": (0, 2), "static_argnames": "x"},
            "batch_argnums has 2, which is 'x' of static_argnames",
        ),
        (
            {"batch_argnames": ("x", "z")},
            "batch_argnames: .* no argument 'z' by name, only params, opt, x",
        ),
        ({"donate_argnames": "z"}, "donate_argnames: .* no argument 'z'"),
        ({"static_argnames": "z"}, "static_argnames: .* no argument 'z'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        wh.jit(train_step, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_argnums": 1.0}, "batch_argnums: not a position: 1.0"),
        ({"donate_argnums": "x"}, "donate_argnums: not a position: 'x'"),
        ({"batch_argnames": 3}, "batch_argnames: not a name: 3"),
        ({"static_argnames": b"x"}, "static_argnames: not a name: b'x'"),
        ({"feedback": [0]}, r"feedback: expected a dictionary, .* \[0\]"),
    ],
)
def test_options_of_other_types(options, message):
    with pytest.raises(TypeError, match=message):
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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        # As in an equinox model that is passed whole.
        (
            lambda step: step({"w": W, "activation": jnp.tanh}, X),
            r"args\[0\]\['activation'\] is a .*partition the model.*eqx.is_ar",
        ),
        (lambda step: step(jnp.tanh, X), "name it in static_argnums"),
        (lambda step: step(W, x="text"), "name it in static_argnames"),
        (
            lambda step: step({"w": W, "name": "text"}, X),
            r"take it out of args\[0\]: .* name it in static_argnums",
        ),
        (
            lambda step: step(W, x=[X, "text"]),
            r"take it out of kwargs\['x'\]: .* name it in static_argnames",
        ),
        (lambda step: step(Foreign(), X), "pass numpy.asarray of it"),
        (lambda step: step(np.array(["a"]), X), "its elements are <U1"),
    ],
)
def test_what_is_no_array_has_a_remedy(call, message):
    with pytest.raises(TypeError, match=message) as raised:
        call(wh.jit(lambda w, x: x, cluster=1))
    assert ("static_arg" in str(raised.value)) == ("static_arg" in message)


class Foreign:
    """As a tensor of another library."""

    def __array__(self, dtype=None, copy=None):
        return np.ones(3)


def test_arguments_by_name():
    def step(params, x, *, mask, state, **more):
        return params, state, (x * mask).sum() + more["bias"].sum()

    def marks(**options):
        named = {"mask": X, "state": W, "bias": X}
        lowered = wh.jit(step, cluster=1, **options).lower(W, X, **named)
        found = {}
        for kind in ("whale.batch_dim", "whale.donated"):
            header = lowered.as_text().partition("@main(")[2]
            header = header.partition(") -> ")[0]
            found[kind] = [kind in text for text in header.split("%arg")[1:]]
        # Leaves of keywords are in the order of their names.
        order = ["params", "x", "bias", "mask", "state"]
        return [
            {name for name, mark in zip(order, found[kind]) if mark}
            for kind in found
        ]

    assert marks(batch_argnames=("x", "mask")) == [{"x", "mask"}, set()]
    assert marks(batch_argnums=1, batch_argnames=["bias"]) == [
        {"x", "bias"},
        set(),
    ]
    assert marks(donate_argnames="state", donate_argnums=0) == [
        set(),
        {"params", "state"},
    ]
    assert marks(in_axes={"x": 0, "mask": 0}) == [{"x", "mask"}, set()]
    assert marks(in_axes={"bias": 0}) == [{"bias"}, set()]
    assert marks(in_axes=(None, 0)) == [{"x"}, set()]
    with pytest.raises(ValueError, match="no argument 'masks', only params, x"):
        marks(in_axes={"x": 0, "masks": 0})


def test_a_dictionary_is_a_prefix_too():
    step = wh.jit(lambda batch: batch, cluster=1, in_axes={"a": 0, "b": None})
    text = step.lower({"a": X, "b": W}).as_text()
    assert text.count("whale.batch_dim") == 1


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


def test_float0_results():
    step = wh.jit(
        lambda n, x: jax.grad(lambda n, x: x * n, allow_int=True)(n, x),
        cluster=1,
    )
    result = step(3, 2.0)
    assert result.dtype == jax.dtypes.float0
    tree = {"n": result, "x": X}
    same(wh.jit(lambda t: t["x"] * 2, cluster=1)(tree), X * 2)


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
