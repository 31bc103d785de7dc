"""`scrub` asks for consent as `serve` does, and writes nothing under a policy in shadow."""

from __future__ import annotations

from pathlib import Path

import yaml
from scrubbing import Scrubbing, ends, write_study

from gateway.app.person.wishes import Rights
from gateway.database import Database
from gateway.ledger import Ledger
from gateway.settings import SHIPPED_POLICIES, Home

WORDS = {"actor": "dpo", "reason": "a letter of May"}


def test_a_person_who_opted_out_is_left_out_until_they_opt_in(home: Home, tmp_path: Path) -> None:
    scrub = Scrubbing(home, tmp_path / "out")
    for number in (1, 2):
        write_study(tmp_path / "in" / str(number), number, instances=1)
    database = Database.in_home(home.database)
    rights = Rights(database, Ledger(home.ledger, scrub.keys.ledger), scrub.keys)
    subject = rights.subject("LEAK0001", "")
    rights.opt_out(subject, **WORDS)
    assert ends(scrub(tmp_path / "in")) == [("refused", "opted_out"), ("sent", "")]
    assert len(list((tmp_path / "out").rglob("*.dcm"))) == 1
    rights.opt_in(subject, **WORDS)
    assert ends(scrub(tmp_path / "in")) == [("sent", ""), ("sent", "")]
    database.close()


def test_a_policy_in_shadow_writes_nothing(home: Home, tmp_path: Path) -> None:
    body = yaml.safe_load((SHIPPED_POLICIES / "research-basic.yaml").read_text())
    body |= {"name": "looking", "forward": {"shadow": True}, "vault": {"roles": ["dpo"]}}
    policy = tmp_path / "looking.yaml"
    policy.write_text(yaml.safe_dump(body))
    write_study(tmp_path / "in", 1, instances=1)
    assert ends(Scrubbing(home, tmp_path / "out", policy=policy)(tmp_path / "in")) == [("shadowed", "")]
    assert not list((tmp_path / "out").rglob("*.dcm"))
    assert not list(home.vault.rglob("*.rec"))
    assert not list(home.held.iterdir())
