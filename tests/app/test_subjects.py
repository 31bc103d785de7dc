"""People's rights: opting out blocks before routing, erasing leaves nothing but keyed rows and the ledger."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pydicom
import pytest
from houses import House, add_policy, edit, house, late, route_all, route_nobody, study
from persons import merges, name_people, with_vault
from planting import item
from releasing import LINKABILITY, film, judged

from gateway.app.person import subjects as subjects_module
from gateway.app.person.retention import Retention
from gateway.app.person.subjects import Subjects
from gateway.app.person.wishes import Rights
from gateway.app.release.references import FOLDER
from gateway.app.review.drawn import FOLDER as DRAWN
from gateway.app.review.drawn import Drawing, Place, store
from gateway.errors import UsageError
from gateway.settings import Home

WORDS = {"actor": "dpo", "reason": "a letter of May"}


def rights(made: House) -> Rights:
    return Rights(made.parts.database, made.parts.ledger, made.parts.keys)


def opt_out(made: House, patient: str = "LEAK0001", issuer: str = "") -> None:
    rights(made).opt_out(rights(made).subject(patient, issuer), **WORDS)


def erase(made: House, patient: str = "LEAK0001") -> dict[str, int]:
    rights(made).ask_erasure(rights(made).subject(patient, ""), **WORDS)
    made.settle()
    entry = made.parts.database.erasures()[-1]
    assert entry.done_at is not None
    return dict(entry.removed)


def originals(made: House) -> int:
    return len(list(made.parts.spool.root.rglob("*.dcm")))


def of_ids(*pairs: tuple[str, str]) -> list[pydicom.Dataset]:
    return [item(PatientID=patient, IssuerOfPatientID=issuer) for patient, issuer in pairs]


def test_a_study_of_somebody_who_opted_out_is_refused_before_routing_and_not_kept(
    home: Home, policies: Path, target: Path
) -> None:
    route_nobody(policies)  # it is refused, not held for the lack of a route
    with house(home, policies) as made:
        opt_out(made)
        key = made.deliver(*study(2))
        assert made.ends(key) == [("", "refused", "opted_out")]
        assert originals(made) == 0
        assert [line["event"] for line in made.events(key)] == ["refused", "originals_removed"]
        other = made.deliver(*study(patient="LEAK0002"))
        assert made.ends(other) == [("", "held", "no_route")]
        text = made.parts.ledger.path.read_text()
        assert "LEAK0001" not in text
        assert made.metric("deid_jobs_decided_total", state="refused", reason="opted_out") == 1
    assert b"LEAK0001" not in home.database.read_bytes()


def test_after_opting_in_the_same_study_may_come_again(gateway_house: House, target: Path) -> None:
    made = gateway_house
    (ds,) = study()
    opt_out(made)
    key = made.deliver(ds)
    assert rights(made).opt_in(rights(made).subject("LEAK0001", ""), **WORDS)
    made.deliver(ds)
    assert made.ends(key, 2) == [("research-archive", "sent", "")]
    assert not rights(made).opt_in(rights(made).subject("LEAK0001", ""), **WORDS)


@pytest.mark.parametrize(
    ("opted", "bears", "refused"),
    [
        (("LEAK0001", ""), {}, True),
        (("LEAK0001 ", ""), {}, True),  # padding is none of the ID
        (("LEAK0001", ""), {"IssuerOfPatientID": "North"}, True),
        (("LEAK0001", "North"), {"IssuerOfPatientID": "North"}, True),
        (("LEAK0001", "North"), {}, True),  # who names no issuer may be anybody's
        (("LEAK0001", "North"), {"IssuerOfPatientID": "South"}, False),
        (("OLD7", ""), {"OtherPatientIDsSequence": of_ids(("OLD6", ""), ("OLD7", "East"))}, True),
        (("OLD7", "West"), {"OtherPatientIDsSequence": of_ids(("OLD7", "East"))}, False),
        (("OLD7", ""), {"OtherPatientIDs": ["OLD6", "OLD7"]}, True),
        (("LEAK0002", ""), {}, False),
    ],
)
def test_whom_an_opt_out_means(
    gateway_house: House, opted: tuple[str, str], bears: dict[str, Any], refused: bool
) -> None:
    made = gateway_house
    opt_out(made, *opted)
    (ds,) = study()
    for word, value in bears.items():
        setattr(ds, word, value)
    key = made.deliver(ds)
    assert made.ends(key)[0][1] == ("refused" if refused else "sent")


def test_ids_that_a_merge_table_joins_are_one_person_and_a_broken_table_holds(home: Home, policies: Path) -> None:
    merges(policies, OLD1="LEAK0001")
    name_people(policies, merge="merges.csv")
    with house(home, policies) as made:
        opt_out(made, "OLD1")
        key = made.deliver(*study())
        assert made.ends(key) == [("", "refused", "opted_out")]
        (policies / "merges.csv").write_text("nonsense\n")
        unknown = made.deliver(*study(patient="LEAK0003"))
        assert made.ends(unknown) == [("", "held", "lookup_unusable")]


def test_what_is_on_its_way_is_stopped_and_what_left_stays_as_it_is(home: Home, policies: Path, target: Path) -> None:
    add_policy(policies, "strict", lambda body: body["gate"].update(not_assessed=[]))
    edit(policies, "destinations", lambda body: body.update(second=f"folder:{target.parent}/second"))
    with house(home, policies) as made:
        left = made.deliver(*study())
    route_all(policies, ("two", "strict", "second"))
    with house(home, policies) as made:
        held, other = made.deliver(*study()), made.deliver(*study(patient="LEAK0002"))
        waiting = made.receive(*study())
        opt_out(made)
        made.settle()
        assert made.ends(left) == [("research-archive", "sent", "")]
        assert made.ends(held) == [("second", "refused", "opted_out")]
        assert made.ends(waiting) == [("", "refused", "opted_out")]
        assert made.ends(other) == [("second", "held", "not_assessed")]
        assert not (home.work / made.job(held).job_key).exists()
        assert originals(made) == 2  # of what left, until retention; of the other person


@pytest.mark.parametrize("leg", ["scrub", "gate", "forward"])
def test_a_leg_that_comes_after_an_opt_out_does_nothing(home: Home, policies: Path, target: Path, leg: str) -> None:
    with house(home, policies) as made:
        key = made.receive(*study())
        made.close()
        for _ in range(1 + ("scrub", "gate", "forward").index(leg)):
            made.run_once()
        made.parts.database.opt_out(rights(made).subject("LEAK0001", ""), at=0.0, **WORDS)  # no wish: the leg sees it
        made.settle()
        assert made.ends(key) == [("research-archive", "refused", "opted_out")]
        assert (originals(made), list(target.rglob("*.dcm"))) == (0, [])


def test_by_pseudonym_and_what_receivers_have_can_be_recalled(gateway_house: House, target: Path) -> None:
    made = gateway_house
    key = made.deliver(*study())
    (path,) = target.rglob("*.dcm")
    pseudonym = str(pydicom.dcmread(path).PatientID)
    subject = rights(made).behind(pseudonym, "")
    assert subject == rights(made).subject("LEAK0001", "")
    with pytest.raises(UsageError, match="nothing has left under that pseudonym"):
        rights(made).behind("DEMO-0", "")
    rights(made).opt_out(subject, **WORDS)
    made.settle()
    assert made.decide("recall:subject:113039", f"{subject.person_key}.") == "done: recall 1"
    assert made.ends(key) == [("research-archive", "recalled", "")]


def furnish(made: House, key: str) -> None:
    """Everything that may lie here of a study, beside what it left by itself."""
    home = made.parts.home
    store(home, key, Drawing(Place("a" * 24, "b" * 24, 16, 16), (0, 0, 2, 2), whole_series=True))
    for folder in (home.estimates / key, home.work / made.job(key).job_key, home.root / "embeddings" / "originals"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "file").write_bytes(b"x")


def test_an_erasure_leaves_nothing_of_the_person_and_all_of_the_others(
    home: Home, policies: Path, target: Path
) -> None:
    with_vault(policies)
    with house(home, policies) as made:
        mine, other = made.deliver(*study(2)), made.deliver(*study(patient="LEAK0002"))
        for key in (mine, other):
            furnish(made, key)
        removed = erase(made)
        assert removed == {"audited": 1, "candidates": 3, "drawings": 1, "originals": 2, "vault": 1}
        for key, left in ((mine, False), (other, True)):
            assert (made.parts.spool.root / key).exists() == left or not any((made.parts.spool.root / key).iterdir())
            assert (home.estimates / key).exists() == left
            assert home.root.joinpath(*DRAWN, key).exists() == left
            assert (home.work / made.job(key).job_key).exists() == left
        assert len(list(home.vault.rglob("*.rec"))) == 1
        assert made.ends(mine) == [("research-archive", "sent", "")]  # what left has left
        assert made.decide("recall:study:113039", mine) == "done: recall 1"  # and can still be asked for
        lines = [line for line in made.events() if line["event"].startswith("subject_")]
        assert [line["event"] for line in lines] == ["subject_erasure_asked", "subject_erased"]
        assert "LEAK0001" not in made.parts.ledger.path.read_text()
        assert erase(made) == {}


def test_what_arrives_after_an_erasure_is_new_and_what_came_before_it_is_refused(
    gateway_house: House, target: Path
) -> None:
    made = gateway_house
    (ds,) = study()
    key = made.deliver(ds)
    undecided = made.receive(*study())
    erase(made)
    assert made.ends(undecided) == [("", "refused", "erased")]
    assert originals(made) == 0
    sent = {path.name: path.read_bytes() for path in target.rglob("*.dcm")}
    made.deliver(ds)  # known by its keyed rows: nothing is sent again
    assert made.parts.database.generations(key)[-1].state == "duplicate"
    made.deliver(late(ds))
    assert made.ends(key, 3) == [("research-archive", "sent", "")]
    assert {path.name: path.read_bytes() for path in target.rglob("*.dcm") if path.name in sent} == sent


def test_held_studies_of_an_erased_person_are_refused(home: Home, policies: Path) -> None:
    edit(policies, "research-basic", lambda body: body["gate"].update(not_assessed=[]))
    with house(home, policies) as made:
        key = made.deliver(*study())
        erase(made)
        assert made.ends(key) == [("research-archive", "refused", "erased")]
        assert originals(made) == 0


def test_a_leg_that_was_under_way_is_met_by_the_next_look(gateway_house: House) -> None:
    made = gateway_house
    key = made.deliver(*study())
    erase(made)
    furnish(made, key)  # as a scrub that went on might leave it
    Subjects(made.parts).enforce()
    assert not (made.parts.home.estimates / key).exists()
    assert not (made.parts.home.work / made.job(key).job_key).exists()


def test_a_restored_database_learns_from_the_ledger_and_from_a_list(home: Home, policies: Path, tmp_path: Path) -> None:
    with house(home, policies) as made:
        key = made.deliver(*study())
        backup = tmp_path / "backup.sqlite"
        made.parts.database.checkpoint()
        shutil.copy(home.database, backup)
        spool = tmp_path / "spool"
        shutil.copytree(made.parts.spool.root, spool)
        opt_out(made, "LEAK0009")
        opt_out(made, "LEAK0008")
        rights(made).opt_in(rights(made).subject("LEAK0008", ""), **WORDS)
        erase(made)
        assert originals(made) == 0
        listed = rights(made).listed()
    for stale in home.root.glob("database.sqlite*"):
        stale.unlink()
    shutil.copy(backup, home.database)
    shutil.rmtree(home.spool)
    shutil.copytree(spool, home.spool)
    with house(home, policies) as made:
        assert originals(made) == 1
        assert rights(made).restore_from_ledger() == 4
        assert rights(made).restore_from_ledger() == 0
        assert rights(made).restore(listed) == 0
        made.settle()
        assert originals(made) == 0
        assert rights(made).listed()["opted_out"][0]["ended_at"] is None
        assert len(rights(made).database.opted_out()) == 1
        assert made.ends(key) == [("research-archive", "sent", "")]
    with pytest.raises(UsageError, match="no list"):
        rights(made).restore({"opted_out": [{}]})


@pytest.mark.parametrize("step", ["remove_originals", "forget_records", "forget", "rmtree", "erased"])
def test_an_erasure_that_was_killed_is_ended_by_the_next_process(
    home: Home, policies: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with_vault(policies)
    place: Any = {"rmtree": shutil, "erased": subjects_module.Subjects}.get(step, subjects_module)
    with house(home, policies) as made:
        key = made.deliver(*study(2))
        furnish(made, key)
        rights(made).ask_erasure(rights(made).subject("LEAK0001", ""), **WORDS)

        def crash(*_arguments: object, **_more: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            if step == "erased":
                patch.setattr(type(made.parts.database), "erased", crash)
            elif step == "forget":
                patch.setattr(place, "forget", crash)
                patch.setattr(type(made.parts.database), "memberships", lambda *_: [None])
            else:
                patch.setattr(place, step, crash)
            with pytest.raises(KeyboardInterrupt):
                made.settle()
    with house(home, policies) as made:
        made.settle()
        (entry,) = made.parts.database.erasures()
        assert entry.done_at is not None
        assert originals(made) == 0
        assert not list(home.vault.rglob("*.rec"))
        assert not (home.estimates / key).exists()
        assert made.parts.ledger.verify().sound


def test_an_erasure_of_one_issuer_leaves_the_namesake_of_another(home: Home, policies: Path) -> None:
    with_vault(policies)
    with house(home, policies) as made:
        north, south = study(), study()
        north[0].IssuerOfPatientID, south[0].IssuerOfPatientID = "North", "South"
        mine, other = made.deliver(*north), made.deliver(*south)
        rights(made).ask_erasure(rights(made).subject("LEAK0001", "North"), **WORDS)
        made.settle()
        assert not list((made.parts.spool.root / mine).glob("*"))
        assert len(list((made.parts.spool.root / other).glob("*"))) == 1
        (record,) = home.vault.rglob("*.rec")
        assert made.job(other).job_key in record.name


def test_embeddings_of_an_erased_person_go_and_do_not_come_back_with_a_backup(
    home: Home, policies: Path, tmp_path: Path
) -> None:
    judged(policies, LINKABILITY)
    with house(home, policies) as made:
        mine, other = made.deliver(film(1)), made.deliver(film(2))
        assert [made.ends(key)[0][1] for key in (mine, other)] == ["awaiting_release", "awaiting_release"]
        folder = home.root / FOLDER
        before = {path.relative_to(folder) for path in folder.rglob("*.emb")}
        shutil.copytree(folder, tmp_path / "backup")
        assert erase(made)["references"] == len(before) // 2
        left = {path.relative_to(folder) for path in folder.rglob("*.emb")}
        assert len(left) == len(before) // 2
        (member,) = made.parts.database.memberships(made.job(mine).job_key)
        assert member.removed_at is not None
        assert set(json.loads(member.facts)) == {"views"}
        assert made.ends(mine) == [("research-archive", "refused", "erased")]
        shutil.copytree(tmp_path / "backup", folder, dirs_exist_ok=True)
        Retention(made.parts).forget_restored()
        assert {path.relative_to(folder) for path in folder.rglob("*.emb")} == left
