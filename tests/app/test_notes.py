"""A reviewer's reason goes into the ledger: one that quotes the study is refused, and kept nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from houses import House, edit, house, late, study
from planting import BIRTH, ID, NAME

from gateway.app.decisions import NAMES_SOMEBODY
from gateway.gate import mentions
from gateway.settings import Home
from gateway.study import State


def strict(folder: Path) -> None:
    """Nothing is accepted unjudged, so the gate holds every study."""
    edit(folder, "research-basic", lambda body: body["gate"].update(not_assessed=[]))


@pytest.fixture
def held(gateway_house: House, policies: Path) -> str:
    """The key of a job that the gate held."""
    strict(policies)
    gateway_house.parts.policies.reload()
    return gateway_house.job(gateway_house.deliver(*study(2))).job_key


@pytest.mark.parametrize(
    "reason",
    [
        f"this is {NAME}, I know her",
        "Zzsynth, Leaktest is my neighbour",
        f"see record {ID}",
        f"born {BIRTH}",
        "born 31.01.1950",
        "accession ACC4711X was cancelled",
        "the scan of 2020-01-31 is the wrong one",
    ],
)
def test_a_reason_that_quotes_the_study_is_not_kept_and_not_carried_out(
    gateway_house: House, held: str, reason: str, home: Home
) -> None:
    serial = gateway_house.parts.database.add_intent(kind="release", key=held, actor="dpo", reason=reason)
    gateway_house.settle()
    intent = gateway_house.parts.database.intent(serial)
    assert intent is not None
    assert (intent.outcome, intent.reason) == (NAMES_SOMEBODY, "")
    assert gateway_house.parts.database.job(held).state == State.HELD  # type: ignore[union-attr]
    assert "released" not in {line["event"] for line in gateway_house.events()}
    for path in home.root.rglob("*"):
        if path.is_file() and not path.is_relative_to(home.spool):
            assert reason.encode() not in path.read_bytes(), path.name


@pytest.mark.parametrize(
    "reason",
    [
        "looked at every slice, no text in the picture",
        "approved under DPO-2026-014 by the committee",
        "CT head, white matter lesion; keep",
        "test",
    ],
)
def test_an_ordinary_reason_is_taken(gateway_house: House, held: str, reason: str) -> None:
    assert gateway_house.decide("reject", held, reason=reason) == "done"


def test_a_reason_is_compared_with_every_generation_of_the_study(gateway_house: House, policies: Path) -> None:
    (ds,) = study()
    key = gateway_house.deliver(ds)
    strict(policies)
    gateway_house.parts.policies.reload()
    other = late(ds, PatientName="Quattlebaum^Ottoline", PatientID="LEAK0002")
    gateway_house.deliver(other)
    assert gateway_house.ends(key, 2) == [("", "held", "mixed_patients")]
    for reason in ("this is Zzsynth's", "this is Quattlebaum's", "a mix of LEAK0001 and another"):
        assert gateway_house.decide("reject", f"{key}.2", reason=reason) == NAMES_SOMEBODY
    assert gateway_house.decide("reject", f"{key}.2", reason="two people in one study") == "done"


@pytest.mark.parametrize(
    ("name", "patient", "text", "quoted"),
    [
        ("Wu^Li", "P1", "spoke to Wu about it", True),
        ("Kim^Ann", "4711", "patient 4711 asked for it", True),
        ("Kim^Ann", "4711", "all 47 slices seen", False),
        ("May^Will", "X", "this may go", False),
        ("White^Marjorie", "X", "white matter", False),
        ("White^Marjorie", "X", "it is Marjorie White", True),
        ("Müller^Jörg", "X", "Herr Mueller hat zugestimmt", True),
        ("Yamada^Tarou=山田^太郎", "X", "山田さんです", True),
    ],
)
def test_short_names_and_ids_count_when_they_stand_as_words(
    tmp_path: Path, name: str, patient: str, text: str, quoted: bool
) -> None:
    (ds,) = study(patient=patient)
    ds.SpecificCharacterSet = "ISO_IR 192"
    ds.PatientName = name
    ds.save_as(tmp_path / "a.dcm", enforce_file_format=True)
    assert mentions(text, [tmp_path / "a.dcm"]) is quoted


def test_of_an_object_that_cannot_be_read_the_bytes_are_searched(tmp_path: Path) -> None:
    path = tmp_path / "broken.dcm"
    path.write_bytes(b"\x00\x01garbage ZZSYNTH^LEAKTEST garbage\xff" * 3)
    assert mentions("a broken file of Leaktest", [path])
    assert not mentions("the file is broken beyond repair", [path])


def test_a_worker_that_dies_over_a_decision_leaves_the_study_held(home: Home, policies: Path) -> None:
    from concurrent.futures.process import BrokenProcessPool

    from houses import Inline

    class Dying(Inline):
        def each(self, calls: Any) -> Any:
            if calls and getattr(calls[0], "func", None) is mentions:
                raise BrokenProcessPool("gone")
            return super().each(calls)

    strict(policies)
    with house(home, policies, workers=Dying()) as made:
        key = made.deliver(*study())
        job = made.job(key)
        outcome = made.decide("release", job.job_key, reason="it is fine")
        assert outcome.startswith("not possible")
        assert made.job(key) == job
