"""Variational inference and samplers of numpyro."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import client
import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from client import BATCH, Client, Program, normal
from numpyro import infer, optim
from numpyro.infer import autoguide, reparam

DATA = normal(2, BATCH, 3)


def targets() -> Any:
    return DATA @ jnp.array([1.0, -2.0, 0.5]) + 0.1 * normal(3, BATCH)


def regression(x: Any, y: Any = None) -> None:
    w = numpyro.sample("w", dist.Normal(jnp.zeros(3), 1.0).to_event(1))
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Normal(x @ w, scale), obs=y)


def logistic(x: Any, y: Any = None) -> None:
    w = numpyro.sample("w", dist.Laplace(jnp.zeros(3), 1.0).to_event(1))
    with numpyro.plate("data", len(x)):
        label = None if y is None else (y > 0).astype(int)
        numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=label)


def counts(x: Any, y: Any = None) -> None:
    w = numpyro.sample("w", dist.StudentT(3.0, jnp.zeros(3), 1.0).to_event(1))
    rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
    with numpyro.plate("data", len(x)):
        seen = None if y is None else jnp.floor(jnp.abs(y))
        numpyro.sample(
            "y", dist.NegativeBinomial2(jnp.exp(x @ w), rate), obs=seen
        )


def mixture(x: Any, y: Any = None) -> None:
    shares = numpyro.sample("shares", dist.Dirichlet(jnp.ones(3)))
    means = numpyro.sample(
        "means", dist.Normal(0.0, 3.0).expand([3]).to_event(1)
    )
    with numpyro.plate("data", len(x)):
        parts = dist.Normal(means, 1.0)
        numpyro.sample(
            "y", dist.MixtureSameFamily(dist.Categorical(shares), parts), obs=y
        )


def correlated(x: Any, y: Any = None) -> None:
    corr = numpyro.sample("corr", dist.LKJCholesky(3, 2.0))
    scales = numpyro.sample("scales", dist.HalfCauchy(jnp.ones(3)).to_event(1))
    lower = scales[:, None] * corr
    with numpyro.plate("data", len(x)):
        numpyro.sample(
            "x", dist.MultivariateNormal(jnp.zeros(3), scale_tril=lower), obs=x
        )


def levels(x: Any, y: Any = None) -> None:
    """Groups with a mean in common, in other coordinates."""
    with numpyro.handlers.reparam(config={"mean": reparam.LocScaleReparam(0)}):
        centre = numpyro.sample("centre", dist.Normal(0.0, 1.0))
        with numpyro.plate("groups", 4):
            mean = numpyro.sample("mean", dist.Normal(centre, 1.0))
    with numpyro.plate("data", len(x)):
        group = jnp.floor(jnp.abs(x[:, 0]) * 2).astype(int) % 4
        numpyro.sample("y", dist.Normal(mean[group], 1.0), obs=y)


def series(x: Any, y: Any = None) -> None:
    """A random walk by numpyro's scan."""
    drift = numpyro.sample("drift", dist.Normal(0.0, 1.0))

    def one(carry: Any, seen: Any) -> Any:
        carry = numpyro.sample("z", dist.Normal(0.5 * carry + drift, 1.0))
        numpyro.sample("seen", dist.Normal(carry, 0.5), obs=seen)
        return carry, None

    numpyro.contrib.control_flow.scan(one, 0.0, y)


def svi(
    model: Any,
    guide: Callable[[Any], Any] = autoguide.AutoNormal,
    loss: Callable[[], Any] = infer.Trace_ELBO,
    optimizer: Callable[[], Any] = lambda: optim.Adam(1e-2),
) -> Client:
    def build() -> Program:
        inference = infer.SVI(model, guide(model), optimizer(), loss())
        state = inference.init(jax.random.PRNGKey(0), DATA, targets())

        def step(state: Any, x: Any, y: Any) -> Any:
            return inference.update(state, x, y)

        return Program(step, (state,), (DATA, targets()))

    return Client(build, runs=client.WHOLE)


def sampler(model: Any, kernel: Callable[[Any], Any]) -> Client:
    """Some transitions of a sampler, the data in a batch."""

    def build() -> Program:
        made = kernel(model)
        first = made.init(
            jax.random.PRNGKey(0),
            2,
            None,
            model_args=(DATA, targets()),
            model_kwargs={},
        )

        def step(state: Any, x: Any, y: Any) -> Any:
            for _ in range(2):
                state = made.sample(state, (x, y), {})
            return (state,)

        return Program(step, (first,), (DATA, targets()))

    return Client(build, runs=client.WHOLE)


def predictive() -> Program:
    """What a model predicts from draws of its parameters."""
    draws = {"w": normal(0, 5, 3), "scale": jnp.exp(normal(1, 5))}

    def step(draws: Any, x: Any) -> Any:
        made = infer.Predictive(regression, draws)(jax.random.PRNGKey(1), x)
        return draws, made["y"]

    return Program(step, (draws,), (DATA,))


CASES = {
    "svi_normal": svi(regression),
    "svi_multivariate": svi(regression, autoguide.AutoMultivariateNormal),
    "svi_low_rank": svi(regression, autoguide.AutoLowRankMultivariateNormal),
    "svi_laplace": svi(regression, autoguide.AutoLaplaceApproximation),
    "svi_delta": svi(regression, autoguide.AutoDelta),
    "svi_particles": svi(
        logistic, loss=lambda: infer.Trace_ELBO(num_particles=3)
    ),
    "svi_mean_field": svi(logistic, loss=infer.TraceMeanField_ELBO),
    "svi_renyi": svi(logistic, loss=lambda: infer.RenyiELBO(2.0, 3)),
    # Gradients of what its masks hide are rounding errors, which Adam enlarges.
    "svi_flow": svi(
        regression,
        lambda m: autoguide.AutoBNAFNormal(m, num_flows=1),
        optimizer=lambda: optim.SGD(1e-3),
    ),
    "svi_iaf": svi(
        regression, lambda m: autoguide.AutoIAFNormal(m, num_flows=1)
    ),
    "svi_counts": svi(counts),
    "svi_mixture": svi(mixture, optimizer=lambda: optim.ClippedAdam(1e-2)),
    "svi_correlated": svi(correlated),
    "svi_levels": svi(levels, optimizer=lambda: optim.RMSPropMomentum(1e-2)),
    "hmc": sampler(regression, lambda m: infer.HMC(m, num_steps=3)),
    "nuts": sampler(regression, lambda m: infer.NUTS(m, max_tree_depth=3)),
    "nuts_logistic": sampler(
        logistic, lambda m: infer.NUTS(m, dense_mass=True, max_tree_depth=2)
    ),
    "barker": sampler(regression, infer.BarkerMH),
    "adaptive": sampler(regression, infer.SA),
    "predictive": Client(predictive, runs=client.WHOLE),
}
