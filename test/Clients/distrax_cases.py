"""Distributions, bijectors and flows of distrax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import client
import distrax
import jax
import jax.numpy as jnp
from client import BATCH, Client, Program, normal, numbers, part, weights


def likelihood(
    make: Callable[[Any], Any],
    size: int,
    value: Callable[[Any], Any],
) -> Client:
    """Fits a distribution whose parameters a net gives."""

    def build() -> Program:
        params = {"in": weights(0, 6, 8), "out": weights(1, 8, size)}

        def loss(params: Any, x: Any) -> Any:
            with part("body"):
                h = jnp.tanh(x @ params["in"])
            with part("head"):
                distribution = make(h @ params["out"])
                return -jnp.mean(distribution.log_prob(value(x)))

        return client.trained(loss, params, normal(2, BATCH, 6))

    return Client(build)


def sampled(
    make: Callable[[Any], Any],
    size: int,
) -> Client:
    """A loss of samples, whose gradient goes through them."""

    def build() -> Program:
        params = {"in": weights(0, 6, 8), "out": weights(1, 8, size)}

        def loss(params: Any, key: Any, x: Any) -> Any:
            key, use = jax.random.split(key)
            with part("body"):
                h = jnp.tanh(x @ params["in"])
            with part("head"):
                made = make(h @ params["out"])
                y, log_prob = made.sample_and_log_prob(seed=use, sample_shape=2)
                return jnp.mean(y * y) + 0.1 * jnp.mean(log_prob), key

        return client.trained(
            loss, params, normal(2, BATCH, 6), extra=jax.random.key(3)
        )

    return Client(build)


def flow(bijector: Callable[[Any], Any], params: Any, size: int) -> Client:
    """Maximum likelihood of what a chain of bijectors makes of a normal."""

    def build() -> Program:
        def loss(params: Any, x: Any) -> Any:
            base = distrax.MultivariateNormalDiag(
                jnp.zeros(size), jnp.ones(size)
            )
            made = distrax.Transformed(base, bijector(params))
            return -jnp.mean(made.log_prob(x))

        return client.trained(loss, params(), normal(9, BATCH, size))

    return Client(build, runs=client.WHOLE)


def coupling(params: Any) -> Any:
    def conditioned(matrix: Any) -> Callable[[Any], Any]:
        return lambda x: jnp.tanh(x @ matrix).reshape(*x.shape, 2)

    def affine(values: Any) -> Any:
        return distrax.ScalarAffine(values[..., 0], log_scale=values[..., 1])

    mask = jnp.arange(4) % 2 == 0
    return distrax.Chain(
        [
            distrax.MaskedCoupling(mask, conditioned(params["a"]), affine),
            distrax.MaskedCoupling(~mask, conditioned(params["b"]), affine),
        ]
    )


def spline(params: Any) -> Any:
    return distrax.Block(
        distrax.RationalQuadraticSpline(params, range_min=-3.0, range_max=3.0),
        1,
    )


def triangular(params: Any) -> Any:
    lower = jnp.eye(4) + jnp.tril(0.1 * params, -1)
    return distrax.Chain(
        [
            distrax.TriangularLinear(lower),
            distrax.Block(distrax.Inverse(distrax.Tanh()), 1),
            distrax.Block(distrax.ScalarAffine(0.0, 0.1), 1),
            distrax.Block(distrax.Tanh(), 1),
        ]
    )


def hidden_markov() -> Program:
    """Learns the parameters of a hidden Markov model, and decodes."""
    params = {
        "start": normal(0, 3),
        "move": normal(1, 3, 3),
        "seen": normal(2, 3, 5),
    }

    def model(params: Any) -> Any:
        return distrax.HMM(
            distrax.Categorical(logits=params["start"]),
            distrax.Categorical(logits=params["move"]),
            distrax.Categorical(logits=params["seen"]),
        )

    def step(params: Any, x: Any) -> Any:
        def loss(params: Any) -> Any:
            return -jnp.mean(jax.vmap(lambda x: model(params).forward(x)[0])(x))

        grads = jax.grad(loss)(params)
        params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
        return params, jax.vmap(model(params).viterbi)(x)

    return Program(step, (params,), (numbers(3, 5, BATCH, 6),))


def halves(y: Any) -> tuple[Any, Any]:
    a, b = jnp.split(y, 2, -1)
    return a, jax.nn.softplus(b) + 0.1


def mixture(y: Any) -> Any:
    logits, means, scales = jnp.split(y, 3, -1)
    return distrax.MixtureSameFamily(
        distrax.Categorical(logits=logits),
        distrax.Normal(means, jax.nn.softplus(scales) + 0.1),
    )


def full(y: Any) -> Any:
    lower = jnp.tril(y[..., 3:].reshape(-1, 3, 3), -1) + jnp.eye(3)
    return distrax.MultivariateNormalTri(y[..., :3], lower)


CASES = {
    "normal": likelihood(
        lambda y: distrax.Normal(*halves(y)), 8, lambda x: x[:, :4]
    ),
    "categorical": likelihood(
        lambda y: distrax.Categorical(logits=y), 4, lambda x: x.argmax(-1) % 4
    ),
    "bernoulli": likelihood(
        lambda y: distrax.Bernoulli(logits=y), 4, lambda x: x[:, :4] > 0
    ),
    "beta": likelihood(
        lambda y: distrax.Beta(*map(jnp.exp, jnp.split(y, 2, -1))),
        *(8, lambda x: jax.nn.sigmoid(x[:, :4])),
    ),
    "dirichlet": likelihood(
        lambda y: distrax.Dirichlet(jnp.exp(y)),
        4,
        lambda x: jax.nn.softmax(x[:, :4]),
    ),
    "gamma": likelihood(
        lambda y: distrax.Gamma(*map(jnp.exp, jnp.split(y, 2, -1))),
        *(8, lambda x: jnp.exp(x[:, :4])),
    ),
    "von_mises": likelihood(
        lambda y: distrax.VonMises(y[..., :2], jnp.exp(y[..., 2:])),
        4,
        lambda x: jnp.sin(x[:, :2]),
    ),
    "mixture": likelihood(mixture, 9, lambda x: x[:, 0]),
    "normal_tri": likelihood(full, 12, lambda x: x[:, :3]),
    "laplace_samples": sampled(lambda y: distrax.Laplace(*halves(y)), 8),
    "gumbel_samples": sampled(lambda y: distrax.Gumbel(*halves(y)), 8),
    "straight_through": sampled(
        lambda y: distrax.straight_through_wrapper(distrax.OneHotCategorical)(
            logits=y
        ),
        4,
    ),
    "gamma_samples": sampled(
        lambda y: distrax.Gamma(*map(jnp.exp, jnp.split(y, 2, -1))),
        8,
    ),
    "coupling": flow(
        coupling, lambda: {"a": weights(0, 4, 8), "b": weights(1, 4, 8)}, 4
    ),
    "spline": flow(spline, lambda: normal(0, 4, 13), 4),
    "triangular": flow(triangular, lambda: normal(0, 4, 4), 4),
    "hidden_markov": Client(hidden_markov, runs=client.WHOLE),
}
