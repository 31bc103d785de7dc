"""`policy explain` tells what the header stage does; goldens make every change of a rule visible in review.

`UPDATE_GOLDEN=1 pytest tests/header/test_header_describe.py` writes the goldens anew.
"""

import csv
import io
import os
from pathlib import Path

import pydicom
import pytest
from header_objects import BASIC, MODIFIED, PSEUDONYMS, policy
from pydicom.data import get_testdata_file

from gateway.header import describe, scrub_file
from gateway.policy import HeaderPolicy, load_table

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def same_as_golden(name: str, text: str) -> bool:
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    return path.read_text() == text


def as_csv(header: HeaderPolicy) -> str:
    """Tag, keyword and action of everything that does not simply stay."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(("tag", "keyword", "action"))
    for line in describe(header):
        if line.action not in ("kept", "kept; its items are de-identified"):
            rows.writerow((line.tag, line.keyword, line.action))
    return out.getvalue()


@pytest.mark.parametrize(("name", "header"), [("basic", BASIC), ("modified_dates", MODIFIED)])
def test_what_is_done_to_each_attribute_is_what_was_reviewed(name: str, header: HeaderPolicy) -> None:
    assert same_as_golden(f"header_actions_{name}_2026d.csv", as_csv(header))


def test_a_real_ct_comes_out_as_reviewed(tmp_path: Path) -> None:
    scrub_file(Path(str(get_testdata_file("CT_small.dcm"))), tmp_path / "out", policy=MODIFIED, pseudonyms=PSEUDONYMS)
    ds = pydicom.dcmread(tmp_path / "out")
    del ds.PixelData
    assert same_as_golden("header_ct_small.txt", f"{ds}\n")


def test_every_row_of_the_table_is_described_once_in_tag_order() -> None:
    lines = list(describe(BASIC))
    tags = [line.tag for line in lines]
    assert tags == sorted(tags)
    assert len(tags) == len(set(tags))
    assert set(load_table()) <= set(tags)
    assert all(line.action and line.because for line in lines)


def test_the_words_follow_the_policy() -> None:
    header = policy("retain-longitudinal-modified-dates", keep={"PatientAge": "stratification"})
    says = {line.keyword: line for line in describe(header)}
    assert says["StudyDate"].action == "moved by the patient's shift"
    assert says["PatientAge"].action == "kept, 090Y for everybody older"
    assert says["PatientAge"].because == "kept by the policy"
    assert says["SegmentLabel"].action == "removed, replaced by a dummy where the IOD requires it"
    assert says["EncapsulatedDocument"].action == "the object is held (encapsulated_document)"
    assert {line.keyword: line for line in describe(BASIC)}["StudyDate"].action == "emptied"
