"""A pickle machine that can make containers and references to tensors, and nothing else (papers/facts.md 1.7).

Of the names that a pickle may call it knows `torch._utils._rebuild_tensor_v2`, `_rebuild_parameter`,
`collections.OrderedDict` and torch's storage types. Every other name becomes an inert stub: it is not imported, takes
any arguments, keeps nothing, and is reported. torch is not needed: a tensor stays a reference to bytes of the file
until somebody asks for it, so that a length written in the pickle never allocates anything.

The machine is the standard library's pure-Python one, because its memo is a dictionary: the C one allocates an array as
long as the largest index that a file names.
"""

from __future__ import annotations

import pickle
import struct
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from models.checkpoints.errors import CheckpointError
from models.checkpoints.references import (
    STORAGE_DTYPES,
    Storage,
    StorageType,
    Stub,
    rebuild_parameter,
    rebuild_tensor,
    sealed,
)

MAX_NAMES = 10_000  # of stubs that are reported
MAX_ITEMS = 20_000  # that a dictionary is made with at once

# What a broken or hostile program makes the machine raise. MemoryError is left alone: it is about this computer.
FAULTS = (
    pickle.UnpicklingError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
)


class ByteReader:
    """A file for the machine: it gives what is there, however much is asked for, and copies no more than that."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.at = 0

    def read(self, count: int = -1) -> bytes:
        left = len(self.data) - self.at
        take = left if count is None or count < 0 else min(count, left)
        self.at += take
        return bytes(self.data[self.at - take : self.at])

    def readline(self) -> bytes:
        piece = bytes(self.data[self.at : self.at + 4096])
        end = piece.find(b"\n")
        if end < 0:
            raise pickle.UnpicklingError("a line of a pickle without an end")
        self.at += end + 1
        return piece[: end + 1]


@dataclass(frozen=True, slots=True)
class _Allowed:
    """A function that a pickle may call, as an object whose state it cannot reach."""

    function: Callable[..., Any]
    __setstate__ = sealed

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


def ordered_dict(items: Any = ()) -> OrderedDict[Any, Any]:
    """`collections.OrderedDict`. Python 3 fills it afterwards; Python 2 gave it its items as a list."""
    if not isinstance(items, list | tuple) or len(items) > MAX_ITEMS:
        raise pickle.UnpicklingError("a dictionary that is none")
    return OrderedDict(items)


ALLOWED: dict[tuple[str, str], Any] = {
    ("torch._utils", "_rebuild_tensor_v2"): _Allowed(rebuild_tensor),
    ("torch._utils", "_rebuild_parameter"): _Allowed(rebuild_parameter),
    ("collections", "OrderedDict"): _Allowed(ordered_dict),
    **{("torch", name): StorageType(dtype) for name, dtype in STORAGE_DTYPES.items()},
}


class Unpickler(pickle._Unpickler):  # noqa: SLF001 - the pure-Python one, see above
    """Reads one pickle. `inert` collects the names that became stubs."""

    dispatch: ClassVar[dict[int, Callable[..., Any]]] = dict(pickle._Unpickler.dispatch)  # noqa: SLF001

    def __init__(self, reader: ByteReader) -> None:
        super().__init__(reader, encoding="utf-8", errors="replace")
        self.inert: set[str] = set()
        self.storages: dict[str, Storage] = {}

    def find_class(self, module: str, name: str) -> Any:
        """Never imports anything."""
        known = ALLOWED.get((module, name))
        if known is not None:
            return known
        if len(self.inert) < MAX_NAMES:
            self.inert.add(f"{module}.{name}"[:200])
        return Stub

    def persistent_load(self, pid: Any) -> Any:
        """('storage', type, key, place, items[, view]) as torch writes it."""
        if not (isinstance(pid, tuple) and len(pid) in (5, 6) and pid[0] == "storage"):
            raise pickle.UnpicklingError("a reference to something that is no storage")
        kind, key, count = pid[1], pid[2], pid[4]
        if kind is Stub:  # complex, quantised, untyped: beside the weights it does not matter, among them it is missed
            return Stub()
        if not isinstance(kind, StorageType) or type(count) is not int or count < 0 or type(key) not in (str, int):
            raise pickle.UnpicklingError("a storage of an unknown type")
        if len(pid) == 6 and pid[5] is not None:
            raise pickle.UnpicklingError("a storage that is a view of another (torch before 0.4)")
        found = Storage(str(key), kind.dtype, count)
        if self.storages.setdefault(found.key, found) != found:
            raise pickle.UnpicklingError("a storage of two types or sizes")
        return found

    def _refuse(self) -> None:
        raise pickle.UnpicklingError("an operation that weights do not need")

    # Allocates what the file says before it is read; out-of-band buffers there are none.
    dispatch[pickle.BYTEARRAY8[0]] = _refuse
    dispatch[pickle.NEXT_BUFFER[0]] = _refuse
    dispatch[pickle.READONLY_BUFFER[0]] = _refuse
    # The registry of extension codes is this process's, not the file's.
    dispatch[pickle.EXT1[0]] = _refuse
    dispatch[pickle.EXT2[0]] = _refuse
    dispatch[pickle.EXT4[0]] = _refuse


@dataclass(frozen=True, slots=True)
class Unpickled:
    """One pickle: what it holds, the storages that it names by key, and the names that became stubs."""

    found: Any
    storages: dict[str, Storage]
    inert: tuple[str, ...]


def unpickle(reader: ByteReader, file: str) -> Unpickled:
    """One pickle from where the reader stands. Raises CheckpointError naming the file."""
    machine = Unpickler(reader)
    try:
        found = machine.load()
    except FAULTS as error:
        says = str(error) if isinstance(error, pickle.UnpicklingError) else "it ends early or is damaged"
        raise CheckpointError(
            f"{file}: its pickle cannot be read ({says}); take the file from its owner again and compare its digest"
        ) from None
    return Unpickled(found, machine.storages, tuple(sorted(machine.inert)))
