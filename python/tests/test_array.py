"""`wh.Array` beside the arrays of JAX, with the extension replaced.

Under test: everything that JAX, NumPy and Python do with an array, in tables of
functions by kind of array. Each must give the type, dtype, place and exact
elements that an array of JAX gives, or the same type of exception. No member of
JAX's class may be missing. A failure means that user code sees a difference
between the two. Nothing is compiled by Whale.
"""

import copy
import functools
import operator
import pathlib
import pickle
import sys
import warnings
import weakref

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from jax._src import config
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from test_lowering import W, X

import whale as wh
from whale import array as array_module
from whale import interop, versions

pytestmark = pytest.mark.usefixtures("fake")

ROOT = pathlib.Path(__file__).parents[2]
RAMP = np.arange(32, dtype=np.float32).reshape(8, 4)


@functools.partial(wh.jit, cluster=1)
def step(x, n, key):
    return {
        "array": x,
        "integers": n,
        "scalar": x.sum(),
        "weak": jnp.asarray(2.0) * 1,
        "key": key,
        "keys": jax.random.split(key, 4),
    }


def results():
    """An array of each kind, as a program gives them."""
    return step(RAMP, np.arange(3, dtype=np.int32), jax.random.key(0))


# What JAX, NumPy and Python do with an array; each must do the same with ours.

KNOWN = {
    name: operator.attrgetter(name)
    for name in (
        "aval shape dtype ndim size itemsize nbytes sharding device committed "
        "is_fully_addressable is_fully_replicated"
    ).split()
} | {
    "typeof": jax.typeof,
    "eval_shape": lambda a: jax.eval_shape(lambda x: x, a).shape,
    "devices": lambda a: a.devices(),
    "is_deleted": lambda a: a.is_deleted(),
    "on_device_size_in_bytes": lambda a: a.on_device_size_in_bytes(),
    "np.shape": np.shape,
    "repr": lambda a: repr(a).removeprefix("whale."),
    "str": str,
}

ONE = NamedSharding(Mesh(np.array(jax.devices()[:1]), "d"), PartitionSpec("d"))


@jax.custom_vjp
def squared(x):
    return x * x


squared.defvjp(lambda x: (x * x, x), lambda x, g: (3 * x * g,))

READS = {
    "own operators": lambda a: (a + a, 1 - a, a @ a.T, -a, a**2, abs(a)),
    "numpy operators": lambda a: (RAMP * a, a * RAMP, np.add(a, RAMP)),
    "comparisons": lambda a: (a == a, a != 1, a < 3, 2 <= a, 3.0 in a),
    "round": lambda a: (round(a), round(a, 1)),
    "indexing": lambda a: (a[1:3], a[0, 1], a[jnp.array([1, 2])]),
    "at": lambda a: a.at[0].set(1),
    "iteration": lambda a: (len(a), list(a)),
    "methods": lambda a: (a.mean(), a.reshape(4, 8), a.argmax(), a.T, a.mT),
    "flat": lambda a: a.flat[3],
    "astype": lambda a: a.astype(jnp.bfloat16),
    "view": lambda a: a.view(jnp.int32),
    "tolist": lambda a: (a.tolist(), a.tobytes()),
    "to numpy": lambda a: (np.asarray(a), np.array(a), np.stack([a, RAMP])),
    "to jax": lambda a: (jnp.asarray(a), jnp.array(a), jnp.asarray([a, a])),
    "copies": lambda a: (copy.copy(a), copy.deepcopy(a), a.copy()),
    "pickle": lambda a: pickle.loads(pickle.dumps(a)),
    "dlpack": lambda a: (np.from_dlpack(a), jnp.from_dlpack(a)),
    "shards": lambda a: [
        (s.index, s.replica_id, s.device, s.data) for s in a.addressable_shards
    ],
    "global shards": lambda a: [s.data for s in a.global_shards],
    "addressable_data": lambda a: a.addressable_data(0),
    "jnp": lambda a: (jnp.sin(a), jnp.where(a > 2, a, 0), jnp.zeros_like(a)),
    "lax": lambda a: (lax.sin(a), lax.sin_p.bind(a), lax.dot(a, a.T)),
    "numpy functions": lambda a: (np.sum(a), np.mean(a, axis=0)),
    "promotion": lambda a: jnp.result_type(a, jnp.bfloat16),
    "jit": lambda a: jax.jit(lambda tree: tree["a"].sum())({"a": a}),
    "donation": lambda a: jax.jit(lambda x: x + 1)(a),
    "compiled": lambda a: jax.jit(jnp.sin).lower(RAMP).compile()(a),
    "grad": lambda a: jax.value_and_grad(lambda x: (x * x).sum())(a),
    "jvp": lambda a: jax.jvp(jnp.sin, (a,), (a,)),
    "vjp": lambda a: jax.vjp(lambda x: (x, x), a)[1]((a, a)),
    "custom_vjp": lambda a: jax.grad(lambda x: squared(x).sum())(a),
    "vmap": lambda a: jax.vmap(jnp.sum)(a),
    "scan": lambda a: lax.scan(lambda c, x: (c + x, c * x), a[0], a),
    "while": lambda a: lax.while_loop(
        lambda x: x.sum() < 1e4, lambda x: x * 2, a
    ),
    "cond": lambda a: lax.cond(True, jnp.sin, jnp.cos, a),
    "callback": lambda a: jax.pure_callback(np.sin, jax.typeof(a), a),
    "closed over by jit": lambda a: jax.jit(lambda x: x + a)(RAMP),
    "closed over, lax": lambda a: jax.jit(lambda x: lax.add_p.bind(x, a))(RAMP),
    "closed over by shard_map": lambda a: jax.shard_map(
        lambda x: x + a,
        mesh=ONE.mesh,
        in_specs=PartitionSpec("d"),
        out_specs=PartitionSpec("d"),
    )(RAMP),
    "returned by jit": lambda a: jax.jit(lambda: a)(),
    "closed over by grad": lambda a: jax.grad(lambda x: (x * a).sum())(RAMP),
    "jaxpr": lambda a: str(jax.make_jaxpr(lambda x: x + a)(a)),
    "device_put": lambda a: jax.device_put(a, jax.devices()[0]),
    "device_put, sharded": lambda a: jax.device_put(a, ONE),
    "device_put, like it": lambda a: jax.device_put(RAMP, a.sharding),
    "device_get": jax.device_get,
    "in_shardings": lambda a: jax.jit(jnp.sin, in_shardings=ONE)(a),
    "shard_map": lambda a: jax.shard_map(
        jnp.sin,
        mesh=ONE.mesh,
        in_specs=PartitionSpec("d"),
        out_specs=PartitionSpec("d"),
    )(a),
    "tree": lambda a: jax.tree.map(jnp.add, {"a": a}, {"a": a}),
    "setting": lambda a: operator.setitem(a, 0, 1),
    "truth": bool,
    "float": float,
    "item": lambda a: a.item(),
}

SCALARS = {
    "numbers": lambda s: (float(s), int(s), bool(s), complex(s), s.item()),
    "round": lambda s: (round(s), round(s, 1)),
    "format": lambda s: (f"{s:.2f}", f"{s}", f"{s:>9}"),
    "promotion": lambda s: s * jnp.ones(3, jnp.bfloat16),
    "promotion in jit": lambda s: jax.jit(jnp.multiply)(
        s, jnp.ones(3, jnp.bfloat16)
    ),
    "grad": lambda s: jax.grad(lambda x: x * x)(s),
    "length": len,
    "iteration": iter,
    "pickle": lambda s: pickle.loads(pickle.dumps(s)),
}

KEYS = {
    "normal": lambda k: jax.random.normal(k, (3,)),
    "split": jax.random.split,
    "key_data": jax.random.key_data,
    "key_impl": lambda k: str(jax.random.key_impl(k)),
    "comparison": lambda k: k == k,
    "jit": lambda k: jax.jit(jax.random.bits)(k),
    "closed over": lambda k: jax.jit(lambda x: jax.random.bits(k, x.shape))(X),
    "returned": lambda k: jax.jit(lambda: k)(),
    "scan": lambda k: lax.scan(lambda c, _: (c, c), k, length=2),
    "device_put": jax.device_put,
    "device_get": jax.device_get,
    "copies": lambda k: (copy.copy(k), copy.deepcopy(k), jnp.asarray(k)),
    "stack": lambda k: jnp.stack([k, k]),
    "arithmetic": lambda k: k + 1,
    "mean": lambda k: k.mean(),
}

MANY_KEYS = {
    "vmap": lambda k: jax.vmap(jax.random.bits)(k),
    "scan": lambda k: lax.scan(lambda c, k: (c, k), 0, k),
    "indexing": lambda k: (k[0], k[1:], list(k), len(k)),
    "methods": lambda k: (k.T, k.reshape(2, 2)),
    "device_put": lambda k: jax.device_put(k, ONE),
    "shards": lambda k: [s.data for s in k.addressable_shards],
}


def outcome(function, value):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return described(function(value))
    except Exception as error:
        return type(error)


def described(value):
    """What can be compared: of arrays their type, place and elements."""
    if isinstance(value, (tuple, list)):
        return [described(item) for item in value]
    if isinstance(value, dict):
        return {key: described(item) for key, item in value.items()}
    if isinstance(value, wh.Array):
        # Only where a function hands out what it was given.
        value = wh.to_jax(value)
    if not isinstance(value, (np.ndarray, jax.Array)):
        return value
    place = getattr(value, "sharding", None), getattr(value, "committed", None)
    if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        words = np.asarray(jax.random.key_data(value)).tolist()
        return type(value), value.dtype, words, place
    weak = getattr(value, "weak_type", None)
    return type(value), value.dtype, weak, np.asarray(value).tolist(), place


@pytest.mark.parametrize(
    "kind, functions",
    [(kind, KNOWN) for kind in ("array", "integers", "weak", "key", "keys")]
    + [
        ("array", READS),
        ("scalar", SCALARS),
        ("weak", SCALARS),
        ("key", KEYS),
        ("keys", MANY_KEYS),
    ],
)
def test_all_is_as_with_an_array_of_jax(kind, functions):
    theirs = wh.to_jax(results()[kind])
    for name, function in functions.items():
        ours = results()[kind]
        assert outcome(function, ours) == outcome(function, theirs), name


def test_nothing_is_gathered_before_it_is_read():
    for array in results().values():
        if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
            continue
        for name, function in KNOWN.items():
            if name not in ("repr", "str"):
                function(array)
        assert not hasattr(array, "unheard_of")
        assert array.format.sharding == array.sharding
        jax.jit(lambda x: x).lower(array)
        assert array.placement.is_replicated
        assert array.is_ready() and array.block_until_ready() is array
        array.copy_to_host_async()
        jax.block_until_ready({"a": array})
        jax.tree.leaves({"a": array})
        assert array.handle().gathers == 0


def test_every_member_is_defined_or_forwarded():
    """None of them is the stub that `jax.Array` has for its subclasses."""
    stubs = {
        name
        for name in dir(jax.Array)
        if getattr(wh.Array, name) is getattr(jax.Array, name)
        and not hasattr(object, name)
    }
    assert stubs <= {"__slots__", "__weakref__", "__numpy_dtype__"}
    missing = {
        name
        for name in dir(array_module.ArrayImpl)
        if not hasattr(wh.Array, name)
    }
    assert missing <= {"__del__", "__release_buffer__"}


def test_numpy_reads_elements_without_jax(monkeypatch):
    array = results()["array"]
    monkeypatch.delattr(wh.Array, "__jax_array__")
    for read in (np.asarray(array), np.array(array)):
        np.testing.assert_array_equal(read, RAMP)
    buffer = array.__buffer__(0)
    np.testing.assert_array_equal(buffer, RAMP)
    assert buffer.readonly
    # Lent again and again, and given back, without a message of Python's.
    if sys.version_info >= (3, 12):
        lost = []
        monkeypatch.setattr(sys, "unraisablehook", lost.append)
        for _ in range(3):
            np.testing.assert_array_equal(memoryview(array), RAMP)
        assert not lost
    with pytest.raises(TypeError, match="keys are no buffers"):
        results()["key"].__buffer__(0)


def test_it_is_a_jax_array_and_others_are_none_of_it():
    values = results()
    assert all(isinstance(value, jax.Array) for value in values.values())
    assert all(type(value) is wh.Array for value in values.values())
    assert all(weakref.ref(value)() is value for value in values.values())
    for other in (X, jax.random.key(0), np.ones(3), 1.0, jnp.ones):
        assert not isinstance(other, wh.Array)
    seen = []
    jax.jit(lambda x: seen.append(isinstance(x, wh.Array)))(values["array"])
    assert seen == [False]


def test_plain_arrays_of_a_tree():
    values = results() | {"numpy": RAMP, "number": 3, "none": None}
    plain = wh.to_jax(values)
    assert type(plain["array"]) is type(X)
    assert type(plain["key"]) is type(jax.random.key(0))
    assert plain["numpy"] is RAMP and plain["number"] == 3
    np.testing.assert_array_equal(plain["array"], RAMP)


def test_what_jax_jit_takes_over_is_gone():
    array = results()["array"]
    before = np.asarray(array)
    after = jax.jit(lambda x: x + 1, donate_argnums=0)(array)
    np.testing.assert_array_equal(after, RAMP + 1)
    np.testing.assert_array_equal(before, RAMP)
    assert array.is_deleted()
    with pytest.raises(RuntimeError, match="deleted.*donated"):
        np.asarray(array)


def test_every_way_to_read_a_donated_array_says_so():
    array = wh.jit(lambda x: x * 2, cluster=1)(X)
    np.asarray(array)
    wh.jit(lambda x: x * 2, cluster=1, donate_argnums=0)(array)
    assert array.is_deleted() and "donated" in repr(array)
    assert array.shape == (8, 4) and array.dtype == np.float32
    for read in (
        np.asarray,
        jnp.asarray,
        jnp.sin,
        jax.jit(jnp.sin),
        lambda a: jax.jit(lambda: jnp.sin(a))(),
        jax.grad(jnp.sum),
        wh.jit(jnp.sin, cluster=1),
        wh.jit(lambda x: x + array, cluster=1),
        wh.to_jax,
        jax.device_get,
        jax.device_put,
        jax.block_until_ready,
        copy.copy,
        pickle.dumps,
        np.from_dlpack,
        list,
        lambda a: a + 1,
        lambda a: a[0],
        lambda a: a.mean(),
        lambda a: a.tolist(),
        lambda a: a.devices(),
        lambda a: a.addressable_shards,
    ):
        with pytest.raises(RuntimeError, match="deleted with shape=.*donated"):
            read(array)


def test_a_step_may_close_over_one():
    array = results()["array"]
    step = wh.jit(lambda x: lax.add(x, array) + jnp.sin(array), cluster=1)
    expected = jax.jit(lambda x: lax.add(x, RAMP) + jnp.sin(RAMP))(RAMP)
    np.testing.assert_allclose(step(RAMP), expected, rtol=1e-6)
    key = results()["key"]
    bits = wh.jit(lambda: jax.random.bits(key, (2,)), cluster=1)()
    np.testing.assert_array_equal(bits, jax.random.bits(wh.to_jax(key), (2,)))


def test_a_mesh_that_is_set_changes_nothing():
    mesh = jax.make_mesh(
        (1,), ("d",), axis_types=(jax.sharding.AxisType.Explicit,)
    )
    values = results()
    with jax.set_mesh(mesh):
        plain = wh.to_jax(values)
    for name, value in wh.to_jax(results()).items():
        assert plain[name].sharding == value.sharding
        assert values[name].sharding == value.sharding


def test_placements_say_what_lies_where():
    entry = {
        "view": [6, 4],
        "boxes": [[[0, 0], [2, 4]], [[2, 0], [4, 4]], None, [[2, 0], [4, 4]]],
    }
    placement = wh.Placement.of(entry)
    assert str(placement) == "[6, 4] on rank 0: [0:2, :]; ranks 1, 3: [2:6, :]"
    assert placement.indices[1] == (slice(2, 6), slice(0, 4))
    assert placement.indices[2] is None and placement.ranks == (0, 1, 3)
    assert not placement.is_replicated
    assert placement == wh.Placement.of(entry)
    boxes = [[[0], [3]]] * 3
    whole = wh.Placement.of({"view": [3], "boxes": [*boxes, None]})
    assert whole.is_replicated
    assert repr(whole) == "Placement([3] on ranks 0-2: all)"
    key = results()["key"].placement
    assert key.view == (2,)


def test_64_bits_stay_64_bits():
    with config.enable_x64(True):
        array = wh.jit(lambda x: x * 2, cluster=1)(np.float64(1 / 3))
        assert array.dtype == np.float64
    assert jnp.asarray(array.__jax_array__()).dtype == np.float64
    assert float(array) == 2 / 3


@pytest.mark.parametrize("name", [*interop._TABLES, interop._DISPATCH])
def test_a_jax_that_lacks_a_table_is_an_error(monkeypatch, name):
    monkeypatch.setattr(interop, "_TABLES", {f"{name}_of_old": print})
    with pytest.raises(
        ImportError, match=f"no jax._src.{name}_of_old.*0.7.2 to"
    ):
        interop.register()


def test_other_versions_of_jax():
    with pytest.raises(ImportError, match="jax 0.7.1 is too old: .* 0.7.2 to"):
        versions.check((0, 7, 1))
    with pytest.warns(UserWarning, match="to 0.11, and this is 0.12.0"):
        versions.check((0, 12, 0))
    versions.check()


def test_the_stated_range_is_the_tested_one():
    oldest = ".".join(map(str, versions.OLDEST))
    major, minor = versions.NEWEST
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'"jax>={oldest},<{major}.{minor + 1}"' in pyproject


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
