"""Keyed pseudonyms: HMAC-SHA256, one derived key per project and purpose (cases.md 30: never a bare hash).

`keys` holds the master key and what hangs on it, `ring` the keys of the pseudonyms through their rotations, `mapping`
what replaces an identifier. All of it is pure but for the reading of key files.
"""

from gateway.pseudonyms.derivation import MIN_KEY_BYTES, canonical, derive, key_id, key_weakness, person_key
from gateway.pseudonyms.keys import Keys, master_key, read_key
from gateway.pseudonyms.mapping import STRUCTURAL_ROOT, Own, Pseudonyms
from gateway.pseudonyms.ring import KeyRing, RingKey

__all__ = [
    "MIN_KEY_BYTES",
    "STRUCTURAL_ROOT",
    "KeyRing",
    "Keys",
    "Own",
    "Pseudonyms",
    "RingKey",
    "canonical",
    "derive",
    "key_id",
    "key_weakness",
    "master_key",
    "person_key",
    "read_key",
]
