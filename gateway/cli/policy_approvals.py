"""`policy approve|revoke|approvals`: who answers for a policy, signed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.homes import HomeOption, registry_at
from gateway.cli.output import JsonOption, ReasonOption, say, say_json
from gateway.cli.policy_signers import PassphraseOption, approvals_of, passphrase_of
from gateway.errors import UsageError
from gateway.settings import Home, Settings

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from gateway.app.policy.approvals import Approvals
    from gateway.policy import Policy
    from gateway.policy.approvals import Act


PolicyArgument = Annotated[str, typer.Argument(metavar="FILE", help="A policy file, or a name in the policies folder.")]
SignerOption = Annotated[str, typer.Option("--by", help="The signer that you are; `policy signer list` shows them.")]
RoleOption = Annotated[str, typer.Option("--role", help="The role that you sign in, for example privacy-officer.")]
KeyOption = Annotated[Path, typer.Option("--key", readable=False, help="Your private key (PEM, mode 0600).")]


def approve(
    file: PolicyArgument,
    role: RoleOption,
    by: SignerOption,
    reason: ReasonOption,
    key: KeyOption,
    digest: Annotated[
        str, typer.Option("--digest", help="The digest that you reviewed (12 or more characters): sign nothing else.")
    ] = "",
    passphrase_file: PassphraseOption = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> int:
    """Sign a policy as it is now. With DEID_REQUIRE_APPROVAL=true the gateway loads no other.

    Read `policy explain` and `policy preview` first. One changed word that means something makes another digest, which
    needs another approval. Exit 1 when more people must approve it.
    """
    policy, approvals, private = _to_sign(file, key, passphrase_file, home)
    if digest and (len(digest) < 12 or not policy.digest.startswith(digest)):
        raise UsageError(f"the policy has the digest {policy.digest[:12]}…, not the one that you reviewed")
    return _say("approve", policy, approvals, private, (by, role, reason), json=json)


def revoke(
    file: PolicyArgument,
    role: RoleOption,
    by: SignerOption,
    reason: ReasonOption,
    key: KeyOption,
    passphrase_file: PassphraseOption = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> int:
    """Take back every approval of a policy as it is now. A running gateway notices when it loads policies (SIGHUP)."""
    policy, approvals, private = _to_sign(file, key, passphrase_file, home)
    _say("revoke", policy, approvals, private, (by, role, reason), json=json)
    return 0


def list_approvals(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE]...", help="Policies. Default: all of the policies folder.")
    ] = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> int:
    """Verify and list the approvals of policies as they are now. Exit 1 when one is not approved."""
    from gateway.policy import load_policies

    place, settings, approvals = approvals_of(home)
    if files:
        policies = [_policy(file, place, settings) for file in files]
    else:
        policies = list(load_policies(settings.policies, registry_at(place)).policies.values())
    document, sound = [], True
    for policy, (standing, found) in zip(policies, approvals.overview(policies), strict=True):
        sound &= standing.approved
        records = [
            {
                **({} if one.signed is None else {"act": one.signed.statement.act, "by": one.signed.statement.by}),
                **(
                    {} if one.signed is None else {"role": one.signed.statement.role, "date": one.signed.statement.date}
                ),
                **({} if one.signed is None else {"reason": one.signed.statement.reason}),
                "fault": one.fault,
            }
            for one in found
        ]
        facts = {"policy": policy.name, "digest": policy.digest, "approved": standing.approved}
        document.append({**facts, "needed": standing.needed, "reason": standing.reason, "records": records})
        if not json:
            say(f"{policy.name} {policy.digest[:12]}: {_standing(standing.approved, standing.by, standing.reason)}")
            for row in records:
                told = " ".join(row.get(word, "") for word in ("date", "act", "by"))
                says = f"{told} as {row['role']}: {row['reason']}" if "role" in row else ""
                say(f"  {says}{' - ' if says and row['fault'] else ''}{row['fault']}")
    if json:
        say_json(document)
    return 0 if sound else 1


# -- parts ----------------------------------------------------------------------------------------------------------


def _policy(file: str, place: Home, settings: Settings) -> Policy:
    from gateway.app.batch.studies import find_policy

    return find_policy(file, lambda: settings.policies, registry_at(place))


def _to_sign(
    file: str, key: Path, passphrase_file: Path | None, home: Path | None
) -> tuple[Policy, Approvals, Ed25519PrivateKey]:
    from gateway.policy.approvals import read_private

    place, settings, approvals = approvals_of(home)
    policy = _policy(file, place, settings)
    private = read_private(key.expanduser(), lambda: passphrase_of(passphrase_file, twice=False))
    return policy, approvals, private


def _say(
    act: Act,
    policy: Policy,
    approvals: Approvals,
    private: Ed25519PrivateKey,
    words: tuple[str, str, str],
    *,
    json: bool,
) -> int:
    from gateway.cli.held import worded

    by, role, reason = words
    by, reason = worded(by, reason)
    signed = approvals.say(act, policy, by=by, role=role, reason=reason, private=private)
    standing = approvals.approved(policy)
    if json:
        facts = {"policy": policy.name, "digest": policy.digest, "statement": signed.statement.id}
        say_json({**facts, "approved": standing.approved, "needed": standing.needed, "reason": standing.reason})
    else:
        done = "signed" if act == "approve" else "revoked"
        say(f"{done}: {policy.name} {policy.digest[:12]}")
        say(_standing(standing.approved, standing.by, standing.reason))
    return 0 if standing.approved else 1


def _standing(approved: bool, by: tuple[str, ...], reason: str) -> str:
    return f"approved by {' and '.join(by)}" if approved else f"not approved: {reason}"
