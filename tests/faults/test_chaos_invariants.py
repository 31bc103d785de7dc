"""The judge of chaos runs sees what it is there for: each invariant is broken by hand, and found."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from chaos_archive import Arrival
from chaos_invariants import Evidence, judge
from chaos_studies import Acknowledged, Mark, instance, mark_of
from houses import house, to_folder
from pydicom import dcmread
from running import dataset_sha256
from sqlalchemy import delete, update

from gateway.database import Database
from gateway.database.tables import instances, jobs
from gateway.settings import Home
from gateway.study import State

SEED = 7
SENT, CONFLICTING = Mark(1, 1, 0), Mark(1, 1, 1)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """One instance that was sent, then one of the same UID with other pixels, which is held."""
    folder = tmp_path_factory.mktemp("calm")
    home = Home(folder / "home")
    home.create()
    with house(home, to_folder(folder / "policies", folder / "archive")) as made:
        for mark in (SENT, CONFLICTING):
            made.deliver(instance(SEED, mark))
        assert [study.state for study in made.parts.database.studies_in("routed", "held")] == ["routed", "held"]
    (path,) = (folder / "archive").rglob("*.dcm")
    return Evidence(home, "", [said(SENT), said(CONFLICTING)], [arrival(path)])


@pytest.fixture
def evidence(calm: Evidence, tmp_path: Path) -> Evidence:
    """A copy that may be broken."""
    shutil.copytree(calm.home.root, tmp_path / "home")
    return replace(calm, home=Home(tmp_path / "home"))


def said(mark: Mark) -> Acknowledged:
    ds = instance(SEED, mark)
    return Acknowledged(ds.StudyInstanceUID, ds.SOPInstanceUID, mark)


def arrival(path: Path) -> Arrival:
    return Arrival(dcmread(path).SOPInstanceUID, dataset_sha256(path), mark_of(path.read_bytes()), (), stored=True)


def test_a_calm_run_breaks_nothing(evidence: Evidence) -> None:
    assert judge(evidence).any() == {}


def in_tables(evidence: Evidence, *statements: object) -> Evidence:
    database = Database.in_home(evidence.home.database)
    with database.transaction() as connection:
        for statement in statements:
            connection.execute(statement)  # type: ignore[call-overload]
    database.close()
    return evidence


def never_acknowledged_file(evidence: Evidence) -> Evidence:
    """The row of what is held is gone."""
    return in_tables(evidence, delete(instances).where(instances.c.use == "conflict"))


def file_gone(evidence: Evidence) -> Evidence:
    for path in evidence.home.spool.rglob("*.dcm"):
        if mark_of(path.read_bytes()) == CONFLICTING:
            path.unlink()
    return evidence


def never_arrived(evidence: Evidence) -> Evidence:
    return replace(evidence, arrivals=[])


def not_kept(evidence: Evidence) -> Evidence:
    return replace(evidence, arrivals=[replace(evidence.arrivals[0], stored=False)])


def no_clearance(evidence: Evidence) -> Evidence:
    return in_tables(evidence, update(jobs).values(clearance=""))


def forged_clearance(evidence: Evidence) -> Evidence:
    database = Database.in_home(evidence.home.database)
    (job,) = database.jobs_in()
    database.close()
    return in_tables(evidence, update(jobs).values(clearance=job.clearance.replace('"gate"', '"gale"')))


def other_bytes(evidence: Evidence) -> Evidence:
    first = evidence.arrivals[0]
    return replace(evidence, arrivals=[first, replace(first, sha256=hashlib.sha256(b"other").hexdigest())])


def other_uid(evidence: Evidence) -> Evidence:
    first = evidence.arrivals[0]
    return replace(evidence, arrivals=[first, replace(first, sop_uid="2.25.1")])


def other_pixels(evidence: Evidence) -> Evidence:
    first = evidence.arrivals[0]
    return replace(evidence, arrivals=[first, replace(first, mark=None)])


def word_in_log(evidence: Evidence) -> Evidence:
    (evidence.home.root / "serve.log").write_text('{"event": "x", "name": "zzsynth"}\n')
    return evidence


def word_across_pieces(evidence: Evidence) -> Evidence:
    (evidence.home.root / "engine.sqlite-wal").write_bytes(bytes((1 << 20) - 4) + b"LEAKTEST")
    return evidence


def word_in_utf_16(evidence: Evidence) -> Evidence:
    """At an odd place among zeros, as a driver or a database may leave it."""
    (evidence.home.root / "engine.sqlite-wal").write_bytes(bytes(4097) + "Leaktest".encode("utf-16-be") + bytes(64))
    return evidence


def word_in_a_name(evidence: Evidence) -> Evidence:
    (evidence.home.spool / "LEAK0001").mkdir()
    return evidence


def word_in_metrics(evidence: Evidence) -> Evidence:
    return replace(evidence, texts={"metrics": b'x{study="1.2.826.0.1.3680043.10.9999.5"} 1'})


def word_at_the_archive(evidence: Evidence) -> Evidence:
    return replace(evidence, arrivals=[replace(evidence.arrivals[0], found=("LEAKTEST",))])


def stuck(evidence: Evidence) -> Evidence:
    return in_tables(evidence, update(jobs).values(state=str(State.SCRUBBED)))


def without_a_reason(evidence: Evidence) -> Evidence:
    return in_tables(evidence, update(jobs).values(state=str(State.HELD)))


def cut_ledger(evidence: Evidence) -> Evidence:
    lines = evidence.home.ledger.read_bytes().splitlines(keepends=True)
    evidence.home.ledger.write_bytes(b"".join(lines[:-1]))
    return evidence


def half_file(evidence: Evidence) -> Evidence:
    (evidence.home.work / "x.part").touch()
    return evidence


BROKEN: dict[Callable[[Evidence], Evidence], set[str]] = {
    never_acknowledged_file: {"lost"},
    file_gone: {"lost"},
    never_arrived: {"lost"},
    not_kept: {"lost"},
    no_clearance: {"sent_uncleared"},
    forged_clearance: {"sent_uncleared"},
    other_bytes: {"sent_twice_different", "sent_uncleared"},
    other_uid: {"sent_twice_different", "sent_uncleared"},
    other_pixels: {"sent_twice_different"},
    word_in_log: {"identifiers_outside"},
    word_across_pieces: {"identifiers_outside"},
    word_in_utf_16: {"identifiers_outside"},
    word_in_a_name: {"identifiers_outside"},
    word_in_metrics: {"identifiers_outside"},
    word_at_the_archive: {"identifiers_outside"},
    stuck: {"unfinished", "ledger"},
    without_a_reason: {"unfinished", "ledger"},
    cut_ledger: {"ledger"},
    half_file: {"left_behind"},
}


def test_several_receivers_may_leave_what_is_half_received_for_the_time_being(evidence: Evidence) -> None:
    (evidence.home.spool / "incoming").mkdir(exist_ok=True)
    (evidence.home.spool / "incoming" / "x.part").touch()
    assert judge(evidence).any().keys() == {"left_behind"}
    assert judge(replace(evidence, shared=True)).any() == {}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda one: one.__name__)
def test_what_is_broken_is_found(evidence: Evidence, broken: Callable[[Evidence], Evidence]) -> None:
    assert set(judge(broken(evidence)).any()) == BROKEN[broken]
