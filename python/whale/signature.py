"""What a program takes and gives: leaves, their types and their trees.

In: the arguments of a call, or the JSON of a saved program. Out: leaves, their
shapes and dtypes, and an error that names the first argument that doesn't fit.
Calls are checked leaf by leaf; a value with the mark (`ArrayClass.mark_of`) of
the one that fitted an argument before is not looked at again.
Values are converted, which copies them, only where dtype or layout differ.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import Any

import jax
import numpy as np

from whale import trees
from whale.array import Array, array_class
from whale.dtypes import element_name, numpy_dtype


def abstract(leaf: Any) -> jax.ShapeDtypeStruct:
    """The shape and dtype that JAX sees in an argument's leaf.

    Raises:
        TypeError: where the leaf is no array.
    """
    if isinstance(leaf, Array):
        return leaf.abstract
    if isinstance(leaf, jax.core.Tracer):
        raise TypeError(
            "a value that JAX is tracing; wh.jit takes the outermost function, "
            "with jax.jit, jax.grad and jax.vmap inside of it"
        )
    aval = leaf if _is_abstract(leaf) else jax.typeof(leaf)
    dtype = aval.dtype
    if not jax.dtypes.issubdtype(dtype, jax.dtypes.extended):
        dtype = jax.dtypes.canonicalize_dtype(dtype)
    return jax.ShapeDtypeStruct(
        aval.shape, dtype, weak_type=bool(getattr(aval, "weak_type", False))
    )


def abstract_leaves(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Any], list[jax.ShapeDtypeStruct], jax.tree_util.PyTreeDef]:
    """The leaves of a call, what JAX sees in each, and their tree.

    Raises:
        TypeError: naming the first leaf that is no array.
    """
    leaves, tree = jax.tree.flatten((args, kwargs))
    try:
        return leaves, [abstract(leaf) for leaf in leaves], tree
    except TypeError:
        pass
    for label, leaf in zip(labels_of((args, kwargs)), leaves):
        try:
            abstract(leaf)
        except TypeError as error:
            if isinstance(leaf, jax.core.Tracer):
                raise TypeError(f"argument {label} is {error}") from None
            raise TypeError(
                f"argument {label} is a {type(leaf).__name__}, not an array "
                f"of JAX; {_remedy(label, leaf)}"
            ) from None
    raise AssertionError("one of the leaves was no array")


def _remedy(label: str, leaf: Any) -> str:
    """What to do with an argument's leaf that is no array."""
    argument = re.match(r"args\[\d+\]|kwargs\['\w+'\]", label)
    assert argument is not None
    if isinstance(leaf, (np.ndarray, np.generic)):
        return f"its elements are {leaf.dtype}, and a step computes numbers"
    if hasattr(leaf, "__array__") or hasattr(leaf, "__dlpack__"):
        return "pass numpy.asarray of it"
    static = "static_argnums" if label.startswith("args") else "static_argnames"
    if argument.group() == label:
        return f"name it in {static} if it is a constant of the step"
    if callable(leaf):
        # A model with its functions, as equinox has them; it has no hash, as
        # a static argument must.
        return (
            "partition the model, and let the step close over what is no "
            "array: params, static = eqx.partition(model, eqx.is_array), and "
            "eqx.combine(params, static) in the step"
        )
    return (
        f"take it out of {argument.group()}: let the step close over it, or "
        f"pass it by itself and name it in {static}"
    )


@functools.lru_cache
def _key_implementation(dtype: Any) -> str:
    found: list[str] = []

    def look(keys: jax.Array) -> None:
        found.append(str(jax.random.key_impl(keys)))

    jax.eval_shape(look, jax.ShapeDtypeStruct((), dtype))
    return found[0]


@functools.lru_cache
def _key_dtype(implementation: str) -> Any:
    return jax.eval_shape(lambda: jax.random.key(0, impl=implementation)).dtype


def _is_abstract(leaf: Any) -> bool:
    return isinstance(leaf, (jax.ShapeDtypeStruct, jax.core.ShapedArray))


@dataclasses.dataclass(frozen=True)
class Leaf:
    """One array of a signature.

    `shape` and `dtype` are what the program holds; a typed PRNG key has its
    implementation in `key`, and its words are the last dimensions of `shape`.
    """

    label: str
    shape: tuple[int, ...]
    dtype: str
    key: str | None = None
    key_rank: int = 0
    # A Python number, or what came of one: gives way to other dtypes.
    weak: bool = dataclasses.field(default=False, compare=False)

    @staticmethod
    def of(aval: jax.ShapeDtypeStruct, label: str) -> Leaf:
        """The leaf for a value of JAX."""
        if jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key):
            words = jax.eval_shape(jax.random.key_data, aval)
            return Leaf(
                label,
                tuple(words.shape),
                element_name(words.dtype),
                _key_implementation(aval.dtype),
                len(words.shape) - len(aval.shape),
            )
        if aval.dtype == jax.dtypes.float0:
            return Leaf(label, tuple(aval.shape), "float0")
        return Leaf(
            label,
            tuple(aval.shape),
            element_name(aval.dtype),
            weak=bool(getattr(aval, "weak_type", False)),
        )

    @staticmethod
    def of_value(value: Any, label: str) -> Leaf:
        """The leaf for an array, a number, or what describes an array.

        Raises:
            TypeError: where it is none of these.
        """
        if isinstance(value, jax.ShapeDtypeStruct):
            return Leaf.of(value, label)
        try:
            aval = jax.api_util.shaped_abstractify(value)
        except (TypeError, OverflowError) as error:
            raise TypeError(f"{label!r} is no array: {error}") from None
        weak = bool(getattr(aval, "weak_type", False))
        return Leaf.of(
            jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=weak), label
        )

    @staticmethod
    def from_json(data: Any) -> Leaf:
        """Reads a leaf back.

        Raises:
            ValueError: where a field is not what `of` gives.
        """
        leaf = Leaf(**{**data, "shape": tuple(data["shape"])})
        numbers = (*leaf.shape, leaf.key_rank)
        if (
            not isinstance(leaf.label, str)
            or type(leaf.weak) is not bool
            or not all(type(n) is int and n >= 0 for n in numbers)
            or leaf.key_rank > len(leaf.shape)
        ):
            raise ValueError(f"damaged signature: {data}")
        if leaf.dtype != "float0":
            numpy_dtype(leaf.dtype)
        if leaf.key is not None:
            _key_dtype(leaf.key)
        return leaf

    @functools.cached_property
    def aval(self) -> jax.ShapeDtypeStruct:
        """The shape and dtype that the user sees: a typed key is a scalar."""
        if self.key is None:
            return jax.ShapeDtypeStruct(
                self.shape, numpy_dtype(self.dtype), weak_type=self.weak
            )
        shape = self.shape[: len(self.shape) - self.key_rank]
        return jax.ShapeDtypeStruct(shape, _key_dtype(self.key))

    def __str__(self) -> str:
        if self.key is not None:
            return f"a typed PRNG key {self.key}{list(self.aval.shape)}"
        shape = ",".join(map(str, self.shape))
        return f"{self.dtype}[{shape}]"


@dataclasses.dataclass(frozen=True)
class Signature:
    """The arguments and results of a program, in the order of its text.

    Exactly one of `out_tree` and `encoded_out_tree` is given: the latter for a
    program read from disk, whose result tree may refer to the arguments'.
    """

    arguments: tuple[Leaf, ...]
    results: tuple[Leaf, ...]
    donated: tuple[bool, ...]
    in_tree: jax.tree_util.PyTreeDef | None = None
    out_tree: jax.tree_util.PyTreeDef | None = None
    encoded_out_tree: Any = None
    # The marks of what was found to fit each argument last: results that are
    # fed back, and batches of one shape, come with the same ones again.
    _fits: list[Any] = dataclasses.field(
        default_factory=list, init=False, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        self._fits[:] = [None] * len(self.arguments)

    def flatten(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Any], jax.tree_util.PyTreeDef]:
        """The leaves of a call and its tree, checked against the signature.

        Raises:
            TypeError: naming the first argument that does not fit.
        """
        values, in_tree = jax.tree.flatten((args, kwargs))
        if self.in_tree is None or in_tree != self.in_tree:
            abstract_leaves(args, kwargs)
            self._check_labels(labels_of((args, kwargs)))
            if self.in_tree is not None:
                raise TypeError(
                    "the arguments have another tree than the program was "
                    f"compiled for: {in_tree} instead of {self.in_tree}"
                )
        for index in array_class().find_others(values, self._fits):
            leaf, value = self.arguments[index], values[index]
            try:
                aval = abstract(value)
            except TypeError:
                abstract_leaves(args, kwargs)  # Says which argument it is.
                raise
            given = Leaf.of(aval, leaf.label)
            if given != leaf:
                raise TypeError(
                    f"argument {leaf.label} is {given}, and the program was "
                    f"compiled for {leaf}"
                )
            # What else is taken for what depends on settings of JAX.
            if isinstance(value, jax.Array):
                self._fits[index] = array_class().mark_of(value)
        return values, in_tree

    def _check_labels(self, labels: list[str]) -> None:
        expected = [leaf.label for leaf in self.arguments]
        wrong = [
            f"{what} {', '.join(names[:5])}"
            for what, names in (
                ("missing", [n for n in expected if n not in labels]),
                ("unexpected", [n for n in labels if n not in expected]),
            )
            if names
        ]
        if wrong or len(labels) != len(expected):
            raise TypeError(
                "the arguments are not those that the program was compiled "
                f"for: {'; '.join(wrong)}"
            )

    def result_tree(
        self, in_tree: jax.tree_util.PyTreeDef
    ) -> jax.tree_util.PyTreeDef:
        """The tree of the results for arguments of this tree."""
        if self.out_tree is not None:
            return self.out_tree
        tree = trees.decode(self.encoded_out_tree, in_tree)
        if tree.num_leaves != len(self.results):
            raise ValueError(
                f"damaged result tree: {tree.num_leaves} leaves for "
                f"{len(self.results)} results"
            )
        return tree

    def to_json(self) -> dict[str, Any]:
        """The signature as a saved program holds it."""
        tree = self.encoded_out_tree
        if self.out_tree is not None:
            assert self.in_tree is not None
            tree = trees.encode(self.out_tree, self.in_tree)
        return {
            "version": 1,
            "arguments": [dataclasses.asdict(leaf) for leaf in self.arguments],
            "results": [dataclasses.asdict(leaf) for leaf in self.results],
            "donated": list(self.donated),
            "out_tree": tree,
        }

    @staticmethod
    def from_json(data: Any) -> Signature:
        """Reads a signature back.

        Raises:
            ValueError: where it is damaged or of a later version.
        """
        try:
            if data["version"] != 1:
                raise ValueError(
                    f"signature of version {data['version']}, and this Whale "
                    "reads version 1"
                )
            leaves = {
                kind: tuple(map(Leaf.from_json, data[kind]))
                for kind in ("arguments", "results")
            }
            donated = tuple(bool(flag) for flag in data["donated"])
            if len(donated) != len(leaves["arguments"]):
                raise ValueError("one flag per argument expected in 'donated'")
            return Signature(
                **leaves, donated=donated, encoded_out_tree=data["out_tree"]
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"damaged signature: {error!r}") from None


def labels_of(call: tuple[Any, Any]) -> list[str]:
    """A name for each leaf of ``(args, kwargs)``."""
    paths, _ = jax.tree.flatten_with_path(call)
    return [argument_label(path) for path, _ in paths]


def argument_label(path: tuple[Any, ...]) -> str:
    """A name for a leaf of ``(args, kwargs)``, such as ``args[0]['w']``."""
    place, *rest = path
    root = "args" if place.idx == 0 else "kwargs"
    return root + jax.tree_util.keystr(tuple(rest))


def host_value(value: Any, leaf: Leaf) -> np.ndarray:
    """An argument's value as a dense array of the leaf's type."""
    if leaf.key is not None:
        value = jax.random.key_data(value)
    if leaf.dtype == "float0":
        # All there is of it is its shape; programs hold it as booleans.
        return np.zeros(leaf.shape, np.bool_)
    return np.ascontiguousarray(
        np.asarray(value, dtype=numpy_dtype(leaf.dtype))
    ).reshape(leaf.shape)
