"""Compiled programs beside `jax.jit`, through the real extension.

Under test: training on even and uneven ranks, donation, saving, damage, the
README's example and the demo. Values must be within 2e-5 of the magnitude of
those of `jax.jit`, state after three steps within 1e-4; a second run must give
the same bits; errors are judged by their text. A failure means that a user's
first steps go wrong. The demo trains in processes of its own.
"""

import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jobs import MPIRUN

import whale as wh

pytest.importorskip("whale._whale")

ROOT = pathlib.Path(__file__).parents[2]
UNEVEN = {
    "nodes": [
        {
            "devices": [
                {"kind": "cpu"},
                {"kind": "cpu", "slowdown": 2},
                {"kind": "cpu", "slowdown": 4},
            ]
        }
    ]
}
OPTIMIZER = optax.adam(1e-2)


def init(seed=0, dtype=jnp.float32):
    keys = jax.random.split(jax.random.key(seed), 3)
    shapes = [(6, 16), (16, 16), (16, 4)]
    params = {
        f"w{i}": (jax.random.normal(key, shape) / 4).astype(dtype)
        for i, (key, shape) in enumerate(zip(keys, shapes))
    }
    return params, OPTIMIZER.init(params)


def batch(seed, dtype=jnp.float32):
    keys = jax.random.split(jax.random.key(seed + 100))
    return tuple(
        jax.random.normal(key, (12, n)).astype(dtype)
        for key, n in zip(keys, (6, 4))
    )


def loss(body, head, params, x, y):
    with body():
        h = jnp.tanh(x @ params["w0"])
        h = jax.nn.gelu(h @ params["w1"])
    with head():
        return jnp.mean((h @ params["w2"] - y) ** 2)


def make_step(body, head):
    def train_step(params, state, x, y):
        value, grads = jax.value_and_grad(functools.partial(loss, body, head))(
            params, x, y
        )
        updates, state = OPTIMIZER.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    return train_step


REPLICATE, SPLIT = wh.replicate, wh.split
STRATEGIES = {
    "replicate": (REPLICATE, REPLICATE),
    "split": (SPLIT, SPLIT),
    "mixed": (REPLICATE, SPLIT),
    "turned": (SPLIT, REPLICATE),
}


def host(value):
    if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    return np.asarray(value)


def close(ours, theirs, tolerance=2e-5):
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs)):
        a, b = host(a), host(b)
        assert a.dtype == b.dtype
        if not jnp.issubdtype(b.dtype, jnp.floating):
            np.testing.assert_array_equal(a, b)
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        scale = max(1e-3, np.abs(b).max(initial=0))
        np.testing.assert_allclose(a / scale, b / scale, atol=tolerance)


@pytest.mark.parametrize("cluster", [1, 2, 4, UNEVEN], ids=str)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_training(strategy, cluster):
    train_step = make_step(*STRATEGIES[strategy])
    step = wh.jit(
        train_step, cluster=cluster, donate_argnums=(0, 1), batch_argnums=(2, 3)
    )
    reference = jax.jit(train_step)
    ours = theirs = init()
    for n in range(3):
        *ours, value = step(*ours, *batch(n))
        *theirs, expected = reference(*theirs, *batch(n))
        close(value, expected)
    close(tuple(ours), tuple(theirs), 1e-4)


@pytest.mark.parametrize("strategy", ["replicate", "mixed"])
def test_the_same_bits_on_every_run(strategy):
    step = wh.jit(
        make_step(*STRATEGIES[strategy]), cluster=UNEVEN, batch_argnums=(2, 3)
    )
    args = (*init(), *batch(0))
    first, second = step(*args), step(*args)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second)):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_without_strategies():
    step = wh.jit(lambda x, y: {"z": x @ y.T, "n": [x.sum(), None]}, cluster=2)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    close(step(x, x), {"z": x @ x.T, "n": [x.sum(), None]})


def test_half_precision():
    train_step = make_step(REPLICATE, SPLIT)
    step = wh.jit(train_step, cluster=2, batch_argnums=(2, 3))
    args = (*init(dtype=jnp.bfloat16), *batch(0, jnp.bfloat16))
    ours, theirs = step(*args), jax.jit(train_step)(*args)
    assert ours[2].dtype == jnp.bfloat16
    close(ours[1], theirs[1], 3e-2)


def test_a_reduction_starts_from_what_it_reads():
    """Its first value is an element of a tensor that the result, of the same
    size, could overwrite."""

    def step(x, i):
        y = jnp.tanh(x[:, 0])
        scaled = 0.1 * x * y[:, None]
        return jax.lax.reduce(
            scaled, 0.1 * y[i], lambda a, b: a + b + a * b, (1,)
        )

    x = jnp.asarray(np.random.default_rng(0).normal(size=(4, 8)), jnp.float32)
    ours = wh.jit(step, cluster=1)
    for i in range(4):
        close(ours(x, i), jax.jit(step)(x, i), 1e-5)


def test_random_numbers_are_jaxs():
    def step(key, x):
        key, use = jax.random.split(key)
        keep = jax.random.bernoulli(use, 0.5, x.shape)
        return key, jnp.where(keep, x, 0)

    wh.set_default_strategy(wh.replicate())
    ours = wh.jit(step, cluster=2, batch_argnums=1)
    x = jnp.ones((8, 4))
    key, result = ours(jax.random.key(3), x)
    expected_key, expected = jax.jit(step)(jax.random.key(3), x)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(
        jax.random.key_data(key), jax.random.key_data(expected_key)
    )
    ours(key, x)


def test_arrays_move_between_programs():
    first = wh.jit(
        make_step(REPLICATE, REPLICATE), cluster=2, batch_argnums=(2, 3)
    )
    second = wh.jit(make_step(SPLIT, SPLIT), cluster=4, batch_argnums=(2, 3))
    reference = jax.jit(make_step(REPLICATE, REPLICATE))
    ours, theirs = init(), init()
    for n, step in enumerate((first, second, first)):
        *ours, _ = step(*ours, *batch(n))
        *theirs, _ = reference(*theirs, *batch(n))
    close(tuple(ours), tuple(theirs), 1e-4)


def test_placements_are_those_of_the_ranks():
    step = wh.jit(
        make_step(REPLICATE, SPLIT), cluster=UNEVEN, batch_argnums=(2, 3)
    )
    params, _, value = step(*init(), *batch(0))
    assert value.placement.is_replicated
    for array in params.values():
        placement = array.placement
        seen = np.zeros(placement.view, bool)
        for index in placement.indices:
            if index is not None:
                seen[index] = True
        assert seen.all() and placement.view == array.shape
    assert not params["w2"].placement.is_replicated
    assert len(params["w2"].placement.indices) == 3


def test_donated_memory_is_gone():
    step = wh.jit(
        make_step(SPLIT, SPLIT),
        cluster=2,
        donate_argnums=(0, 1),
        batch_argnums=(2, 3),
    )
    params, state, _ = step(*init(), *batch(0))
    step(params, state, *batch(1))
    assert params["w0"].is_deleted()
    with pytest.raises(wh.RuntimeError, match="donated"):
        np.asarray(params["w0"])


def test_host_arrays_are_left_alone():
    step = wh.jit(
        make_step(REPLICATE, SPLIT),
        cluster=2,
        donate_argnums=(0, 1),
        batch_argnums=(2, 3),
    )
    params, state = jax.tree.map(lambda x: np.array(x), init())
    before = jax.tree.map(np.copy, params)
    step(params, state, *batch(0))
    for name, value in params.items():
        np.testing.assert_array_equal(value, before[name])


def test_results_do_not_follow_their_arguments():
    step = wh.jit(lambda x: (x, x + 1), cluster=1)
    x = np.ones(4, np.float32)
    same, _ = step(x)
    x[:] = 5
    np.testing.assert_array_equal(same, np.ones(4))


def test_profile(capsys):
    def step(w, x):
        y = jnp.tanh(x @ w)
        return jnp.sum(y * y)

    def line(offset):
        first = step.__code__.co_firstlineno
        return rf"test_programs\.py:{first + offset} \("

    wh.set_default_strategy(wh.replicate())
    args = (jnp.ones((64, 64)), jnp.ones((32, 64)))
    program = wh.jit(step, cluster=2, batch_argnums=1).lower(*args).compile()
    with pytest.raises(RuntimeError, match="no step of this program"):
        program.profile()
    program(*args)
    program.profile()
    out = capsys.readouterr().out
    assert re.search(
        r" ms a step, mean of 1, 2 ranks\n.* by the model .*\nrank ", out
    )
    assert re.search(line(1) + r".*matmul", out)
    assert re.search(line(2) + r".*kernel", out)
    assert "all_reduce; " in out


def test_saving_and_loading(tmp_path):
    wh.set_default_strategy(wh.replicate())
    args = (*init(), *batch(0))
    train_step = make_step(REPLICATE, SPLIT)
    step = wh.jit(train_step, cluster=2, batch_argnums=(2, 3))
    program = step.lower(*args).compile()
    expected = program(*args)
    program.save(tmp_path / "step.whale")
    del program
    loaded = wh.load(tmp_path / "step.whale")
    assert loaded.rank_count == 2
    close(loaded(*args), expected, 0)
    assert {"ranks", "arguments"} <= set(loaded.manifest)
    assert len(loaded.stats["ranks"]) == 2


@pytest.fixture(scope="module")
def saved_program(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "p.whale"
    program = wh.jit(lambda x: x + 1, cluster=1).lower(jnp.ones(2)).compile()
    program.save(path)
    return path


@pytest.fixture(scope="module")
def planned_program(tmp_path_factory):
    """One without code."""
    path = tmp_path_factory.mktemp("planned") / "p.whale"
    step = wh.jit(lambda x: x + 1, cluster=1, target="none")
    step.lower(jnp.ones(2)).compile().save(path)
    return path


def test_damaged_programs(tmp_path):
    program = wh.jit(lambda x: x + 1, cluster=1).lower(1.0).compile()
    program.save(tmp_path / "p.whale")
    (tmp_path / "p.whale" / "manifest.json").write_text("{")
    with pytest.raises(wh.RuntimeError, match="manifest.json"):
        wh.load(tmp_path / "p.whale")


def test_programs_that_are_none(tmp_path):
    with pytest.raises(wh.RuntimeError, match="none: No such file or dir"):
        wh.load(tmp_path / "none")
    for place in tmp_path, pathlib.Path(__file__):
        with pytest.raises(wh.RuntimeError, match="is not a program directory"):
            wh.load(place)


def test_program_without_plan(planned_program, tmp_path):
    shutil.copytree(planned_program, tmp_path / "p.whale")
    assert wh.load(tmp_path / "p.whale").plan
    path = tmp_path / "p.whale" / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["plan"]
    path.write_text(json.dumps(manifest))
    (tmp_path / "p.whale" / "checksums.txt").unlink()
    assert wh.load(tmp_path / "p.whale").plan == {}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("label", 3),
        ("shape", [2.0]),
        ("shape", [-1]),
        ("shape", 7),
        ("shape", [5]),
        ("dtype", "f33"),
        ("dtype", "i32"),
        ("key", "dice"),
        ("key_rank", 9),
        ("colour", "red"),
    ],
)
@pytest.mark.parametrize("kind", ["arguments", "results"])
def test_damaged_signatures(saved_program, tmp_path, kind, field, value):
    shutil.copytree(saved_program, tmp_path / "p.whale")
    path = tmp_path / "p.whale" / "python.json"
    signature = json.loads(path.read_text())
    signature[kind][0][field] = value
    path.write_text(json.dumps(signature))
    with pytest.raises(wh.RuntimeError, match="p.whale"):
        wh.load(tmp_path / "p.whale")


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ({"elements": [1], "rows": [[10**12, [0]]]}, r"rows\[0\]\[1\]: .*more"),
        ({"elements": [1], "rows": [[7]]}, r"rows\[0\]\[0\]: must be"),
        (
            {"files": [{"name": "../../etc/passwd", "count": 1}]},
            r"files\[0\]\.name: .*without folders",
        ),
    ],
)
def test_damaged_plans(planned_program, tmp_path, classes, message):
    shutil.copytree(planned_program, tmp_path / "p.whale")
    path = tmp_path / "p.whale" / "manifest.json"
    manifest = json.loads(path.read_text()) | {"classes": classes}
    path.write_text(json.dumps(manifest))
    with pytest.raises(wh.RuntimeError, match="differs from its checksum"):
        wh.load(tmp_path / "p.whale")
    (tmp_path / "p.whale" / "checksums.txt").unlink()
    with pytest.raises(wh.RuntimeError, match=rf"json: classes\.{message}"):
        wh.load(tmp_path / "p.whale")


@pytest.mark.parametrize("file", ["python.json", "manifest.json"])
@pytest.mark.parametrize("text", ["", "3", "[]", "{}", "\0", "[" * 100_000])
def test_damaged_files(saved_program, tmp_path, file, text):
    shutil.copytree(saved_program, tmp_path / "p.whale")
    (tmp_path / "p.whale" / file).write_text(text)
    with pytest.raises(wh.RuntimeError, match=file):
        wh.load(tmp_path / "p.whale")


def test_compile_errors_name_their_cause():
    bad = {"nodes": [{"devices": [{"kind": "abacus"}]}]}
    with pytest.raises(wh.CompileError, match=r"error: .*abacus"):
        wh.jit(lambda x: x, cluster=bad)(1.0)


def test_scopes_larger_than_the_cluster():
    def step(x):
        y = jnp.sin(x)
        with wh.split(5, name="head"):
            return y + 1

    spec = {"nodes": [{"count": 2, "devices": [{"kind": "cpu", "count": 2}]}]}
    place = f"test_programs.py:{step.__code__.co_firstlineno + 3}:"
    message = f"{place}.* error: .*'head' asks for 5 devices.* has 4"
    for cluster in (4, spec):
        with pytest.raises(wh.CompileError, match=message):
            wh.jit(step, cluster=cluster)(jnp.ones(8))
    wh.set_default_strategy(wh.replicate(8))
    with pytest.raises(wh.CompileError, match="asks for 8 devices"):
        wh.jit(jnp.sin, cluster=4)(jnp.ones(8))


def test_other_threads_go_on():
    step = wh.jit(lambda x: jnp.linalg.matrix_power(x, 64), cluster=1)
    x = jnp.eye(256) * 0.5
    program = step.lower(x).compile()
    results = []

    def run():
        results.append(program(x))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(results) == 4


@pytest.mark.parametrize("first", ["import jaxlib, jax", "import whale._whale"])
def test_either_library_may_come_first(first):
    code = f"""
{first}
import jax, jax.numpy as jnp, whale as wh
f = lambda x: jnp.sin(x) @ x
x = jnp.ones((4, 4))
print(float(wh.jit(f, cluster=2)(x).sum()), float(jax.jit(f)(x).sum()))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        env={"PYTHONPATH": str(ROOT / "python"), "JAX_PLATFORMS": "cpu"},
    )
    ours, theirs = map(float, done.stdout.split())
    assert ours == pytest.approx(theirs, rel=1e-5)
    assert "leaked" not in done.stderr


def test_the_readmes_example():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    values: dict = {}
    exec(code, values)  # noqa: S102
    assert float(values["value"]) < 1


def demo(*options, launcher=(sys.executable,)):
    return subprocess.run(
        [
            *(*launcher, ROOT / "examples" / "gpt" / "train.py"),
            *"--steps 3 --layers 1 --width 32 --context 16 --batch 8".split(),
            *options,
        ],
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "python"),
            "JAX_PLATFORMS": "cpu",
            "WHALE_CACHE_DIR": "",
        },
    )


def test_the_demo(tmp_path):
    done = demo("--save", tmp_path / "gpt.whale")
    assert "compiled for 4 ranks" in done.stdout
    difference = re.search(r"at most (\S+) of their value", done.stdout)
    assert float(difference.group(1)) < 1e-4
    assert wh.load(tmp_path / "gpt.whale").rank_count == 4


@pytest.mark.long
@pytest.mark.parametrize(
    "launcher",
    [
        [sys.executable, *"-m whale.launch --nprocs=4".split()],
        [*MPIRUN, "4", sys.executable],
    ],
)
def test_the_demo_in_processes(launcher):
    def losses(done):
        return re.findall(r"loss .* -> .*|losses differ by .*", done.stdout)

    done = demo(launcher=launcher)
    assert len(losses(done)) == 2, done.stdout
    assert losses(done) == losses(demo())


def test_steps_share_ranks():
    def threads():
        return len(os.listdir("/proc/self/task"))

    def step(x):
        return jnp.tanh(x) @ x.T

    x = np.ones((8, 4), np.float32)
    first, second = wh.jit(step, cluster=3), wh.jit(step, cluster=3)
    own = wh.jit(step, cluster=3, own_ranks=True)
    first(x).block_until_ready()
    before = threads()
    second(2 * x).block_until_ready()
    assert threads() <= before
    own(3 * x).block_until_ready()
    assert threads() >= before + 3
    for scale in range(4):
        results = [each(scale * x) for each in (first, second, own)]
        for result in results:
            np.testing.assert_allclose(result, step(scale * x), rtol=1e-6)


def test_programs_that_are_not_used_keep_no_threads():
    def threads():
        return len(os.listdir("/proc/self/task"))

    step = wh.jit(lambda x: jnp.tanh(x) @ x.T, cluster=3)
    step(np.ones((7, 4), np.float32)).block_until_ready()
    # With those of the first program, and of JAX.
    before = threads()
    for rows in range(8, 16):
        step(np.ones((rows, 4), np.float32)).block_until_ready()
    deadline = time.monotonic() + 60
    while threads() > before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert threads() <= before
    x = np.ones((8, 4), np.float32)
    np.testing.assert_allclose(step(x), np.tanh(x) @ x.T, rtol=1e-6)
