"""Samplers of blackjax, with the data of the density in a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import blackjax
import client
import jax
import jax.numpy as jnp
import optax
from client import BATCH, Client, Program, normal

X = normal(2, BATCH, 3)


def targets() -> Any:
    return (X @ jnp.array([1.0, -2.0, 0.5]) > 0).astype(jnp.float32)


def density(x: Any, y: Any) -> Callable[[Any], Any]:
    """The posterior of a logistic regression."""

    def log_prob(w: Any) -> Any:
        seen = -optax.sigmoid_binary_cross_entropy(x @ w, y).sum()
        return seen - 0.5 * jnp.sum(w * w)

    return log_prob


def sampler(
    make: Callable[[Any], Any],
    first: Callable[[Any], Any] | None = None,
    **options: Any,
) -> Client:
    def build() -> Program:
        w = jnp.array([0.5, -0.5, 0.1])
        made = make(density(X, targets()))
        state = first(made) if first else made.init(w)

        def step(state: Any, key: Any, x: Any, y: Any) -> Any:
            kernel = make(density(x, y))
            infos = []
            for _ in range(2):
                key, use = jax.random.split(key)
                state, info = kernel.step(use, state)
                infos.append(info)
            return state, key, jax.tree.leaves(infos)

        return Program(step, (state, jax.random.key(1)), (X, targets()))

    return Client(build, runs=client.WHOLE, **options)


def stochastic(make: Callable[[Any], Any]) -> Client:
    """A sampler of gradients of mini-batches."""

    def build() -> Program:
        def gradient(w: Any, batch: Any) -> Any:
            return jax.grad(density(*batch))(w)

        kernel = make(gradient)
        w = jnp.array([0.5, -0.5, 0.1])

        def step(state: Any, key: Any, x: Any, y: Any) -> Any:
            key, use = jax.random.split(key)
            return kernel.step(use, state, (x, y), 1e-2), key

        state = kernel.init(w)
        return Program(step, (state, jax.random.key(1)), (X, targets()))

    return Client(build, runs=client.WHOLE)


def tempered() -> Program:
    """Particles from the prior to the posterior."""
    particles = normal(3, 8, 3)

    def prior(w: Any) -> Any:
        return -0.5 * jnp.sum(w * w)

    def make(x: Any, y: Any) -> Any:
        return blackjax.tempered_smc(
            prior,
            density(x, y),
            blackjax.hmc.build_kernel(),
            blackjax.hmc.init,
            blackjax.smc.extend_params(
                {
                    "step_size": 0.05,
                    "inverse_mass_matrix": jnp.ones(3),
                    "num_integration_steps": 2,
                }
            ),
            blackjax.smc.resampling.systematic,
            num_mcmc_steps=2,
        )

    def step(state: Any, key: Any, x: Any, y: Any) -> Any:
        key, use = jax.random.split(key)
        state, _ = make(x, y).step(use, state, state.tempering_param + 0.3)
        return state, key

    state = make(X, targets()).init(particles)
    return Program(step, (state, jax.random.key(1)), (X, targets()))


def stein() -> Program:
    """Particles that move together."""

    def make(x: Any, y: Any) -> Any:
        return blackjax.svgd(jax.grad(density(x, y)), optax.sgd(0.1))

    def step(state: Any, x: Any, y: Any) -> Any:
        return (make(x, y).step(state),)

    state = make(X, targets()).init(normal(3, 5, 3), {"length_scale": 1.0})
    return Program(step, (state,), (X, targets()))


def variational() -> Program:
    def make(x: Any, y: Any) -> Any:
        return blackjax.meanfield_vi(density(x, y), optax.adam(1e-2), 4)

    def step(state: Any, key: Any, x: Any, y: Any) -> Any:
        key, use = jax.random.split(key)
        state, info = make(x, y).step(use, state)
        return state, key, info

    state = make(X, targets()).init(jnp.zeros(3))
    return Program(step, (state, jax.random.key(1)), (X, targets()))


MASS = {"step_size": 0.1, "inverse_mass_matrix": jnp.ones(3)}

CASES = {
    "hmc": sampler(lambda p: blackjax.hmc(p, num_integration_steps=3, **MASS)),
    "nuts": sampler(lambda p: blackjax.nuts(p, max_num_doublings=3, **MASS)),
    "dynamic_hmc": sampler(
        lambda p: blackjax.dynamic_hmc(p, **MASS),
        lambda m: m.init(jnp.zeros(3), jax.random.key(2)),
    ),
    "mala": sampler(lambda p: blackjax.mala(p, 0.1)),
    "barker": sampler(lambda p: blackjax.barker_proposal(p, 0.1)),
    "random_walk": sampler(
        lambda p: blackjax.additive_step_random_walk.normal_random_walk(
            p, jnp.eye(3) * 0.1
        )
    ),
    "ghmc": sampler(
        lambda p: blackjax.ghmc(p, 0.1, jnp.ones(3), 0.3, 0.1),
        lambda m: m.init(jnp.zeros(3), jax.random.key(2)),
    ),
    "mclmc": sampler(
        lambda p: blackjax.mclmc(p, 1.0, 0.1, inverse_mass_matrix=jnp.ones(3)),
        lambda m: m.init(jnp.ones(3), jax.random.key(2)),
        # It gives the change of an energy, which almost cancels.
        tolerance=1e-2,
    ),
    "elliptical_slice": sampler(
        lambda p: blackjax.elliptical_slice(
            p, mean=jnp.zeros(3), cov=jnp.eye(3)
        )
    ),
    "sgld": stochastic(blackjax.sgld),
    "sghmc": stochastic(lambda g: blackjax.sghmc(g, num_integration_steps=3)),
    "tempered_smc": Client(tempered, runs=client.WHOLE),
    "svgd": Client(stein, runs=client.WHOLE),
    "meanfield_vi": Client(variational, runs=client.WHOLE),
}
