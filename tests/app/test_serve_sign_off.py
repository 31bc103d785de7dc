"""`serve` loads only what was approved, where the site says so (DEID_REQUIRE_APPROVAL)."""

from __future__ import annotations

from pathlib import Path

import pydicom
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydicom.data import get_testdata_file
from running import policies_for, running, send, the_job, wait_idle

from gateway.app.policy.approvals import UNCONFIRMED, Approvals
from gateway.app.policy.approvers import approver
from gateway.app.policy.registry import REGISTRY
from gateway.errors import PolicyError
from gateway.policy import load_policies
from gateway.settings import Home, load_settings


def confirm(folder: Path) -> None:
    for path in folder.glob("*.yaml"):
        path.write_text(path.read_text().replace(UNCONFIRMED, "confirmed"))


def test_it_does_not_start_without_approvals_and_keeps_the_approved_ones(home: Home, tmp_path: Path) -> None:
    folder = policies_for(tmp_path / "policies", f"folder:{tmp_path / 'out'}", change=confirm)
    with pytest.raises(PolicyError, match="is not approved"), running(home, folder, require_approval=True):
        pass
    private = Ed25519PrivateKey.generate()
    approvals = Approvals(home, load_settings(home.root))
    approvals.add_signer(approver("jane", private.public_key(), ("dpo",)), actor="admin", reason="decision 7")
    for policy in load_policies(folder, REGISTRY).policies.values():
        approvals.say("approve", policy, by="jane", role="dpo", reason="reviewed", private=private)
    with running(home, folder, require_approval=True) as gateway:
        dataset = pydicom.dcmread(str(get_testdata_file("CT_small.dcm")))
        assert send(dataset, gateway.receiver.port) == 0
        wait_idle(gateway)
        assert str(the_job(gateway, dataset).state) == "sent"
        approved = gateway.parts.policies.current
        path = folder / "research-basic.yaml"
        path.write_text(path.read_text().replace("originals_days: 30", "originals_days: 31"))
        gateway.reload_policies()
        assert gateway.parts.policies.current is approved
