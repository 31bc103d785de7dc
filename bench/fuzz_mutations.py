"""What `bench.fuzz_header` does to a file: bytes, lengths, VRs, tags, structure."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from bench.fuzz_seeds import PLANTS
from gateway.header.elements import LONG_VRS, SHORT_VRS

VRS = [b"OB", b"SQ", b"UN", b"UT", b"LO", b"PN", b"US", b"UI", b"DA", b"\0\0", b"zz", b"OW", b"AT", b"UR"]
LENGTHS = [0, 1, 2, 7, 8, 0xFFFE, 0xFFFF, 0x10000, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF]
HEADER_BYTES = 6000  # mutations meet headers rather than pixels

Mutation = Callable[[random.Random, bytearray, list[bytes]], None]


def flip(rng: random.Random, file: bytearray, __: list[bytes]) -> None:
    for _ in range(rng.choice([1, 1, 2, 8, 40])):
        file[_place(rng, file)] ^= 1 << rng.randrange(8)


def set_bytes(rng: random.Random, file: bytearray, _: list[bytes]) -> None:
    at = _place(rng, file)
    file[at : at + rng.randrange(5)] = rng.choice([b"", b"\0" * 4, b"\xff" * 4, rng.randbytes(4), b"\\", b"\x1b$B"])


def length(rng: random.Random, file: bytearray, _: list[bytes]) -> None:
    at = _element(rng, file)
    wide = rng.random() < 0.5
    size = rng.choice(LENGTHS)
    file[at + 6 : at + 8] = struct.pack("<H", size & 0xFFFF)
    if wide:
        file[at + 8 : at + 12] = struct.pack("<I", size)


def vr(rng: random.Random, file: bytearray, _: list[bytes]) -> None:
    at = _element(rng, file)
    file[at + 4 : at + 6] = rng.choice(VRS)


def tag(rng: random.Random, file: bytearray, _: list[bytes]) -> None:
    at = _element(rng, file)
    group, number = rng.choice([(0x0008, rng.randrange(0x2000)), (0x0009, 0x1001), (0x0040, 0xA730), (0xFFFE, 0xE0DD)])
    file[at : at + 4] = struct.pack("<HH", group, number)


def splice(rng: random.Random, file: bytearray, others: list[bytes]) -> None:
    other = rng.choice(others)
    start = rng.randrange(max(1, min(len(other), HEADER_BYTES)))
    at = _element(rng, file)
    file[at:at] = other[start : start + rng.choice([8, 64, 1000])]


def repeat(rng: random.Random, file: bytearray, _: list[bytes]) -> None:
    start, end = sorted((_element(rng, file), _element(rng, file)))
    file[end:end] = file[start:end]


def cut(rng: random.Random, file: bytearray, _: list[bytes]) -> None:
    start, end = sorted((_place(rng, file), _place(rng, file)))
    del file[start : min(end, start + rng.choice([1, 4, 200]))]


def truncate(rng: random.Random, file: bytearray, _: list[bytes]) -> None:
    del file[rng.randrange(len(file)) :]


def nest(rng: random.Random, file: bytearray, __: list[bytes]) -> None:
    """Sequences in sequences around nothing or around elements, of defined and undefined length."""
    depth = rng.choice([3, 60, 70, 300, 1500])
    name = rng.choice([b"\x08\x00\x40\x11", b"\x08\x00\x15\x11", b"\x40\x00\x30\xa7", b"\x09\x00\x01\x10"])
    code = rng.choice([b"SQ", b"UN"])
    inner = b"" if rng.random() < 0.5 else b"\x10\x00\x10\x00PN\x08\x00" + PLANTS[0][:8]
    for _ in range(depth):
        if rng.random() < 0.5:
            item = b"\xfe\xff\x00\xe0" + struct.pack("<I", len(inner)) + inner
            inner = name + code + b"\0\0" + struct.pack("<I", len(item)) + item
        else:
            item = b"\xfe\xff\x00\xe0\xff\xff\xff\xff" + inner + b"\xfe\xff\x0d\xe0\0\0\0\0"
            inner = name + code + b"\0\0\xff\xff\xff\xff" + item + b"\xfe\xff\xdd\xe0\0\0\0\0"
        if rng.random() < 0.002:
            name, code = name[::-1], b"UN"
    at = _element(rng, file)
    file[at:at] = inner


def fill(rng: random.Random, file: bytearray, _: list[bytes]) -> None:
    at = _element(rng, file)
    file[at:at] = bytes(rng.choice([1, 8, 70_000]))


def syntax(rng: random.Random, file: bytearray, _: list[bytes]) -> None:
    at = file.find(b"1.2.840.10008.1.2", 132, 400)
    if at > 0:
        file[at : at + 19] = rng.choice([b"1.2.840.10008.1.2\0\0", b"1.2.840.10008.1.2.1", b"1.2.840.10008.1.2.2"])


def value(rng: random.Random, file: bytearray, _: list[bytes]) -> None:
    """Another value of the same length: the structure stays."""
    at = _element(rng, file)
    size = int.from_bytes(file[at + 6 : at + 8], "little")
    if bytes(file[at + 4 : at + 6]) in SHORT_VRS and 0 < size <= 64:
        words = b"\\".join(rng.choices([*PLANTS, b"20200131", b"\x1b$B;3", b"\xff\xfe", b"1.2.3", b"^=^"], k=4))
        file[at + 8 : at + 8 + size] = words[:size].ljust(size)


def graft(rng: random.Random, file: bytearray, __: list[bytes]) -> None:
    """Well-formed elements with the plant in them, at their places in an explicit little endian data set."""
    places = _places(file)
    for _ in range(rng.choice([1, 3, 8])):
        if not places:
            return
        here, at = rng.choice(places)
        if here >> 16 < 0x0008 or here & 0xFFFF == 0xFFFF:
            continue
        new = _node(rng, (here & 0xFFFF0000) + min((here & 0xFFFF) + rng.choice([1, 2, 16]), 0xFFFF), 0)
        file[at:at] = new
        places = _places(file)


def _node(rng: random.Random, number: int, depth: int) -> bytes:
    head = struct.pack("<HH", number >> 16, number & 0xFFFF)
    if depth < 4 and rng.random() < 0.3:
        tags = sorted({rng.choice(NESTED_TAGS) for _ in range(3)})
        inner = b"".join(_node(rng, one, depth + 1) for one in tags)
        if rng.random() < 0.5:
            item = b"\xfe\xff\x00\xe0" + struct.pack("<I", len(inner)) + inner
        else:
            item = b"\xfe\xff\x00\xe0\xff\xff\xff\xff" + inner + b"\xfe\xff\x0d\xe0\0\0\0\0"
        code = rng.choice([b"SQ", b"SQ", b"UN"])
        if rng.random() < 0.5:
            return head + code + b"\0\0" + struct.pack("<I", len(item)) + item
        return head + code + b"\0\0\xff\xff\xff\xff" + item + b"\xfe\xff\xdd\xe0\0\0\0\0"
    text = b" ".join(rng.choices([*PLANTS, b"thorax", b"1.2.840.1", b"20200131"], k=rng.choice([1, 2])))
    text += b" " * (len(text) % 2)
    code = rng.choice([b"LO", b"PN", b"UN", b"UI", b"DA", b"UT", b"CS", b"DS"])
    if code in SHORT_VRS:
        return head + code + struct.pack("<H", len(text)) + text
    return head + code + b"\0\0" + struct.pack("<I", len(text)) + text


def _places(file: bytearray) -> list[tuple[int, int]]:
    """(tag, end) of top-level elements in explicit little endian, as far as they can be followed."""
    at = file.find(b"\x08\x00", 140, 600)
    found = []
    while 0 < at < len(file) - 12:
        group, number = struct.unpack_from("<HH", file, at)
        code = bytes(file[at + 4 : at + 6])
        short = code in SHORT_VRS
        if not short and code not in LONG_VRS:
            break
        size = int.from_bytes(file[at + 6 : at + 8] if short else file[at + 8 : at + 12], "little")
        at += (8 if short else 12) + size
        if group == 0x7FE0 or at > len(file):
            break
        found.append((group << 16 | number, at))
    return found


MUTATIONS: tuple[Mutation, ...] = (
    *(flip, set_bytes, length, vr, tag, splice, repeat, cut, truncate, nest, fill, syntax),
    *(vr, value, value, value, graft, graft, graft, graft),  # these leave a structure to be cleaned
)
MOVES_TEXT = {"tag", "splice", "graft", "flip", "value", "vr", "set_bytes"}  # into attributes that the profile keeps
NESTED_TAGS = (
    *(0x00080100, 0x00080104, 0x00080070, 0x00081155, 0x00100010, 0x00100020, 0x00101000, 0x00180015, 0x0020000D),
    *(0x00204000, 0x00290010, 0x00291010, 0x0040A043, 0x0040A160, 0x0040A730, 0x00700006, 0x00880140),
)


def _place(rng: random.Random, file: bytearray) -> int:
    return rng.randrange(min(len(file), rng.choice([400, HEADER_BYTES, len(file)])))


def _element(rng: random.Random, file: bytearray) -> int:
    """Where an explicit VR element seems to begin; anywhere for want of one."""
    start = _place(rng, file)
    for at in range(start, min(start + 300, len(file) - 8)):
        if bytes(file[at + 4 : at + 6]).isalpha() and file[at + 1] < 0x80 and file[at + 4 : at + 6].isupper():
            return at
    return start


def case(seed: int, number: int, files: list[bytes]) -> tuple[bytes, str]:
    """The bytes of a case, and which mutations made it."""
    rng = random.Random(f"{seed}:{number}")
    file = bytearray(rng.choice(files))
    names = []
    for mutation in rng.choices(MUTATIONS, k=rng.choice([1, 1, 2, 4])):
        if len(file) > 200:
            mutation(rng, file, files)
            names.append(mutation.__name__)
    return bytes(file), "+".join(names)
