"""Invariants over random objects: no planted value survives, UID graphs keep their shape, the rest stays bit-exact."""

import io
import struct
from collections.abc import Callable
from pathlib import Path

import pydicom
import pytest
from header_objects import BASIC, BIG_ENDIAN, CT, EXPLICIT, IMPLICIT, MODIFIED, PSEUDONYMS, ct_base, encoded
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.errors import StudyError
from gateway.header import Act, scrub_file
from gateway.header.dictionary import dictionary
from gateway.header.plan import plan_for

# The plant is in no attribute of the base object: whatever of it comes out was let through.
PLANT = b"QQPLANTQQ"
STAMPED = {0x00120062, 0x00120063, 0x00120064, 0x00280303}
HOLDS = {0x0040A730, 0x00420011}  # Content Sequence, Encapsulated Document
SEQUENCES = sorted(
    tag
    for tag, entry in dictionary().items()
    if entry.vr == "SQ" and tag not in HOLDS | STAMPED and 0x0008 <= tag >> 16 < 0x7FE0 and not tag >> 16 & 1
)
CARRIERS = sorted(
    tag
    for tag, entry in dictionary().items()
    if plan_for(BASIC, CT).decide(tag).act not in (Act.KEEP, Act.RECURSE)
    and entry.vr not in ("SQ", "UI")
    and tag >> 16 > 0x0008
    and tag not in HOLDS | {0x00100020, 0x00100010}
)
PRIVATE = [0x00090010, 0x00091001, 0x00290010, 0x002910FF, 0x7FE10010]
LONG = {"OB", "OD", "OF", "OL", "OV", "OW", "SQ", "SV", "UC", "UN", "UR", "UT", "UV"}

Node = tuple[int, str, object]  # (tag, VR, bytes or (undefined length, [item])), an item: (undefined length, [Node])


@st.composite
def leaves(draw: st.DrawFn) -> Node:
    tag = draw(st.sampled_from(CARRIERS) | st.sampled_from(PRIVATE))
    own = dictionary()[tag].vr.split(" or ")[0] if tag in dictionary() else "LO"
    vr = draw(st.sampled_from([own, own, "UN", "LO", "OB", "UT", "PN"]))
    value = draw(st.sampled_from([PLANT, b"20200131" + PLANT, PLANT + b"^X\\" + PLANT, b"x" * 40 + PLANT]))
    return tag, vr, value + b" " * (len(value) % 2)


def data_sets(children: st.SearchStrategy[Node]) -> st.SearchStrategy[tuple[bool, list[Node]]]:
    unique = st.lists(children, max_size=4, unique_by=lambda node: node[0])
    return st.tuples(st.booleans(), unique.map(lambda nodes: sorted(nodes, key=lambda node: node[0])))


def sequences(children: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    tags = st.sampled_from(SEQUENCES) | st.sampled_from(PRIVATE)
    items = st.tuples(st.booleans(), st.lists(data_sets(children), min_size=1, max_size=2))
    return st.tuples(tags, st.sampled_from(["SQ", "SQ", "UN"]), items)


TREES = st.recursive(leaves(), sequences, max_leaves=12)


def write(node: Node, syntax: str) -> bytes:
    """A node's bytes; inside UN everything is implicit VR little endian (PS3.5 6.2.2)."""
    tag, vr, content = node
    order = ">" if syntax == BIG_ENDIAN else "<"
    inner = IMPLICIT if vr == "UN" else syntax
    if isinstance(content, bytes):
        undefined, value, end = False, content, b""
    else:
        undefined, items = content  # type: ignore[misc]
        inner_order = ">" if inner == BIG_ENDIAN else "<"
        value = b"".join(write_item(one, inner, inner_order) for one in items)
        end = struct.pack(inner_order + "HHI", 0xFFFE, 0xE0DD, 0) if undefined else b""
    length = 0xFFFFFFFF if undefined else len(value)
    head = struct.pack(order + "HH", tag >> 16, tag & 0xFFFF)
    if syntax == IMPLICIT:
        head += struct.pack("<I", length)
    elif vr in LONG:
        head += vr.encode() + struct.pack(order + "HI", 0, length)
    else:
        head += vr.encode() + struct.pack(order + "H", length)
    return head + value + end


def write_item(one: tuple[bool, list[Node]], syntax: str, order: str) -> bytes:
    undefined, nodes = one
    value = b"".join(write(node, syntax) for node in nodes)
    if undefined:
        return (
            struct.pack(order + "HHI", 0xFFFE, 0xE000, 0xFFFFFFFF)
            + value
            + struct.pack(order + "HHI", 0xFFFE, 0xE00D, 0)
        )
    return struct.pack(order + "HHI", 0xFFFE, 0xE000, len(value)) + value


def elements_of(ds: pydicom.Dataset, syntax: str) -> dict[int, bytes]:
    """Each top-level element of the base object, encoded."""
    out = {}
    for element in ds:
        single = pydicom.Dataset()
        single.add(element)
        buffer = io.BytesIO()
        pydicom.dcmwrite(buffer, single, implicit_vr=syntax == IMPLICIT, little_endian=syntax != BIG_ENDIAN)
        out[int(element.tag)] = buffer.getvalue()
    return out


def file_of(nodes: list[Node], syntax: str) -> bytes:
    file = encoded(ct_base(), syntax)
    meta = file[: 144 + int.from_bytes(file[140:144], "little")]
    parts = elements_of(ct_base(), syntax)
    for node in nodes:
        if node[0] not in parts:
            parts[node[0]] = write(node, syntax)
    return meta + b"".join(parts[tag] for tag in sorted(parts))


@pytest.fixture
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., bytes]:
    folder = tmp_path_factory.mktemp("scrub")

    def scrub(file: bytes, header: object = MODIFIED) -> bytes:
        (folder / "in").write_bytes(file)
        scrub_file(folder / "in", folder / "out", policy=header, pseudonyms=PSEUDONYMS)  # type: ignore[arg-type]
        return (folder / "out").read_bytes()

    return scrub


relaxed = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


@relaxed
@given(
    st.lists(TREES, min_size=1, max_size=6, unique_by=lambda node: node[0]),
    st.sampled_from([IMPLICIT, EXPLICIT, BIG_ENDIAN]),
    st.sampled_from([BASIC, MODIFIED]),
)
def test_no_planted_value_survives_in_any_nesting_vr_or_private_layout(
    run: Callable[..., bytes], nodes: list[Node], syntax: str, header: object
) -> None:
    file = file_of(nodes, syntax)
    out = run(file, header)
    assert PLANT not in out
    assert run(file, header) == out
    if syntax != BIG_ENDIAN:  # pydicom takes UN of undefined length in a big endian file for big endian
        str(pydicom.dcmread(io.BytesIO(out)))  # the whole output can be read


def uid_values(ds: pydicom.Dataset) -> list[str]:
    found: list[str] = []
    for element in ds.iterall():
        if element.VR == "UI":
            found += [str(one) for one in ([element.value] if element.VM < 2 else element.value)]
    return found


uids = st.integers(1, 6).map(lambda n: f"1.2.826.0.1.3680043.8.498.{n}") | st.sampled_from(
    [CT, "1.2.840.10008.1.4.1.1", "1.2.840.10008.3.1.2.3.1"]
)


@relaxed
@given(st.lists(st.tuples(st.sampled_from([0x00081140, 0x00082112, 0x30060010, 0x00089215]), uids, uids), max_size=4))
def test_the_graph_of_uids_keeps_its_shape(run: Callable[..., bytes], references: list[tuple[int, str, str]]) -> None:
    ds = ct_base()
    for tag, one, other in references:
        item = pydicom.Dataset()
        item.ReferencedSOPInstanceUID = one
        item.FrameOfReferenceUID = other
        item.IrradiationEventUID = [one, other]
        ds.add_new(tag, "SQ", [item])
    before = uid_values(ds)
    after = uid_values(pydicom.dcmread(io.BytesIO(run(encoded(ds)))))
    assert len(before) == len(after)
    mapping = dict(zip(before, after, strict=True))
    assert [mapping[uid] for uid in before] == after  # a function
    assert len(set(mapping.values())) == len(mapping)  # and one to one
    assert all((old == new) is old.startswith("1.2.840.10008.") for old, new in mapping.items())


TECHNICAL = {"US": 2, "SS": 2, "UL": 4, "SL": 4, "FL": 4, "FD": 8}
PLAIN = [
    (tag, entry.vr)
    for tag, entry in sorted(dictionary().items())
    if (entry.vr in TECHNICAL or entry.vr in ("CS", "DS", "IS"))
    and plan_for(BASIC, CT).decide(tag).act is Act.KEEP
    and 0x0018 <= tag >> 16 < 0x7FE0
    and tag >> 16 != 0x0028
    and tag not in STAMPED
    and not 0x5000 <= tag >> 16 < 0x6100
]


@st.composite
def technical(draw: st.DrawFn) -> Node:
    tag, vr = draw(st.sampled_from(PLAIN))
    if vr in TECHNICAL:
        number = st.binary(min_size=TECHNICAL[vr], max_size=TECHNICAL[vr])
        # Eight bytes that read as text throughout are refused on purpose (test_descriptors_fitness).
        return tag, vr, draw(number.filter(lambda v: len(v) < 8 or any(b and not 0x20 <= b < 0x7F for b in v)))
    alphabet = "0123456789.-+ " if vr != "CS" else "ABC_ 12"
    text = draw(st.text(alphabet, max_size=12)).encode()
    return tag, vr, text + b" " * (len(text) % 2)


@relaxed
@given(
    st.lists(
        st.recursive(technical(), sequences, max_leaves=8), min_size=1, unique_by=lambda node: node[0], max_size=6
    ),
    st.sampled_from([IMPLICIT, EXPLICIT, BIG_ENDIAN]),
)
def test_what_no_rule_names_leaves_as_the_bytes_that_came(
    run: Callable[..., bytes], nodes: list[Node], syntax: str
) -> None:
    plan = plan_for(MODIFIED, CT)

    def untouched(node: Node, parent: int = 0) -> bool:
        if plan.decide(node[0], parent).act not in (Act.KEEP, Act.RECURSE):
            return False
        if isinstance(node[2], bytes):
            return True
        return all(untouched(child, node[0]) for one in node[2][1] for child in one[1])  # type: ignore[index]

    out = run(file_of(nodes, syntax))
    base = {int(element.tag) for element in ct_base()}
    for node in nodes:
        if node[0] not in base and untouched(node):
            assert write(node, syntax) in out


@relaxed
@given(st.data())
def test_corrupted_files_are_held_or_cleaned_and_nothing_else(run: Callable[..., bytes], data: st.DataObject) -> None:
    syntax = data.draw(st.sampled_from([IMPLICIT, EXPLICIT, BIG_ENDIAN]))
    nodes = data.draw(st.lists(TREES, max_size=3, unique_by=lambda node: node[0]))
    file = bytearray(file_of(nodes, syntax))
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(file) - 1))
        kind = data.draw(st.sampled_from(["flip", "cut", "insert", "end"]))
        if kind == "flip":
            file[at] = data.draw(st.integers(0, 255))
        elif kind == "cut":
            del file[at : at + data.draw(st.integers(1, 12))]
        elif kind == "insert":
            file[at:at] = data.draw(st.binary(min_size=1, max_size=12))
        else:
            del file[max(at, 1) :]
        file = file or bytearray(b"\0")
    said = ""
    try:
        run(bytes(file))
    except StudyError as error:
        said = str(error)
    assert "QQPLANT" not in said


def test_the_corpus_of_carriers_and_plain_attributes_is_broad() -> None:
    assert len(CARRIERS) > 700
    assert len(PLAIN) > 1000
    assert len(SEQUENCES) > 900


def test_every_table_attribute_at_once(run: Callable[..., bytes], tmp_path: Path) -> None:
    """One object with every attribute of the table that can carry text, at top level and in an item."""
    nodes: list[Node] = [(tag, dictionary()[tag].vr.split(" or ")[0], PLANT + b" ") for tag in CARRIERS]
    nested: Node = (0x00082218, "SQ", (False, [(False, nodes)]))
    for syntax in (IMPLICIT, EXPLICIT, BIG_ENDIAN):
        assert PLANT not in run(file_of([*nodes, nested], syntax))
