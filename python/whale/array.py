"""``wh.Array``: a result that stays where it was computed until it is read."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jax._src.array import ArrayImpl

from whale.dtypes import numpy_dtype
from whale.errors import RuntimeError


class Array:
    """A value distributed over the ranks of a program.

    It is gathered the first time that it is read, by NumPy, by JAX or by one
    of the operators below, and handed as it is to any program that takes it as
    an argument. After it was donated to a program it can no longer be read.
    """

    # JAX may put the gathered value on any device, as it may a NumPy array.
    committed = False
    _committed = False

    def __init__(
        self, handle: Any, aval: jax.ShapeDtypeStruct, key: str | None
    ) -> None:
        self._handle = handle
        self._aval = aval
        self._key = key
        self._value: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole value."""
        return self._aval.shape

    @property
    def dtype(self) -> Any:
        """Its dtype, as JAX has it: typed PRNG keys have a key dtype."""
        return self._aval.dtype

    @property
    def abstract(self) -> jax.ShapeDtypeStruct:
        """Its shape and dtype."""
        return self._aval

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """The bytes of the whole value, as `numpy.ndarray.nbytes`."""
        return self._gathered().nbytes

    def is_deleted(self) -> bool:
        """Whether it was donated, so that its memory is another's now."""
        return self._handle is None or self._handle.is_donated

    def delete(self) -> None:
        """Gives its memory back."""
        self._handle = None
        self._value = None

    def block_until_ready(self) -> Array:
        """Does nothing: a program has run when it returns."""
        return self

    def handle(self) -> Any:
        """The extension's array behind this one."""
        if self.is_deleted():
            fate = "deleted" if self._handle is None else self._handle.fate
            raise RuntimeError(
                f"this Array was {fate} and cannot be used again"
            )
        return self._handle

    def _gathered(self) -> np.ndarray:
        handle = self.handle()
        if self._value is None:
            words = handle.to_host().view(numpy_dtype(handle.dtype))
            self._value = words.reshape(handle.shape)
            self._value.flags.writeable = False
        return self._value

    def __jax_array__(self) -> jax.Array:
        value = jax.numpy.asarray(self._gathered())
        if self._key is not None:
            return jax.random.wrap_key_data(value, impl=self._key)
        return value

    def __array__(
        self, dtype: Any = None, copy: bool | None = None
    ) -> np.ndarray:
        if self._key is not None:
            raise TypeError(
                "NumPy has no dtype for typed PRNG keys; take "
                "jax.random.key_data of it first"
            )
        value = self._gathered()
        if dtype is not None and np.dtype(dtype) != value.dtype:
            if copy is False:
                raise ValueError(f"{value.dtype} to {dtype} needs a copy")
            return value.astype(dtype)
        return value.copy() if copy else value

    def __reduce__(self) -> Any:
        # Copies and pickles hold the value, in an array of JAX.
        if self._key is not None:
            return _wrap_key, (self._gathered(), self._key)
        return jax.numpy.asarray, (self._gathered(),)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an Array without dimensions")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.__jax_array__())

    def __getitem__(self, index: Any) -> jax.Array:
        return self.__jax_array__()[index]

    def __getattr__(self, name: str) -> Any:
        # Methods such as .mean() or .astype() are those of the gathered value.
        if name.startswith("_"):
            raise AttributeError(name)
        if not hasattr(ArrayImpl, name):
            raise AttributeError(f"'Array' object has no attribute {name!r}")
        return getattr(self.__jax_array__(), name)

    def item(self) -> Any:
        """The only element as a Python number."""
        return self._gathered().item()

    def __float__(self) -> float:
        return float(self._gathered())

    def __int__(self) -> int:
        return int(self._gathered())

    def __bool__(self) -> bool:
        return bool(self._gathered())

    def __index__(self) -> int:
        return operator.index(self._gathered())

    def __format__(self, specification: str) -> str:
        if specification and not self.shape:
            return format(self._gathered()[()], specification)
        return format(str(self), specification)

    def __repr__(self) -> str:
        if self.is_deleted():
            return f"whale.Array(donated, shape={self.shape})"
        return f"whale.{self.__jax_array__()!r}"

    def __str__(self) -> str:
        return repr(self) if self.is_deleted() else str(self.__jax_array__())


def _wrap_key(words: np.ndarray, implementation: str) -> jax.Array:
    data = jax.numpy.asarray(words)
    return jax.random.wrap_key_data(data, impl=implementation)


def _binary(name: str) -> Any:
    def method(self: Array, other: Any) -> Any:
        return getattr(self.__jax_array__(), name)(_plain(other))

    method.__name__ = name
    return method


def _unary(name: str) -> Any:
    def method(self: Array) -> Any:
        return getattr(self.__jax_array__(), name)()

    method.__name__ = name
    return method


def _plain(value: Any) -> Any:
    return value.__jax_array__() if isinstance(value, Array) else value


for _name in (
    "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"
).split():
    setattr(Array, f"__{_name}__", _binary(f"__{_name}__"))
    setattr(Array, f"__r{_name}__", _binary(f"__r{_name}__"))
for _name in "lt le gt ge eq ne".split():
    setattr(Array, f"__{_name}__", _binary(f"__{_name}__"))
for _name in "neg pos abs invert".split():
    setattr(Array, f"__{_name}__", _unary(f"__{_name}__"))
Array.__hash__ = object.__hash__  # type: ignore[method-assign]


class KeyArray(Array, jax.Array):  # type: ignore[misc]
    """Typed PRNG keys; `jax.random` takes nothing but a `jax.Array` for one."""


def _gathered_attribute(name: str) -> property:
    return property(lambda self: getattr(self.__jax_array__(), name))


for _name in dir(jax.Array):
    if not hasattr(object, _name) and _name not in vars(Array):
        if callable(getattr(jax.Array, _name)) or not _name.startswith("_"):
            setattr(KeyArray, _name, _gathered_attribute(_name))
