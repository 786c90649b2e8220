"""``out_like`` and ``in_like``: programs that have their state in common.

Under test: an initialization that makes a training step's state where the step
wants it, and an evaluation that reads it there, on CPU ranks, under the nests
and options that split state. Values must be those of one rank bit for bit, and
those of `jax.jit` up to the rounding of its functions; no rank may hold what it
is not to hold, and nothing may be exchanged or moved that isn't used.
"""

import os

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from layers import ROWS, WIDTH, make_step
from test_zero import UNEVEN, scan_step

import whale as wh
from whale.placement import Placement

IS_FULL = "WHALE_TEST_FULL" in os.environ
OPTIMIZER = optax.adam(1e-2)
KEY = jax.random.key(7)


def init(key):
    keys = jax.random.split(key, 2)
    params = [
        (jax.random.normal(k, (WIDTH, WIDTH)) / WIDTH**0.5, jnp.zeros(WIDTH))
        for k in keys
    ]
    return params, OPTIMIZER.init(params)


def evaluate(params, x):
    for w, b in params:
        x = jnp.tanh(x @ w + b)
    return jnp.mean(x**2)


def scan_init(key):
    params = {
        "w": jax.random.normal(key, (6, WIDTH, WIDTH)) / 6,
        "b": jnp.zeros((6, WIDTH)),
    }
    return params, OPTIMIZER.init(params)


def scan_evaluate(params, x):
    def layer(y, p):
        return jnp.tanh(y @ p["w"] + p["b"]), None

    return jnp.mean(jax.lax.scan(layer, x, params)[0] ** 2)


def size_of(tree):
    return sum(
        leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree)
    )


def lowered_step(function, make, cluster, strategy=wh.replicate, **config):
    """A step, and what it is lowered to for the state that `make` makes."""
    wh.init(wh.Config(config))
    wh.set_default_strategy(strategy())
    step = wh.jit(
        function, cluster=cluster, batch_argnums=2, donate_argnums=(0, 1)
    )
    batch = jax.ShapeDtypeStruct((ROWS, WIDTH), jnp.float32)
    return step, step.lower(*jax.eval_shape(make, KEY), batch)


def made_on_one_rank(make):
    wh.init()
    return jax.tree.map(np.asarray, wh.jit(make, cluster=1)(KEY))


def check_equal(found, expected, **tolerance):
    for mine, theirs in zip(
        jax.tree.leaves(found), jax.tree.leaves(expected), strict=True
    ):
        if tolerance:
            np.testing.assert_allclose(mine, theirs, **tolerance)
        else:
            np.testing.assert_array_equal(mine, theirs)


def check_places(arrays, program):
    """Whether a program takes arrays as they are."""
    entries = program.manifest["arguments"]
    for array, entry in zip(jax.tree.leaves(arrays), entries):
        assert array.placement == Placement.of(entry)


LINEAR = make_step(OPTIMIZER), init, evaluate
SCANNED = scan_step, scan_init, scan_evaluate
PIPELINE = {"num_micro_batch": 4, "num_task_graph": 2}


NESTS = [
    (LINEAR, wh.replicate, {"zero.level": "v2"}, 3),
    (LINEAR, wh.split, {}, UNEVEN),
    (SCANNED, lambda: wh.replicate(1), PIPELINE, 2),
    (SCANNED, wh.replicate, {"zero.level": "v2"}, 2),
    (LINEAR, wh.replicate, {"zero.level": "v0"}, UNEVEN),
    (LINEAR, lambda: wh.split(2), {}, 4),
    (LINEAR, wh.replicate, {"zero.level": "v2"} | PIPELINE, 4),
]


@pytest.mark.parametrize(
    "functions, strategy, config, cluster", NESTS if IS_FULL else NESTS[:3]
)
def test_nests(functions, strategy, config, cluster):
    """Initialization, a step and an evaluation share the state as it lies."""
    function, make, of_params = functions
    alone = made_on_one_rank(make)
    step, lowered = lowered_step(function, make, cluster, strategy, **config)
    start = wh.jit(make, out_like=step)
    state = start(KEY)
    check_equal(state, alone)
    check_equal(state, jax.jit(make)(KEY), rtol=2e-6, atol=2e-7)
    assert not start.plan["collectives"]
    check_places(state, lowered.program())
    batch = jax.random.normal(jax.random.key(1), (ROWS, WIDTH))
    params = step(*state, batch)[0]
    expected = jax.jit(function)(*jax.jit(make)(KEY), batch)[0]
    check_equal(params, expected, rtol=2e-3, atol=2e-5)
    loss = wh.jit(of_params, in_like=step, batch_argnums=1)
    found = loss(params, batch)
    check_places(params, loss.last_program())
    np.testing.assert_allclose(
        found, jax.jit(of_params)(expected, batch), rtol=1e-4
    )


def test_evaluation_gathers_for_each_use():
    """No rank ever has all parameters that replicas share out."""
    config = {"zero.level": "v2", "communication.bucket_bytes": 0}
    _, lowered = lowered_step(*LINEAR[:2], 4, **config)
    params = jax.eval_shape(init, KEY)[0]
    batch = jax.ShapeDtypeStruct((ROWS, WIDTH), jnp.float32)
    loss = wh.jit(evaluate, in_like=lowered, batch_argnums=1)
    plan = loss.lower(params, batch).plan()
    assert plan["collectives"]["all_gather"] == {
        "count": 4,
        "bytes": size_of(params),
    }
    memory = plan["devices"][0]["memory"]
    assert memory["arguments"] == (size_of(params) + ROWS * WIDTH * 4) // 4
    # One or two layers at a time.
    assert memory["activations and gradients"] < 3 * 4 * WIDTH**2


def large_init(key):
    """Six equal matrices, and Adam's moments."""
    params = [
        jax.random.uniform(k, (64, 64), minval=-0.1, maxval=0.1)
        for k in jax.random.split(key, 6)
    ]
    return params, OPTIMIZER.init(params)


def large_step(params, state, x):
    def loss(params):
        y = x
        for w in params:
            y = jnp.tanh(y @ w)
        return jnp.mean(y**2)

    grads = jax.grad(loss)(params)
    updates, state = OPTIMIZER.update(grads, state, params)
    return optax.apply_updates(params, updates), state


def test_state_larger_than_a_device():
    """Each rank holds its part, and a few values while it makes a tensor."""
    state_bytes = size_of(jax.eval_shape(large_init, KEY))
    kind = {
        "flops": {"f32": 1e12},
        "memory_bytes": 3 * state_bytes // 5,
        "memory_bandwidth": 1e11,
    }
    cluster = {
        "kinds": {"small": kind},
        "nodes": [{"devices": [{"kind": "small", "count": 4}]}],
    }
    wh.init()
    with pytest.raises(wh.CompileError, match="memory: device 0 .small. lacks"):
        wh.jit(large_init, cluster=cluster).lower(KEY).plan()
    config = {"zero.level": "v2", "communication.bucket_bytes": 0}
    wh.init(wh.Config(config))
    wh.set_default_strategy(wh.replicate())
    step = wh.jit(
        large_step, cluster=cluster, batch_argnums=2, donate_argnums=(0, 1)
    )
    batch = jnp.ones((32, 64))
    lowered = step.lower(*jax.eval_shape(large_init, KEY), batch)
    start = wh.jit(large_init, out_like=lowered)
    state = start(KEY)
    peaks = [rank["peak_bytes"] for rank in start.stats["ranks"]]
    part = state_bytes // 4
    tensor = 64 * 64 * 4 // 4
    assert part < max(peaks) < part + 9 * tensor
    check_places(state, lowered.program())
    step(*state, batch)
    assert max(r["peak_bytes"] for r in step.stats["ranks"]) < state_bytes


def placed(make, *args, **options):
    """A plan of an initialization, of which leaves are rows on two ranks."""
    shapes = jax.eval_shape(make, *args)

    def step(state, x):
        return jax.tree.map(lambda s: s + jnp.sum(x).astype(s.dtype), state)

    wh.init(wh.Config({"zero.level": "v2"}))
    wh.set_default_strategy(wh.replicate())
    trained = wh.jit(step, cluster=2, batch_argnums=1, donate_argnums=0)
    lowered = trained.lower(shapes, jnp.ones((4, 4)))
    return wh.jit(make, out_like=lowered, **options)


MAKERS = {
    "uniform": lambda key: jax.random.uniform(key, (8, 6)),
    "bits": lambda key: jax.random.bits(key, (8, 6), jnp.uint8),
    "truncated": lambda key: jax.random.truncated_normal(key, -2, 2, (8, 6)),
    "bernoulli": lambda key: jax.random.bernoulli(key, 0.3, (8, 6)) * 1.5,
    "positions": lambda key: jnp.sin(
        jnp.arange(8.0)[:, None] / 10 ** jnp.arange(6.0)
    ),
    "eye": lambda key: jnp.eye(8, 6),
    "row": lambda key: jnp.zeros((8, 6)).at[0].set(1.0),
    "stacked": lambda key: jax.vmap(lambda k: jax.random.normal(k, (6,)))(
        jax.random.split(key, 8)
    ),
    "scaled": lambda key: (lambda w: w / jnp.linalg.norm(w))(
        jax.random.normal(key, (8, 6))
    ),
    "transposed": lambda key: jax.random.normal(key, (6, 8)).T,
    "looped": lambda key: jax.lax.fori_loop(
        0, 3, lambda i, w: w + jax.random.uniform(key, (8, 6)), jnp.ones((8, 6))
    ),
    "chosen": lambda key: jax.lax.cond(
        jax.random.bernoulli(key),
        lambda: jax.random.uniform(key, (8, 6)),
        lambda: jnp.ones((8, 6)),
    ),
    "permuted": lambda key: jax.random.permutation(key, 8) * 1.0,
    "orthogonal": lambda key: jax.random.orthogonal(key, 8),
}

OFTEN = {"uniform", "positions", "row", "stacked", "chosen", "permuted"}
# What has no functions that compilers round in their own ways.
EXACT = {"uniform", "bits", "bernoulli", "row", "eye", "permuted", "copy"}


def test_what_makes_state():
    """In parts what can be, and all else whole; the same bits as whole."""

    def make(key):
        made = {
            name: maker(key)
            for name, maker in MAKERS.items()
            if IS_FULL or name in OFTEN
        }
        # Of one value several results, and a result that is no state's.
        return made | {"copy": made["uniform"]}

    alone = made_on_one_rank(make)
    start = placed(make, KEY)
    state = start(KEY)
    check_equal(state, alone)
    expected = jax.jit(make)(KEY)
    for name in EXACT & set(state):
        np.testing.assert_array_equal(state[name], expected[name])
    for name, array in state.items():
        parts = array.placement.parts
        assert len(parts) == 2, f"{name}: {array.placement}"
    assert set(start.plan["collectives"]) == {"local_slice"}


def test_whole_values_are_explained(capfd):
    def make(key):
        return {"sorted": jnp.sort(jax.random.normal(key, (16,)))}

    placed(make, KEY).lower(KEY).compile(explain="all")
    said = " ".join(capfd.readouterr().err.split())
    assert (
        "results: 'stablehlo.sort' cannot be computed in parts: each of "
        "devices 0-1 computes all 64 bytes, and keeps its part of them" in said
    )


def test_state_of_given_parameters():
    """An optimizer's state is made of parameters where these lie."""
    step, lowered = lowered_step(*LINEAR[:2], 2, **{"zero.level": "v2"})
    params, _ = wh.jit(init, out_like=step)(KEY)
    start = wh.jit(OPTIMIZER.init, in_like=(step, 0), out_like=(step, 1))
    state = start(params)
    check_places((params, state), lowered.program())
    check_places(params, start.last_program())
    check_equal(state, OPTIMIZER.init(jax.tree.map(np.asarray, params)))


def test_another_step_of_the_same_state():
    """A step with other options takes the state as the first one has it, and
    leaves it so."""
    first, _ = lowered_step(*LINEAR[:2], 4, **{"zero.level": "v2"})
    state = wh.jit(init, out_like=first)(KEY)
    places = [leaf.placement for leaf in jax.tree.leaves(state)]
    wh.init()
    wh.set_default_strategy(wh.replicate())
    other = wh.jit(
        LINEAR[0], batch_argnums=2, donate_argnums=(0, 1), in_like=first
    )
    batch = jax.random.normal(jax.random.key(1), (ROWS, WIDTH))
    expected = jax.jit(LINEAR[0])(*jax.jit(init)(KEY), batch)
    *state, _ = other(*state, batch)
    check_equal(state, expected[:2], rtol=2e-3, atol=2e-5)
    assert places == [leaf.placement for leaf in jax.tree.leaves(state)]


def scoped(names, x, params):
    """A layer in each scope, of which each has a number of devices."""
    for (name, count), (w, b) in zip(names, params):
        with wh.replicate(count, name=name):
            x = jnp.tanh(x @ w + b)
    return x


@pytest.mark.parametrize(
    "names, cluster",
    [
        ((("one", 2), ("two", 1)), 3),
        ((("one", 1), ("two", 2)), 3),
        ((("one", 2), ("two", 2)), 4),
    ],
)
def test_scopes_are_where_the_step_has_them(names, cluster):
    """One scope of the step's, though alone it would be another group."""

    def step(params, x):
        grads = jax.grad(lambda p: jnp.mean(scoped(names, x, p) ** 2))(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    wh.init()
    batch = jax.random.normal(jax.random.key(1), (12, WIDTH))
    trained = wh.jit(step, cluster=cluster, batch_argnums=1, donate_argnums=0)
    params = init(KEY)[0]
    lowered = trained.lower(params, batch)
    devices = lowered.plan()["decisions"]["devices"]
    params = wh.jit(lambda key: init(key)[0], out_like=lowered)(KEY)
    for number in range(2):
        own = names[number : number + 1]

        def encode(params, x, own=own, number=number):
            return scoped(own, x, params[number : number + 1])

        encoded = wh.jit(encode, in_like=lowered, batch_argnums=1)
        found = encoded(params, batch)
        check_places(params, encoded.last_program())
        expected = jax.jit(encode)(jax.tree.map(np.asarray, params), batch)
        check_equal(found, expected, rtol=1e-5, atol=1e-6)
        name = own[0][0]
        assert encoded.plan["decisions"]["devices"][name] == devices[name]


def test_lists_of_the_user_count():
    """What `wh.cluster` says is for all scopes, whatever they are called."""
    names = (("one", 2), ("two", 1))

    def step(params, x):
        return params, jnp.mean(scoped(names, x, params) ** 2)

    def encode(params, x):
        return scoped((*names, ("head", 2)), x, [*params, params[1]])

    wh.init()
    batch = jax.random.normal(jax.random.key(1), (12, WIDTH))
    params = init(KEY)[0]
    lowered = wh.jit(step, cluster=3, batch_argnums=1).lower(params, batch)
    params = wh.jit(lambda key: init(key)[0], out_like=lowered)(KEY)
    with wh.cluster([[1, 2], [0], [0, 1]]):
        encoded = wh.jit(encode, in_like=lowered, batch_argnums=1)
        found = encoded(params, batch)
    assert encoded.plan["decisions"]["devices"] == {
        "one": [[1, 2]],
        "two": [[0]],
        "head": [[0, 1]],
    }
    expected = jax.jit(encode)(jax.tree.map(np.asarray, params), batch)
    check_equal(found, expected, rtol=1e-5, atol=1e-6)


def twins(params, average, x):
    grads = jax.grad(lambda p: jnp.mean((x @ p) ** 2))(params)
    params = params - grads
    return params, 0.9 * average + 0.1 * params


def test_several_matches():
    """Parameters and their average are alike: it must be said which."""
    wh.init()
    wh.set_default_strategy(wh.split())
    step = wh.jit(twins, cluster=2, batch_argnums=2, donate_argnums=(0, 1))
    params, batch = jnp.ones((8, 8)), jnp.ones((4, 8))

    def loss(params, x):
        return jnp.mean((x @ params) ** 2)

    with pytest.raises(ValueError, match="in_like: .twins. has no programs"):
        wh.jit(loss, in_like=step).lower(params, batch)
    lowered = step.lower(params, params, batch)
    with pytest.raises(ValueError) as error:
        wh.jit(loss, in_like=step, batch_argnums=1).lower(params, batch)
    assert (
        "in_like: argument 0 could be several arguments of 'twins': 0 (1 leaf: "
        "f32[8,8]), 1 (1 leaf: f32[8,8]); say which, as in in_like=(step, "
        "{0: 0})" in str(error.value)
    )
    options = {"batch_argnums": 1, "in_like": (step, {0: "average"})}
    found = wh.jit(loss, **options)(params, batch)
    np.testing.assert_allclose(found, loss(params, batch))
    # Two results in the order of two arguments are one match.
    both = wh.jit(lambda: (jnp.ones((8, 8)), jnp.zeros((8, 8))), out_like=step)
    check_places(both(), lowered.program())


@pytest.mark.parametrize(
    "like, make, message",
    [
        (lambda step: 3, init, "out_like: expected a step of wh.jit"),
        (
            lambda step: step,
            lambda key: jnp.zeros(3),
            "result 0 .1 leaf: f32.3.. is like no argument of 'step' that is",
        ),
        (
            lambda step: step,
            lambda key: (*init(key), jnp.zeros(3)),
            "result 2 .1 leaf: f32.3.. is like no argument",
        ),
        (lambda step: (step, {0: 2}), init, "result 0 .4 leaves: .* of 'step'"),
        (lambda step: (step, {5: 0}), init, "there is no result 5 with arrays"),
        (lambda step: (step, 9), init, "'step' has no argument 9 with arrays"),
    ],
)
def test_bad_likes(like, make, message):
    _, lowered = lowered_step(*LINEAR[:2], 2)
    with pytest.raises((TypeError, ValueError), match=message):
        wh.jit(make, out_like=like(lowered)).lower(KEY)


def test_other_clusters():
    _, lowered = lowered_step(*LINEAR[:2], 2)
    with pytest.raises(ValueError, match="for another cluster; leave out"):
        wh.jit(init, cluster=4, out_like=lowered).lower(KEY)


def test_nans_of_what_is_made():
    def make(key):
        params, state = init(key)
        return jax.tree.map(
            lambda leaf: leaf / jnp.sum(leaf * 0), params
        ), state

    _, lowered = lowered_step(*LINEAR[:2], 2, **{"zero.level": "v2"})
    wh.jit(make, out_like=lowered)(KEY)
    wh.init(wh.Config({"debug_nans": True}))
    wh.jit(init, out_like=lowered)(KEY)
    with pytest.raises(FloatingPointError, match="there is a NaN in result"):
        wh.jit(make, out_like=lowered)(KEY)


def test_python_is_not_called():
    def make(key):
        state = init(key)
        shape = jax.ShapeDtypeStruct((), jnp.float32)
        scale = jax.pure_callback(lambda: np.float32(1), shape)
        return jax.tree.map(lambda leaf: leaf * scale.astype(leaf.dtype), state)

    _, lowered = lowered_step(*LINEAR[:2], 2)
    with pytest.raises(wh.CompileError, match="calls into Python, which"):
        wh.jit(make, out_like=lowered).lower(KEY).plan()


@pytest.mark.parametrize(
    "parts, text",
    [
        ([(0, 8, 0, 4)], "on [0]"),
        ([(0, 8, 0, 4)] * 2, "replicate 2 on [0, 1]"),
        ([(0, 3, 0, 4), None, (3, 8, 0, 4)], "split 0 (3, 5) on [0, 2]"),
        (
            [(0, 8, 0, 1), (0, 8, 1, 4), (0, 8, 0, 1), (0, 8, 1, 4)],
            "split 1 (1, 3) {replicate 2 on [0, 2], replicate 2 on [1, 3]}",
        ),
        # Groups of other degrees, and devices without a part.
        (
            [(0, 4, 0, 4), (4, 8, 0, 4), (0, 8, 0, 4)],
            "replicate 2 {split 0 (4, 4) on [0, 1], on [2]}",
        ),
        (
            [(0, 8, 0, 2), (0, 8, 2, 4), (0, 8, 4, 4)],
            "split 1 (2, 2, 0) on [0, 1, 2]",
        ),
        (
            [(0, 0, 0, 4), (0, 8, 0, 4), (0, 8, 4, 4)],
            "split 0 (0, 8) {on [0], split 1 (4, 0) on [1, 2]}",
        ),
    ],
)
def test_text_of_placements(parts, text):
    """As docs/placement.md has it, from what each rank holds."""
    indices = [part and (slice(*part[:2]), slice(*part[2:])) for part in parts]
    placement = Placement((8, 4), tuple(indices))
    assert placement.text() == f"#whale.placement<[8, 4] {text}>"


def test_parts_of_no_tree():
    indices = ((slice(0, 5),), (slice(3, 8),))
    with pytest.raises(ValueError, match="no splits and replicas have"):
        Placement((8,), indices).text()
