"""The vault at work: kept when a study is cleared, opened by a role with a ledger line, and nowhere else in clear."""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from houses import Inline, edit, house, late, study
from persons import merges, name_people, sent, with_vault
from planting import WORDS, found_in

from gateway.app.person import vault as vault_app
from gateway.app.person.vault import counts, erase, expire, open_records
from gateway.errors import EnvironmentFault, UsageError
from gateway.ledger import Ledger
from gateway.observe import start_logging
from gateway.pseudonyms import Keys, master_key
from gateway.settings import Home, Settings, load_settings
from gateway.vault import Opened, Vault

SENT = [("research-archive", "sent", "")]
DAY_S = 86400
ACCESSION, ISSUER = "ACC4711X", "Synth Hospital North"


@pytest.fixture
def values(home: Home) -> Settings:
    return load_settings(home.root)


def opened(home: Home, values: Settings, *issued: str, role: str = "dpo", reason: str = "a finding") -> list[Opened]:
    return open_records(home, values, issued, role=role, actor="J. Doe", reason=reason)


def ledger(home: Home, values: Settings) -> Ledger:
    return Ledger(home.ledger, Keys(master_key(home, values)).ledger)


def events(home: Home, values: Settings) -> list[dict[str, object]]:
    assert ledger(home, values).verify().sound
    return [line for line in ledger(home, values).lines() if str(line["event"]).startswith("vault")]


def deliver(home: Home, policies: Path, patient: str = "LEAK0001") -> None:
    datasets = study(2, patient=patient)
    for ds in datasets:
        ds.IssuerOfPatientID = ISSUER
    with house(home, policies) as made:
        assert made.ends(made.deliver(*datasets)) == SENT


def test_without_the_section_nothing_is_kept(home: Home, policies: Path) -> None:
    deliver(home, policies)
    assert list(home.vault.iterdir()) == []
    assert not (home.keys / "vault.key").exists()


def test_who_is_behind_a_pseudonym_or_study_is_told_to_the_role_and_the_ledger(
    home: Home, policies: Path, target: Path, values: Settings
) -> None:
    with_vault(policies)
    deliver(home, policies)
    out = next(sent(target))
    (record,) = opened(home, values, str(out.PatientID))
    assert record == opened(home, values, str(out.StudyInstanceUID))[0]
    who = record.identity
    assert (who.patient_ids, who.accession_numbers) == ((("LEAK0001", ISSUER),), (ACCESSION,))
    assert (who.project, who.pseudonym, who.new_study_instance_uid) == (
        "demo",
        str(out.PatientID),
        str(out.StudyInstanceUID),
    )
    lines = events(home, values)
    assert [line["event"] for line in lines] == ["vault_opened", "vault_opened"]
    assert (lines[0]["role"], lines[0]["actor"], lines[0]["reason_given"]) == ("dpo", "J. Doe", "a finding")
    assert lines[0]["records"] == [record.name]


def test_the_planted_identity_is_nowhere_outside_the_spool_and_not_in_the_vaults_bytes(
    home: Home, policies: Path, target: Path, values: Settings
) -> None:
    log = io.StringIO()
    start_logging(log, level=logging.DEBUG)
    with_vault(policies)
    deliver(home, policies)
    opened(home, values, str(next(sent(target)).PatientID))
    words = [word.encode() for word in (*WORDS, ACCESSION, ISSUER)]
    vaulted = 0
    for path in home.root.rglob("*"):
        name = str(path.relative_to(home.root)).encode()
        assert not any(word in name for word in words)
        if path.is_file() and not path.is_relative_to(home.spool):
            data = path.read_bytes()
            assert found_in(data) == [], path.relative_to(home.root)
            assert not any(word in data for word in words), path.relative_to(home.root)
            vaulted += path.is_relative_to(home.vault)
    assert vaulted == 1
    assert found_in(log.getvalue().encode()) == []
    assert ACCESSION not in log.getvalue()


def test_another_role_sees_nothing_and_the_ledger_has_that_it_asked(
    home: Home, policies: Path, target: Path, values: Settings
) -> None:
    with_vault(policies)
    deliver(home, policies)
    for guess in ("a finding", "is it LEAK0001", "is it LEAK0002"):  # and no guess is confirmed
        with pytest.raises(UsageError, match="may not see") as refused:
            opened(home, values, str(next(sent(target)).PatientID), role="researcher", reason=guess)
        assert found_in(str(refused.value).encode()) == []
    assert [(line["event"], line["role"]) for line in events(home, values)] == [("vault_refused", "researcher")] * 3
    assert found_in(home.ledger.read_bytes()) == []


@pytest.mark.parametrize("word", ["LEAK0001", "leak0001", ACCESSION, ISSUER])
def test_a_reason_that_names_the_person_is_not_taken(
    home: Home, policies: Path, target: Path, values: Settings, word: str
) -> None:
    with_vault(policies)
    deliver(home, policies)
    with pytest.raises(UsageError, match="write it without"):
        opened(home, values, str(next(sent(target)).PatientID), reason=f"call {word} back")
    assert events(home, values) == []


def test_the_original_id_finds_nothing_and_is_not_repeated(home: Home, policies: Path, values: Settings) -> None:
    with_vault(policies)
    deliver(home, policies)
    with pytest.raises(UsageError, match="number 1 of those named") as refused:
        opened(home, values, "LEAK0001")
    assert found_in(str(refused.value).encode()) == []


def test_a_damaged_ledger_shows_nothing(home: Home, policies: Path, target: Path, values: Settings) -> None:
    with_vault(policies)
    deliver(home, policies)
    home.ledger.write_bytes(home.ledger.read_bytes().replace(b'"sent"', b'"sEnt"'))
    with pytest.raises(EnvironmentFault, match="the ledger is damaged"):
        opened(home, values, str(next(sent(target)).PatientID))


def test_what_was_held_is_not_kept_and_what_a_reviewer_releases_is(
    home: Home, policies: Path, target: Path, values: Settings
) -> None:
    with_vault(policies)
    edit(policies, "research-basic", lambda body: body["gate"].update(not_assessed=[]))
    with house(home, policies) as made:
        key = made.deliver(*study())
        assert list(home.vault.iterdir()) == []
        made.decide("release", made.job(key).job_key)
        assert made.ends(key) == SENT
    assert len(opened(home, values, str(next(sent(target)).PatientID))) == 1


def test_late_instances_and_merged_ids_are_all_there(
    home: Home, policies: Path, target: Path, values: Settings
) -> None:
    with_vault(policies)
    name_people(policies, pseudonym="keyed", merge="merges.csv")
    merges(policies, LEAK0001="LEAK0002")
    first = study()
    with house(home, policies) as made:
        key = made.deliver(*first, late(first[0], PatientID="LEAK0002"))
        made.deliver(late(first[0], AccessionNumber="ACC4712X"))
        assert (made.ends(key), made.ends(key, 2)) == (SENT, SENT)
    records = opened(home, values, str(next(sent(target)).PatientID))
    assert {patient for one in records for patient, _ in one.identity.patient_ids} == {"LEAK0001", "LEAK0002"}
    assert {one for record in records for one in record.identity.accession_numbers} == {ACCESSION, "ACC4712X"}


def test_erasing_a_person_takes_all_records_and_leaves_the_others(
    home: Home, policies: Path, target: Path, values: Settings
) -> None:
    with_vault(policies)
    deliver(home, policies)
    deliver(home, policies)
    mine = str(next(sent(target)).PatientID)
    deliver(home, policies, "LEAK0002")
    (other,) = {str(ds.PatientID) for ds in sent(target)} - {mine}
    assert erase(home, values, [mine], actor="J. Doe", reason="consent withdrawn", project="") == 2
    assert erase(home, values, [mine], actor="J. Doe", reason="consent withdrawn", project="") == 0
    with pytest.raises(UsageError, match="not in the vault"):
        opened(home, values, mine)
    assert len(opened(home, values, other)) == 1
    assert [line["event"] for line in events(home, values)] == ["vault_erased", "vault_opened"]
    assert [(one.people, one.records) for one in counts(home, time.time())] == [(1, 1)]


def test_what_is_past_its_time_is_not_shown_and_goes_with_the_next_retention(
    home: Home, policies: Path, target: Path, values: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_vault(policies, days=2)
    deliver(home, policies)
    mine = str(next(sent(target)).PatientID)
    later = time.time() + 3 * DAY_S
    assert [one.expired for one in counts(home, later)] == [1]
    with monkeypatch.context() as patched:
        patched.setattr(vault_app.time, "time", lambda: later)
        with pytest.raises(UsageError, match="past their time"):
            opened(home, values, mine)
    with house(home, policies) as made:
        assert expire(home, made.parts.ledger, time.time()) == 0
        monkeypatch.setattr("gateway.app.steps.time.time", lambda: later)
        made.steps.retain()
    assert counts(home, later) == []
    assert [line["event"] for line in events(home, values)] == ["vault_expired"]


class Crash(BaseException):
    pass


@pytest.mark.parametrize("place", ["before the record", "after the record"])
def test_a_crash_around_the_record_ends_in_one_record_and_one_study(
    home: Home, policies: Path, target: Path, values: Settings, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    with_vault(policies)
    datasets = study()
    keep: Callable[..., str] = Vault.keep

    def crash(*arguments: object, **more: object) -> str:
        if place == "after the record":
            keep(*arguments, **more)
        raise Crash

    with house(home, policies) as made, monkeypatch.context() as patched:
        patched.setattr(Vault, "keep", crash)
        with pytest.raises(Crash):
            made.deliver(*datasets)
        assert not list(sent(target))  # nothing leaves before the vault has it
    with house(home, policies) as made:
        made.settle()
    (out,) = sent(target)
    assert len(opened(home, values, str(out.PatientID))) == 1


def test_a_vault_that_cannot_be_written_pauses_the_study(
    home: Home, policies: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_vault(policies)
    deliver(home, policies)
    text = (home.keys / "vault.key").read_text()
    (home.keys / "vault.key").unlink()
    with house(home, policies, workers=Inline()) as made:
        made.receive(*study(patient="LEAK0002"))
        made.close()
        for _ in range(3):  # intake, scrub, gate
            following = made.run_once()
        assert following[0].delay_s > 0
        assert len(list(sent(target))) == 2
        (home.keys / "vault.key").write_text(text)
        (home.keys / "vault.key").chmod(0o600)
        made.settle()
    assert len(list(sent(target))) == 3
