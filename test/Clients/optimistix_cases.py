"""Solvers of optimistix, one problem a sample or one of the whole batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import client
import jax
import jax.numpy as jnp
import optimistix as optx
from client import BATCH, Client, Program, normal, weights

# A solver under vmap goes on until the last sample has ended.
REFUSED = {"stages": client.JOINS_SAMPLES}


def curve(y: Any, args: Any) -> Any:
    return jnp.tanh(args[0] * y[0] + y[1]) - args[1]


def residuals(y: Any, args: Any) -> Any:
    return jnp.concatenate([curve(y, args), 0.1 * y])


def energy(y: Any, args: Any) -> Any:
    return jnp.sum(residuals(y, args) ** 2)


def implicit(
    find: Callable[..., Any],
    solver: Callable[[], Any],
    function: Any,
) -> Client:
    """A layer whose output solves a problem of each sample."""

    def build() -> Program:
        def apply(params: Any, x: Any) -> Any:
            h = jnp.tanh(x @ params)

            def one(h: Any) -> Any:
                return find(
                    function,
                    solver(),
                    jnp.array([0.5, 0.1]),
                    (h[:4], h[4:]),
                    max_steps=8,
                    throw=False,
                ).value

            return jax.vmap(one)(h)

        return client.layer(apply, weights(0, 6, 8), normal(1, BATCH, 6))

    return Client(build, refused=REFUSED, tolerance=1e-3)


def fitted(
    find: Callable[..., Any],
    solver: Callable[[], Any],
    function: Any,
) -> Client:
    """A fit to the whole batch, from the last one on."""

    def build() -> Program:
        def step(y: Any, x: Any, target: Any) -> Any:
            found = find(
                function, solver(), y, (x, target), max_steps=4, throw=False
            )
            return (found.value, found.stats["num_steps"])

        state = (jnp.array([0.5, 0.1]),)
        return Program(
            step, state, (normal(1, BATCH), jnp.tanh(normal(2, BATCH)))
        )

    return Client(build, client.WHOLE, tolerance=1e-3)


def root(y: Any, args: Any) -> Any:
    return jnp.stack(
        [
            y[0] + 0.2 * jnp.tanh(y[1]) - args[0].sum(),
            y[1] - 0.2 * y[0] - args[1].mean(),
        ]
    )


def fixed(y: Any, args: Any) -> Any:
    return 0.3 * jnp.sin(y) + args[0][:2] * 0.1


RATES = (1e-4, 1e-4)

CASES = {
    "gauss_newton": implicit(
        optx.least_squares, lambda: optx.GaussNewton(*RATES), residuals
    ),
    "levenberg_marquardt": implicit(
        optx.least_squares, lambda: optx.LevenbergMarquardt(*RATES), residuals
    ),
    "dogleg": implicit(
        optx.least_squares, lambda: optx.Dogleg(*RATES), residuals
    ),
    "newton": implicit(optx.root_find, lambda: optx.Newton(*RATES), root),
    "chord": implicit(optx.root_find, lambda: optx.Chord(*RATES), root),
    "fixed_point": implicit(
        optx.fixed_point, lambda: optx.FixedPointIteration(*RATES), fixed
    ),
    "bfgs": implicit(optx.minimise, lambda: optx.BFGS(*RATES), energy),
    "fit_levenberg_marquardt": fitted(
        optx.least_squares, lambda: optx.LevenbergMarquardt(*RATES), residuals
    ),
    "fit_indirect": fitted(
        optx.least_squares,
        lambda: optx.IndirectLevenbergMarquardt(*RATES),
        residuals,
    ),
    "fit_bfgs": fitted(optx.minimise, lambda: optx.BFGS(*RATES), energy),
    "fit_cg": fitted(optx.minimise, lambda: optx.NonlinearCG(*RATES), energy),
    "fit_nelder_mead": fitted(
        optx.minimise, lambda: optx.NelderMead(*RATES), energy
    ),
    "fit_newton": fitted(optx.root_find, lambda: optx.Newton(*RATES), root),
}
