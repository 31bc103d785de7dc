"""The review page: held studies, what a person may see of them, and what that person decides. Server-rendered, offline.

It knows the gateway through `desk.Desk` alone, which `app` implements. Nothing identifying is in an address, a title or
a cache; originals appear only in answers to a reviewer, and the ledger has each view before the answer leaves.
"""

from gateway.review.accounts import Account, Accounts
from gateway.review.desk import Desk
from gateway.review.pages import Doors, ReviewPages
from gateway.review.roles import Role

__all__ = ["Account", "Accounts", "Desk", "Doors", "ReviewPages", "Role"]
