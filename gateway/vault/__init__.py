"""The opt-in vault: who is behind a pseudonym, encrypted under a key of its own (DESIGN.md invariant 3).

Off unless a policy has `vault:`. What it keeps is said in `identity`, where it lies in `store`, its key in `key`.
"""

from gateway.vault.identity import Identity, Sealed
from gateway.vault.key import key_fault, vault_key
from gateway.vault.store import Opened, Vault

__all__ = ["Identity", "Opened", "Sealed", "Vault", "key_fault", "vault_key"]
