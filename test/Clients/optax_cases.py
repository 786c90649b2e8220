"""Optimizers, wrappers around them, losses and solvers of optax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import client
import jax
import jax.numpy as jnp
import optax
from client import BATCH, Client, Program, mlp, normal, weights
from jax.flatten_util import ravel_pytree
from optax import contrib, projections


def optimizer(
    make: Callable[[], Any],
    takes: Sequence[str] | None = None,
    **options: Any,
) -> Client:
    """One that takes of the loss what most do, or what is named."""
    given: dict[str, Any] = {} if takes is None else {"takes": takes}
    return Client(lambda: mlp(make(), **given), **options)


def outputs(loss: Callable[..., Any], **options: Any) -> Client:
    """A loss of a net's outputs and inputs."""
    return Client(lambda: mlp(loss=loss), **options)


def classes(x: jax.Array) -> jax.Array:
    return jnp.argmax(x[:, :4], -1)


def mask(params: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf.ndim > 1, params)


def labels(params: Any) -> Any:
    return {name: "slow" if name == "in" else "fast" for name in params}


def ctc(y: jax.Array, x: jax.Array) -> jax.Array:
    logits = jnp.stack([y, y + x[:, 1:5], x[:, 2:]], 1)
    return optax.ctc_loss(
        logits,
        jnp.zeros((BATCH, 3)),
        classes(x)[:, None] + 0,
        jnp.zeros((BATCH, 1)),
    ).mean()


def per_example() -> Program:
    """Clips the gradient of each sample, and adds noise."""
    inner = contrib.differentially_private_aggregate(1.0, 0.1, key=3)
    params = {"in": weights(0, 6, 8), "out": weights(1, 8, 4)}

    def loss(params: Any, x: jax.Array) -> jax.Array:
        return jnp.mean((jnp.tanh(x @ params["in"]) @ params["out"]) ** 2)

    def step(params: Any, state: Any, x: jax.Array) -> Any:
        grads = jax.vmap(jax.grad(loss), (None, 0))(params, x)
        updates, state = inner.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    return Program(step, (params, inner.init(params)), (normal(2, BATCH, 6),))


def curvature() -> Program:
    """The diagonal of the Hessian of a loss, and a product with it."""
    params = {"in": weights(0, 6, 4)}

    def loss(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        return optax.l2_loss(jnp.tanh(x @ params["in"]), y).mean()

    def step(params: Any, x: jax.Array, y: jax.Array) -> Any:
        diagonal = optax.second_order.hessian_diag(loss, params, x, y)
        flat = ravel_pytree(params)[0]
        product = optax.second_order.hvp(loss, flat, params, x, y)
        return params, diagonal, product

    return Program(step, (params,), (normal(1, BATCH, 6), normal(2, BATCH, 4)))


def assignment() -> Program:
    """Pairs objects with targets at the least cost, as detectors do."""
    params = weights(0, 6, 6)

    def loss(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        cost = jnp.sum((x @ params)[:, :, None] * y[:, None], -1)
        rows, columns = jax.vmap(optax.assignment.hungarian_algorithm)(
            jax.lax.stop_gradient(cost)
        )
        return jax.vmap(lambda c, i, j: c[i, j].mean())(
            cost, rows, columns
        ).mean()

    return client.trained(
        loss, params, normal(1, BATCH, 4, 6), normal(2, BATCH, 4, 6)
    )


def projected(project: Callable[..., Any]) -> Client:
    def step(params: Any, x: jax.Array) -> Any:
        grads = jax.grad(lambda p: jnp.mean((x @ p) ** 2))(params)
        return (project(params - 0.1 * grads),)

    return Client(
        lambda: Program(step, (normal(0, 6),), (normal(1, BATCH, 6),)),
        runs=client.WHOLE,
    )


def adversarial() -> Client:
    return optimizer(
        lambda: contrib.sam(
            optax.sgd(0.1),
            optax.chain(contrib.normalize(), optax.sgd(0.05)),
            sync_period=2,
        ),
        takes=(),
    )


def scheduled() -> Any:
    schedule = optax.join_schedules(
        [
            optax.linear_schedule(0.0, 0.1, 1),
            optax.cosine_decay_schedule(0.1, 9),
        ],
        [1],
    )
    return optax.inject_hyperparams(optax.adamw)(learning_rate=schedule)


SGD = optax.sgd
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "adabelief": lambda: optax.adabelief(1e-2),
    "adadelta": lambda: optax.adadelta(1.0),
    "adafactor": lambda: optax.adafactor(1e-2, min_dim_size_to_factor=4),
    "adagrad": lambda: optax.adagrad(1e-2),
    "adam": lambda: optax.adam(1e-2),
    "adam_half_momentum": lambda: optax.adam(1e-2, mu_dtype=jnp.bfloat16),
    "adamax": lambda: optax.adamax(1e-2),
    "adamw_masked": lambda: optax.adamw(1e-2, mask=mask),
    "adan": lambda: optax.adan(1e-2),
    "amsgrad": lambda: optax.amsgrad(1e-2),
    "fromage": lambda: optax.fromage(1e-2),
    "lamb": lambda: optax.lamb(1e-2),
    "lars": lambda: optax.lars(1e-1),
    "lbfgs": lambda: optax.lbfgs(),
    "lion": lambda: optax.lion(1e-3),
    "nadamw": lambda: optax.nadamw(1e-2),
    "noisy_sgd": lambda: optax.noisy_sgd(1e-2),
    "novograd": lambda: optax.novograd(1e-2),
    "optimistic_adam": lambda: optax.optimistic_adam_v2(1e-2),
    "polyak": lambda: optax.polyak_sgd(),
    "radam": lambda: optax.radam(1e-2),
    "rmsprop": lambda: optax.rmsprop(1e-2, centered=True, momentum=0.9),
    "rprop": lambda: optax.rprop(1e-2),
    "sign": lambda: optax.sign_sgd(1e-2),
    "sm3": lambda: optax.sm3(1e-1),
    "yogi": lambda: optax.yogi(1e-2),
    "accumulated": lambda: optax.MultiSteps(optax.adam(1e-2), 2),
    "agc": lambda: optax.chain(optax.adaptive_grad_clip(0.01), SGD(0.1)),
    "backtracking": lambda: optax.chain(
        SGD(1.0), optax.scale_by_backtracking_linesearch(9)
    ),
    "centralized": lambda: optax.chain(optax.centralize(), SGD(0.1)),
    "clipped_blocks": lambda: optax.chain(
        optax.clip_by_block_rms(0.1), SGD(0.1)
    ),
    "clipped_globally": lambda: optax.chain(
        optax.clip_by_global_norm(0.1),
        optax.add_noise(0.1, 0.5, key=4),
        SGD(0.1),
    ),
    "finite": lambda: optax.apply_if_finite(optax.adam(1e-2), 3),
    "flattened": lambda: optax.flatten(optax.adam(1e-2)),
    "lookahead_free": lambda: optax.chain(optax.ema(0.9), SGD(0.1)),
    "partitioned": lambda: optax.partition(
        {"slow": optax.lion(1e-3), "fast": optax.adam(1e-2)}, labels
    ),
    "plateau": lambda: optax.chain(
        SGD(0.1), contrib.reduce_on_plateau(patience=1, accumulation_size=1)
    ),
    "scheduled": scheduled,
    "zoom": lambda: optax.chain(SGD(1.0), optax.scale_by_zoom_linesearch(9)),
    "acprop": lambda: contrib.acprop(1e-2),
    "ademamix": lambda: contrib.ademamix(1e-2),
    "adopt": lambda: contrib.adopt(1e-2),
    "cocob": lambda: contrib.cocob(),
    "dadapt": lambda: contrib.dadapt_adamw(1.0),
    "dog": lambda: contrib.dog(),
    "dowg": lambda: contrib.dowg(),
    "mechanized": lambda: contrib.mechanize(optax.sgd(0.1)),
    "momo": lambda: contrib.momo_adam(),
    "muon": lambda: contrib.muon(1e-2),
    "prodigy": lambda: contrib.prodigy(),
    "schedule_free": lambda: contrib.schedule_free_adamw(1e-2),
    "simplified_ademamix": lambda: contrib.simplified_ademamix(1e-2),
    "sophia": lambda: contrib.sophia(1e-2),
}
LOSSES: dict[str, Callable[[jax.Array, jax.Array], jax.Array]] = {
    "sigmoid": lambda y, x: optax.sigmoid_binary_cross_entropy(
        y, x[:, :4] > 0
    ).mean(),
    "softmax": lambda y, x: optax.softmax_cross_entropy(
        y, optax.smooth_labels(jax.nn.one_hot(classes(x), 4), 0.1)
    ).mean(),
    "softmax_integer": lambda y, x: (
        optax.softmax_cross_entropy_with_integer_labels(y, classes(x)).mean()
    ),
    "softmax_where": lambda y, x: (
        optax.safe_softmax_cross_entropy(y, jax.nn.one_hot(classes(x), 4)).sum(
            where=x[:, 0] > 0
        )
        / BATCH
    ),
    "huber": lambda y, x: optax.huber_loss(y, x[:, :4], delta=0.5).mean(),
    "log_cosh": lambda y, x: optax.log_cosh(y, x[:, :4]).mean(),
    "hinge": lambda y, x: optax.losses.multiclass_hinge_loss(
        y, classes(x)
    ).mean(),
    "cosine": lambda y, x: optax.cosine_distance(
        y, x[:, :4], epsilon=1e-6
    ).mean(),
    "kl": lambda y, x: optax.kl_divergence(
        jax.nn.log_softmax(y), jax.nn.softmax(x[:, :4])
    ).mean(),
    "focal": lambda y, x: optax.sigmoid_focal_loss(
        y, x[:, :4] > 0, alpha=0.3
    ).mean(),
    "poly": lambda y, x: optax.losses.poly_loss_cross_entropy(
        y, jax.nn.softmax(x[:, :4])
    ).mean(),
    "sparsemax": lambda y, x: optax.losses.multiclass_sparsemax_loss(
        y, classes(x)
    ).mean(),
    "fenchel_young": lambda y, x: optax.losses.make_fenchel_young_loss(
        jax.nn.logsumexp
    )(y, x[:, :4]).mean(),
    "ranking": lambda y, x: optax.losses.ranking_softmax_loss(y, x[:, :4]),
    "triplet": lambda y, x: optax.losses.triplet_margin_loss(
        y, x[:, :4], x[:, 2:]
    ).mean(),
    "ctc": ctc,
}
# These search along a line: each step asks for the loss of the whole batch.
REFUSED = dict.fromkeys(
    ("lbfgs", "sophia", "zoom"), {"stages": client.JOINS_SAMPLES}
)
TAKES = {"sophia": ("obj_fn",)}

CASES = {
    **{
        name: optimizer(make, TAKES.get(name), refused=REFUSED.get(name, {}))
        for name, make in OPTIMIZERS.items()
    },
    "sam": adversarial(),
    **{f"loss_{name}": outputs(loss) for name, loss in LOSSES.items()},
    "private": Client(per_example, runs=client.WHOLE),
    "curvature": Client(curvature, runs=client.WHOLE),
    "assignment": Client(assignment, runs=client.WHOLE),
    "simplex": projected(projections.projection_simplex),
    "l1_ball": projected(projections.projection_l1_ball),
}
