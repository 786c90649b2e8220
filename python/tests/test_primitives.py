"""Whale's first interface gives what replicate and split give.

Under test: `wh.cluster`, `replica`, `stage` and `pipeline`. Their texts must
have the operations, scopes and attributes of the same step with replicate and
split; programs on four devices must be within 1e-4 of `jax.jit`; contradictions
are errors that are judged by their text. A failure means that programs written
for the first interface mean something else.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from name_paths import operations
from test_programs import batch, close, init, make_step

import whale as wh

X = jnp.ones((8, 4))


def two_parts(first, second):
    def step(x):
        with first():
            y = jnp.tanh(x)
        with second():
            return jnp.sin(y)

    return step


def text_of(step, **options):
    return wh.jit(step, **options).lower(X).as_text()


@pytest.mark.parametrize(
    "ours, plain",
    [
        ((wh.replica, wh.split), (wh.replicate, wh.split)),
        (
            (lambda: wh.replica("a"), lambda: wh.split(2, "b")),
            (lambda: wh.replicate(name="a"), lambda: wh.split(2, "b")),
        ),
    ],
)
def test_replica_is_replicate(ours, plain):
    with wh.cluster():
        text = text_of(two_parts(*ours))
    assert operations(text) == operations(text_of(two_parts(*plain)))
    assert "virtual_devices" not in text


def test_cluster_gives_the_counts():
    with wh.cluster([[0, 1], [2, 3]]):
        text = text_of(two_parts(wh.replica, wh.split))
    plain = text_of(
        two_parts(lambda: wh.replicate(2), lambda: wh.split(2)),
    )
    assert operations(text) == operations(plain)
    assert (
        "whale.virtual_devices = [array<i64: 0, 1>, array<i64: 2, 3>]" in text
    )
    # What a scope says itself goes first; unequal lists say nothing.
    with wh.cluster([[0, 1], [2]]):
        text = text_of(two_parts(wh.replica, lambda: wh.split(1)))
    plain = text_of(two_parts(wh.replicate, lambda: wh.split(1)))
    assert operations(text) == operations(plain)


def test_pipeline_sets_the_micro_batches():
    def step(x):
        with wh.pipeline(num_micro_batch=8):
            return two_parts(wh.stage, lambda: wh.stage(2))(x)

    text = text_of(step)
    plain = text_of(two_parts(lambda: wh.replicate(1), lambda: wh.replicate(2)))
    assert operations(text) == operations(plain)
    assert "whale.config = {num_micro_batch = 8 : i64}" in text
    assert "num_micro_batch" not in plain
    # Around the call, too, and as a decorator.
    with wh.pipeline(num_micro_batch=8):
        around = text_of(two_parts(wh.stage, lambda: wh.stage(2)))
    assert operations(around) == operations(text)
    assert "num_micro_batch = 8" in around
    assert "num_micro_batch = 4" in text_of(wh.pipeline(4)(lambda x: x + 1))


def test_nested_as_in_the_first_paper():
    def step(x):
        with (
            wh.cluster([[0, 2], [1, 3]]),
            wh.replica(),
            wh.pipeline(num_micro_batch=2),
        ):
            return two_parts(wh.stage, wh.stage)(x)

    text = text_of(step)
    assert [str(s) for s in wh.jit(step).lower(X).scopes] == [
        "wh.replicate(2)"
    ] * 3
    assert "array<i64: 0, 2>, array<i64: 1, 3>" in text


def test_contradictions():
    wh.init(wh.Config({"num_micro_batch": 4}))

    def pipelined(count):
        def step(x):
            with wh.pipeline(count), wh.stage():
                return jnp.tanh(x)

        return step

    text_of(pipelined(4))
    with pytest.raises(
        ValueError, match="two numbers of micro-batches.*8 and 4"
    ):
        text_of(pipelined(8))
    wh.init()

    def two_clusters(x):
        for devices in ([[0]], [[1]]):
            with wh.cluster(devices), wh.replica():
                x = jnp.tanh(x)
        return x

    with pytest.raises(ValueError, match="two lists of virtual devices"):
        text_of(two_clusters)
    with pytest.raises(ValueError, match="wh.stage is in no wh.pipeline"):
        text_of(two_parts(wh.stage, wh.stage))
    with pytest.raises(ValueError, match="wh.pipeline is in a wh.pipeline"):
        with wh.pipeline(2), wh.pipeline(2):
            pass


@pytest.mark.parametrize(
    "devices, message",
    [
        ([], "no virtual devices"),
        (3, "lists of device ids, as .*, not 3"),
        ([0, 1], r"lists of device ids, as .*, not \[0, 1\]"),
        ([[0], None], "lists of device ids"),
        ({0: [1]}, "lists of device ids"),
        ([[]], "has no devices"),
        ([[0, True]], "True is no device id"),
        ([[0, -1]], "device -1 is negative"),
        ([[0, 0]], "occurs twice"),
    ],
)
def test_bad_clusters(devices, message):
    with pytest.raises(ValueError, match=message):
        wh.cluster(devices)


@pytest.mark.parametrize("count", [0, True, 2.0])
def test_bad_micro_batches(count):
    with pytest.raises(ValueError, match="num_micro_batch must be"):
        wh.pipeline(count)


@pytest.mark.parametrize(
    "devices", [[[0, 2], [1, 3]], [[3], [1], [2], [0]], [[0, 1, 2], [3]]]
)
def test_programs(devices):
    pytest.importorskip("whale._whale")
    plain = make_step(wh.replica, wh.split)
    step = wh.jit(plain, cluster=4, batch_argnums=(2, 3))
    args = (*init(), *batch(0))
    with wh.cluster(devices):
        ours = step(*args)
    close(ours, jax.jit(plain)(*args), 1e-4)


def test_a_device_that_is_not_there():
    pytest.importorskip("whale._whale")
    step = wh.jit(two_parts(wh.replica, wh.split), cluster=2)
    with wh.cluster([[0], [2]]):
        with pytest.raises(wh.CompileError, match="names device 2, .* has 2"):
            step(np.ones((8, 4), np.float32))
