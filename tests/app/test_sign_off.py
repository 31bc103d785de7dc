"""Only what enough listed people signed is approved, and no edit of a file approves anything."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateway.app.policy.approvals import FOLDER, UNCONFIRMED, Approvals, require_approved
from gateway.app.policy.approvers import FILE, approver, read_approvers
from gateway.app.policy.registry import REGISTRY
from gateway.errors import EnvironmentFault, PolicyError, UsageError
from gateway.ledger import Ledger
from gateway.policy import Policy, load_policies, load_policy
from gateway.policy.approvals import public_text
from gateway.pseudonyms import Keys
from gateway.settings import SHIPPED_POLICIES, Home, Settings

JANE, JOHN, EVE = (Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in (1, 2, 3))
ROLE = "privacy-officer"
WORDS = {"actor": "admin", "reason": "by decision 7"}
Build = Callable[..., Settings]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The shipped policies, with names where they are still to be confirmed."""
    shutil.copytree(SHIPPED_POLICIES, tmp_path / "policies", ignore=shutil.ignore_patterns("__pycache__", "starters"))
    for path in (tmp_path / "policies").glob("*.yaml"):
        path.write_text(path.read_text().replace(UNCONFIRMED, "confirmed"))
    return tmp_path / "policies"


@pytest.fixture
def policy(folder: Path) -> Policy:
    return load_policy(folder / "research-basic.yaml", REGISTRY)


@pytest.fixture
def approvals(home: Home, settings: Build) -> Approvals:
    made = Approvals(home, settings())
    made.add_signer(approver("jane", JANE.public_key(), (ROLE,)), **WORDS)
    made.add_signer(approver("john", JOHN.public_key(), (ROLE, "admin")), **WORDS)
    return made


def approve(approvals: Approvals, policy: Policy, by: str = "jane", role: str = ROLE) -> None:
    private = {"jane": JANE, "john": JOHN, "eve": EVE}[by]
    approvals.say("approve", policy, by=by, role=role, reason="reviewed on 30 November", private=private)


def file_of(home: Home, policy: Policy) -> Path:
    return home.root / FOLDER / f"{policy.digest}.jsonl"


def edited(folder: Path, **changes: object) -> Policy:
    path = folder / "research-basic.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **changes}))
    return load_policy(path, REGISTRY)


def test_a_policy_is_approved_by_a_signature_and_by_nothing_else(
    approvals: Approvals, home: Home, policy: Policy
) -> None:
    before = approvals.approved(policy)
    assert (before.approved, before.reason, before.needed) == (False, "nobody approved this digest", 1)
    approve(approvals, policy)
    assert approvals.approved(policy).by == ("jane",)
    assert approvals.approved(policy).approved
    (record,) = approvals.records(policy)
    assert record.fault == ""
    assert file_of(home, policy).stat().st_mode & 0o777 == 0o600


def test_a_comment_changes_nothing_and_a_word_with_a_meaning_needs_another_approval(
    approvals: Approvals, folder: Path, policy: Policy
) -> None:
    approve(approvals, policy)
    path = folder / "research-basic.yaml"
    path.write_text("# another comment\n" + path.read_text())
    assert approvals.approved(load_policy(path, REGISTRY)).approved
    assert not approvals.approved(edited(folder, retain={"originals_days": 31})).approved
    assert not approvals.approved(edited(folder, name="research-other")).approved


def test_every_approval_and_revocation_is_a_line_of_the_ledger(
    approvals: Approvals, home: Home, keys: Keys, policy: Policy
) -> None:
    approve(approvals, policy)
    approvals.say("revoke", policy, by="john", role="admin", reason="face not handled", private=JOHN)
    approvals.remove_signer("john", **WORDS)
    ledger = Ledger(home.ledger, keys.ledger)
    lines = list(ledger.lines())
    assert [line["event"] for line in lines] == [
        *["policy_signer_added"] * 2,
        "policy_approved",
        "policy_approval_revoked",
        "policy_signer_removed",
    ]
    assert lines[2]["policy_digest"] == lines[3]["policy_digest"] == policy.digest
    assert (lines[2]["actor"], lines[2]["role"], lines[2]["reason_given"]) == ("jane", ROLE, "reviewed on 30 November")
    assert ledger.verify().sound


def test_a_revocation_holds_until_somebody_approves_again(approvals: Approvals, home: Home, policy: Policy) -> None:
    approve(approvals, policy)
    approvals.say("revoke", policy, by="john", role="admin", reason="face not handled", private=JOHN)
    standing = approvals.approved(policy)
    assert (standing.approved, "the approval of jane was revoked" in standing.reason) == (False, True)
    path = file_of(home, policy)
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])  # the revocation taken out of the file
    assert not approvals.approved(policy).approved
    approve(approvals, policy)
    assert approvals.approved(policy).by == ("jane",)


def test_two_people_where_two_are_asked_for(home: Home, settings: Build, approvals: Approvals, policy: Policy) -> None:
    two = Approvals(home, settings(approvers_needed=2))
    approve(two, policy)
    approve(two, policy)  # once more is not somebody else
    assert (two.approved(policy).approved, two.approved(policy).reason) == (False, "1 of 2 people approved this digest")
    approve(two, policy, by="john")
    assert two.approved(policy).by == ("jane", "john")
    assert two.approved(policy).approved


def test_a_policy_that_asks_for_two_people_needs_two_to_be_approved(approvals: Approvals, folder: Path) -> None:
    policy = edited(folder, review={"two_person": True})
    approve(approvals, policy)
    assert (approvals.approved(policy).approved, approvals.approved(policy).needed) == (False, 2)
    approve(approvals, policy, by="john")
    assert approvals.approved(policy).approved


# -- tampering -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "value"),
    [("reason", "another reason"), ("date", "2020-01-01T00:00:00+00:00"), ("role", "admin"), ("by", "john")],
)
def test_a_changed_statement_does_not_count(
    approvals: Approvals, home: Home, policy: Policy, word: str, value: str
) -> None:
    approve(approvals, policy)
    path = file_of(home, policy)
    body = json.loads(path.read_text())
    body["statement"][word] = value
    path.write_text(json.dumps(body) + "\n")
    standing = approvals.approved(policy)
    assert not standing.approved
    assert "was changed after it was signed, or signed with another key" in standing.reason


def test_a_signature_does_not_count_under_another_digest(
    approvals: Approvals, home: Home, folder: Path, policy: Policy
) -> None:
    approve(approvals, policy)
    other = edited(folder, retain={"originals_days": 3000})
    shutil.copy(file_of(home, policy), file_of(home, other))
    assert "a line of jane is about another policy" in approvals.approved(other).reason
    body = json.loads(file_of(home, policy).read_text())
    body["statement"]["digest"] = other.digest
    file_of(home, other).write_text(json.dumps(body) + "\n")
    assert "was changed after it was signed" in approvals.approved(other).reason


def test_somebody_who_writes_files_only_can_list_nobody(approvals: Approvals, home: Home, policy: Policy) -> None:
    """Eve adds herself to approvers.yaml, or puts her key behind Jane's name, and signs: the ledger knows neither."""
    path = home.root / FILE
    honest = path.read_text()
    path.write_text(honest + f'eve: {{key: "{public_text(EVE.public_key())}", roles: [{ROLE}]}}\n')
    with pytest.raises(UsageError, match="eve is no signer"):
        approve(approvals, policy, by="eve")
    assert [known for _, known in approvals.signers()] == [False, True, True]
    path.write_text(honest.replace(public_text(JANE.public_key()), public_text(EVE.public_key())))
    with pytest.raises(UsageError, match="jane is no signer"):
        approvals.say("approve", policy, by="jane", role=ROLE, reason="reviewed", private=EVE)
    path.write_text(honest)
    with pytest.raises(UsageError, match="not the key of jane"):
        approvals.say("approve", policy, by="jane", role=ROLE, reason="reviewed", private=EVE)
    with pytest.raises(UsageError, match="signs as privacy-officer, not as admin"):
        approve(approvals, policy, role="admin")


def test_a_signature_that_the_ledger_does_not_know_does_not_count(
    approvals: Approvals, home: Home, settings: Build, tmp_path: Path, policy: Policy
) -> None:
    """Signed by the right key, but in another home: a stolen or restored file."""
    other = Home(tmp_path / "other")
    other.create()
    elsewhere = Approvals(other, settings(key=(home.keys / "master.key").read_text().strip()))
    elsewhere.add_signer(approver("jane", JANE.public_key(), (ROLE,)), **WORDS)
    approve(elsewhere, policy)
    shutil.copytree(other.root / FOLDER, home.root / FOLDER, dirs_exist_ok=True)
    assert "the ledger does not know an approval of jane" in approvals.approved(policy).reason


def test_a_damaged_ledger_approves_nothing(approvals: Approvals, home: Home, policy: Policy) -> None:
    approve(approvals, policy)
    text = home.ledger.read_text()
    home.ledger.write_text(text.replace("by decision 7", "by decision 8", 1))
    assert "the ledger is damaged" in approvals.approved(policy).reason
    with pytest.raises(EnvironmentFault, match="the ledger is damaged"):
        approve(approvals, policy)
    home.ledger.write_text(text)
    assert approvals.approved(policy).approved
    home.ledger.write_text("".join(text.splitlines(keepends=True)[:-1]))  # the tail cut off
    assert "the ledger is damaged" in approvals.approved(policy).reason


def test_who_was_struck_off_no_longer_counts_nor_does_what_they_signed_before(
    approvals: Approvals, policy: Policy
) -> None:
    approve(approvals, policy)
    approvals.remove_signer("jane", **WORDS)
    assert not approvals.approved(policy).approved
    approvals.add_signer(approver("jane", JANE.public_key(), (ROLE,)), **WORDS)
    assert "the approval of jane was revoked" in approvals.approved(policy).reason
    approve(approvals, policy)
    assert approvals.approved(policy).approved


def test_a_key_belongs_to_one_person(approvals: Approvals, home: Home) -> None:
    with pytest.raises(UsageError, match="this is the key of jane"):
        approvals.add_signer(approver("jane2", JANE.public_key(), (ROLE,)), **WORDS)
    path = home.root / FILE
    text = path.read_text()
    path.write_text(text + f'jane2: {{key: "{public_text(JANE.public_key())}", roles: [{ROLE}]}}\n')
    with pytest.raises(PolicyError, match="a key belongs to one person"):
        read_approvers(path)
    for broken in ("jane: x\n", "jane: {key: AAAA, roles: [a]}\n", text.replace(f"[{ROLE}]", "[]")):
        path.write_text(broken)
        with pytest.raises(PolicyError):
            read_approvers(path)


def test_half_a_line_of_a_crash_spoils_no_other(approvals: Approvals, home: Home, policy: Policy) -> None:
    approve(approvals, policy)
    path = file_of(home, policy)
    path.write_bytes(path.read_bytes() + path.read_bytes()[:100])
    approve(approvals, policy, by="john")
    assert approvals.approved(policy).by == ("jane", "john")
    assert [record.fault for record in approvals.records(policy)] == ["", "a line is no signed statement", ""]


# -- loading -------------------------------------------------------------------------------------------------------


def test_the_gateway_loads_only_approved_policies(approvals: Approvals, folder: Path) -> None:
    found = load_policies(folder, REGISTRY)
    with pytest.raises(PolicyError) as caught:
        approvals.only_approved(found)
    assert {fault.file for fault in caught.value.faults} == {"policy research-basic", "policy research-pictures"}
    approve(approvals, found.policies["research-basic"])
    approve(approvals, found.policies["research-pictures"])
    assert approvals.only_approved(found) == found
    approvals.say(
        "revoke", found.policies["research-pictures"], by="jane", role=ROLE, reason="text is left", private=JANE
    )
    with pytest.raises(PolicyError, match="research-pictures: is not approved"):
        approvals.only_approved(found)
    routes = yaml.safe_load((folder / "routes.yaml").read_text())["routes"][:1]
    (folder / "routes.yaml").write_text(yaml.safe_dump({"routes": routes}))
    loaded = approvals.only_approved(load_policies(folder, REGISTRY))
    assert set(loaded.policies) == {"research-basic"}  # one that no route asks for is left out


def test_a_batch_needs_it_only_where_the_site_does(
    approvals: Approvals, home: Home, settings: Build, policy: Policy
) -> None:
    require_approved(home, settings(), policy)
    strict = settings(require_approval=True)
    with pytest.raises(PolicyError, match="is not approved: nobody approved this digest"):
        require_approved(home, strict, policy)
    approve(approvals, policy)
    require_approved(home, strict, policy)


def test_a_name_that_is_to_be_confirmed_is_not_signed_for(approvals: Approvals) -> None:
    shipped = load_policy(SHIPPED_POLICIES / "research-basic.yaml", REGISTRY)
    with pytest.raises(UsageError, match=UNCONFIRMED):
        approve(approvals, shipped)
    approvals.say("revoke", shipped, by="jane", role=ROLE, reason="never again", private=JANE)
