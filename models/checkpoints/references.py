"""What a pickle may leave behind: storages and tensors as places in the file, and stubs that hold nothing."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

STORAGE_DTYPES = {  # torch/storage.py: name of the storage class -> dtype
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
}
ITEM_BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2}
MAX_DIMENSIONS = 16


def item_bytes(dtype: str) -> int:
    """Bytes of one number."""
    return ITEM_BYTES.get(dtype, 1)


def sealed(_self: object, _state: object) -> None:
    """`__setstate__` of what a pickle may hold and must not change; in each class, as dataclasses add their own."""
    raise pickle.UnpicklingError("it changes what it must not")


@dataclass(frozen=True, slots=True)
class StorageType:
    """One of torch's storage classes, by the type of its items."""

    dtype: str
    __setstate__ = sealed


@dataclass(frozen=True, slots=True)
class Storage:
    """`count` items of `dtype`, known in its file by `key`."""

    key: str
    dtype: str
    count: int
    __setstate__ = sealed


@dataclass(frozen=True, slots=True)
class TensorReference:
    """Where a tensor lies. `offset` and `strides` count items of the storage."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    __setstate__ = sealed


class Stub:
    """What stands where a pickle named something else. Takes everything, keeps nothing, does nothing."""

    __slots__ = ()

    def __new__(cls, *_arguments: Any, **_named: Any) -> Stub:
        return object.__new__(cls)

    def __init__(self, *_arguments: Any, **_named: Any) -> None:
        """Nothing is kept."""

    def __call__(self, *_arguments: Any, **_named: Any) -> Stub:
        return self

    def __setstate__(self, _state: Any) -> None:
        """Nothing is kept."""

    def __setitem__(self, _key: Any, _value: Any) -> None:
        """Nothing is kept."""

    def append(self, _value: Any) -> None:
        """Nothing is kept."""

    def extend(self, _values: Any) -> None:
        """Nothing is kept."""

    def add(self, _value: Any) -> None:
        """Nothing is kept."""


def rebuild_tensor(storage: Any, offset: Any, shape: Any, strides: Any, *_unused: Any) -> TensorReference | Stub:
    """`torch._utils._rebuild_tensor_v2`. Raises UnpicklingError for a view that leaves its storage or repeats it.

    Of a storage of a type that is not known here, it is a stub.
    """
    if isinstance(storage, Stub):
        return storage
    if not isinstance(storage, Storage) or not len(shape) == len(strides) <= MAX_DIMENSIONS:
        raise pickle.UnpicklingError("a tensor that is none")
    sizes, steps = tuple(shape), tuple(strides)
    if not all(type(number) is int and number >= 0 for number in (offset, *sizes, *steps)):
        raise pickle.UnpicklingError("a tensor that is none")
    items = 1
    for size in sizes:
        items *= size
    last = offset + sum((size - 1) * step for size, step in zip(sizes, steps, strict=True)) if items else offset
    if items > storage.count or last >= storage.count + (items == 0):
        raise pickle.UnpicklingError("a tensor larger than its storage")
    return TensorReference(storage, offset, sizes, steps)


def rebuild_parameter(data: Any, *_unused: Any) -> TensorReference | Stub:
    """`torch._utils._rebuild_parameter`: a parameter is its tensor."""
    if not isinstance(data, TensorReference | Stub):
        raise pickle.UnpicklingError("a parameter that is no tensor")
    return data
