"""`scrub` and the mappings of a home: it shares keys, tables and issued pseudonyms with `serve`."""

from __future__ import annotations

from pathlib import Path

import pytest
from houses import house, study
from persons import merges, name_people, people, pseudonyms_in, with_vault
from scrubbing import Scrubbing, ends, slice_of, with_release, write_study

from gateway.app.batch.scrub import Scrub
from gateway.app.keyring import rotate
from gateway.app.person.vault import counts
from gateway.settings import Home, load_settings


class Beside(Scrubbing):
    """`scrub` with a policy that lies in the policies folder of the test, its tables beside it."""

    folder: Path

    def made(self) -> Scrub:
        run = super().made()
        settings = load_settings(self.home.root, workers=self.workers)
        return Scrub(self.home, settings, self.keys, run.policy, self.target, self.project, tables=self.folder)


@pytest.fixture
def scrub(home: Home, policies: Path, tmp_path: Path) -> Scrubbing:
    made = Beside(home, tmp_path / "dst", policy=str(policies / "research-basic.yaml"))
    made.folder = policies
    return made


def test_a_listed_person_is_written_and_another_held_until_listed(
    scrub: Scrubbing, policies: Path, tmp_path: Path
) -> None:
    people(policies, LEAK0001="SUBJ-1")
    name_people(policies, pseudonym="lookup", table="people.csv")
    for person in (1, 2):
        write_study(tmp_path / "src" / str(person), person)
    assert ends(scrub(tmp_path / "src")) == [("held", "patient_unlisted"), ("sent", "")]
    people(policies, LEAK0001="SUBJ-1", LEAK0002="SUBJ-2")
    assert ends(scrub(tmp_path / "src")) == [("sent", ""), ("sent", "")]
    assert pseudonyms_in(scrub.target) == ["SUBJ-1", "SUBJ-1", "SUBJ-2", "SUBJ-2"]


def test_scrub_and_serve_share_the_key_of_a_person_through_a_rotation(
    scrub: Scrubbing, home: Home, policies: Path, target: Path, tmp_path: Path
) -> None:
    write_study(tmp_path / "src" / "1", 1)
    assert ends(scrub(tmp_path / "src")) == [("sent", "")]
    rotate(home, load_settings(home.root), actor="J. Doe", reason="yearly rotation")
    with house(home, policies) as made:
        key = made.deliver(*study())
        assert made.ends(key) == [("research-archive", "sent", "")]
    assert set(pseudonyms_in(target)) == set(pseudonyms_in(scrub.target))


def test_serve_holds_what_scrub_has_issued_to_somebody_else(
    scrub: Scrubbing, home: Home, policies: Path, tmp_path: Path
) -> None:
    people(policies, LEAK0001="SUBJ-1")
    name_people(policies, pseudonym="lookup", table="people.csv")
    write_study(tmp_path / "src" / "1", 1)
    assert ends(scrub(tmp_path / "src")) == [("sent", "")]
    people(policies, LEAK0002="SUBJ-1")
    with house(home, policies) as made:
        key = made.deliver(*study(patient="LEAK0002"))
        assert made.ends(key) == [("research-archive", "held", "pseudonym_taken")]


def test_ids_that_a_table_merges_are_one_person_and_others_held(
    scrub: Scrubbing, policies: Path, tmp_path: Path
) -> None:
    name_people(policies, pseudonym="keyed", merge="merges.csv")
    merges(policies, LEAK0001="LEAK0002")
    uid = "2.25.4711"
    (tmp_path / "src").mkdir()
    for number, person in enumerate((1, 2), 1):
        slice_of(person, uid, number).save_as(tmp_path / "src" / f"{number}.dcm", enforce_file_format=True)
    assert ends(scrub(tmp_path / "src")) == [("sent", "")]
    assert len(set(pseudonyms_in(scrub.target))) == 1
    slice_of(3, uid, 3).save_as(tmp_path / "src" / "3.dcm", enforce_file_format=True)
    assert ends(scrub(tmp_path / "src")) == [("held", "mixed_patients")]


def test_merged_ids_count_as_one_person_in_a_release(scrub: Scrubbing, policies: Path, tmp_path: Path) -> None:
    scrub.policy = with_release(tmp_path, 2)
    body = scrub.policy.read_text().replace("pseudonym: keyed", "pseudonym: keyed\n    merge: merges.csv")
    scrub.policy.write_text(body)
    merges(tmp_path, LEAK0001="LEAK0002")
    scrub.folder = tmp_path  # type: ignore[attr-defined]
    for person in (1, 2):
        write_study(tmp_path / "src" / str(person), person)
    assert ends(scrub(tmp_path / "src", close_release=True)) == [("held", "too_few_subjects")] * 2


def test_the_vault_keeps_what_scrub_clears(scrub: Scrubbing, home: Home, policies: Path, tmp_path: Path) -> None:
    with_vault(policies)
    write_study(tmp_path / "src" / "1", 1)
    assert ends(scrub(tmp_path / "src")) == [("sent", "")]
    assert [(one.project, one.people, one.records) for one in counts(home, 0)] == [("demo", 1, 1)]
