"""People whom a provider vouched for: each name belongs to one subject, so that no two people write in one name.

Names at a provider may change, and may be given to somebody else; subjects are for ever (Core 2, `sub`). The ledger and
the two-person rule go by names, so a name stays with whoever had it first until an admin takes it away.
"""

from __future__ import annotations

from pathlib import Path

from gateway.review.accounts import VOUCHED, Account, Accounts
from gateway.review.private_file import changing, read_private, write_private
from gateway.review.provider import Identity, NotLetIn
from gateway.review.roles import Role


class KnownPeople:
    """Those of a home. Safe to share between threads and processes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def all(self) -> dict[str, Account]:
        """By name, with the role of the last sign-in. Raises EnvironmentFault for a file that is not ours alone."""
        return read_private(
            self.path,
            lambda name, body: Account(name, Role(body["role"]), VOUCHED + str(body["subject"])),
            "the people whom the sign-in provider vouched for",
            "remove it: everybody signs in again, and names are given anew",
        )

    def meet(self, identity: Identity, accounts: Accounts) -> Account:
        """The account of whoever signed in, and its role from now on. Raises NotLetIn for a name of somebody else."""
        account = Account(identity.name, identity.role, VOUCHED + identity.subject)
        with changing(self.path):
            known = self.all()
            holder, before = known.get(identity.name), [one for one in known.values() if one.digest == account.digest]
            if identity.name in accounts.all() or (holder is not None and holder.digest != account.digest):
                raise NotLetIn("Your name there belongs to somebody else here; an admin can take it away from them.")
            if before and before[0].name != identity.name:
                raise NotLetIn("You had another name here; an admin can remove that one, so that you get the new one.")
            self._write({**known, identity.name: account})
        return account

    def remove(self, name: str) -> None:
        """What is not there is gone already. Whoever is signed in under it is out."""
        with changing(self.path):
            self._write({known: one for known, one in self.all().items() if known != name})

    def _write(self, people: dict[str, Account]) -> None:
        write_private(
            self.path,
            {
                name: {"role": str(one.role), "subject": one.digest.removeprefix(VOUCHED)}
                for name, one in people.items()
            },
        )
