"""What /metrics says is what the tables say: leak scores, archives, disk, ledger, certificates, parts."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from houses import House, house, study
from prometheus_client import generate_latest
from releasing import film, judged

from gateway.app.gauges import refresh
from gateway.app.release.gauges import LAST
from gateway.settings import Home
from gateway.study import State

ISOLATION: dict[str, Any] = {"record_isolation": {"k": 2}}
BASE = {"metric": "cosine", "people": 60, "note": "", "limit": 0.1, "scope": "release", "attack": "same_scan"}


@pytest.fixture
def sent(home: Home, policies: Path) -> Iterator[House]:
    """A release of two people that was judged and sent."""
    with house(home, judged(policies, ISOLATION, people=2)) as made:
        for person in range(2):
            made.deliver(film(person))
        assert made.decide("close", "research-basic-1") == "done"
        yield made


def figure(check: str, estimate: float | None, upper: float | None, **more: Any) -> dict[str, Any]:
    return {**BASE, "check": check, "card": "c", "estimate": estimate, "upper": upper, **more}


def test_a_release_tells_people_looks_residuals_stages_and_its_smallest_group(sent: House) -> None:
    refresh(sent.parts)
    of = {"policy": "research-basic", "release": "1"}
    assert sent.metric("deid_release_people", **of) == 2
    assert sent.metric("deid_release_looks", **of) == 1
    assert sent.metric("deid_release_smallest_group", **of) == 2
    assert sent.metric("deid_release_stage_instances", **of, stage="header") == 2
    residual = sent.parts.metrics.registry.get_sample_value
    assert residual("deid_release_residual_findings", {**of, "check": "residual_identifiers"}) == 0
    assert residual("deid_release_last_blocked_timestamp_seconds", {"policy": "research-basic"}) is None


def test_of_an_encoders_figures_the_one_with_the_largest_bound_is_told_and_no_evidence_is_none(sent: House) -> None:
    figures = [
        figure("linkability", 0.02, 0.07),
        figure("linkability", 0.01, 0.09, attack="other_visit"),
        figure("linkability", 0.9, 0.99, note="attacker_void", metric="canberra"),
        figure("linkability", None, None, card="d", note="too_few_people"),
        figure("rank1", 0.03, 0.06, limit=0.08),
        figure("attribute_inference", 0.51, 0.58, attack=""),
    ]
    sent.parts.database.set_release(1, scores=json.dumps(figures))
    refresh(sent.parts)
    of = {"policy": "research-basic", "release": "1", "encoder": "c"}
    assert sent.metric("deid_release_linkability", **of) == 0.01
    assert sent.metric("deid_release_linkability_upper", **of) == 0.09
    assert sent.metric("deid_release_rank1_upper", **of) == 0.06
    assert sent.metric("deid_release_balanced_accuracy", **of, attribute="") == 0.51
    value = sent.parts.metrics.registry.get_sample_value
    assert value("deid_release_linkability_upper", {**of, "encoder": "d"}) is None


def test_releases_whose_scores_are_told_are_bounded(sent: House) -> None:
    from sqlalchemy import insert

    from gateway.database.tables import releases

    row = sent.parts.database.release(1)
    assert row is not None
    with sent.parts.database.transaction() as connection:
        for number in range(2, LAST + 5):
            values = {name: getattr(row, name) for name in row.__dataclass_fields__ if name != "serial"}
            connection.execute(insert(releases).values(**{**values, "number": number}))
    refresh(sent.parts)
    lines = generate_latest(sent.parts.metrics.registry).decode().splitlines()
    told = [line for line in lines if line.startswith("deid_release_looks{")]
    assert len(told) == LAST


def test_what_an_archive_does_not_take_is_counted_by_destination(home: Home, policies: Path, target: Path) -> None:
    with house(home, policies) as made:
        key = made.deliver(*study(1))
        refresh(made.parts)
        assert made.metric("deid_destination_retrying_jobs", destination="research-archive") == 0
        database = made.parts.database
        database.set_job(made.job(key).job_key, state=State.CLEARED, attempt=4, reason="archive_unreachable")
        refresh(made.parts)
        assert made.metric("deid_destination_retrying_jobs", destination="research-archive") == 1


def test_the_oldest_held_study_counts_whether_it_has_a_job_or_not(home: Home, policies: Path) -> None:
    from houses import route_nobody

    route_nobody(policies)
    with house(home, policies) as made:
        refresh(made.parts)
        assert made.metric("deid_oldest_held_seconds") == 0
        key = made.deliver(*study(1))
        made.parts.database.set_study(key, 1, first_at=1000.0)
        refresh(made.parts)
        assert made.metric("deid_oldest_held_seconds") > 1e9


def test_a_ledger_that_was_changed_anywhere_is_told_once_it_was_read(home: Home, policies: Path) -> None:
    with house(home, policies) as made:
        made.deliver(*study(1))
        refresh(made.parts)
        assert made.metric("deid_ledger_ok") == 1
        lines = home.ledger.read_bytes().splitlines(keepends=True)
        home.ledger.write_bytes(b"".join([lines[0].replace(b'"line":1', b'"line":7'), *lines[1:]]))
        made.parts.ledger.verify()
        refresh(made.parts)
        assert made.metric("deid_ledger_ok") == 0
        home.ledger.unlink()
        refresh(made.parts)
        assert made.metric("deid_ledger_ok") == 0
        assert math.isnan(made.metric("deid_ledger_lines"))


def test_disk_and_parts(home: Home, policies: Path) -> None:
    with house(home, policies, min_free_bytes=12345) as made:
        refresh(made.parts, {"engine": True, "poller": False})
        assert made.metric("deid_spool_least_bytes") == 12345
        assert made.metric("deid_spool_total_bytes") >= made.metric("deid_spool_free_bytes") > 0
        assert made.metric("deid_part_ok", part="engine") == 1
        assert made.metric("deid_part_ok", part="poller") == 0


def certificate(folder: Path, end: dt.datetime) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(end - dt.timedelta(days=90))
        .not_valid_after(end)
        .sign(key, hashes.SHA256())
    )
    path = folder / "review.pem"
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return path


def test_the_end_of_the_review_pages_certificate(home: Home, policies: Path, tmp_path: Path) -> None:
    end = dt.datetime(2030, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    path = certificate(tmp_path, end)
    with house(home, policies, review_tls_certificate=path, review_tls_key=path) as made:
        refresh(made.parts)
        assert made.metric("deid_expires_timestamp_seconds", what="review_certificate") == end.timestamp()
        path.write_text("no certificate")
        refresh(made.parts)
        value = made.parts.metrics.registry.get_sample_value
        assert value("deid_expires_timestamp_seconds", {"what": "review_certificate"}) is None
        assert made.metric("deid_spool_total_bytes") > 0
