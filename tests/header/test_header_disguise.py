"""Identity under a VR or an encoding that is not its own: PS3.6 decides (cases.md 4, PS3.5 6.2.2)."""

from pathlib import Path

import pytest
from header_objects import (
    NAME,
    ct_base,
    encoded,
    explicit,
    implicit,
    item,
    scrub,
    with_element,
)


@pytest.mark.parametrize("nested", [explicit, None])
def test_case_4_private_sequences_in_disguise_go(tmp_path: Path, nested: object) -> None:
    name = implicit(0x00100010, NAME.encode())
    element = explicit(0x00990010, "LO", b"ACME 1.0") + explicit(0x00991001, "UN", item(name))
    out = scrub(tmp_path, with_element(encoded(ct_base()), element, 0x00991001))
    assert out.has_plant() == []
    assert out.step.counts["private"] == 2


@pytest.mark.parametrize("inside", ["implicit", "explicit", "undefined", "garbage"])
def test_case_4_a_standard_sequence_sent_as_unknown_is_entered_or_removed(tmp_path: Path, inside: str) -> None:
    """PS3.5 6.2.2: what is inside UN is implicit VR little endian; some writers keep their own encoding."""
    name, code = NAME.encode(), b"CODE"
    tag = 0x00082218  # Anatomic Region Sequence
    if inside == "implicit":
        value = item(implicit(0x00080100, code) + implicit(0x00081050, name))
    elif inside == "explicit":
        value = item(explicit(0x00080100, "SH", code) + explicit(0x00081050, "PN", name))
    else:
        value = item(name + b"  ")
    element = explicit(tag, "UN", value)
    if inside == "undefined":
        value = item(implicit(0x00080100, code) + implicit(0x00081050, name)) + b"\xfe\xff\xdd\xe0\0\0\0\0"
        element = explicit(tag, "UN", b"")[:8] + b"\xff\xff\xff\xff" + value
    out = scrub(tmp_path, with_element(encoded(ct_base()), element, tag))
    assert out.has_plant() == []
    if inside == "garbage":
        assert "AnatomicRegionSequence" not in out.ds
        assert out.step.counts["unreadable_sequence"] == 1
    else:
        assert code in out.bytes


@pytest.mark.parametrize("vr", ["UN", "LO", "OB", "SH", "UT", "DA", "SQ"])
def test_a_listed_attribute_meets_its_rule_whatever_vr_the_sender_writes(tmp_path: Path, vr: str) -> None:
    file = encoded(ct_base())
    for tag in (0x00102160, 0x00081070, 0x00104000):  # Ethnic Group, Operators' Name, Patient Comments
        file = with_element(file, explicit(tag, vr, b"ZZSYNTH^LEAKTEST"), tag)
    out = scrub(tmp_path, file)
    assert out.has_plant() == []
    name = encoded(ct_base()).replace(
        explicit(0x00100010, "PN", NAME.encode()), explicit(0x00100010, vr, NAME.encode())
    )
    assert scrub(tmp_path, name).ds.PatientName == scrub(tmp_path, ct_base()).ds.PatientName


def test_a_technical_attribute_that_holds_text_is_not_kept(tmp_path: Path) -> None:
    file = encoded(ct_base())
    wrong = {
        0x00280034: ("IS", b"LEAK0001"),  # Pixel Aspect Ratio
        0x00181151: ("PN", NAME.encode()),  # X-Ray Tube Current sent as a name
        0x00189327: ("LO", b"LEAK0001"),  # Table Position, FD
        0x00280120: ("US", b"LEAKTEST1")[:2],  # Pixel Padding Value, odd
        0x0008010C: ("UI", b"ZZSYNTH/LEAKTEST"),  # Coding Scheme UID
    }
    for tag, (vr, value) in wrong.items():
        file = with_element(file, explicit(tag, vr, value), tag)
    out = scrub(tmp_path, file)
    assert out.has_plant() == []


@pytest.mark.parametrize("tag", [0x00280020, 0x00282000, 0x00281201, 0x54001010])
@pytest.mark.parametrize("form", ["undefined", "defined", "sequence"])
def test_a_sequence_in_place_of_bulk_that_stays_goes_with_all_that_is_in_it(
    tmp_path: Path, tag: int, form: str
) -> None:
    """A retired blank, an ICC profile, a palette, a waveform: kept for being technical, and nobody enters them."""
    value = item(explicit(0x00100020, "LO", NAME.encode()))
    if form == "undefined":
        end = b"\xfe\xff\xdd\xe0\0\0\0\0"
        element = explicit(tag, "UN", b"")[:8] + b"\xff\xff\xff\xff" + value + end
    else:
        element = explicit(tag, "SQ" if form == "sequence" else "UN", value)
    out = scrub(tmp_path, with_element(encoded(ct_base()), element, tag))
    assert out.has_plant() == []
    assert out.step.counts["unfit"] + out.step.counts["X"] > 0


def test_bulk_that_stays_may_be_anything_else(tmp_path: Path) -> None:
    profile = bytes(range(64))
    out = scrub(tmp_path, with_element(encoded(ct_base()), explicit(0x00282000, "OB", profile), 0x00282000))
    assert out.ds.ICCProfile == profile
