"""Why a private element stays or goes: who vouches for it (PS3.15 E.3.10)."""

from __future__ import annotations

from gateway.app.preview.rows import Outcome, Row
from gateway.policy import HeaderPolicy
from gateway.policy.model import SAFE_PRIVATE
from gateway.policy.private_lists import REMOVE, PrivateKey, creator_key, load_safe_private, load_tcia
from gateway.policy.private_section import CSA_CREATOR, CSA_GROUP


def private_reason(row: Row, header: HeaderPolicy, *, goes: bool) -> tuple[str, str]:
    """(code, words) for a private element that stays or `goes`."""
    if SAFE_PRIVATE not in header.options:
        return "X", "Table E.1-1: everything private goes"
    if 0x10 <= row.tag & 0xFFFF <= 0xFF:
        return ("X", "no element of its block stays") if goes else ("C", f"{SAFE_PRIVATE}: elements of its block stay")
    if not row.creator:
        return "X", f"{SAFE_PRIVATE}: no creator is named for it"
    key = (creator_key(row.creator), row.tag >> 16, row.tag & 0xFF)
    if header.private.csa_headers == "clean" and key[0] == creator_key(CSA_CREATOR) and key[1] == int(CSA_GROUP, 16):
        return ("X" if goes else "C"), f"{SAFE_PRIVATE}: Siemens CSA header, emptied but for technical fields"
    voucher = _voucher(key, header)
    if not voucher:
        return "X", f"{SAFE_PRIVATE}: no list vouches for it"
    if goes:
        return "X", f"{SAFE_PRIVATE}: {voucher}, but this value or VR cannot be known to be safe"
    return "C", f"{SAFE_PRIVATE}: {voucher}" + (
        "; its value follows the policy" if row.outcome is Outcome.REPLACED else ""
    )


def _voucher(key: PrivateKey, header: HeaderPolicy) -> str:
    own = next((entry for entry in header.private.keep if entry.key == key), None)
    if own is not None:
        return f"kept by the policy: {own.reason}"
    if header.private.dispositions == "tcia" and key in load_tcia():
        return "" if set(load_tcia()[key].values()) == {REMOVE} else "TCIA's dispositions keep it"
    safe = load_safe_private(header.edition).get(key)
    return f"Table E.3.10-1 ({safe.meaning or safe.creator})" if safe is not None else ""
