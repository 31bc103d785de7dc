"""Checkpoints: nothing in them runs, nothing that they claim is allocated, damage is told."""

from __future__ import annotations

import argparse
import os
import pickle
import struct
import zipfile
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from checkpoint_files import LEGACY, ZIP, saved
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.checkpoints import CheckpointError, open_checkpoint
from models.checkpoints.references import StorageType, Stub
from models.checkpoints.unpickler import FAULTS, ByteReader, Unpickler


class Runs:
    """A pickle that calls `function(*arguments)` when it is loaded."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return self.call


def hostile(sentinel: Path) -> dict[str, Any]:
    write = f"open({str(sentinel)!r}, 'w').close()"
    return {
        "os.system": Runs(os.system, f"touch {sentinel}"),
        "eval": Runs(eval, write),
        "exec": Runs(exec, write),
        "chain": Runs(getattr, Runs(__import__, "os"), "system"),
        "open": Runs(open, str(sentinel), "w"),
        "path": Runs(Path.touch, sentinel),
        "popen": Runs(os.popen, f"touch {sentinel}"),
        "torch": Runs(torch.hub.load, "a/b", "c"),
        "pickle": Runs(pickle.loads, pickle.dumps(Runs(os.system, f"touch {sentinel}"))),
    }


@pytest.mark.parametrize("as_zip", [ZIP, LEGACY])
@pytest.mark.parametrize("name", sorted(hostile(Path("x"))))
def test_what_a_pickle_would_run_does_not_run(tmp_path: Path, name: str, as_zip: bool) -> None:
    sentinel = tmp_path / "ran"
    path = saved({"model": {"w": torch.ones(2)}, "x": hostile(sentinel)[name]}, tmp_path / "a.pth", as_zip=as_zip)
    with open_checkpoint(path) as checkpoint:
        assert torch.equal(checkpoint.tensor(checkpoint.tree["model"]["w"]), torch.ones(2))
        assert checkpoint.inert
    assert not sentinel.exists()


PROTO, STOP = pickle.PROTO + b"\x04", pickle.STOP
FLOAT = b"ctorch\nFloatStorage\n"
REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n"
ORDERED = b"ccollections\nOrderedDict\n"


def number(value: int) -> bytes:
    return pickle.dumps(value, 2)[2:-1]


def storage(count: int) -> bytes:
    """A reference to a storage of that many floats."""
    return (
        b"(" + b"X\x07\x00\x00\x00storage" + FLOAT + b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpu" + number(count) + b"tQ"
    )


def view(count: int, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> bytes:
    def tuple_of(numbers: tuple[int, ...]) -> bytes:
        return b"(" + b"".join(map(number, numbers)) + b"t"

    return REBUILD + b"(" + storage(count) + number(offset) + tuple_of(shape) + tuple_of(strides) + b"\x89Nt" + b"R"


PROGRAMS = {
    "the state of a storage type": FLOAT + b"N}X\x05\x00\x00\x00dtypeX\x07\x00\x00\x00float64s\x86b",
    "the state of an allowed function": REBUILD + b"N}X\x08\x00\x00\x00functionNs\x86b",
    "the state of a tensor": view(4, 0, (2,), (1,)) + b"N}X\x06\x00\x00\x00offsetK\x09s\x86b",
    "the state of the stub class": b"cos\nsystem\nN}X\x08\x00\x00\x00__call__Ns\x86b",
    "the dictionary type": ORDERED + b"N}X\x06\x00\x00\x00updateNs\x86b",
    "a negative offset": view(4, -1, (2,), (1,)),
    "a view beyond the storage": view(4, 3, (2,), (1,)),
    "a view that repeats the storage": view(4, 0, (1 << 40,), (0,)),
    "a negative stride": view(4, 3, (2,), (-1,)),
    "a negative count": view(-4, 0, (2,), (1,)),
    "a shape of true": view(4, 0, (2,), (1,)).replace(number(2), b"\x88"),
    "a bytearray that is longer than memory": b"\x96" + struct.pack("<Q", 1 << 50),
    "bytes that are longer than the file": b"\x8e" + struct.pack("<Q", 1 << 50) + b"a",
    "text that is longer than the file": b"\x8d" + struct.pack("<Q", 1 << 62) + b"a",
    "an extension code": b"\x82\x01",
    "a reference to no storage": b"X\x01\x00\x00\x00aQ",
    "an unknown operation": b"\xff",
    "an empty stack": b"R",
    "a dictionary of a million pairs": ORDERED + b"(](" + b"K\x01K\x02\x86" * 30_000 + b"et" + b"R",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_reaches_for_more_is_refused(name: str) -> None:
    before = StorageType.__setstate__, Stub.__call__, OrderedDict.update
    with pytest.raises(FAULTS):
        Unpickler(ByteReader(memoryview(PROTO + PROGRAMS[name] + STOP))).load()
    assert before == (StorageType.__setstate__, Stub.__call__, OrderedDict.update)
    whole = PROTO + view(4, 0, (2,), (1,)) + STOP  # the building blocks themselves are sound
    assert Unpickler(ByteReader(memoryview(whole))).load().shape == (2,)


@pytest.mark.parametrize(
    "program", [b"Nr" + struct.pack("<I", (1 << 31) - 1), b"\x95" + struct.pack("<Q", 1 << 50) + b"N"]
)
def test_an_index_or_a_frame_of_any_size_costs_nothing(program: bytes) -> None:
    assert Unpickler(ByteReader(memoryview(PROTO + program + STOP))).load() is None


def test_a_storage_that_the_file_has_not_got_is_not_allocated(tmp_path: Path) -> None:
    whole = saved({"w": torch.ones(4)}, tmp_path / "a.pth")
    liar = tmp_path / "b.pth"
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(liar, "w") as target:
        for info in source.infolist():
            data = source.read(info)
            if info.filename.endswith("data.pkl"):  # 4 items become 2^40
                assert data.count(b"cpu") == 1
                at = data.index(b"K\x04", data.index(b"cpu"))
                data = data[:at] + number(1 << 40) + data[at + 2 :]
            target.writestr(info.filename, data)
    with open_checkpoint(liar) as checkpoint, pytest.raises(CheckpointError, match="missing"):
        checkpoint.tensor(checkpoint.tree["w"])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    as_zip=st.booleans(), cut=st.integers(0, 4000), flips=st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)))
)
def test_a_damaged_file_is_refused_or_read_and_never_anything_else(
    tmp_path: Path, as_zip: bool, cut: int, flips: list[tuple[int, int]]
) -> None:
    data = bytearray(
        saved({"w": torch.ones(4), "n": argparse.Namespace(a=1)}, tmp_path / "a", as_zip=as_zip).read_bytes()
    )
    for place, value in flips:
        data[place % len(data)] = value
    (tmp_path / "b").write_bytes(data[: max(len(data) - cut, 0)] if cut % 2 else data)
    with suppress(CheckpointError), open_checkpoint(tmp_path / "b") as checkpoint:
        tree = checkpoint.tree
        if isinstance(tree, dict) and hasattr(tree.get("w"), "storage"):
            checkpoint.tensor(tree["w"])
