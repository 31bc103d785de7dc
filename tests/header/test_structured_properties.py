"""No tree of content, private block or damage to either lets the plant through, ends in anything but a StudyError."""

from __future__ import annotations

from pathlib import Path

from header_objects import IMPLICIT, NAME, PSEUDONYMS, SYNTAXES, ct_base, encoded, one, policy, scrub
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydicom.dataset import Dataset
from reports import VALUES, code, content, measured, report
from test_graphics import annotation, drawing, state, words
from test_private import add
from test_structured_documents import PDF, document

from gateway.errors import StudyError
from gateway.header import scrub_file
from gateway.policy.content_table import load_content_table
from gateway.policy.private_lists import load_safe_private

QUIET = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
PRIVATE = {"dispositions": "tcia", "csa_headers": "clean"}
OPTIONS = ("clean-structured-content", "clean-graphics", "retain-safe-private")
HEADERS = st.sampled_from(
    [
        policy(*OPTIONS, private=PRIVATE, encapsulated="replace"),
        policy(*OPTIONS, "retain-longitudinal-modified-dates", encapsulated="replace"),
    ]
)
SAID = st.sampled_from(
    ["Leaktest, Zzsynth", "ZZSYNTH^LEAKTEST", "LEAK0001", "seen on 19500131 by LEAKTEST", "19500131"]
)
CONCEPTS = st.sampled_from(
    [None, ("1", "99X"), *sorted({(row.code, row.scheme) for row in load_content_table().values()})]
)


@st.composite
def items(draw: st.DrawFn, depth: int = 3) -> Dataset:
    """A content item whose every value holds the plant, with more below it."""
    kind = draw(st.sampled_from([*VALUES, "NUM", "CODE", "IMAGE", "COMPOSITE", "WAVEFORM", "SCOORD", "", "ODD"]))
    item = content(kind, draw(CONCEPTS))
    said = draw(SAID)
    for keyword in draw(st.sets(st.sampled_from(["TextValue", "PersonName", "TemporalRangeType"]))):
        setattr(item, keyword, said[:16] if keyword == "PersonName" else said)
    if "TemporalRangeType" in item:
        del item.TemporalRangeType
    if draw(st.booleans()):
        item.ObservationDateTime = "19500131"
    if depth and draw(st.booleans()):
        item.ContentSequence = draw(st.lists(items(depth=depth - 1), min_size=1, max_size=3))
    if draw(st.integers(0, 9)) == 0:
        item.ContentSequence = [one(RelationshipType="CONTAINS", ReferencedContentItemIdentifier=[1, 1])]
    return item


@QUIET
@given(st.lists(items(), min_size=1, max_size=4), HEADERS, st.sampled_from(SYNTAXES))
def test_no_value_survives_in_any_tree_of_content(
    tmp_path: Path, tree: list[Dataset], header: object, syntax: str
) -> None:
    out = scrub(tmp_path, report(*tree), header, syntax)
    assert out.has_plant() == []
    assert b"eaktest" not in out.bytes
    assert b"ZsynTh".lower() not in out.bytes.lower()


KEYS = sorted(load_safe_private())


@QUIET
@given(
    st.lists(
        st.tuples(
            st.sampled_from(KEYS), st.sampled_from(["LO", "SH", "LT", "ST", "PN", "UT", "UN", "OB", "SQ", "CS"]), SAID
        )
    ),
    HEADERS,
    st.sampled_from(SYNTAXES),
    st.integers(0x10, 0xFF),
)
def test_no_value_survives_in_any_safe_private_attribute(
    tmp_path: Path, planted: list[tuple[tuple[str, int, int], str, str]], header: object, syntax: str, block: int
) -> None:
    ds = ct_base()
    taken: dict[tuple[str, int], int] = {}
    for key, vr, said in planted:
        number = taken.setdefault((key[0], key[1]), block)
        if any(at == number and other != (key[0], key[1]) and other[1] == key[1] for other, at in taken.items()):
            continue
        value: object = said
        if vr in ("UN", "OB"):
            value = said.encode() + b" " * (len(said) % 2)
        elif vr == "SQ":
            value = [one(PatientName=NAME, StudyComments=said, ContentSequence=[content("TEXT")])]
        elif vr in ("CS", "SH"):
            value = said[:16]
        add(ds, load_safe_private()[key].creator, key[1], number, **{f"x{key[2]:02X}": (vr, value)})
    out = scrub(tmp_path, ds, header, syntax)
    assert out.has_plant() == []
    assert b"eaktest" not in out.bytes


def whole() -> list[bytes]:
    """One file of each kind that this module's options open up."""
    aged = content("NUM", ("121033", "DCM"), MeasuredValueSequence=[measured("93", "a")])
    deep = content(
        "CONTAINER", None, ContentSequence=[aged, content("CODE", None, ConceptCodeSequence=[code("1", "99X")])]
    )
    blocks = add(
        ct_base(), "GEMS_ACQU_01", 0x0019, 0x10, x23=("DS", "12.5"), x9E=("LO", "fse"), x24=("SQ", [one(Rows=3)])
    )
    drawn = state(annotation("L1", GraphicObjectSequence=[drawing()], TextObjectSequence=[words()]))
    kinds = [report(deep, *map(content, VALUES)), blocks, drawn, document(PDF, "application/pdf")]
    return [encoded(ds, syntax) for ds in kinds for syntax in (SYNTAXES[1], IMPLICIT)]


FILES = whole()


@settings(QUIET, max_examples=300)
@given(st.sampled_from(FILES), st.data(), HEADERS)
def test_damage_ends_in_a_clean_file_or_in_a_study_error(
    tmp_path: Path, file: bytes, data: st.DataObject, header: object
) -> None:
    broken = bytearray(file)
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(144, len(broken) - 1))
        broken[at] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        cut = data.draw(st.integers(144, len(broken) - 1))
        del broken[cut : cut + data.draw(st.integers(1, 40))]
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(broken)
    try:
        scrub_file(source, target, policy=header, pseudonyms=PSEUDONYMS)
    except StudyError as error:
        said = str(error).lower()
    else:
        said = ""
    assert "eaktest" not in said
