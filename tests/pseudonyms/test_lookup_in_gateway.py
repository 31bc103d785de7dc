"""Pseudonyms that a table gives: settled before anything is written, recorded, never given to anybody else."""

from __future__ import annotations

from pathlib import Path

import pytest
from houses import add_policy, edit, house, late, route_all, study
from persons import merges, name_people, people, pseudonyms_in, sent
from planting import found_in, item
from pydicom.sequence import Sequence
from sqlalchemy import create_engine, text

from gateway.app.person import tables as people_tables
from gateway.app.person.tables import PeopleTables
from gateway.app.policy.registry import REGISTRY
from gateway.app.tasks import scrub_instance
from gateway.errors import Hold, PolicyError, Retry
from gateway.policy import PatientIdPolicy, load_policy
from gateway.pseudonyms import Keys, Own, Pseudonyms, person_key
from gateway.settings import Home, load_settings

SENT = [("research-archive", "sent", "")]


def held(reason: str) -> list[tuple[str, str, str]]:
    return [("research-archive", "held", reason)]


@pytest.fixture(autouse=True)
def looked_up(policies: Path) -> None:
    people(policies, LEAK0001="SUBJ-1", LEAK0002="SUBJ-2")
    name_people(policies, pseudonym="lookup", table="people.csv")


def test_a_listed_person_leaves_as_the_table_says_in_id_and_name(home: Home, policies: Path, target: Path) -> None:
    with house(home, policies) as made:
        assert made.ends(made.deliver(*study(2))) == SENT
        assert made.ends(made.deliver(*study(patient="LEAK0002"))) == SENT
    assert pseudonyms_in(target) == ["SUBJ-1", "SUBJ-1", "SUBJ-2"]
    assert {str(ds.PatientName) for ds in sent(target)} == {"SUBJ-1", "SUBJ-2"}


def test_whoever_is_not_listed_is_held_before_anything_is_written(home: Home, policies: Path, target: Path) -> None:
    with house(home, policies) as made:
        key = made.deliver(*study(3, patient="LEAK0009"))
        assert made.ends(key) == held("patient_unlisted")
        assert made.job(key).at == "people.csv"  # the site's own file, no value
        assert list(home.work.iterdir()) == []
        people(policies, LEAK0001="SUBJ-1", LEAK0009="SUBJ-9")
        assert made.decide("rerun", made.job(key).job_key) == "done"
        assert made.ends(key) == SENT
    assert pseudonyms_in(target) == ["SUBJ-9"] * 3


def test_the_ledger_tells_key_and_tables_by_name_and_no_value(home: Home, policies: Path) -> None:
    with house(home, policies) as made:
        key = made.deliver(*study())
        (cleared,) = [line for line in made.events(key) if line["event"] == "cleared"]
        first = cleared["mapping"]
        assert first["source"] == "lookup"
        people(policies, LEAK0001="SUBJ-1", LEAK0002="SUBJ-3")
        (again,) = [line for line in made.events(made.deliver(*study())) if line["event"] == "cleared"]
    assert again["mapping"]["key"] == first["key"]
    assert again["mapping"]["tables"] != first["tables"]
    for path in (home.ledger, home.database, *home.policy_snapshots.iterdir()):
        assert found_in(path.read_bytes()) == []
        assert b"SUBJ-" not in path.read_bytes()


def test_a_table_that_changes_what_has_left_holds(home: Home, policies: Path, target: Path) -> None:
    with house(home, policies) as made:
        first = study()
        assert made.ends(made.deliver(*first)) == SENT
        people(policies, LEAK0001="SUBJ-7")
        assert made.ends(made.deliver(*study())) == held("pseudonym_changed")
        key = made.deliver(late(first[0]))
        assert made.ends(key, 2) == held("pseudonym_changed")
        people(policies, LEAK0001="SUBJ-1")
        assert made.decide("rerun", made.job(key, 2).job_key) == "done"
        assert made.ends(key, 2) == SENT
    assert pseudonyms_in(target) == ["SUBJ-1", "SUBJ-1"]


def test_a_correction_before_anything_has_left_is_followed(home: Home, policies: Path, target: Path) -> None:
    edit(policies, "research-basic", lambda body: body["gate"].update(not_assessed=[]))
    with house(home, policies) as made:
        key = made.deliver(*study())
        assert made.ends(key) == held("not_assessed")
        people(policies, LEAK0001="SUBJ-7")
        made.decide("rerun", made.job(key).job_key)
        made.decide("release", made.job(key).job_key)
        assert made.ends(key) == SENT
    assert pseudonyms_in(target) == ["SUBJ-7"]


@pytest.mark.parametrize("spelling", ["SUBJ-1", "subj-1"])
def test_a_pseudonym_that_was_issued_is_never_given_to_a_second_person(
    home: Home, policies: Path, target: Path, spelling: str
) -> None:
    with house(home, policies) as made:
        assert made.ends(made.deliver(*study())) == SENT
    people(policies, LEAK0002=spelling)  # the first one was deleted, and the number given again
    with house(home, policies) as made:
        assert made.ends(made.deliver(*study(patient="LEAK0002"))) == held("pseudonym_taken")
        assert made.ends(made.deliver(*study())) == held("patient_unlisted")
    assert pseudonyms_in(target) == ["SUBJ-1"]


def test_a_table_may_not_give_somebody_the_keyed_pseudonym_of_somebody_else(
    home: Home, policies: Path, target: Path
) -> None:
    name_people(policies, pseudonym="keyed")
    with house(home, policies) as made:
        assert made.ends(made.deliver(*study())) == SENT
    (issued,) = pseudonyms_in(target)
    people(policies, LEAK0001="SUBJ-1", LEAK0002=issued)
    name_people(policies, pseudonym="lookup", table="people.csv")
    with house(home, policies) as made:
        assert made.ends(made.deliver(*study(patient="LEAK0002"))) == held("pseudonym_taken")
        assert made.ends(made.deliver(*study())) == held("pseudonym_changed")
    people(policies, LEAK0001=issued)
    with house(home, policies) as made:
        assert made.ends(made.deliver(*study())) == SENT
    assert pseudonyms_in(target) == [issued, issued]


def test_projects_may_give_one_pseudonym_to_two_people(home: Home, policies: Path) -> None:
    people(policies, LEAK0001="SUBJ-1")
    (policies / "other.csv").write_text("patient_id,pseudonym\nLEAK0002,SUBJ-1\n")
    (policies / "other.csv").chmod(0o600)
    add_policy(policies, "other", lambda body: body["header"]["patient_id"].update(table="other.csv"))
    with house(home, policies) as made:
        assert made.ends(made.deliver(*study())) == SENT
    route_all(policies, ("second", "other", "research-archive"))
    with house(home, policies) as made:
        assert made.ends(made.deliver(*study(patient="LEAK0002"))) == SENT


def test_nested_ids_are_the_persons_own_or_nobodys(home: Home, policies: Path, target: Path) -> None:
    (ds,) = study()
    ds.CTExposureSequence = Sequence([item(PatientID="LEAK0001"), item(PatientID="LEAK0002")])
    with house(home, policies) as made:
        key = made.deliver(ds)
        assert made.ends(key) == SENT
    (out,) = sent(target)
    assert [str(one.PatientID or "") for one in out.CTExposureSequence] == ["SUBJ-1", ""]


@pytest.mark.parametrize("spoil", ["LEAK0001,SUBJ-1\nLEAK0001,SUBJ-2\n", "", '"\n'])
def test_a_table_that_is_spoilt_while_the_gateway_runs_holds_and_is_mended_by_a_rerun(
    home: Home, policies: Path, spoil: str
) -> None:
    with house(home, policies) as made:
        (policies / "people.csv").write_text("patient_id,pseudonym\n" + spoil)
        key = made.deliver(*study())
        assert made.ends(key) == held("lookup_unusable")
        assert made.job(key).at.startswith("people.csv")
        people(policies, LEAK0001="SUBJ-1")
        made.decide("rerun", made.job(key).job_key)
        assert made.ends(key) == SENT


def test_without_the_table_no_keyed_pseudonym_takes_its_place(policies: Path, tmp_path: Path) -> None:
    snapshot = load_policy(policies / "research-basic.yaml", REGISTRY).to_snapshot()
    (ds,) = study()
    ds.save_as(tmp_path / "in.dcm", enforce_file_format=True)
    own = Own(b"k" * 32, frozenset({person_key(b"k" * 32, "LEAK0001")}))
    for mapping in (Pseudonyms(b"k" * 32), Pseudonyms(b"k" * 32, own)):
        with pytest.raises(Hold, match="patient_unlisted"):
            scrub_instance(tmp_path / "in.dcm", tmp_path / "out.dcm", snapshot, mapping)
        assert not (tmp_path / "out.dcm").exists()


def test_an_object_of_somebody_else_in_the_study_is_held_by_the_header_too(tmp_path: Path, policies: Path) -> None:
    """As when a file of the source was exchanged after `scrub` had looked at it."""
    snapshot = load_policy(policies / "research-basic.yaml", REGISTRY).to_snapshot()
    (ds,) = study(patient="LEAK0002")
    ds.save_as(tmp_path / "in.dcm", enforce_file_format=True)
    own = Own(b"k" * 32, frozenset({person_key(b"k" * 32, "LEAK0001")}), "SUBJ-1", listed=True)
    with pytest.raises(Hold, match="mixed_patients"):
        scrub_instance(tmp_path / "in.dcm", tmp_path / "out.dcm", snapshot, Pseudonyms(b"k" * 32, own))
    assert not (tmp_path / "out.dcm").exists()


def test_a_table_that_others_can_read_does_not_load(home: Home, policies: Path) -> None:
    (policies / "people.csv").chmod(0o644)
    with pytest.raises(PolicyError, match="open to others"), house(home, policies):
        pass


# -- merges -----------------------------------------------------------------------------------------------------------


def test_two_ids_in_one_study_are_held_without_a_merge_table(home: Home, policies: Path) -> None:
    first = study()
    with house(home, policies) as made:
        key = made.deliver(*first, late(first[0], PatientID="LEAK0002"))
        assert made.ends(key) == [("", "held", "mixed_patients")]


def test_a_merge_table_makes_one_person_of_them_now_and_later(home: Home, policies: Path, target: Path) -> None:
    name_people(policies, pseudonym="keyed", prefix="M-", merge="merges.csv")
    merges(policies, LEAK0001="LEAK0002", LEAK0002="LEAK0003")
    with house(home, policies) as made:
        assert made.ends(made.deliver(*study(patient="LEAK0003"))) == SENT
        first = study(patient="LEAK0001")
        assert made.ends(made.deliver(*first, late(first[0], PatientID="LEAK0002"))) == SENT
        assert made.ends(made.deliver(*study(patient="LEAK0001"))) == SENT
        assert len({job.subject for job in made.parts.database.jobs_in()}) == 1
        assert made.ends(made.deliver(*study(patient="LEAK0004"))) == SENT
    of = {uid: str(ds.PatientID) for ds in sent(target) for uid in [str(ds.StudyInstanceUID)]}
    counted = sorted(list(of.values()).count(one) for one in set(of.values()))
    assert counted == [1, 3]
    moved = {str(ds.StudyDate) for ds in sent(target) if list(of.values()).count(str(ds.PatientID)) == 3}
    assert len(moved) == 1  # one date shift


def test_ids_that_the_merge_table_does_not_join_are_held_as_ever(home: Home, policies: Path) -> None:
    name_people(policies, pseudonym="keyed", merge="merges.csv")
    merges(policies, LEAK0001="LEAK0003")
    first = study()
    with house(home, policies) as made:
        key = made.deliver(*first, late(first[0], PatientID="LEAK0002"))
        assert made.ends(key) == [("", "held", "mixed_patients")]
        merges(policies, LEAK0001="LEAK0003", LEAK0002="LEAK0003")
        assert made.decide("rerun", f"{key}.1") == "done"
        assert made.ends(key) == SENT


def test_a_merge_after_part_of_a_study_has_left_holds_the_rest(home: Home, policies: Path) -> None:
    name_people(policies, pseudonym="keyed", merge="merges.csv")
    merges(policies, LEAK0008="LEAK0009")
    first = study()
    with house(home, policies) as made:
        key = made.deliver(*first)
        assert made.ends(key) == SENT
        merges(policies, LEAK0001="LEAK0002")
        made.deliver(late(first[0]))
        assert made.ends(key, 2) == held("mapping_changed")
        assert made.ends(made.deliver(*study())) == SENT  # a new study goes to the surviving ID


def test_merged_people_leave_under_the_survivors_entry_of_the_table(home: Home, policies: Path, target: Path) -> None:
    name_people(policies, pseudonym="lookup", table="people.csv", merge="merges.csv")
    merges(policies, LEAK0001="LEAK0002")
    with house(home, policies) as made:
        assert made.ends(made.deliver(*study())) == SENT
    assert pseudonyms_in(target) == ["SUBJ-2"]


# -- databases --------------------------------------------------------------------------------------------------------


@pytest.fixture
def site(tmp_path: Path) -> str:
    """A synthetic hospital database."""
    url = f"sqlite:///{tmp_path / 'site.sqlite'}"
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text('CREATE TABLE subjects (mrn TEXT, "subject no" TEXT)'))
        connection.execute(text("INSERT INTO subjects VALUES ('LEAK0001 ', 'S-1'), ('LEAK0002', 'S-2')"))
    engine.dispose()
    return url


RULE = PatientIdPolicy(pseudonym="lookup", sql="site", table="subjects", original="mrn", replacement="subject no")


def test_a_database_is_named_in_the_policy_and_its_url_in_the_settings(
    home: Home, policies: Path, target: Path, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEID_LOOKUP_URLS", f"site={site}")
    rule = {"table": "subjects", "original": "mrn", "replacement": "subject no"}
    name_people(policies, pseudonym="lookup", sql="site", **rule)
    with house(home, policies) as made:
        assert made.ends(made.deliver(*study())) == SENT
        assert made.ends(made.deliver(*study(patient="LEAK0009"))) == held("patient_unlisted")
    assert pseudonyms_in(target) == ["S-1"]


def tables(site: str, keys: Keys) -> PeopleTables:
    urls = load_settings(Path("/nowhere"), lookup_urls=f"site={site}").lookup_urls
    return PeopleTables(Path("/nowhere"), keys, urls)


def test_a_database_that_contradicts_itself_is_refused_without_a_value(site: str, keys: Keys) -> None:
    engine = create_engine(site)
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO subjects VALUES ('LEAK0003', 'S-2'), (NULL, 'S-4')"))
    engine.dispose()
    with pytest.raises(PolicyError, match="the same pseudonym as in another row") as refused:
        tables(site, keys).lookup(RULE)
    assert found_in(str(refused.value).encode()) == []
    assert "S-2" not in str(refused.value)


def test_a_database_that_is_silent_is_tried_again_and_its_password_is_not_told(keys: Keys) -> None:
    url = "postgresql+psycopg://u:pass-word@127.0.0.1:1/x"
    with pytest.raises(Retry, match="lookup_unreachable") as failed:
        tables(url, keys).lookup(RULE)
    assert "pass-word" not in str(failed.value)
    with pytest.raises(PolicyError, match="cannot be opened") as refused:
        tables("no-such-dialect://u:pass-word@x", keys).lookup(RULE)
    assert "pass-word" not in str(refused.value)
    with pytest.raises(PolicyError, match="no database of that name"):
        PeopleTables(Path("/nowhere"), keys, {}).lookup(RULE)


def test_a_database_is_not_asked_for_every_study(site: str, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    found = tables(site, keys)
    first = found.lookup(RULE)
    assert found.lookup(RULE) is first
    monkeypatch.setattr(people_tables, "SQL_FRESH_S", 1e-9)
    assert found.lookup(RULE) is not first
