"""What must hold after any run, whatever befell it (DESIGN.md section 1). Looks at what is there, asks no gateway.

Every acknowledged object lies in the archive or in a study that visibly waits; nothing left that was not cleared;
nothing left twice with other bytes; every study is at its end or waits for a person; the ledger is whole; no planted
identity is anywhere but in the spool, the vault and the references.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chaos_archive import Arrival
from chaos_studies import UID_ROOT, Acknowledged, Mark, mark_of
from planting import WORDS, forms

from gateway.database import Database, JobRow
from gateway.ledger import Ledger
from gateway.pseudonyms import Keys, master_key
from gateway.settings import Home, load_settings
from gateway.study import FINAL_STATES, Clearance, State

MAY_IDENTIFY = frozenset({"spool", "vault", "references"})
PLANTS = tuple(form for word in (*WORDS, "LEAK0", "ACC4711X", UID_ROOT) for form in forms(word))
# Without the zeros of UTF-16: where none of these is, none of those is. Databases are full of zeros: slow to search.
DENSE = frozenset(plant.replace(b"\0", b"") for plant in PLANTS)
WAITING = {State.HELD, State.AWAITING_RELEASE}
_PIECE = 1 << 20


@dataclass
class Findings:
    """Of one run; each entry says what and where. All empty for a run in which everything held."""

    lost: list[str] = field(default_factory=list)
    sent_uncleared: list[str] = field(default_factory=list)
    sent_twice_different: list[str] = field(default_factory=list)
    identifiers_outside: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    ledger: list[str] = field(default_factory=list)
    left_behind: list[str] = field(default_factory=list)

    def any(self) -> dict[str, list[str]]:
        return {name: found for name, found in vars(self).items() if found}


@dataclass(frozen=True)
class Evidence:
    """What a run leaves. `texts` are further places by name: metrics, command lines. `folders` are searched whole.

    `shared`: several processes received, so that what one of them left half-received stays for the time being.
    """

    home: Home
    database_url: str
    acknowledged: Sequence[Acknowledged]
    arrivals: Sequence[Arrival]
    texts: Mapping[str, bytes] = field(default_factory=dict)
    folders: Sequence[Path] = ()
    shared: bool = False


def judge(evidence: Evidence) -> Findings:
    """Everything that does not hold. The gateway must have been stopped."""
    findings = Findings()
    keys = Keys(master_key(evidence.home, load_settings(evidence.home.root)))
    database = Database.in_home(evidence.home.database, evidence.database_url)
    try:
        ledger = Ledger(evidence.home.ledger, keys.ledger)
        findings.lost = list(_lost(evidence, database, keys))
        findings.sent_uncleared = list(_uncleared(evidence, database, ledger, keys))
        findings.sent_twice_different = list(_differing(evidence.arrivals))
        findings.unfinished = list(_unfinished(database))
        findings.ledger = list(_ledger_faults(database, ledger))
    finally:
        database.close()
    findings.left_behind = list(_left_behind(evidence))
    findings.identifiers_outside = list(_identifiers(evidence))
    return findings


def _lost(evidence: Evidence, database: Database, keys: Keys) -> Iterator[str]:
    """Acknowledged, and neither in the archive nor in the spool of a study that waits."""
    archived = {arrival.mark for arrival in evidence.arrivals if arrival.stored}
    for said in sorted(set(evidence.acknowledged)):
        if said.mark not in archived:
            waits, why = _waits(said, evidence.home, database, keys)
            if not waits:
                yield f"{said.mark}: {why}"


def _waits(said: Acknowledged, home: Home, database: Database, keys: Keys) -> tuple[bool, str]:
    study_key, sop_key = keys.opaque("study", said.study_uid), keys.opaque("sop", said.sop_uid)
    rows = [row for row in database.instances_of(study_key) if row.sop_key == sop_key]
    for row in rows:
        path = home.spool / row.study_key / row.name
        if not path.is_file() or mark_of(path.read_bytes()) != said.mark:
            continue
        study = database.study(row.study_key, row.generation)
        jobs = database.jobs_of(row.study_key, row.generation)
        if (study is not None and study.state == "held") or any(job.state in WAITING for job in jobs):
            return True, ""
    return False, f"{len(rows)} rows: {sorted((row.generation, row.use) for row in rows)}" if rows else "no row"


def _uncleared(evidence: Evidence, database: Database, ledger: Ledger, keys: Keys) -> Iterator[str]:
    """What arrived is named by a sealed clearance whose files the ledger names."""
    told: dict[str, set[str]] = defaultdict(set)
    for line in ledger.lines():
        if line["event"] == "cleared":
            told[line["job"]] |= set(line["sha256"])
    cleared = {
        (entry.sop_instance_uid, entry.sha256_dataset)
        for job in database.jobs_in()
        for entry in _sealed(job, keys)
        if entry.sha256_file in told[job.job_key]
    }
    for arrival in evidence.arrivals:
        if (arrival.sop_uid, arrival.sha256) not in cleared:
            yield f"{arrival.sop_uid} {arrival.sha256}"


def _sealed(job: JobRow, keys: Keys) -> Sequence[object]:
    if not job.clearance:
        return ()
    clearance = Clearance.from_json(job.clearance)
    return clearance.instances if clearance.is_sealed_by(keys.seal) else ()


def _differing(arrivals: Sequence[Arrival]) -> Iterator[str]:
    """One instance under one UID with one sha256, and its pixels as they came."""
    by_uid: dict[str, set[str]] = defaultdict(set)
    by_mark: dict[Mark, set[str]] = defaultdict(set)
    for arrival in arrivals:
        by_uid[arrival.sop_uid].add(arrival.sha256)
        if arrival.mark is None:
            yield f"{arrival.sop_uid}: other pixels than were sent"
        else:
            by_mark[arrival.mark].add(arrival.sop_uid)
    yield from (f"{uid}: {len(hashes)} data sets" for uid, hashes in by_uid.items() if len(hashes) > 1)
    yield from (f"{mark}: {len(uids)} UIDs" for mark, uids in by_mark.items() if len(uids) > 1)


def _unfinished(database: Database) -> Iterator[str]:
    yield from (f"study {s.study_key}.{s.generation} {s.state}" for s in database.studies_in("received"))
    for job in database.jobs_in():
        if job.state not in {*FINAL_STATES, State.AWAITING_RELEASE}:
            yield f"job {job.job_key} {job.state} {job.reason}"
        elif job.state == State.HELD and not job.reason:
            yield f"job {job.job_key} is held without a reason"


def _ledger_faults(database: Database, ledger: Ledger) -> Iterator[str]:
    """The chain is whole, and says of each job once what the tables say."""
    report = ledger.verify()
    if not report.sound:
        yield f"line {report.line}: {report.fault}"
        return
    lines = list(ledger.lines())
    yield from (
        f"{decision} is there {n} times" for decision, n in Counter(x["decision"] for x in lines).items() if n > 1
    )
    sent = Counter(line["job"] for line in lines if line["event"] == "sent")
    for job in database.jobs_in():
        if sent[job.job_key] != (job.state == State.SENT):
            yield f"job {job.job_key} is {job.state}, and {sent[job.job_key]} lines say that it was sent"


def _left_behind(evidence: Evidence) -> Iterator[str]:
    for path in evidence.home.root.rglob("*"):
        incoming = path.parent == evidence.home.spool / "incoming"
        if not evidence.shared if incoming else path.name.endswith(".part"):
            yield str(path.relative_to(evidence.home.root))


def _identifiers(evidence: Evidence) -> Iterator[str]:
    for arrival in evidence.arrivals:
        if arrival.found:
            yield f"archive: {arrival.sop_uid}: {', '.join(arrival.found)}"
    for place, text in evidence.texts.items():
        if any(plant in text for plant in PLANTS):
            yield place
    for folder in (evidence.home.root, *evidence.folders):
        for path in sorted(folder.rglob("*")):
            inside = path.relative_to(folder)
            if any(plant in str(inside).encode() for plant in PLANTS):
                yield f"name of {inside}"
            open_to = folder == evidence.home.root and inside.parts[0] in MAY_IDENTIFY
            if path.is_file() and not open_to and _holds_plant(path):
                yield str(inside)


def _holds_plant(path: Path) -> bool:
    overlap = max(map(len, PLANTS)) - 1
    with open(path, "rb") as file:
        rest = b""
        while piece := file.read(_PIECE):
            piece = rest + piece
            dense = piece.translate(None, b"\0")
            if any(plant in dense for plant in DENSE) and any(plant in piece for plant in PLANTS):
                return True
            rest = piece[-overlap:]
    return False
