"""``wh.Array``: a result that stays where it was computed until it is read.

In: the extension's handle of a result and its `Kind` (shape, dtype, part of
each rank). Out: a `jax.Array` with the members of JAX's own arrays. Shape,
dtype and placement are known without the elements; members that need them use
one gathered value. The first read waits for the step and copies the whole value
into the host's memory, where it is kept; JAX may copy it once more. Later reads
copy nothing. `gather` also moves what other processes have.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import sys
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jax._src import config as jax_config
from jax._src import core as jax_core
from jax._src.array import ArrayImpl
from jax.experimental.layout import Format

from whale import distributed, native, nesting
from whale.dtypes import numpy_dtype
from whale.errors import RuntimeError
from whale.placement import Index, Placement
from whale.tracebacks import api_boundary


@dataclasses.dataclass(frozen=True)
class Shard:
    """A rank's part of an array, as `jax.Shard` has it."""

    # "rank 3"; ranks are no devices of JAX.
    device: str
    index: Index
    # Number among the ranks that hold the same part, 0 for one of them.
    replica_id: int
    # A copy.
    data: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Kind:
    """What the arrays of one argument or result of a program have in common."""

    abstract: jax.ShapeDtypeStruct
    # The implementation of typed PRNG keys.
    key: str | None
    # Describes it in the manifest.
    entry: Mapping[str, Any]
    # The extension's.
    program: Any

    # Whether its parts are in files that each process sees.
    is_in_files = False

    @functools.cached_property
    def placement(self) -> Placement:
        """Which part each rank holds."""
        return Placement.of(self.entry)

    @functools.cached_property
    def local_ranks(self) -> tuple[int, ...]:
        """The ranks of this process that hold a part."""
        ranks = self.placement.ranks
        if distributed.process_count() == 1:
            return ranks
        own = distributed.process_index()
        return tuple(r for r in ranks if self.program.process_of(r) == own)

    @functools.cached_property
    def is_fully_addressable(self) -> bool:
        """Whether all ranks that hold parts are in this process."""
        return self.local_ranks == self.placement.ranks

    @functools.cached_property
    def is_here(self) -> bool:
        """Whether this process has all of it."""
        own = set(self.local_ranks)
        return all(own & set(ranks) for ranks in self.placement.parts)


class Array(jax.Array):
    """A `jax.Array` that is on the ranks of a program.

    The step that computes it may still run: what reads its elements waits for
    it, and raises its error. It is gathered the first time that its elements
    are read, and handed as it is to any program that takes it as an argument.
    To JAX it is an array on the default device that may be moved to any other.
    After it was donated to a program it can no longer be read.

    What is not defined here is forwarded to the gathered value.
    """

    # Calls of steps make hundreds of them, through these slots.
    __slots__ = (
        "__dict__",
        # JAX 0.7 has weak references in its own class.
        *(() if jax.Array.__weakrefoffset__ else ("__weakref__",)),
        "_gathered",
        "_handle",
        "_words",
        "kind",
    )

    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, handle: Any, kind: Kind) -> None:
        self._handle = handle
        self.kind = kind
        # Known once its elements were read.
        self._words: np.ndarray | None = None
        self._gathered: jax.Array | None = None

    # What is known without the elements.

    @property
    def abstract(self) -> jax.ShapeDtypeStruct:
        """Its shape and dtype."""
        return self.kind.abstract

    @functools.cached_property
    def aval(self) -> jax.core.ShapedArray:
        """Its type, as JAX has it."""
        return jax.core.ShapedArray(
            self.shape, self.dtype, weak_type=self.weak_type
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole value."""
        return self.kind.abstract.shape

    @property
    def dtype(self) -> Any:
        """Its dtype, as JAX has it: typed PRNG keys have a key dtype."""
        return self.kind.abstract.dtype

    @property
    def weak_type(self) -> bool:
        """Whether it came of Python numbers and gives way to other dtypes."""
        return bool(self.kind.abstract.weak_type)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of the whole value, as `numpy.ndarray.nbytes`."""
        return self.size * self.itemsize

    @property
    def placement(self) -> Placement:
        """Which part of it each rank holds."""
        return self.kind.placement

    @property
    def sharding(self) -> jax.sharding.Sharding:
        """What `jax.jit` takes: the default device, or where it was put.

        How it is on the ranks is `placement`.
        """
        if self._gathered is not None:
            return self._gathered.sharding
        return jax.sharding.SingleDeviceSharding(_default_device())

    @property
    def format(self) -> Format:
        """Its `sharding`, and its layout once it was gathered."""
        if self.kind.key is not None:
            raise AttributeError("keys have no format")
        if self._gathered is not None:
            return self._gathered.format  # type: ignore[attr-defined]
        return Format(None, self.sharding)

    @property
    def device(self) -> Any:
        """The device of `sharding`."""
        (device,) = self.devices()
        return device

    def on_device_size_in_bytes(self) -> int:
        """The bytes that the gathered value has, as `nbytes`."""
        return self.nbytes

    def devices(self) -> set[Any]:
        """The devices of `sharding`."""
        self._check_if_deleted()
        return self.sharding.device_set

    def platform(self) -> str:
        """The platform of `device`."""
        return self.device.platform

    # JAX may put the gathered value on any device, as it may a NumPy array.
    committed = False
    _committed = False
    traceback = None

    # The parts of it that are in this process.

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device of `sharding` has all of it.

        Where parts are in other processes: whether each rank has all of it.
        """
        return self.is_fully_addressable or len(self.placement.parts) == 1

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all ranks that hold parts of it are in this process."""
        return self.kind.is_fully_addressable

    @property
    def addressable_shards(self) -> list[Any]:
        """The parts that the ranks of this process hold, each a `Shard`.

        Where all of it is in this process: what the gathered value has.

        Raises:
            ValueError: where parts are no slices of the array (`placement` has
                another view of it), and for typed PRNG keys.
            RuntimeError: to orbax, where parts are in other processes.
        """
        if self.is_fully_addressable:
            return list(self.__jax_array__().addressable_shards)
        # Its own error would name what it makes of the parts.
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if caller.partition(".")[0] == "orbax":
            raise RuntimeError(
                "orbax cannot save an array of several processes: it asks JAX, "
                "for which each is alone; save it with wh.Checkpointer"
            )
        placement = self.placement
        if placement.view != self.shape:
            raise ValueError(
                f"the parts are no slices of the array: {placement}; take "
                "wh.gather of it"
            )
        handle = self.handle()
        shards = []
        for rank in self.kind.local_ranks:
            index = placement.indices[rank]
            assert index is not None
            holders = next(r for r in placement.parts if rank in r)
            data = native.waited(handle.shard, rank)
            shape = [axis.stop - axis.start for axis in index]
            shards.append(
                Shard(
                    device=f"rank {rank}",
                    index=index,
                    replica_id=holders.index(rank),
                    data=data.view(numpy_dtype(handle.dtype)).reshape(shape),
                )
            )
        return shards

    # Its life.

    def is_deleted(self) -> bool:
        """Whether it was donated, so that its memory is another's now."""
        return (
            self._handle is None
            or self._handle.is_donated
            # `jax.jit` takes the gathered value over.
            or (self._gathered is not None and self._gathered.is_deleted())
        )

    def delete(self) -> None:
        """Gives its memory back."""
        self._handle = None
        self._words = None
        self._gathered = None

    def _check_if_deleted(self) -> None:
        if not self.is_deleted():
            return
        message = f"Array has been deleted with shape={self.aval.str_short()}"
        if self._handle is not None:
            # `jax.jit` may have taken over the gathered value.
            donated = self._handle.is_donated
            fate = self._handle.fate if donated else "donated"
            message += f": it was {fate} and cannot be used again"
        raise RuntimeError(message)

    def is_ready(self) -> bool:
        """Whether the step that computes it has ended."""
        return self.handle().is_ready

    @api_boundary
    def block_until_ready(self) -> Array:
        """Waits until the step that computes it has ended.

        Raises:
            RuntimeError: where the step failed.
        """
        handle = self.handle()
        if not handle.is_done:
            native.waited(handle.wait)
        return self

    @api_boundary
    def gathered(self) -> Array:
        """The array with all of it in this process; see `gather`."""
        if distributed.process_count() == 1 or self.kind.is_in_files:
            return self
        nesting.check_together("wh.gather")
        whole = native.waited(self.kind.program.gather, self.handle())
        ranks = len(self.kind.entry["boxes"])
        view = self.kind.entry["view"]
        # Where it is now; the first rank of each process has it.
        boxes: list[Any] = [None] * ranks
        for rank in range(ranks):
            process = self.kind.program.process_of(rank)
            if rank == 0 or process != self.kind.program.process_of(rank - 1):
                boxes[rank] = [[0] * len(view), view]
        entry = {**self.kind.entry, "boxes": boxes}
        return Array(whole, dataclasses.replace(self.kind, entry=entry))

    def copy_to_host_async(self) -> None:
        """Does nothing: the value is gathered when it is read."""
        self._check_if_deleted()

    def handle(self) -> Any:
        """The extension's array behind this one."""
        handle = self._handle
        if handle is None or handle.is_donated or self._gathered is not None:
            self._check_if_deleted()
        return handle

    # Its elements.

    @property
    def _value(self) -> np.ndarray:
        """The elements, of a key its words, in memory that nobody changes."""
        handle = self.handle()
        if self._words is None:
            if not self.kind.is_here:
                raise RuntimeError(
                    "parts of this array are in other processes; "
                    "wh.gather(array), in all processes, brings it here"
                )
            words = native.waited(handle.to_host)
            words = words.view(numpy_dtype(handle.dtype))
            self._words = words.reshape(handle.shape)
            self._words.flags.writeable = False
        return self._words

    @api_boundary
    def __jax_array__(self) -> jax.Array:
        """The gathered value, an array as JAX makes them."""
        self._check_if_deleted()
        if self._gathered is None:
            self._gathered = self._gather()
        return self._gathered

    def _gather(self) -> jax.Array:
        words = self._value
        wide = words.dtype.itemsize == 8 or words.dtype.name == "complex128"
        with contextlib.ExitStack() as stack:
            # An array, also where the caller is being traced, and also where
            # 64 bits were allowed for the step alone.
            stack.enter_context(jax_core.eval_context())
            if wide:
                stack.enter_context(jax_config.enable_x64(True))
            value = jax.device_put(words)
            if self.kind.key is not None:
                return jax.random.wrap_key_data(value, impl=self.kind.key)
            if self.weak_type:
                # The same memory; a conversion would run on a mesh that is set.
                aval = value.aval.update(weak_type=True)
                return ArrayImpl(aval, value.sharding, [value], committed=False)
            return value

    @api_boundary
    def __array__(
        self, dtype: Any = None, context: Any = None, copy: bool | None = None
    ) -> np.ndarray:
        del context
        if self.kind.key is not None:
            raise TypeError(
                "NumPy has no dtype for typed PRNG keys; take "
                "jax.random.key_data of it first"
            )
        value = self._value
        if dtype is not None and np.dtype(dtype) != value.dtype:
            if copy is False:
                raise ValueError(f"{value.dtype} to {dtype} needs a copy")
            return value.astype(dtype)
        return value.copy() if copy else value

    def __buffer__(self, flags: int) -> memoryview:
        """The elements in place, read-only: from Python 3.12."""
        del flags
        if self.kind.key is not None:
            raise TypeError("typed PRNG keys are no buffers")
        # NumPy's, which gives it back: the gathered value lends none for us.
        value: Any = self._value
        return memoryview(value)

    # Training loops read a loss in every step: a number takes no array of JAX.

    def _number(self) -> Any:
        """What the conversions of a scalar take, and say of other arrays."""
        is_scalar = not self.shape and self.kind.key is None
        return self._value if is_scalar else self.__jax_array__()

    def __bool__(self) -> bool:
        return bool(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __float__(self) -> float:
        return float(self._number())

    def __complex__(self) -> complex:
        return complex(self._number())

    def item(self, *args: int) -> bool | int | float | complex:
        """An element as a number of Python, as `jax.Array.item`."""
        return self._number().item(*args)

    # Copies and pickles hold the value, in an array of JAX.

    def __copy__(self) -> jax.Array:
        return self.__jax_array__().copy()

    def __deepcopy__(self, memo: Any) -> jax.Array:
        del memo
        return self.__jax_array__().copy()

    def __reduce__(self) -> Any:
        if self.kind.key is not None:
            return _wrap_key, (self._value, self.kind.key)
        return self.__jax_array__().__reduce__()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self) -> str:
        if self.is_deleted():
            state = "deleted" if self._handle is None else "donated"
            return f"whale.Array({state}, shape={self.shape})"
        if not self.kind.is_here:
            return (
                f"whale.Array(parts in other processes, shape={self.shape}, "
                f"dtype={self.dtype})"
            )
        return f"whale.{self.__jax_array__()!r}"

    def __str__(self) -> str:
        return repr(self) if self.is_deleted() else str(self.__jax_array__())

    def __getattr__(self, name: str) -> Any:
        # Keys have members of their own. For other arrays every name that the
        # gathered value has is defined, so there is no reason to gather.
        if name.startswith("__") or self.kind.key is None:
            raise AttributeError(f"'Array' object has no attribute {name!r}")
        return getattr(self.__jax_array__(), name)


def array_class() -> Any:
    """The extension's view of `Array`."""
    return _array_class(native.extension())


@functools.lru_cache
def _array_class(extension: Any) -> Any:
    return extension.ArrayClass(Array, ArrayImpl, np.ndarray)


@api_boundary
def gather(tree: Any) -> Any:
    """The values of arrays of which other processes have parts.

    Collective: all processes call it with the same arrays, in one order. Other
    leaves stay as they are.

    Returns:
        the tree, with arrays that each process has the whole of.
    """
    return jax.tree.map(
        lambda leaf: leaf.gathered() if isinstance(leaf, Array) else leaf, tree
    )


@api_boundary
def to_jax(tree: Any) -> Any:
    """Gathers each `wh.Array` of a pytree into an array of JAX's own type.

    For libraries that compare exact types; whatever takes a `jax.Array` takes
    a `wh.Array` as it is. Other leaves are left as they are.
    """
    return jax.tree.map(
        lambda leaf: leaf.__jax_array__() if isinstance(leaf, Array) else leaf,
        tree,
    )


def _wrap_key(words: np.ndarray, implementation: str) -> jax.Array:
    data = jax.numpy.asarray(words)
    return jax.random.wrap_key_data(data, impl=implementation)


def _default_device() -> Any:
    device = getattr(jax.config, "jax_default_device", None)
    if device is None or isinstance(device, str):
        return jax.local_devices(backend=device)[0]
    return device


# What each class has of its own.
_OWN = frozenset(
    "__annotations__ __del__ __dict__ __doc__ __module__ __numpy_dtype__ "
    "__release_buffer__ __slots__ __weakref__".split()
)
# What `object` has too, and arrays otherwise.
_OTHERWISE = frozenset(
    "__eq__ __format__ __ge__ __gt__ __le__ __lt__ __ne__".split()
)


def forwarded_members() -> set[str]:
    """The names of an array that `Array` takes from its gathered value."""
    names = {*dir(jax.Array), *dir(ArrayImpl)} - {*dir(object)} - _OWN
    return (names | _OTHERWISE) - _DEFINED


def _forward(name: str, member: Any) -> Any:
    if not callable(member):
        return property(
            lambda self: getattr(self.__jax_array__(), name),
            doc=getattr(member, "__doc__", None),
        )

    def method(self: Array, *args: Any, **kwargs: Any) -> Any:
        value = self.__jax_array__()
        if name.startswith("__") and not hasattr(value, name):
            # As Python itself says where a type has no such method.
            raise TypeError(f"{name} of {type(value).__name__}: unsupported")
        return getattr(value, name)(*args, **kwargs)

    method.__name__ = name
    method.__qualname__ = f"Array.{name}"
    method.__doc__ = getattr(member, "__doc__", None)
    return method


_DEFINED = frozenset(vars(Array))
for _name in forwarded_members():
    _kind = ArrayImpl if hasattr(ArrayImpl, _name) else jax.Array
    setattr(Array, _name, _forward(_name, getattr(_kind, _name)))
