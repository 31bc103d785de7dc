"""What PS3.15 Table E.1-1 does not list and standard IODs use all the same: no value of it gives anybody away."""

from __future__ import annotations

from pathlib import Path

import pytest
from header_objects import EXPLICIT, IMPLICIT, PSEUDONYMS, ct_base, policy, scrub
from pydicom.dataset import Dataset

from gateway.header.beyond_table import kept_text
from gateway.policy.standard import load_watchlist

# Kept with the object (a standard's own addresses); and what is no element of an image's data set or decides its class.
ADDRESSES_OF_STANDARDS = {"CodingSchemeURL", "URNCodeValue"}
ELSEWHERE = {"PrivateRecordUID", "SOPClassUID"}
PLANTED = "ZZSYNTH LEAK0001"
OURS = ("clean-descriptors", "retain-longitudinal-modified-dates", "retain-device-identity")
VALUES = {"DT": "19500131101500", "UR": "http://leaktest/LEAK0001"}
WATCHED = [(int(tag, 16), one) for tag, one in load_watchlist().items() if one.keyword not in ELSEWHERE]


def planted(kinds: set[str], without: frozenset[int] = frozenset()) -> Dataset:
    """A data set with every watched attribute of these kinds."""
    ds = Dataset()
    for number, (tag, one) in enumerate(WATCHED):
        if one.kind in kinds and tag not in without and one.keyword not in ADDRESSES_OF_STANDARDS:
            ds.add_new(tag, one.vr, f"1.2.826.0.1.77.{number}" if one.vr == "UI" else VALUES.get(one.vr, PLANTED))
    return ds


@pytest.mark.parametrize("syntax", [EXPLICIT, IMPLICIT])
@pytest.mark.parametrize("options", [(), OURS])
def test_no_text_date_or_address_of_the_watchlist_leaves_at_any_depth(
    tmp_path: Path, options: tuple[str, ...], syntax: str
) -> None:
    """Text that stays for being technical is looked at only where descriptors are cleaned; else the gate holds it."""
    kept = frozenset(kept_text()) if not options else frozenset()
    ds, inner = ct_base(), planted({"text", "date-time", "uri"}, kept)
    assert len(inner) > (150 if kept else 300)
    ds.update(inner)
    ds.PerformedProtocolCodeSequence = [planted({"text", "date-time", "uri"}, kept)]
    assert scrub(tmp_path, ds, policy(*options), syntax).has_plant() == []


@pytest.mark.parametrize("syntax", [EXPLICIT, IMPLICIT])
def test_every_uid_of_an_instance_on_the_watchlist_is_mapped_at_any_depth(tmp_path: Path, syntax: str) -> None:
    ds, inner = ct_base(), planted({"instance-uid"})
    ds.update(inner)
    ds.PerformedProtocolCodeSequence = [planted({"instance-uid"})]
    out = scrub(tmp_path, ds, syntax=syntax)
    assert b"1.2.826.0.1.77." not in out.bytes
    mapped = {element.tag: PSEUDONYMS.uid(element.value) for element in inner}
    assert len(mapped) >= 19
    for data_set in (out.ds, out.ds.PerformedProtocolCodeSequence[0]):
        assert {tag: data_set[tag].value for tag in mapped if tag in data_set} == mapped


@pytest.mark.parametrize("syntax", [EXPLICIT, IMPLICIT])
def test_no_structural_uid_of_the_watchlist_changes(tmp_path: Path, syntax: str) -> None:
    ds, inner = ct_base(), Dataset()
    for tag, one in WATCHED:
        if one.kind == "structural-uid" and tag >> 16 != 0x0004:
            inner.add_new(tag, "UI", "1.2.840.10008.5.1.4.1.1.2")
    assert len(inner) >= 10
    ds.PerformedProtocolCodeSequence = [inner]
    assert scrub(tmp_path, ds, syntax=syntax).ds.PerformedProtocolCodeSequence[0] == inner
