"""The order in which sums are formed, and what they are accumulated in."""

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
