"""The binding of the runtime, with a program written by hand.

Under test: loading, calling, donation, errors, threads and memory of the
extension, without the compiler. Numbers are small integers, so results must be
exactly those of NumPy; errors are judged by their text. A failure means that
the runtime or its binding is at fault, not the compiler.
"""

import json
import threading

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import whale as wh
from whale.signature import Leaf, Signature

_whale = pytest.importorskip("whale._whale")


def parameter(name, shape, boxes, dtype, **fields):
    return {
        "name": name,
        "label": "",
        "dtype": dtype,
        "shape": shape,
        "view": shape,
        "boxes": boxes,
        **fields,
    }


def write_product(path, dtype="f32", donated=False, arena_bytes=0):
    """``f(x: 4x2, w: 2x2) = x @ w`` on 2 ranks, one with 3 of the rows.

    The second result is `w` on the second rank.
    """
    rows = [[[0, 0], [3, 2]], [[3, 0], [1, 2]]]
    whole = [[0, 0], [2, 2]]
    argument = {"batch_dim": None, "fed_by": None, "role": "input"}

    def buffer(space, index, rows):
        return {
            space: index,
            "type": f"{dtype}[{rows},2]",
        }

    def rank_class(rank, rows):
        buffers = [
            buffer("argument", 0, rows),
            buffer("argument", 1, 2),
            buffer("result", 0, rows),
        ]
        instructions = [
            {
                "matmul": [0, 1, 2],
                "batch": [],
                "m": [rows, 2, 2],
                "n": [2, 1, 1],
                "k": [2, 1, 2],
            }
        ]
        if rank == 1:
            buffers.append(buffer("result", 1, 2))
            instructions.append({"copy": [1, 3]})
        return {
            "ranks": [rank],
            "arena_bytes": arena_bytes,
            "buffers": buffers,
            "instructions": instructions,
        }

    manifest = {
        "format": "whale",
        "version": 11,
        "target": "cpu",
        "name": "product",
        "ranks": [
            {"class": r, "device": r, "kind": "cpu", "node": 0, "slowdown": 1}
            for r in range(2)
        ],
        "arguments": [
            parameter("arg0", [4, 2], rows, dtype, donated=donated, **argument),
            parameter(
                "arg1", [2, 2], [whole] * 2, dtype, donated=False, **argument
            ),
        ],
        "results": [
            parameter("result0", [4, 2], rows, dtype, alias=None),
            parameter("result1", [2, 2], [None, whole], dtype, alias=None),
        ],
        "classes": [rank_class(0, 3), rank_class(1, 1)],
        "channels": {},
        "kernels": None,
        "constants": None,
        "plan": {},
    }
    path.mkdir()
    (path / "manifest.json").write_text(json.dumps(manifest))
    arguments = [Leaf(f"args[{i}]", (4 - 2 * i, 2), dtype) for i in range(2)]
    results = [Leaf("", (4, 2), dtype), Leaf("", (2, 2), dtype)]
    signature = Signature(
        tuple(arguments),
        tuple(results),
        (donated, False),
        encoded_out_tree={"dict": [["product", "leaf"], ["weight", "leaf"]]},
    )
    (path / "python.json").write_text(json.dumps(signature.to_json()))
    return wh.load(path)


X = np.arange(8, dtype=np.float32).reshape(4, 2)
W = np.array([[1, 2], [3, 4]], np.float32)


def test_a_program_on_two_ranks(tmp_path):
    program = write_product(tmp_path / "p.whale")
    assert program.rank_count == 2 and program.stats is None
    result = program(X, jnp.asarray(W))
    assert sorted(result) == ["product", "weight"]
    assert isinstance(result["product"], wh.Array)
    np.testing.assert_array_equal(result["product"], X @ W)
    np.testing.assert_array_equal(result["weight"], W)
    assert len(program.stats["ranks"]) == 2
    again = program(result["product"], result["weight"])
    np.testing.assert_array_equal(again["product"], X @ W @ W)


def test_bfloat16(tmp_path):
    program = write_product(tmp_path / "p.whale", "bf16")
    x, w = (v.astype(ml_dtypes.bfloat16) for v in (X, W))
    result = program(x, w)["product"]
    assert result.dtype == jnp.bfloat16
    np.testing.assert_array_equal(np.asarray(result), x @ w)
    with pytest.raises(TypeError, match=r"f32\[4,2\].*bf16\[4,2\]"):
        program(X, w)


def test_donation(tmp_path):
    program = write_product(tmp_path / "p.whale", donated=True)
    x = X.copy()
    first = program(x, W)["product"]
    np.testing.assert_array_equal(x, X)
    program(first, W)
    assert first.is_deleted()
    with pytest.raises(wh.RuntimeError, match="donated"):
        first + 1


def test_errors_of_steps(tmp_path):
    """They are raised where results are used, each time."""
    product = write_product(tmp_path / "p.whale")
    failing = write_product(
        tmp_path / "f.whale", donated=True, arena_bytes=2**50
    )
    x = product(X, W)["product"]
    bad = failing(x, W)["product"]
    assert x.is_deleted() and bad.shape == (4, 2)
    message = rf"^rank \d: cannot allocate {2**50} bytes"
    for use in (
        np.asarray,
        np.asarray,
        jnp.sin,
        jax.block_until_ready,
        repr,
        lambda array: product(array, W),
    ):
        with pytest.raises(wh.RuntimeError, match=message):
            use(bad)
    with pytest.raises(wh.RuntimeError, match=message):
        _ = failing.stats
    with pytest.raises(wh.RuntimeError, match="to a program that failed"):
        np.asarray(x)
    assert bad.is_ready() and not bad.is_deleted()
    np.testing.assert_array_equal(product(X, W)["product"], X @ W)


def test_results_are_independent_of_their_arguments(tmp_path):
    program = write_product(tmp_path / "p.whale")
    w = W.copy()
    result = program(X, w)
    w[:] = 0
    np.testing.assert_array_equal(result["weight"], W)


def test_threads(tmp_path):
    program = write_product(tmp_path / "p.whale")
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(program(X, W)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(results) == 8
    for result in results:
        np.testing.assert_array_equal(result["product"], X @ W)


def test_damage_is_an_error(tmp_path):
    write_product(tmp_path / "p.whale")
    manifest = tmp_path / "p.whale" / "manifest.json"
    good = json.loads(manifest.read_text())
    for change in (
        {"version": 99},
        {"classes": []},
        {"ranks": "x"},
        {"arguments": good["arguments"][:1]},
    ):
        manifest.write_text(json.dumps(good | change))
        with pytest.raises(wh.RuntimeError):
            wh.load(tmp_path / "p.whale")
    manifest.write_text("{")
    with pytest.raises(wh.RuntimeError, match="manifest.json"):
        wh.load(tmp_path / "p.whale")


def test_arrays_of_the_extension():
    data = np.arange(6, dtype=np.int32)
    array = _whale.Array.from_host(data.view(np.uint8), "i32", [2, 3])
    assert array.dtype == "i32" and list(array.shape) == [2, 3]
    assert not array.is_donated
    np.testing.assert_array_equal(array.to_host(True).view(np.int32), data)
    empty = _whale.Array.from_host(np.zeros(0, np.uint8), "bf16", [0, 3])
    assert empty.to_host(True).size == 0
    for size, dtype, shape, message in [
        (4, "f33", [1], "'f33'"),
        (4, "f32", [2], "4 bytes for a tensor of shape"),
        (4, "f32", [-1], "shape"),
        (4, "f32", [2**62, 2**62], "shape"),
    ]:
        with pytest.raises(_whale.RuntimeError, match=message):
            _whale.Array.from_host(np.zeros(size, np.uint8), dtype, shape)


def test_memory_is_given_back(tmp_path):
    data = np.zeros(1024, np.uint8)
    references = []

    class Watched(np.ndarray):
        def __del__(self):
            references.append("gone")

    watched = data.view(Watched)
    array = _whale.Array.from_host(watched, "i8", [1024])
    del watched
    assert not references
    del array
    assert references == ["gone"]


def test_jax_is_undisturbed():
    x = jnp.ones((64, 64))
    assert float(jax.jit(lambda x: (x @ x).sum())(x)) == 64.0**3


def test_calls_are_told_apart_by_what_they_are_given():
    """A call that looks like the last one is that, to the type."""
    step = wh.jit(lambda x, y: (x * y, x.dtype.type(2) + y), cluster=1)
    plain = jax.jit(lambda x, y: (x * y, x.dtype.type(2) + y))
    own = wh.jit(lambda x: x + 1, cluster=1)
    weak = jnp.asarray(2.0) * 1
    four = np.arange(4, dtype=np.float32)
    values = [
        four,
        np.arange(8, dtype=np.float32)[::2],
        four.reshape(2, 2).T.reshape(4),
        four.astype(np.float64),
        np.arange(4),
        four > 1,
        jnp.asarray(four),
        jnp.asarray(four, jnp.bfloat16),
        jnp.arange(4),
        own(four),
        own(np.arange(4)),
        jax.device_put(four + 1),
    ]
    others = [1.5, 2, True, weak, np.float32(3), jnp.float32(3), own(weak)]
    for _ in range(2):
        for x in values:
            for y in (*others, *values[:1], *values[7:11]):
                ours, theirs = step(x, y), plain(jnp.asarray(x), wh.to_jax(y))
                for a, b in zip(ours, theirs):
                    assert (a.dtype, a.weak_type) == (b.dtype, b.weak_type)
                    np.testing.assert_array_equal(
                        np.asarray(a, np.float64), np.asarray(b, np.float64)
                    )
    deleted = jnp.ones(4) + 1
    step(deleted, 1.5)
    deleted.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        step(deleted, 1.5)
    with pytest.raises(TypeError, match="str"):
        step(four, "1.5")
    with jax.enable_x64(True):
        assert step(four.astype(np.float64), 1.5)[0].dtype == np.float64
    assert step(four.astype(np.float64), 1.5)[0].dtype == np.float32


def test_arrays_of_the_host_may_change_between_calls():
    step = wh.jit(lambda x: x + 1, cluster=1)
    x = np.zeros(4, np.float32)
    results = []
    for number in range(5):
        x[:] = number
        results.append(step(x))
    x[:] = np.nan
    for number, result in enumerate(results):
        np.testing.assert_array_equal(result, number + 1)
