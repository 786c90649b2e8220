"""Losses and metrics in which the samples of all micro-batches meet.

Under test: contrastive logits, losses that are no sums over samples, statistics
and orders of the mini-batch, and statistics without gradients between layers,
with micro-batches on replicas of uneven shares and in pipelines. 12 samples in
4 micro-batches: shares of two devices differ, and rotate. Values must be within
2e-5 of the magnitude of those of jax.jit. A failure means that the samples of a
part of the mini-batch were taken for all of them, or that gradients went astray
between parts and whole.
"""

import contextlib
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from test_programs import close

import whale as wh

pytest.importorskip("whale._whale")

IS_FULL = "WHALE_TEST_FULL" in os.environ
SAMPLES, FEATURES = 12, 6


def unit(z):
    return z / jnp.sqrt((z * z).sum(-1, keepdims=True) + 1e-6)


def contrastive(a, b, y):
    """CLIP's loss, and how many samples find their partner."""
    logits = unit(a) @ unit(b).T * 3
    own = jnp.arange(len(a))
    rows = -jax.nn.log_softmax(logits, 1)[own, own].mean()
    columns = -jax.nn.log_softmax(logits, 0)[own, own].mean()
    return rows + columns, (logits.argmax(1) == own).mean()


def two_views(a, b, y):
    """NT-Xent over both views, and distances between all of them."""
    z = unit(jnp.concatenate([a, b]))
    n = len(z)
    logits = jnp.where(jnp.eye(n, dtype=bool), -1e9, z @ z.T * 2)
    other = (jnp.arange(n) + n // 2) % n
    apart = ((a[:, None] - b[None]) ** 2).sum(-1)
    loss = -jnp.take_along_axis(jax.nn.log_softmax(logits), other[:, None], 1)
    return loss.mean() + jnp.exp(-apart).mean(), apart.max()


def whitened(a, b, y):
    """Barlow Twins: a product of features that the batch has normalised."""
    c = ((a - a.mean(0)) / (a.std(0) + 0.1)).T @ (b - b.mean(0)) / len(a)
    return ((c - jnp.eye(len(c))) ** 2).sum(), jnp.cov(a.T)


def scaled(a, b, y):
    """Errors in units of their spread; the gradient flows through it or not."""
    errors = ((a - b) ** 2).mean(-1)
    spread = errors.std() + 0.1
    fixed = errors / lax.stop_gradient(spread)
    x, t = a[:, 0] - a[:, 0].mean(), y - y.mean()
    similarity = (x * t).sum() / jnp.sqrt((x * x).sum() * (t * t).sum() + 0.1)
    loss = ((errors / spread) ** 2).mean() + fixed.mean() - similarity
    return loss + jnp.log(jnp.exp(errors).mean()), spread


def balanced(a, b, y):
    """Sinkhorn's normalisation along samples and features, in a loop."""

    def normalise(q, _):
        q = q / q.sum(0, keepdims=True)
        return q / q.sum(1, keepdims=True), None

    q, _ = lax.scan(normalise, jnp.exp(a), None, length=2)
    return -(q * jax.nn.log_softmax(b)).mean(), q.max(0)


def ranked(a, b, y):
    """The worst samples alone, and pairs in the wrong order."""
    errors = ((a - b) ** 2).mean(-1)
    score = a.sum(-1)
    pairs = jnp.where(
        y[:, None] > y[None], jax.nn.softplus(score[None] - score[:, None]), 0
    )
    return jnp.sort(errors)[-5:].mean() + pairs.mean(), errors.argmax()


def measured(a, b, y):
    """A plain mean: what is measured besides needs no gradient."""
    errors = ((a - b) ** 2).mean(-1)
    positive = y > 0
    right = positive[:, None] & ~positive & (errors[:, None] > errors)
    bins = jax.nn.one_hot(a.argmax(-1), a.shape[-1])
    usage = bins.mean(0)
    return errors.mean(), {
        "spread": (errors.std(), a.std(0), jnp.corrcoef(errors, y)),
        "quantile": (jnp.quantile(errors, 0.7), jnp.median(a, 0)),
        "order": (jnp.sort(errors), errors[jnp.argsort(y)]),
        "best": lax.top_k(errors, 3),
        "auc": right.sum() / jnp.maximum(positive.sum() * (~positive).sum(), 1),
        "perplexity": jnp.exp(-(usage * jnp.log(usage + 1e-9)).sum()),
        "codes": bins.T @ lax.stop_gradient(a),
    }


LOSSES = (
    contrastive,
    two_views,
    whitened,
    scaled,
    balanced,
    ranked,
    measured,
)
OFTEN = {
    (contrastive, 3, "stages"),
    (two_views, 3, "replicas"),
    (whitened, 12, "replicas"),
    (scaled, 3, "replicas"),
    (balanced, 3, "replicas"),
    (ranked, 3, "replicas"),
    (measured, 12, "stages"),
}


def nowhere(name):
    return contextlib.nullcontext()


def make_step(head, scope):
    def loss(params, x, y):
        with scope("towers"):
            a = jnp.tanh(x @ params["left"])
            b = jnp.tanh(x[:, ::-1] @ params["right"])
        with scope("head"):
            return head(a, b @ params["turn"], y)

    def step(params, x, y):
        out, gradients = jax.value_and_grad(loss, has_aux=True)(params, x, y)
        new = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)
        return new, out

    return step


def inputs(width):
    rng = np.random.default_rng(width)
    shapes = {
        "left": (FEATURES, width),
        "right": (FEATURES, width),
        "turn": (width, width),
    }
    params = {
        name: rng.standard_normal(shape, np.float32) / 2
        for name, shape in shapes.items()
    }
    x = rng.standard_normal((SAMPLES, FEATURES), np.float32)
    return params, x, rng.standard_normal(SAMPLES, np.float32)


@pytest.mark.parametrize(
    ("head", "width", "setup"),
    [
        pytest.param(head, width, setup, id=f"{head.__name__}-{width}-{setup}")
        for head in LOSSES
        for width in (1, 3, SAMPLES)
        for setup in ("one", "replicas", "uneven", "stages")
        if IS_FULL or (head, width, setup) in OFTEN
    ],
)
def test_samples_of_all_micro_batches(head, width, setup):
    args = inputs(width)
    expected = jax.jit(make_step(head, nowhere))(*args)
    count = {"one": 1, "replicas": 2, "uneven": 3, "stages": 2}[setup]
    wh.init(wh.Config({"num_micro_batch": 4}))
    if setup == "stages":
        step = make_step(head, lambda name: wh.replicate(1, name=name))
    else:
        wh.set_default_strategy(wh.replicate(count))
        step = make_step(head, nowhere)
    close(wh.jit(step, cluster=count, batch_argnums=(1, 2))(*args), expected)


def quantize(h):
    """Rounded to 127 steps of the largest magnitude, its gradient as if not."""
    unit = lax.stop_gradient(jnp.abs(h).max()) / 127
    return h + lax.stop_gradient(jnp.round(h / unit) * unit - h)


def cluster_rows(h):
    """Each sample moves to the mean of those that are nearest to its centre."""
    fixed = lax.stop_gradient(h)
    nearest = jax.nn.one_hot(fixed[:, :4].argmin(1), 4)
    centres = nearest.T @ fixed / (nearest.sum(0)[:, None] + 1)
    return h + nearest @ centres - fixed


def whiten(h):
    """By a factor of the covariance, and in units of the median."""
    fixed = lax.stop_gradient(h)
    factor = jnp.linalg.cholesky(fixed.T @ fixed + jnp.eye(fixed.shape[1]))
    h = jax.scipy.linalg.solve_triangular(factor, h.T, lower=True).T
    return h / jnp.median(jnp.abs(lax.stop_gradient(h)))


@pytest.mark.parametrize(
    ("between", "setup"),
    [
        (quantize, "stages"),
        pytest.param(quantize, "uneven", marks=pytest.mark.long),
        (cluster_rows, "stages"),
        pytest.param(cluster_rows, "uneven", marks=pytest.mark.long),
        pytest.param(whiten, "stages", marks=pytest.mark.long),
        (whiten, "uneven"),
    ],
)
def test_statistics_between_layers(between, setup):
    """Without gradients they are those of all samples, layer by layer; with
    jax.checkpoint the backward computes them again."""

    def make(scope):
        def loss(params, x, y):
            with scope("first"):
                h = between(jnp.tanh(x @ params["left"]))
            with scope("second"):
                layer = jax.checkpoint(lambda h, w: between(jnp.tanh(h @ w)))
                h = layer(h, params["turn"])
                return ((h @ params["right"].T).mean(-1) - y).var()

        def step(params, x, y):
            out, gradients = jax.value_and_grad(loss)(params, x, y)
            new = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)
            return new, out

        return step

    args = inputs(5)
    expected = jax.jit(make(nowhere))(*args)
    wh.init(wh.Config({"num_micro_batch": 4}))
    step = make(lambda name: wh.replicate(1, name=name))
    if setup == "uneven":
        wh.set_default_strategy(wh.replicate(3))
        step = make(nowhere)
    count = {"uneven": 3, "stages": 2}[setup]
    close(wh.jit(step, cluster=count, batch_argnums=(1, 2))(*args), expected)


def test_statistic_before_what_waits_for_gradients():
    """Sums of the backward pass that are no gradient of the statistic: of a
    loss that is computed again, and of an update, which forwards follow."""

    @jax.checkpoint
    def loss(params, x, y):
        h = quantize(jnp.tanh(x @ params["left"]))
        h = jnp.tanh(h @ params["turn"]) @ params["right"].T
        return (h.mean(-1) - y).var()

    def step(params, x, y):
        for _ in range(2):
            out, gradients = jax.value_and_grad(loss)(params, x, y)
            params = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)
        return params, out

    args = inputs(5)
    expected = jax.jit(step)(*args)
    wh.init(wh.Config({"num_micro_batch": 4}))
    wh.set_default_strategy(wh.replicate(2))
    close(wh.jit(step, cluster=2, batch_argnums=(1, 2))(*args), expected)


def test_extremes_of_the_rounds_of_a_loop():
    """Of each layer and of all; and what JAX keeps for gradients that are 0."""

    def step(w, x):
        def layer(carry, w):
            h = jnp.tanh(carry[0] @ w)
            largest = jnp.maximum(carry[1], h.max())
            each = h.max(), h.min(0), (h > 0.5).any(), h.mean()
            return (h, largest), each

        def loss(w):
            (h, largest), each = lax.scan(layer, (x, jnp.float32(-2)), w)
            return (h**2).mean(), (largest, each)

        return jax.value_and_grad(loss, has_aux=True)(w)

    rng = np.random.default_rng(0)
    w = rng.standard_normal((3, FEATURES, FEATURES), np.float32)
    x = rng.standard_normal((SAMPLES, FEATURES), np.float32)
    wh.init(wh.Config({"num_micro_batch": 4}))
    wh.set_default_strategy(wh.replicate(2))
    jitted = wh.jit(step, cluster=2, batch_argnums=1)
    close(jitted(w, x), jax.jit(step)(w, x))
