"""Random attention: layouts, heads, scales, biases, masks, ways to write the
softmax, gradients and what is around them.

In texts of letters, as in `jnp.einsum`, `b` is a sample, `q` a row, `k` a key,
`h` a head of keys and values, `g` one of the queries that share it, `d` and `e`
features.

In: a seed and a size. Out: `Attention`, a function for `jax.jit` with its
arguments and those that are samples. fuzz.py runs it under XLA and Whale and
compares, in bf16 within 5e-2. A difference means that a way of writing
attention is mistaken for another, or is computed wrongly.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


class Attention:
    """`run(params..., x, source)`: samples attend to themselves, to those of
    another tensor, or to parameters. Rows of `x` and `source` are samples."""

    def __init__(self, seed: int, size: int):
        self.rng = np.random.default_rng(seed)
        self.params: list[np.ndarray] = []
        self.coarse = self.chance(4)
        self.dtype = jnp.bfloat16 if self.coarse else jnp.float32
        self.batch = self.number(1, 6)
        self.width = self.number(2, 7)
        # More keys than an attention that stays as it is has.
        self.keys = self.number(64, 64 + 2 * size)
        self.source = self.pick(("self", "other", "memory"))
        own = self.source == "self"
        self.rows = self.keys if own else self.pick((1, 5, 40, 130))
        self.shared, self.grouped = self.number(1, 4), self.number(1, 3)
        self.extents = {
            "b": self.batch, "q": self.rows, "k": self.keys,
            "h": self.shared, "g": self.grouped,
            "d": self.number(2, 9), "e": self.number(1, 9),
        }  # fmt: skip
        # Without rows, samples are.
        self.flat = self.source == "memory" and self.chance(3)
        self.gradient = self.pick(("none", "some", "all", "all"))
        self.layers = self.pick((1, 1, 2)) if own else 1
        self.scans, self.remat = self.chance(3), self.chance(3)
        make = self.library if self.chance(3) and not self.flat else self.plain
        self.attend = make()
        x = self.normal("b" if self.flat else "bq", self.width)
        self.arguments = [*self.params, x]
        if self.source == "other":
            self.arguments.append(self.normal("bk", self.width))
        self.batch_arguments = range(len(self.params), len(self.arguments))
        self.micro_batches = 1
        if self.batch % 2 == 0 and self.chance(3):
            self.micro_batches = 2
        some = self.rng.permutation(len(self.arguments))
        count = len(some)
        if self.gradient == "some":
            count = self.number(1, count)
        self.wanted = sorted(int(i) for i in some[:count])

    def number(self, least: int, end: int) -> int:
        return int(self.rng.integers(least, end))

    def chance(self, count: int) -> bool:
        """True once in `count` times."""
        return self.number(0, count) == 0

    def pick(self, options):
        return options[self.number(0, len(options))]

    def normal(self, letters: str, *more: int) -> np.ndarray:
        shape = [*(self.extents[c] for c in letters), *more]
        return self.rng.normal(size=shape).astype(np.float32)

    def parameter(self, letters: str, *first: int, scale: float = 1.0) -> int:
        shape = (*first, *(self.extents[c] for c in letters))
        value = self.rng.normal(size=shape) * scale
        self.params.append(value.astype(np.float32))
        return len(self.params) - 1

    def shuffled(self, letters: str) -> str:
        return "".join(self.rng.permutation(list(letters)))

    def projections(self, q: str, k: str, v: str):
        """Queries, keys and values with these letters, from x and its
        source."""
        w, samples = self.width, "b" if self.flat else "bq"
        memory = self.source == "memory"
        keys = "k" if memory else "bk"
        scale = w**-0.5
        wq = self.parameter("".join(c for c in q if c not in "bq"), w,
                            scale=scale)  # fmt: skip
        wk = self.parameter("hd", w, scale=scale)
        wv = self.parameter("he", w, scale=scale)
        of_q = "m" + "".join(c for c in q if c not in "bq")
        table = self.parameter("k", scale=1.0) if memory else None
        wide = self.parameter("", w) if memory else None

        def run(p, x, source):
            if memory:
                source = jnp.sin(jnp.outer(p[table], p[wide]))
            query = jnp.einsum(f"{samples}m,{of_q}->{q}", x, p[wq])
            key = jnp.einsum(f"{keys}m,mhd->{k}", source, p[wk])
            value = jnp.einsum(f"{keys}m,mhe->{v}", source, p[wv])
            return query, key, value

        return run

    def aligned(self, letters: str, target: str):
        """Makes an array with these letters one that broadcasts to
        `target`."""

        def run(array):
            order = [letters.index(c) for c in target if c in letters]
            shape = [self.extents[c] if c in letters else 1 for c in target]
            return array.transpose(order).reshape(shape)

        return run

    def mask(self, scores: str):
        """Which scores are kept, for keys; None keeps all."""
        rows, keys = self.rows, self.keys
        kinds = ["none", "data"]
        if not self.flat:
            kinds += ["causal", "causal", "constant", "band", "rows"]
        kind = self.pick(kinds)
        offset = (
            self.number(-3, keys - rows + 3)
            if rows < keys
            else self.pick((0, 0, 1, -1))
        )
        both = "qk"
        if kind == "none":
            return None
        if kind == "data":
            letters = "hk" if self.source == "memory" or self.flat else "bhk"
            align = self.aligned(letters, scores)
            below = self.pick((0.5, -9.0))
            to_heads = "khd->hk" if letters == "hk" else "bkhd->bhk"
            return lambda key: align(jnp.einsum(to_heads, key) > below)
        align = self.aligned(both, scores)
        if kind == "constant":
            kept = np.tril(np.ones((rows, keys), bool), offset)
            return lambda key: align(jnp.asarray(kept))
        row, col = np.arange(rows)[:, None], np.arange(keys)
        if kind == "causal":
            return lambda key: align(
                jnp.arange(rows)[:, None] + offset >= jnp.arange(keys)
            )
        if kind == "band":
            reach = self.number(1, keys)
            return lambda key: align(
                (jnp.arange(rows)[:, None] >= jnp.arange(keys))
                & (jnp.arange(rows)[:, None] - jnp.arange(keys) < reach)
            )
        kept = np.broadcast_to((row + 0 * col) % 2 == 0, (rows, keys))
        return lambda key: align(jnp.asarray(kept))

    def bias(self, scores: str):
        """What is added to the scores; None adds nothing."""
        kind = self.pick(("none", "none", "fixed", "learned"))
        if kind == "none":
            return None
        letters = self.pick(
            ["".join(c for c in scores if c == "k" or self.chance(2))]
            if self.flat
            else ["qk", "hgqk", "hk", "gqk"]
        )
        letters = "".join(c for c in letters if c != "b")
        align = self.aligned(letters, scores)
        if kind == "learned":
            number = self.parameter(letters)
            return lambda p: align(p[number])
        array = self.normal(letters)
        return lambda p: align(jnp.asarray(array, self.dtype))

    def softmax(self, axis: int):
        kind = self.pick(("library", "library", "quotient", "factor"))

        def run(scores):
            if kind == "library":
                return jax.nn.softmax(scores, axis)
            largest = lax.stop_gradient(scores.max(axis, keepdims=True))
            weights = jnp.exp(scores - largest)
            if kind == "factor":
                return weights * (1 / weights.sum(axis, keepdims=True))
            return weights / weights.sum(axis, keepdims=True)

        return run

    def plain(self):
        q, k, v = "bqhgd", "bkhd", "bkhe"
        if self.source == "memory":
            k, v = "khd", "khe"
        if self.flat:
            q = "bhgd"
        scores = "".join(c for c in "bhgqk" if c in q or c in k)
        q, k, v, scores = map(self.shuffled, (q, k, v, scores))
        out = self.shuffled("".join(c for c in scores if c != "k") + "e")
        project = self.projections(q, k, v)
        mask, bias = self.mask(scores), self.bias(scores)
        softmax = self.softmax(scores.index("k"))
        where = self.pick(("queries", "product", "quotient", "none"))
        additive = mask is not None and self.chance(3)
        fill = self.pick((-1e9, -1e4, -2.5, None, -np.inf))
        if self.gradient != "none" and fill == -np.inf:
            fill = None
        wide = self.chance(2)
        drops = self.chance(12)
        scale = float(self.extents["d"]) ** -0.5

        def attend(p, x, source):
            query, key, value = project(p, x, source)
            if where == "queries":
                query = query * scale
            s = jnp.einsum(f"{q},{k}->{scores}", query, key)
            if wide:
                s = s.astype(jnp.float32)
            if where == "product":
                s = s * scale
            if where == "quotient":
                s = s / jnp.sqrt(1 / scale**2).astype(s.dtype)
            if bias is not None:
                s = s + bias(p).astype(s.dtype)
            if mask is not None:
                order = "khd" if "b" not in k else "bkhd"
                kept = mask(key.transpose([k.index(c) for c in order]))
                low = jnp.finfo(s.dtype).min if fill is None else fill
                if additive:
                    s = s + jnp.where(kept, 0.0, max(low, -1e9)).astype(s.dtype)
                else:
                    s = jnp.where(kept, s, jnp.asarray(low, s.dtype))
            weights = softmax(s).astype(x.dtype)
            if drops:
                weights = weights * jnp.cos(
                    jnp.arange(weights.shape[-1], dtype=x.dtype)
                )
            return jnp.einsum(f"{scores},{v}->{out}", weights, value), out

        return attend

    def library(self):
        """`jax.nn.dot_product_attention`."""
        memory = self.source == "memory"
        self.extents["e"] = self.extents["d"]
        k, v = ("khd", "khe") if memory else ("bkhd", "bkhe")
        project = self.projections("bqhgd", k, v)
        heads = self.shared * self.grouped
        options = {}
        if self.chance(2):
            options["scale"] = 0.4
        options["is_causal"] = self.chance(2)
        extra = self.pick(("none", "bias", "mask", "lengths", "window"))
        first = self.pick((1, self.batch))
        shape = (first, heads, self.rows, self.keys)
        if extra == "bias":
            options["bias"] = jnp.asarray(self.rng.normal(size=shape),
                                          self.dtype)  # fmt: skip
        if extra == "mask":
            options["mask"] = jnp.asarray(self.rng.random(shape) < 0.8)
        if extra == "lengths":
            lengths = self.rng.integers(1, self.keys, self.batch)
            options["key_value_seq_lengths"] = jnp.asarray(lengths, jnp.int32)
        if extra == "window":
            options["local_window_size"] = self.number(2, 30)

        def attend(p, x, source):
            q, k, v = project(p, x, source)
            q = q.reshape(*q.shape[:2], heads, -1)
            if memory:
                k, v = (
                    jnp.broadcast_to(t, (q.shape[0], *t.shape)) for t in (k, v)
                )
            out = jax.nn.dot_product_attention(q, k, v, **options)
            shape = (*out.shape[:2], self.shared, self.grouped, out.shape[-1])
            return out.reshape(shape), "bqhge"

        return attend

    def forward(self, params, x, source):
        """The last layer's result, with samples first."""
        first = "b" if self.flat else "bq"

        def layer(x, _=None):
            keys = x if self.source == "self" else source
            out, letters = self.attend(params, x, keys)
            rest = "".join(c for c in "hge" if c in letters)
            return jnp.einsum(f"{letters}->{first}{rest}", out)

        def between(x, _=None):
            out = layer(x)
            mixed = jnp.sin(out.reshape(*x.shape[:-1], -1).mean(-1))
            return x + mixed[..., None], None

        if self.remat:
            layer, between = map(jax.checkpoint, (layer, between))
        if self.layers > 1:
            if self.scans:
                x, _ = lax.scan(between, x, length=self.layers - 1)
            else:
                for _ in range(self.layers - 1):
                    x, _ = between(x)
        return layer(x)

    def __call__(self, *arguments):
        def run(*arguments):
            count = len(self.params)
            cast = [a.astype(self.dtype) for a in arguments]
            more = cast[count + 1] if len(cast) > count + 1 else None
            return self.forward(cast[:count], cast[count], more)

        if self.gradient == "none":
            return [run(*arguments).astype(jnp.float32)]

        def loss(*arguments):
            out = run(*arguments).astype(jnp.float32)
            weights = jnp.sin(
                1 + jnp.arange(out[0].size, dtype=out.dtype)
            ).reshape(out.shape[1:])
            return (out * weights).sum()

        value, gradients = jax.value_and_grad(loss, self.wanted)(*arguments)
        return [value, *gradients]
