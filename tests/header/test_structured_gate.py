"""What these options keep passes the gate, which shares no code with them: no residual identifier, a true encoding."""

from __future__ import annotations

from pathlib import Path

import pytest
from header_objects import PSEUDONYMS, SYNTAXES, ct_base, encoded, one, policy
from pydicom.dataset import Dataset
from reports import content, report
from test_csa import FIELDS, csa, with_csa
from test_private import add
from test_structured_peers import MORE, OPTIONS, built

from gateway.errors import StudyError
from gateway.gate import Pair, judge
from gateway.gate.checks import CHECKS
from gateway.header import scrub_file
from gateway.policy import GatePolicy, HeaderPolicy, Policy
from gateway.policy.content_table import load_content_table

HEADERS = (
    policy(*OPTIONS, **MORE),
    policy(*OPTIONS, "retain-longitudinal-modified-dates", **MORE),
    policy(*OPTIONS, "retain-longitudinal-modified-dates", "clean-descriptors", **MORE),
)
# Objects that claim to be what they are not before and after: pixels of another size than rows and columns say.
UNTRUE = frozenset({"MR_small_padded.dcm", "badVR.dcm"})


def findings(source: Path, target: Path, header: HeaderPolicy) -> list[tuple[str, str]]:
    checks = {"residual_identifiers": CHECKS["residual_identifiers"]()}
    whole = Policy(name="all", header=header, gate=GatePolicy(study=checks))
    judged = judge([Pair("00001", source, target)], policy=whole, job_key="j", destination="d", seal_key=bytes(32))
    return [(one.where, one.rule) for verdict in judged.verdicts for one in verdict.findings]


def private_objects() -> list[Dataset]:
    inner = add(one(StudyDate="20200131", Rows=3), "GEMS_ACQU_01", 0x0019, 0x20, x23=("DS", "12.5"))
    vendor = add(ct_base(), "GEMS_ACQU_01", 0x0019, 0x10, x23=("DS", "12.5"), x9E=("LO", "fse-xl"))
    add(vendor, "GEMS_IDEN_01", 0x0009, 0x10, x27=("SL", 1580465700))
    add(vendor, "Philips MR Imaging DD 001", 0x2005, 0x10, x0E=("SQ", [inner]))
    return [vendor, with_csa(csa(FIELDS), csa(FIELDS))]


@pytest.mark.parametrize("syntax", SYNTAXES)
@pytest.mark.parametrize("header", HEADERS)
def test_objects_of_every_kind_pass_the_gate(tmp_path: Path, header: HeaderPolicy, syntax: str) -> None:
    source, target = tmp_path / "in.dcm", tmp_path / "out.dcm"
    found = {}
    for index, ds in enumerate([*built(), *private_objects()]):
        source.write_bytes(encoded(ds, syntax))
        scrub_file(source, target, policy=header, pseudonyms=PSEUDONYMS)
        if more := findings(source, target, header):
            found[index] = more
    assert found == {}


KEEPS = ("retain-uids", "retain-device-identity", "retain-institution-identity")


def kept_by(option: str) -> Dataset:
    """A report with every item that Table E.3.4-1 keeps under an option in an attribute that all items share."""
    rows = [row for row in load_content_table().values() if row.columns.get(option) == "K"]
    shared = [row for row in rows if row.value_type in ("TEXT", "UIDREF")]
    values = {"TEXT": {"TextValue": "Zzunit 7 west"}, "UIDREF": {"UID": "1.2.3.100.77"}}
    return report(*(content(row.value_type, (row.code, row.scheme), **values[row.value_type]) for row in shared))


@pytest.mark.parametrize("option", KEEPS)
@pytest.mark.parametrize("more", [(), ("retain-longitudinal-modified-dates",), ("retain-longitudinal-full-dates",)])
def test_items_that_an_option_keeps_pass_the_gate(tmp_path: Path, option: str, more: tuple[str, ...]) -> None:
    source, target = tmp_path / "in.dcm", tmp_path / "out.dcm"
    header = policy("clean-structured-content", option, *more)
    source.write_bytes(encoded(kept_by(option)))
    scrub_file(source, target, policy=header, pseudonyms=PSEUDONYMS)
    assert findings(source, target, header) == []
    stays = b"1.2.3.100.77" if option == "retain-uids" else b"Zzunit 7 west"
    assert target.read_bytes().count(stays) == source.read_bytes().count(stays)


@pytest.mark.parametrize("option", KEEPS)
def test_items_that_stay_without_their_option_are_findings(tmp_path: Path, option: str) -> None:
    source, target = tmp_path / "in.dcm", tmp_path / "out.dcm"
    ds = kept_by(option)
    source.write_bytes(encoded(ds))
    scrub_file(source, target, policy=policy("clean-structured-content", option), pseudonyms=PSEUDONYMS)
    found = findings(source, target, policy("clean-structured-content"))
    items = {f"(0040,a730)[{index}]" for index in range(len(ds.ContentSequence) - 1)}  # the last is a number
    assert {where.split(".")[0] for where, _ in found} >= items


def test_a_name_in_an_item_that_stays_is_a_finding(tmp_path: Path) -> None:
    source, target = tmp_path / "in.dcm", tmp_path / "out.dcm"
    header = policy("clean-structured-content", "retain-device-identity")
    source.write_bytes(encoded(report(content("TEXT", ("113877", "DCM"), TextValue="Scanner of Zzsynth"))))
    scrub_file(source, target, policy=header, pseudonyms=PSEUDONYMS)
    assert findings(source, target, header) == [("(0040,a730)[0].(0040,a160)", "name of (0010,0010)")]


@pytest.mark.shared
@pytest.mark.parametrize("header", HEADERS[:2])  # descriptors of real files have tests of their own
def test_real_files_pass_the_gate(shared_data: Path, tmp_path: Path, header: HeaderPolicy) -> None:
    found = {}
    judged = 0
    for path in sorted((shared_data / "dicom").rglob("*.dcm")):
        try:
            scrub_file(path, tmp_path / "out.dcm", policy=header, pseudonyms=PSEUDONYMS)
        except StudyError:
            continue
        judged += 1
        if more := findings(path, tmp_path / "out.dcm", header):
            found[path.name] = more
    assert found.keys() <= UNTRUE
    assert judged > 120
