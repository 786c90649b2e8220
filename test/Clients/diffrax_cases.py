"""Differential equations by diffrax, one for each sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import client
import diffrax
import jax
import jax.numpy as jnp
from client import BATCH, Client, Program, normal, weights

# A solver under vmap takes steps until the last sample has ended.
REFUSED = {"stages": client.JOINS_SAMPLES}


def field(t: Any, y: Any, params: Any) -> Any:
    return jnp.tanh(y @ params["in"]) @ params["out"]


def params() -> Any:
    return {"in": weights(0, 3, 6), "out": weights(1, 6, 3) / 2}


def solved(
    solver: Callable[[], Any],
    controller: Callable[[], Any] = diffrax.ConstantStepSize,
    adjoint: Callable[[], Any] = diffrax.RecursiveCheckpointAdjoint,
    saveat: Callable[[], Any] = lambda: diffrax.SaveAt(t1=True),
    **options: Any,
) -> Client:
    """A neural equation; errors are values, so that no callback is needed."""

    def build() -> Program:
        def apply(params: Any, x: Any) -> Any:
            def one(x: Any) -> Any:
                return diffrax.diffeqsolve(
                    diffrax.ODETerm(field),
                    solver(),
                    0.0,
                    1.0,
                    0.25,
                    x,
                    params,
                    stepsize_controller=controller(),
                    adjoint=adjoint(),
                    saveat=saveat(),
                    max_steps=16,
                    throw=False,
                ).ys

            return jax.vmap(one)(x)

        return client.layer(apply, params(), normal(2, BATCH, 3))

    return Client(build, refused=REFUSED, **options)


def stochastic() -> Program:
    """Noise from a Brownian tree of each sample's own key."""

    def apply(params: Any, key: Any, x: Any) -> Any:
        key, use = jax.random.split(key)

        def one(x: Any, key: Any) -> Any:
            noise = diffrax.VirtualBrownianTree(0.0, 1.0, 0.1, (3,), key)
            terms: Any = diffrax.MultiTerm(
                diffrax.ODETerm(field),
                diffrax.ControlTerm(lambda t, y, a: 0.1 * jnp.diag(y), noise),
            )
            return diffrax.diffeqsolve(
                terms,
                diffrax.EulerHeun(),
                0.0,
                1.0,
                0.25,
                x,
                params,
                max_steps=8,
                throw=False,
            ).ys

        return jax.vmap(one)(x, jax.random.split(use, BATCH)), key

    return client.layer(
        apply, params(), normal(2, BATCH, 3), extra=jax.random.key(5)
    )


def controlled() -> Program:
    """A controlled equation along the cubic through a series."""
    times = jnp.linspace(0.0, 1.0, 5)

    def apply(params: Any, x: Any) -> Any:
        def one(series: Any) -> Any:
            path = diffrax.CubicInterpolation(
                times, diffrax.backward_hermite_coefficients(times, series)
            )

            def vector(t: Any, y: Any, a: Any) -> Any:
                return jnp.tanh(y @ params["matrix"]).reshape(4, 2)

            term = diffrax.ControlTerm(vector, path).to_ode()
            return diffrax.diffeqsolve(
                term,
                diffrax.Heun(),
                0.0,
                1.0,
                0.25,
                series[0] @ params["first"],
                max_steps=8,
                throw=False,
            ).ys

        return jax.vmap(one)(x)

    given = {"matrix": weights(0, 4, 8), "first": weights(1, 2, 4)}
    return client.layer(apply, given, normal(2, BATCH, 5, 2))


def event() -> Program:
    """Ends where a condition holds."""

    def apply(params: Any, x: Any) -> Any:
        def one(x: Any) -> Any:
            stop = diffrax.Event(lambda t, y, a, **_: y.sum() > 1.0)
            return diffrax.diffeqsolve(
                diffrax.ODETerm(field),
                diffrax.Tsit5(),
                0.0,
                1.0,
                0.25,
                x,
                params,
                event=stop,
                max_steps=8,
                throw=False,
            ).ys

        return jax.vmap(one)(x)

    return client.layer(apply, params(), normal(2, BATCH, 3))


def adaptive() -> Any:
    return diffrax.PIDController(rtol=1e-3, atol=1e-5)


CASES = {
    "euler": solved(diffrax.Euler),
    "heun": solved(diffrax.Heun),
    "tsit5": solved(diffrax.Tsit5, adaptive),
    "dopri8": solved(diffrax.Dopri8, adaptive),
    "direct": solved(diffrax.Bosh3, adaptive, diffrax.DirectAdjoint),
    "backsolve": solved(
        diffrax.Tsit5, adaptive, diffrax.BacksolveAdjoint, tolerance=1e-3
    ),
    "forward": solved(diffrax.Ralston, adjoint=diffrax.DirectAdjoint),
    "implicit_euler": solved(diffrax.ImplicitEuler, adaptive, tolerance=1e-3),
    "kvaerno": solved(diffrax.Kvaerno3, adaptive, tolerance=1e-3),
    "reversible": solved(
        diffrax.ReversibleHeun,
        saveat=lambda: diffrax.SaveAt(ts=jnp.linspace(0.0, 1.0, 3)),
    ),
    "dense": solved(
        diffrax.Tsit5, saveat=lambda: diffrax.SaveAt(t0=True, steps=True)
    ),
    "stochastic": Client(stochastic, refused=REFUSED),
    "controlled": Client(controlled, refused=REFUSED),
    "event": Client(event, refused=REFUSED),
}
