"""The order in which sums are formed, and what they are accumulated in.

Under test: reductions, running sums, windows, products and gradients, mostly on
one rank. The order must not depend on what is fused: bits are compared. Errors
are judged against NumPy in a wider type, as few units in the last place or one
rounding, and else against XLA. Seeds are fixed. A failure means that training
depends on unrelated code, or loses precision with length. Large sums share
programs, as compiling takes long.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import whale as wh


@pytest.fixture(autouse=True)
def one_rank():
    wh.init(wh.Config({}))
    wh.set_default_strategy(wh.replicate(1))


def run(function, *arguments):
    return jax.tree.map(np.asarray, wh.jit(function, cluster=1)(*arguments))


# What is read along each of them meets lanes, tiles of columns and groups of
# dimensions in all ways.
CASES = [
    ("sum", (3000,), None),
    ("sum", (7, 1000), None),
    ("sum", (400, 10), None),
    ("sum", (70, 600), 1),
    ("sum", (70, 600), 0),
    ("sum", (30, 50, 7), (0, 2)),
    ("sum", (300, 3), 0),
    ("prod", (70, 600), 1),
    ("complex", (300, 20), 0),
]


def operand(rng, kind, shape):
    x = rng.standard_normal(shape).astype(np.float32)
    if kind == "prod":
        x = 1 + x / 16
    if kind == "complex":
        x = x + 1j * rng.standard_normal(shape).astype(np.float32)
    return x


def reduction(kind, axis):
    total = jnp.prod if kind == "prod" else jnp.sum
    return lambda x: total(x, axis=axis)


def variants(case, v):
    """One reduction of the same terms, fused with all sorts of neighbours."""
    kind, shape, axis = case
    by = reduction(kind, axis)
    x = v["x"]
    kept = x * v["ones"]
    return [
        by(v["half"] + v["half"]),
        by(v["turned"].transpose(tuple(reversed(range(len(shape)))))),
        by(v["longer"][1:]),
        by(x + v["lines"]),
        by(x + v["columns"]),
        by(jnp.where(jnp.arange(shape[-1]) < 0, 0, x)),
        (by(kept), kept, jnp.sin(kept)),
        (lambda s: (s, s * 2, x - s.sum()))(by(x)),
    ]


def test_order_is_not_that_of_the_fused_loop():
    rng = np.random.default_rng(0)
    xs = [operand(rng, kind, shape) for kind, shape, _ in CASES]
    # All in two programs, as each compilation takes long.
    alone = run(
        lambda xs: [
            reduction(kind, axis)(x) for (kind, _, axis), x in zip(CASES, xs)
        ],
        xs,
    )
    inputs = [
        {
            "x": x,
            "half": x / 2,
            "turned": np.ascontiguousarray(x.T),
            "longer": np.concatenate([x[:1], x]),
            "ones": np.ones(x.shape, x.dtype),
            "lines": np.zeros((*x.shape[:-1], 1), x.dtype),
            "columns": np.zeros(x.shape[-1:], x.dtype),
        }
        for x in xs
    ]
    fused = run(
        lambda inputs: [variants(c, v) for c, v in zip(CASES, inputs)], inputs
    )
    for case, expected, results in zip(CASES, alone, fused):
        for number, result in enumerate(results):
            result = result[0] if isinstance(result, tuple) else result
            assert result.tobytes() == expected.tobytes(), (case, number)


def test_long_sums():
    # Added in order, the mean of these is 0.25% off.
    tenth = np.float32(0.1)
    mean = run(lambda x: jnp.mean(jnp.broadcast_to(x, (1 << 24,))), tenth)
    assert abs(mean / tenth - 1) < 1e-6
    x = np.full((1000000, 5), tenth)
    columns, two = run(lambda x: (x.sum(0), x[:, :2].sum(0)), x)
    exact = 1000000 * np.float64(tenth)
    assert np.all(np.abs(columns / exact - 1) < 1e-6)
    assert np.all(np.abs(two / exact - 1) < 1e-6)


def _partial(dtype, strategy, micro_batches, reduce):
    """Reduces 16 rows whose halves overflow `dtype`, and all of them don't."""
    largest = float(jnp.finfo(dtype).max)
    signs = jnp.where(jnp.arange(16) < 8, 0.75, -0.75)
    rows = jnp.tile((signs * largest).astype(dtype)[:, None], (1, 4))
    wh.init(wh.Config({"num_micro_batch": micro_batches}))
    wh.set_default_strategy(strategy)
    return wh.jit(reduce, cluster=2, batch_argnums=0)(rows)


@pytest.mark.parametrize(
    "dtype", ["float16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz"]
)
@pytest.mark.parametrize("micro_batches", [1, 4])
def test_partial_sums_are_rounded_once(dtype, micro_batches):
    def project(rows):
        return rows.T @ jnp.ones((16, 3), dtype)

    result = _partial(dtype, wh.replicate(2), micro_batches, project)
    np.testing.assert_array_equal(np.asarray(result, np.float32), 0)


@pytest.mark.parametrize("dtype", ["float16", "float8_e5m2"])
def test_partial_products_are_rounded_once(dtype):
    factors = jnp.where(jnp.arange(16) < 8, 16.0, 1 / 16).astype(dtype)
    wh.set_default_strategy(wh.replicate(2))
    step = wh.jit(jnp.prod, cluster=2, batch_argnums=0)
    assert float(step(factors)) == 1


@pytest.mark.parametrize("is_tied", [False, True])
@pytest.mark.parametrize("micro_batches", [1, 4])
def test_gradients_of_tables(is_tied, micro_batches):
    """Updates go into the sum over micro-batches; rows without stay 0.0."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal((50, 8)).astype(np.float32)
    out = rng.standard_normal((8, 50)).astype(np.float32)
    # The rows from 20 on are in no sample.
    tokens = rng.integers(0, 20, (16, 6)).astype(np.int32)

    def gradients(table, out, tokens):
        def loss(table, out):
            hidden = jnp.tanh(table[tokens]).sum(axis=1)
            logits = hidden @ (table.T if is_tied else out)
            return jnp.mean(jax.nn.logsumexp(logits, axis=-1))

        return jax.grad(loss, argnums=(0, 1))(table, out)

    expected = jax.jit(gradients)(table, out, tokens)
    for ranks in (1, 2):
        bits = []
        for bucket_bytes in (64, 1 << 20):
            config = {
                "num_micro_batch": micro_batches,
                "communication.bucket_bytes": bucket_bytes,
            }
            wh.init(wh.Config(config))
            wh.set_default_strategy(wh.replicate(ranks))
            step = wh.jit(gradients, cluster=ranks, batch_argnums=2)
            actual = jax.tree.map(np.asarray, step(table, out, tokens))
            bits.append([array.tobytes() for array in actual])
            for a, e in zip(actual, expected):
                np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-6)
        assert bits[0] == bits[1]
        if not is_tied:
            assert not np.any(np.signbit(actual[0][20:]))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn"])
def test_half_precision_is_rounded_once(dtype):
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.random((200, 3)), dtype)
    exact = np.asarray(x).astype(np.float64)
    zero = np.zeros((), x.dtype)
    one = np.ones((), x.dtype)

    def add_twice(a, b):
        return a[0] + b[0], a[1] + b[1]

    results = run(
        lambda x: {
            "running": lax.cumsum(x, 0),
            "reversed": lax.cumsum(x, 0, reverse=True),
            "products": lax.cumprod(x[:9], 0),
            "windows": lax.reduce_window(
                x, zero, lax.add, (50, 1), (1, 1), "VALID"
            ),
            "reduce": lax.reduce(x, zero, lax.add, (0,)),
            "pairs": lax.reduce((x, x), (zero, zero), add_twice, (0,))[1],
            "gradient": jax.grad(
                lambda x: lax.cumsum(x, 0).astype(np.float32).sum()
            )(x),
            # Each window of three chooses the same element.
            "selected": jax.vjp(
                lambda x: lax.reduce_window(
                    x, -one * np.inf, lax.max, (3, 1), (1, 1), "VALID"
                ),
                jnp.zeros_like(x).at[10].set(1),
            )[1](x[:198])[0][10],
        },
        x,
    )
    expected = {
        "running": exact.cumsum(0),
        "reversed": exact[::-1].cumsum(0)[::-1],
        "products": exact[:9].cumprod(0),
        "windows": np.lib.stride_tricks.sliding_window_view(exact, 50, 0).sum(
            -1
        ),
        "reduce": exact.sum(0),
        "pairs": exact.sum(0),
        "gradient": np.arange(200, 0, -1)[:, None] + 0 * exact,
        "selected": exact[8:11].sum(0),
    }
    for name, value in expected.items():
        rounded = value.astype(np.float32).astype(x.dtype)
        assert np.array_equal(results[name], rounded), name


def test_running_sum_of_ones():
    ones = jnp.ones(600, jnp.bfloat16)
    assert run(jnp.cumsum, ones)[-1] == 600


def test_running_sums_without_a_wider_type():
    rng = np.random.default_rng(0)
    line, columns = rng.random(20000), rng.random((300, 3))
    five = np.float64(5)

    def step(line, columns):
        return (
            jnp.cumsum(line),
            lax.cumsum(line, reverse=True),
            lax.cumlogsumexp(line[:4000]),
            # The initial value is part of each sum once.
            lax.reduce_window(
                columns, five, lax.add, (300, 1), (1, 1), ((299, 0), (0, 0))
            ),
            jnp.cumsum(columns[:257] * 1j, 0).imag,
        )

    with jax.enable_x64(True):
        results = run(step, line, columns)
    wide, tall = line.astype(np.longdouble), columns.astype(np.longdouble)
    for result, exact in zip(
        results,
        (
            wide.cumsum(),
            wide[::-1].cumsum()[::-1],
            np.log(np.exp(wide[:4000]).cumsum()),
            5 + tall.cumsum(0),
            tall[:257].cumsum(0),
        ),
    ):
        # Added in order, the last of the first is 72 ulp off.
        assert result.dtype == np.float64
        assert np.all(np.abs(result - exact) < 5 * np.spacing(result))


def test_gradients_of_running_reductions():
    rng = np.random.default_rng(0)
    sizes = (1, 2, 3, 8, 16, 17, 33)
    lines = [1 + rng.random((2, size)) for size in sizes]
    weights = rng.random(33)

    def weigh(x, by):
        return jnp.sum(weights[: x.shape[1]] * by(x, 1))

    def step(lines):
        return [
            jax.grad(weigh)(x, by)
            for x in lines
            for by in (lax.cumprod, lax.cummax, lax.cummin)
        ]

    def chosen(x, by):
        """Each weight goes to the element that its result is."""
        result = np.zeros_like(x)
        for line, row in enumerate(x):
            for place, weight in enumerate(weights[: x.shape[1]]):
                result[line, by(row[: place + 1])] += weight
        return result

    with jax.enable_x64(True):
        results = iter(run(step, lines))
    for x in lines:
        terms = np.cumprod(x, 1) * weights[: x.shape[1]]
        for expected in (
            np.cumsum(terms[:, ::-1], 1)[:, ::-1] / x,
            chosen(x, np.argmax),
            chosen(x, np.argmin),
        ):
            assert np.allclose(next(results), expected, rtol=1e-12)


def test_sums_without_blocks_in_loops():
    # A reducer that is no single operation, products of complex numbers,
    # windows and convolutions of a type without a wider one.
    rng = np.random.default_rng(0)
    line = rng.random(1 << 16)
    single = line.astype(np.float32)
    factors = line - 0.5 + 1j * (0.5 - line[::-1])
    factors = (1 + factors / 256).astype(np.complex64)
    pair = np.stack([line[:3000], line[3000:6000]])

    def by_size(x, y):
        return (x[0] + y[0] * 1, jnp.maximum(x[1], y[1]))

    def step(single, factors, line, pair):
        zero, low = np.float64(0), np.float64(-np.inf)
        return (
            lax.reduce(single, np.float32(-np.inf), jnp.logaddexp, (0,)),
            lax.reduce(line, low, jnp.logaddexp, (0,)),
            lax.reduce(pair, low, jnp.logaddexp, (0, 1)),
            jnp.prod(factors),
            lax.reduce_window(line, zero, lax.add, (5000,), (100,), "VALID"),
            lax.reduce_window(
                pair, np.float64(5), lax.add, (2, 100), (1, 1), "VALID"
            ),
            # Some of these windows are in the padding alone.
            lax.reduce_window(
                line[:600], zero, lax.add, (200,), (1,), ((250, 300),)
            ),
            jnp.convolve(line, line[:1000], mode="valid"),
            lax.reduce((line, line), (zero, low), by_size, (0,)),
        )

    with jax.enable_x64(True):
        results = run(step, single, factors, line, pair)
    wide = line.astype(np.longdouble)
    slide = np.lib.stride_tricks.sliding_window_view
    padded = np.pad(wide[:600], (250, 300))
    exact = (
        np.log(np.exp(single.astype(np.longdouble)).sum()),
        np.log(np.exp(wide).sum()),
        np.log(np.exp(wide[:6000]).sum()),
        factors.astype(np.clongdouble).prod(),
        slide(wide, 5000)[::100].sum(-1),
        5 + slide(wide[:6000].reshape(2, 3000), (2, 100)).sum((-2, -1)),
        slide(padded, 200).sum(-1),
        np.convolve(wide, wide[:1000], mode="valid"),
        (wide.sum(), wide.max()),
    )
    for result, wanted in zip(
        jax.tree.leaves(results), jax.tree.leaves(exact), strict=True
    ):
        error = np.abs(result - wanted) / np.spacing(np.abs(result))
        assert error.max() < 6


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_scatter_rounds_as_xla(dtype):
    rng = np.random.default_rng(0)
    places = rng.integers(0, 3, 500)
    x = jnp.asarray(rng.random((500, 4)) / 10, dtype)

    def step(x):
        return jnp.zeros((3, 4), dtype).at[places].add(x)

    assert run(step, x).tobytes() == np.asarray(jax.jit(step)(x)).tobytes()


def test_top_k_of_booleans():
    x = np.array([[True, False, True, False], [False, False, True, True]])
    step = lambda x: lax.top_k(x, 3)  # noqa: E731
    for actual, expected in zip(run(step, x), jax.jit(step)(x)):
        assert np.array_equal(actual, expected)


def test_products_with_reflectors():
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.complex64):
        a = rng.standard_normal((2, 5, 3)).astype(dtype)
        c = rng.standard_normal((2, 4, 5)).astype(dtype)
        if dtype == np.complex64:
            a, c = a + 1j * a[::-1], c - 1j * c[::-1]

        def step(a, c):
            by = jax.scipy.linalg.qr_multiply
            left = jax.vmap(lambda a, c: by(a, c.T[:3], mode="left")[0])
            right = jax.vmap(lambda a, c: by(a, c)[0])
            return left(a, c), right(a, c)

        for actual, expected in zip(run(step, a, c), jax.jit(step)(a, c)):
            assert np.allclose(actual, expected, atol=1e-5)
