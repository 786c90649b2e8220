"""Random combinations of strategies and options, beside `jax.jit`.

Under test: training steps of Adam, Adafactor and LAMB on CPU ranks, whose nest
of replicas, stages and splits, micro-batches, schedule, recomputation, ZeRO,
offload, groups of updates, buckets, types on the wire and of products, and
uneven devices are drawn at random. Parameters, state and losses must be those
of `jax.jit` up to rounding. Each step also runs on late devices, and with
--full in several processes, which must give the same bits. A combination may be
refused only for what its step does not have. A failure means that options which
are right by themselves spoil one another. A few are run, and 200 with --full.
"""

import functools
import os
import random
import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.ad_checkpoint import checkpoint_name
from layers import OPTIMIZERS, one_node

import whale as wh

IS_FULL = "WHALE_TEST_FULL" in os.environ
WIDTH, LAYERS, STEPS, RATE = 32, 4, 3, 1e-2
COUNT = 200
# In every run: one that has gone wrong, and another one.
SAMPLE = (101, 0)
# What a step may lack for an option that was drawn.
REFUSALS = {
    "zero.level": "zero.level: no replicas have",
    "offload.level": "offload.level: there is no state",
    "gradient_checkpoint.type": "gradient_checkpoint.type: ",
    "pipeline.strategy": "pipeline.strategy: ",
}
NAMED = {
    "adam": OPTIMIZERS["adam"],
    "lamb": OPTIMIZERS["lamb"],
    # With something that is as large as parameters.
    "adafactor": lambda: optax.adafactor(
        RATE, min_dim_size_to_factor=8, momentum=0.9
    ),
}


class Case:
    """A combination that a number draws."""

    def __init__(self, number):
        self.rng = random.Random(number)
        pick = self.rng.choice
        self.optimizer = list(NAMED)[number % 3]
        self.config = {}
        self.default, self.scopes = None, None
        self.ranks = 2
        self.kind = pick(("dense", "residual", "normalized"))
        self.is_scanned = False
        pick((self.replicas, self.nested, self.split, self.cut, self.staged))()
        self.micro_batches()
        self.memory_options()
        self.wire_options()
        self.slowdowns = [
            pick((1, 1, 2, 3)) if number % 2 else 1 for _ in range(self.ranks)
        ]
        self.rows = 12 * pick((1, 2, 4))
        self.rematerialized = pick((False, False, False, True))

    def replicas(self):
        self.ranks = self.rng.choice((1, 2, 3, 4))
        self.default = wh.replicate
        self.is_scanned = self.rng.random() < 0.4

    def nested(self):
        self.ranks = 4
        self.default = functools.partial(wh.replicate, 2)

    def split(self):
        self.ranks = self.rng.choice((2, 4))
        self.default = self.rng.choice(
            (wh.split, functools.partial(wh.split, 2))
        )
        self.is_scanned = self.rng.random() < 0.3

    def cut(self):
        """Stages that the compiler finds."""
        self.ranks = self.rng.choice((2, 4))
        self.config["num_task_graph"] = 2
        if self.rng.random() < 0.5:
            self.default = functools.partial(
                wh.replicate, self.rng.choice((1, self.ranks // 2))
            )

    def staged(self):
        """Stages of scopes, of any kinds and sizes."""
        count = self.rng.choice((2, 2, 4))
        most = 2 if count == 2 else 1
        self.scopes = [
            functools.partial(
                self.rng.choice((wh.replicate, wh.replicate, wh.split)),
                self.rng.randint(1, most),
            )
            for _ in range(count)
        ]
        self.ranks = self.rng.choice((2, 3, 4))
        self.config["cluster.uneven_replicas"] = True

    def micro_batches(self):
        pick = self.rng.choice
        count = pick((1, 2, 3, 4))
        if count == 1:
            return
        self.config["num_micro_batch"] = count
        if self.scopes or "num_task_graph" in self.config:
            strategy = pick(
                ("1f1b", "gpipe", "backward-optimizer", "zero-bubble", None)
            )
            if strategy:
                self.config["pipeline.strategy"] = strategy

    def memory_options(self):
        for key, values in (
            ("zero.level", (None, "v0", "v1", "v2")),
            ("offload.level", (None, "state", "weights")),
            ("gradient_checkpoint.type", (None, None, "auto", "collection")),
            ("optimizer.num_apply_group", (None, 1, 2, 5)),
            ("communication.bucket_bytes", (None, 0, 4096)),
        ):
            if (value := self.rng.choice(values)) is not None:
                self.config[key] = value

    def wire_options(self):
        drawn = self.rng.random()
        if drawn < 0.15:
            self.config["communication.bf16"] = True
        elif drawn < 0.25:
            self.config["communication.fp16"] = True
        drawn = self.rng.random()
        if drawn < 0.15:
            self.config["amp.level"] = "bf16"
        elif drawn < 0.25:
            self.config["amp.level"] = "f16"
            self.config["amp.loss_scale"] = 128

    @property
    def is_half(self):
        return any(
            self.config.get(key)
            for key in ("communication.bf16", "communication.fp16", "amp.level")
        )

    def cluster(self, memory=1 << 30):
        devices = [
            {"kind": "k", "slowdown": slowdown} for slowdown in self.slowdowns
        ]
        return one_node(devices, memory)

    def __str__(self):
        scopes = [
            f"{scope.func.__name__}({scope.args[0]})"
            for scope in self.scopes or ()
        ]
        default = self.default and str(self.default())
        return (
            f"{self.optimizer}, {self.kind}, default {default}, "
            f"scopes {scopes}, {self.rows} rows, slowdowns {self.slowdowns}, "
            f"scan {self.is_scanned}, remat {self.rematerialized}, "
            f"{self.config}"
        )

    # The step.

    def layer(self, y, w, b):
        z = y @ w + b
        if self.kind == "normalized":
            scale = jax.lax.rsqrt(jnp.mean(z**2, -1, keepdims=True) + 0.1)
            return y + checkpoint_name(z * scale, "layer")
        z = checkpoint_name(jnp.tanh(z), "layer")
        return y + z if self.kind == "residual" else z

    def loss(self, scopes, params, x):
        layer = (
            jax.checkpoint(self.layer) if self.rematerialized else self.layer
        )
        if self.is_scanned:
            y, _ = jax.lax.scan(lambda y, p: (layer(y, *p), None), x, params)
            return jnp.mean(y**2)
        each = LAYERS // len(scopes)
        y = x
        for number, scope in enumerate(scopes):
            with scope():
                for w, b in params[number * each : (number + 1) * each]:
                    y = layer(y, w, b)
                if number + 1 == len(scopes):
                    value = jnp.mean(y**2)
        return value

    def step(self, scopes):
        optimizer = NAMED[self.optimizer]()

        def step(params, state, x):
            value, grads = jax.value_and_grad(
                functools.partial(self.loss, scopes)
            )(params, x)
            updates, state = optimizer.update(grads, state, params)
            return optax.apply_updates(params, updates), state, value

        return step

    def arguments(self):
        keys = jax.random.split(jax.random.key(0), 2 * LAYERS + 1)
        params = [
            (
                jax.random.normal(keys[2 * i], (WIDTH, WIDTH)) / WIDTH**0.5,
                jax.random.normal(keys[2 * i + 1], (WIDTH,)) / 8,
            )
            for i in range(LAYERS)
        ]
        if self.is_scanned:
            params = jax.tree.map(lambda *each: jnp.stack(each), *params)
        state = NAMED[self.optimizer]().init(params)
        x = jax.random.normal(keys[-1], (self.rows, WIDTH))
        return params, state, x

    def jitted(self, memory=1 << 30, **changed):
        config = {k: v for k, v in (self.config | changed).items() if v}
        if self.config.get("communication.bucket_bytes") == 0:
            config["communication.bucket_bytes"] = 0
        wh.init(wh.Config(config))
        if self.default is not None:
            wh.set_default_strategy(self.default())
        plain = [functools.partial(jax.named_scope, "all")]
        return wh.jit(
            self.step(self.scopes or plain),
            cluster=self.cluster(memory),
            donate_argnums=(0, 1),
            batch_argnums=2,
        )

    def memory(self, given):
        """So little that recomputation has to save some, if it can."""
        if self.config.get("gradient_checkpoint.type") != "auto":
            return 1 << 30
        plan = (
            self.jitted(**{"gradient_checkpoint.type": None})
            .lower(*given)
            .plan()
        )
        most = max(device["peak_memory_bytes"] for device in plan["devices"])
        for share in (0.9, 0.97):
            try:
                self.jitted(int(share * most)).lower(*given).plan()
            except wh.CompileError as error:
                if "lacks" not in str(error):
                    raise
            else:
                return int(share * most)
        return 1 << 30

    def run(self):
        """What wh.jit and jax.jit give."""
        given = self.arguments()
        step = self.jitted(self.memory(given))
        plain = [functools.partial(jax.named_scope, "all")]
        expected = jax.jit(self.step(plain))
        own = jax.tree.map(jnp.copy, given[:2])
        other = given[:2]
        for _ in range(STEPS):
            *own, mine = step(*own, given[2])
            *other, theirs = expected(*other, given[2])
        return (own, mine), (other, theirs)


def without_refused(case):
    """Results of the combination without the options that the step refuses,
    which are dropped from it, for want of what they are about."""
    while True:
        try:
            return case.run()
        except wh.CompileError as error:
            for key, why in REFUSALS.items():
                if case.config.get(key) and re.search(why, str(error)):
                    del case.config[key]
                    break
            else:
                raise AssertionError(f"{case}: {error}") from error


@pytest.mark.parametrize("number", range(COUNT) if IS_FULL else SAMPLE)
def test_combination(number):
    case = Case(number)
    found, expected = without_refused(case)
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
        mine, theirs = np.asarray(mine), np.asarray(theirs)
        rtol, atol = 2e-3, 5e-5
        if case.is_half:
            # Where a gradient is about zero its sign decides on an update.
            far = np.abs(mine - theirs) > 5e-2 * np.abs(theirs) + RATE
            assert far.mean() < 0.05, str(case)
            rtol, atol = 5e-2, 2.5 * STEPS * RATE
        np.testing.assert_allclose(mine, theirs, rtol, atol, err_msg=str(case))
