"""Defaults for what Table E.1-1 does not list: the table is a minimum (note to PS3.15 E.1.1).

By VR: UIDs are mapped, names emptied, dates and times shifted or removed, addresses and free text removed; what a
Type forbids to remove is emptied or replaced. Codes, numbers and bulk data are technical and stay bit-exact, sequences
are entered. Text that is technical too is listed by keyword in `policies/standard/beyond_e1_1_text_kept.csv`.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from typing import NamedTuple

from gateway.header.actions import CLEANED, FULL_DATES, MODIFIED_DATES, TEMPORAL, Act, Decision, resolve
from gateway.header.dictionary import Entry, tags_by_keyword
from gateway.policy.standard import FOLDER, load_watchlist, read_dated

TEXT = frozenset({"LO", "LT", "SH", "ST", "UC", "UT"})
ADDRESSES = frozenset({"AE", "UR"})

# UI attributes whose values are classes, syntaxes and vocabularies, not instances (watchlist "structural-UID").
STRUCTURAL_UIDS = frozenset(
    {
        *("SOPClassUID", "RelatedGeneralSOPClassUID", "OriginalSpecializedSOPClassUID", "ReferencedSOPClassUID"),
        *("CodingSchemeUID", "ContextUID", "StoredInstanceTransferSyntaxUID", "FlowTransferSyntaxUID"),
        *("MACCalculationTransferSyntaxUID", "EncryptedContentTransferSyntaxUID", "AvailableTransferSyntaxUID"),
        *("PertinentSOPClassesInStudy", "PertinentSOPClassesInSeries", "SOPClassesInStudy", "SOPClassesSupported"),
    }
)

# Removed whatever their VR, each for its reason.
REMOVED = {
    "LengthToEnd": "a length that is wrong afterwards",
    "EncryptedAttributesSequence": "identity, for whoever has the key",
    "EncryptedContent": "identity, for whoever has the key",
    "MACParametersSequence": "dangles once the digital signatures are gone",
    "Signature": "names its signer",
    "PrivateDataElementCharacteristicsSequence": "describes private elements, which are removed",
    "PixelDataProviderURL": "pixels that are somewhere else cannot be cleaned",
    "RecordKey": "identifies an inventory's record",
    "PriorRecordKey": "identifies an inventory's record",
    "PrivateRecordUID": "belongs to a DICOMDIR",
}


class _Kept(NamedTuple):
    option: str  # "" = always
    why: str


@cache
def kept_text() -> Mapping[int, _Kept]:
    """Text attributes that stay, by tag."""
    _, rows = read_dated(FOLDER / "beyond_e1_1_text_kept.csv")
    tags = tags_by_keyword()
    return {tags[row["keyword"]]: _Kept(row["with"], row["why"]) for row in rows}


# Text of the watchlist that is no description: numbers, codes and names of somebody or something at the site.
_NO_DESCRIPTIONS = (
    *("ID", "Number", "Code", "Issuer", "Creator", "Organization", "Calendar", "Identifier", "Reference", "Source"),
    *("Identification", "Address", "UserGroupName", "MachineName", "PrivateDataElementName", "DataElementKeyword"),
    *("DeidentificationMethod", "PrivateDataElementEncoding", "PrivateDataElementDescription"),
)


@cache
def described() -> frozenset[int]:
    """Text attributes that the table does not list and that describe something: cleaned with clean-descriptors."""
    return frozenset(
        int(tag, 16)
        for tag, watched in load_watchlist().items()
        if watched.kind == "text" and watched.vr in CLEANED and not watched.keyword.endswith(_NO_DESCRIPTIONS)
    )


def default_of(tag: int, entry: Entry, *, options: AbstractSet[str], kind: str = "") -> Decision:
    """The decision for a standard attribute without a row. `kind` is its Type here, as in `actions.resolve`."""
    removed = REMOVED.get(entry.keyword)
    if removed is not None:
        return Decision(Act.REMOVE, Act.REMOVE, removed)
    vr = entry.vr
    gone = resolve("X", vr, kind)
    if vr == "UI":
        if entry.keyword in STRUCTURAL_UIDS or "retain-uids" in options:
            return Decision(Act.KEEP, Act.UID, "structural UID" if "retain-uids" not in options else "retain-uids")
        return Decision(Act.UID, Act.UID, "every UID is mapped")
    if vr == "PN":
        emptied = resolve("Z", vr, kind)
        return Decision(emptied, emptied, "every name is emptied")
    if vr in TEMPORAL:
        if MODIFIED_DATES in options:
            return Decision(Act.SHIFT, gone, "every date is shifted")
        if FULL_DATES in options:
            return Decision(Act.KEEP, gone, FULL_DATES)
        return Decision(gone, gone, "every date goes")
    if vr in TEXT or vr in ADDRESSES:
        kept = kept_text().get(tag)
        if kept is not None and (not kept.option or kept.option in options):
            return Decision(Act.KEEP, gone, kept.why)
        if "clean-descriptors" in options and tag in described():
            return Decision(Act.CLEAN, gone, "clean-descriptors")
        return Decision(gone, gone, "free text" if vr in TEXT else "an address")
    if vr == "SQ":
        return Decision(Act.RECURSE, Act.REMOVE, "a sequence is entered")
    return Decision(Act.KEEP, Act.REMOVE, "technical")
