"""Attention in all the ways that it is written, beside jax.jit.

Each case says whether the compiler makes one operation of it: the saved program
then calls `attention`, and `attention_gradient`, and holds no tensor of scores.

Values and gradients must be within 2e-5 of the largest magnitude of each
tensor, 3e-2 in halves; all inputs have fixed seeds. A failure means that a
pattern is not recognized, is recognized where it is something else, or is
computed wrongly. Each case compiles a program with Whale and one with XLA.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_programs import close

import whale as wh

pytest.importorskip("whale._whale")

BATCH, TIME, HEADS, GROUPS, WIDTH = 4, 72, 4, 2, 8
MODEL = HEADS * WIDTH

Attend = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]


def scores_of(q: jax.Array, k: jax.Array) -> jax.Array:
    return jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(WIDTH)


def mix(scores: jax.Array, v: jax.Array) -> jax.Array:
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


def plain(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    return mix(scores_of(q, k), v)


def causal(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    mask = jnp.tril(jnp.ones((TIME, TIME), bool))
    return mix(jnp.where(mask, scores_of(q, k), -1e9), v)


def constant_mask(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    mask = np.tril(np.ones((TIME, TIME), bool), 3)
    return mix(jnp.where(mask, scores_of(q, k), -jnp.inf), v)


def padded(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Masks whole keys; what is masked depends on the data."""
    gone = k[:, :, 0, 0] > 0.5
    return mix(jnp.where(gone[:, None, None], -1e9, scores_of(q, k)), v)


def all_masked(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """All keys of half of the rows are masked, with a number that counts."""
    kept = jnp.arange(TIME)[:, None] % 2 == 0
    mask = jnp.broadcast_to(kept, (TIME, TIME))
    return mix(jnp.where(mask, scores_of(q, k), -3.0), v)


def biased(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    distance = jnp.abs(jnp.arange(TIME)[:, None] - jnp.arange(TIME)) * 0.1
    return mix(scores_of(q, k) - distance, v)


def by_hand(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """The softmax of textbooks, other orders of dimensions."""
    q, k, v = (x.transpose(0, 2, 1, 3) for x in (q, k, v))
    scores = (q * WIDTH**-0.5) @ k.swapaxes(-1, -2)
    largest = jax.lax.stop_gradient(scores.max(-1, keepdims=True))
    weights = jnp.exp(scores - largest)
    weights = weights / weights.sum(-1, keepdims=True)
    return (weights @ v).transpose(0, 2, 1, 3)


def dot_product(**options: Any) -> Attend:
    return functools.partial(jax.nn.dot_product_attention, **options)


def grouped(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    shape = *q.shape[:2], GROUPS, HEADS // GROUPS, WIDTH
    k, v = k[:, :, :GROUPS], v[:, :, :GROUPS]
    scores = jnp.einsum("bqpgd,bkpd->bpgqk", q.reshape(shape), k)
    mask = jnp.tril(jnp.ones((TIME, TIME), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores / WIDTH**0.5, -1e9))
    return jnp.einsum("bpgqk,bkpd->bqpgd", weights, v).reshape(q.shape)


def one_key_head(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkd->bhqk", q, k[:, :, 0]))
    return jnp.einsum("bhqk,bkd->bqhd", weights, v[:, :, 0])


def library_groups(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    k, v = k[:, :, :GROUPS], v[:, :, :GROUPS]
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


def capped(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    return mix(jnp.tanh(scores_of(q, k)), v)


def learned_bias(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """The gradient of the bias is that of the scores."""
    return mix(scores_of(q, k) + q[:, :, 0, :1, None].swapaxes(1, 2), v)


KEPT = np.random.default_rng(0).random((BATCH, 1, TIME, TIME)) < 0.8
FORMED: dict[str, Attend] = {
    "plain": plain,
    "causal": causal,
    "constant_mask": constant_mask,
    "padded": padded,
    "all_masked": all_masked,
    "biased": biased,
    "by_hand": by_hand,
    "grouped": grouped,
    "one_key_head": one_key_head,
    "library": dot_product(),
    "library_causal": dot_product(is_causal=True),
    "library_mask": dot_product(mask=KEPT),
    "library_bias": dot_product(bias=np.float32(KEPT), scale=0.3),
    "library_groups": library_groups,
}
LEFT: dict[str, Attend] = {"capped": capped, "learned_bias": learned_bias}


def normal(seed: int, *shape: int) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), shape)


PARAMS = {
    "qkv": normal(1, MODEL, 3, HEADS, WIDTH) / 4,
    "out": normal(2, HEADS, WIDTH, MODEL) / 4,
}
X, Y = normal(3, BATCH, TIME, MODEL), normal(4, BATCH, TIME, MODEL)


def layer(attend: Attend, params: Any, x: jax.Array) -> jax.Array:
    q, k, v = jnp.einsum("btm,mnhd->nbthd", x, params["qkv"])
    return jnp.einsum("bthd,hdm->btm", attend(q, k, v), params["out"])


def step_of(
    attend: Attend, remat: bool = False, dtype: Any = None, layers: int = 1
) -> Any:
    model: Callable[..., jax.Array] = functools.partial(layer, attend)
    if remat:
        model = jax.checkpoint(model)

    def loss(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        if dtype:
            params, x = jax.tree.map(lambda a: a.astype(dtype), (params, x))
        for _ in range(layers):
            x = model(params, x)
        return jnp.mean((x.astype(jnp.float32) - y) ** 2)

    return jax.value_and_grad(loss)


def calls(program: wh.Program) -> set[str]:
    """The attention that a program calls."""
    text = json.dumps(program.manifest)
    return set(re.findall(r'"(attention(?:_gradient)?)"', text))


def check(step: Any, formed: bool, tolerance: float = 2e-5) -> None:
    lowered = wh.jit(step, cluster=1).lower(PARAMS, X, Y)
    program = lowered.compile()
    found = calls(program)
    assert found == ({"attention", "attention_gradient"} if formed else set())
    close(program(PARAMS, X, Y), jax.jit(step)(PARAMS, X, Y), tolerance)


@pytest.mark.parametrize("name", FORMED)
def test_values_and_gradients(name: str) -> None:
    check(step_of(FORMED[name]), formed=True)


@pytest.mark.parametrize("name", LEFT)
def test_what_stays(name: str) -> None:
    check(step_of(LEFT[name]), formed=False)


@pytest.mark.parametrize(
    "name,remat,dtype",
    [
        ("causal", True, jnp.bfloat16),
        ("library_groups", False, jnp.bfloat16),
        ("causal", False, jnp.float16),
        ("padded", False, jnp.float16),
    ],
)
def test_half_precision(name: str, remat: bool, dtype: Any) -> None:
    step = step_of(FORMED[name], remat, dtype)
    check(step, formed=True, tolerance=3e-2)


def test_checkpoint() -> None:
    check(step_of(FORMED["library_mask"], remat=True, layers=2), formed=True)


def test_without_gradient() -> None:
    def infer(params: Any, x: jax.Array) -> jax.Array:
        return layer(one_key_head, params, x)

    program = wh.jit(infer, cluster=1).lower(PARAMS, X).compile()
    assert calls(program) == {"attention"}
    close(program(PARAMS, X), jax.jit(infer)(PARAMS, X))


@pytest.mark.parametrize(
    "name,layout,micro_batches",
    [
        ("causal", "split", 1),
        ("grouped", "split", 2),
        ("padded", "replicate", 2),
        ("one_key_head", "mixed", 2),
    ],
)
def test_four_ranks(name: str, layout: str, micro_batches: int) -> None:
    """`split` shares out heads, `replicate` samples."""
    wh.init(wh.Config({"num_micro_batch": micro_batches}))
    kinds = {"split": wh.split(4), "replicate": wh.replicate(4)}
    wh.set_default_strategy(kinds.get(layout, wh.split(2)))
    step = step_of(FORMED[name])
    lowered = wh.jit(step, cluster=4, batch_argnums=(1, 2)).lower(PARAMS, X, Y)
    program = lowered.compile()
    assert calls(program) == {"attention", "attention_gradient"}
    close(program(PARAMS, X, Y), jax.jit(step)(PARAMS, X, Y))


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_rows_are_samples(micro_batches: int) -> None:
    """Ranks and micro-batches have parts of the sums over rows."""
    wh.init(wh.Config({"num_micro_batch": micro_batches}))
    wh.set_default_strategy(wh.replicate(4))

    def loss(memory: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        weights = jax.nn.softmax(x @ memory[0].T)
        return jnp.mean((weights @ memory[1] - y) ** 2)

    step = jax.value_and_grad(loss)
    arguments = normal(6, 2, 96, MODEL), X[0, :8], Y[0, :8]
    lowered = wh.jit(step, cluster=4, batch_argnums=(1, 2)).lower(*arguments)
    program = lowered.compile()
    assert calls(program) == {"attention", "attention_gradient"}
    close(program(*arguments), jax.jit(step)(*arguments))


def test_stages() -> None:
    wh.init(wh.Config({"num_micro_batch": 2, "num_task_graph": 2}))
    step = step_of(causal, layers=2)
    ours = wh.jit(step, cluster=2, batch_argnums=(1, 2))(PARAMS, X, Y)
    close(ours, jax.jit(step)(PARAMS, X, Y))


def test_few_keys_stay() -> None:
    def infer(q: jax.Array) -> jax.Array:
        return plain(q, q, q)

    short = normal(5, BATCH, 8, HEADS, WIDTH)
    program = wh.jit(infer, cluster=1).lower(short).compile()
    assert calls(program) == set()
    close(program(short), jax.jit(infer)(short))
