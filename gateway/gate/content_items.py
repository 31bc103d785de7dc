"""Values of content items that a policy lets stay on purpose: code K of PS3.15 Table E.3.4-1 (E.3.4).

All of them stand in the same few attributes, which Table E.1-1 does not keep under these options: what is kept is told
by the item's concept and value type, read here by the gate's own walk.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from gateway.gate.bytescan import Scan
from gateway.gate.walk import Leaf, tag_path
from gateway.policy import HeaderPolicy
from gateway.policy.content_table import content_row

OPTION, RETAIN_UIDS = "clean-structured-content", "retain-uids"
VALUES = {0x0040A124: "UIDREF", 0x0040A160: "TEXT"}  # those of other value types stay by their VR
_VALUE_TYPE = "(0040,a040)"
_CODES = tuple(f"(0040,a043)[0].{tag}" for tag in ("(0008,0100)", "(0008,0119)", "(0008,0120)"))
_SCHEME = "(0040,a043)[0].(0008,0102)"


def kept_items(scan: Scan, policy: HeaderPolicy) -> frozenset[str]:
    """Paths of the values of a file that may stay as they came, text that is cleaned not among them."""
    if OPTION not in policy.options:
        return frozenset()
    values = [leaf for leaf in scan.leaves if leaf.tag in VALUES]
    by_path = {leaf.path: leaf for leaf in scan.leaves} if values else {}
    return frozenset(leaf.path for leaf in values if _stays(leaf, by_path, policy))


def _stays(leaf: Leaf, by_path: Mapping[str, Leaf], policy: HeaderPolicy) -> bool:
    item = leaf.path.removesuffix(tag_path(leaf.tag))

    def said(path: str) -> str:
        found = by_path.get(item + path)
        return found.raw.decode("latin-1").strip(" \0") if found is not None else ""

    if said(_VALUE_TYPE) != VALUES[leaf.tag]:
        return False
    code = next((one for one in map(said, _CODES) if one), "")
    codes = _codes(said(_SCHEME), code, VALUES[leaf.tag], policy.options, policy.edition)
    return "K" in codes and "C" not in codes


@lru_cache(maxsize=4096)
def _codes(scheme: str, code: str, kind: str, options: frozenset[str], edition: str) -> frozenset[str]:
    """What the policy's options say of items of this concept; UIDs of no concept of the table follow retain-uids."""
    row = content_row(scheme, code, kind, edition)
    if row is None:
        return frozenset({"K"} if kind == "UIDREF" and RETAIN_UIDS in options else ())
    return frozenset(row.columns[option] for option in options if option in row.columns)
