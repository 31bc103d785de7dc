"""`text review`: the words of a site's descriptions that no list knows, and never one of the objects' own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from commands import in_process

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "header"))
from header_objects import ct_base, encoded

POLICY = """name: small
extends: [ps3.15-basic@2026d]
gate: {study: {residual_identifiers: {max: 0}}}
header:
  options: [clean-descriptors]
  descriptors: {words: [Zoomscoutix]}
"""


@pytest.fixture
def studies(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    texts = [
        ("AX Zoomscoutix T2", "Zzsynth LEAK0001 20200131"),
        ("SAG zoomscoutix Braino", "Seen by Dr. Meyerhold"),
        ("COR Braino Otherlast", "T1 4711321"),
    ]
    for number, (series, comments) in enumerate(texts):
        ds = ct_base()
        ds.SOPInstanceUID += str(number)
        ds.SeriesDescription, ds.ImageComments = series, comments
        if number == 0:
            ds.OperatorsName = "OTHERLAST^X"
        (folder / "deep" / f"{number}.dcm").write_bytes(encoded(ds))
    (folder / "notes.txt").write_text("no DICOM object")
    return folder


def test_unknown_words_are_offered_with_counts_and_own_words_never(
    studies: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = in_process(capsys)("text", "review", studies, "--json")
    assert ran.code == 0
    assert ran.json == {
        "read": 3,
        "unread": 1,
        "words": [
            {"word": "Braino", "files": 2, "times": 2, "attributes": ["SeriesDescription"]},
            {"word": "Zoomscoutix", "files": 2, "times": 2, "attributes": ["SeriesDescription"]},
        ],
    }


def test_words_of_the_policy_s_own_list_are_known(
    studies: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "small.yaml"
    policy.write_text(POLICY)
    ran = in_process(capsys)("text", "review", studies, "--json", "--policy", policy)
    assert [word["word"] for word in ran.json["words"]] == ["Braino"]


def test_people_see_a_table_and_a_warning(studies: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = in_process(capsys)("text", "review", studies, "--limit", 1, "--least", 2)
    assert ran.code == 0
    assert "Braino" in ran.out
    assert "1 more words" in ran.out
    assert "it may be a name" in ran.out
    assert "1 files could not be read" in ran.err
    assert not any(word in ran.out + ran.err for word in ("Zzsynth", "LEAK0001", "Otherlast", "Meyerhold", "4711321"))


def test_nothing_is_stored(studies: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(tmp_path.rglob("*"))
    in_process(capsys)("text", "review", studies)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_policy_without_the_option_and_a_source_that_is_not_there_are_usage_errors(
    studies: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = in_process(capsys)
    policy = tmp_path / "small.yaml"
    policy.write_text(
        POLICY.replace("[clean-descriptors]", "[retain-uids]").replace("  descriptors: {words: [Zoomscoutix]}\n", "")
    )
    assert command("text", "review", studies, "--policy", policy).code == 2
    assert command("text", "review", studies / "nowhere").code == 2
