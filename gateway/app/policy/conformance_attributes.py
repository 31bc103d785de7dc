"""Parts of the conformance statement that are lists out of the code: attributes, classes, syntaxes, dummies."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from pydicom._uid_dict import UID_dictionary

from gateway.app.policy import conformance_words as words
from gateway.errors import REASONS, Hold, Refuse
from gateway.header import describe
from gateway.header.admission import admit_class, is_storage_class
from gateway.header.beyond_table import REMOVED
from gateway.header.describe import GROUPS, TagAction
from gateway.header.dictionary import dictionary
from gateway.header.dummies import TOKEN_LENGTH, dummy_value
from gateway.header.source import NOT_HERE
from gateway.header.stamp import METHOD, METHOD_CODES, temporal_information
from gateway.policy import HeaderPolicy, load_table
from gateway.policy.conformance import Block, Grid, Listing, Section
from gateway.policy.model import SAFE_PRIVATE
from gateway.policy.private_lists import load_safe_private
from gateway.pseudonyms import Pseudonyms
from gateway.study import IMPLEMENTATION_VERSION_NAME

VRS = (
    *("AE", "AS", "AT", "CS", "DA", "DS", "DT", "FD", "FL", "IS", "LO", "LT", "OB", "OW", "PN", "SH", "SL", "SS"),
    *("ST", "TM", "UC", "UL", "UR", "US", "UT"),
)
_EXAMPLE = Pseudonyms(bytes(32))
_TECHNICAL = frozenset({"technical", "a sequence is entered"})


def _tag(tag: str) -> str:
    return f"({tag[:4]},{tag[4:]})" if len(tag) == 8 else tag


def attribute_sections(header: HeaderPolicy) -> list[Section]:
    """The annexes: rows of Table E.1-1, and what the table does not list."""
    table = load_table(header.edition)
    lines = list(describe(header))
    listed = [line for line in lines if line.tag in table]
    beyond = [line for line in lines if line.tag not in table and line not in GROUPS]
    plain = [line for line in beyond if line.because in _TECHNICAL]
    told = [line for line in beyond if line.because not in _TECHNICAL]
    missing = sorted(set(table) - {line.tag for line in listed})
    first: list[Block] = [_counted(listed), _grid(listed, codes={tag: row.basic for tag, row in table.items()})]
    if missing:
        first.append(words.NOT_IN_DICTIONARY.format(tags=", ".join(map(_tag, missing))))
    groups = Grid(("Elements", "What happens", "Why"), tuple((_tag(g.tag), g.action, g.because) for g in GROUPS))
    second: list[Block] = [
        words.MINIMUM.format(removed=", ".join(sorted(REMOVED))),
        words.TECHNICAL.format(count=len(plain)),
        groups,
        _counted(told),
        _grid(told),
    ]
    return [
        Section("A", f"Attributes of PS3.15 Table E.1-1, edition {header.edition}", tuple(first)),
        Section("B", "Attributes that the table does not list", tuple(second)),
    ]


def _counted(lines: Sequence[TagAction]) -> Listing:
    counts = Counter(re.sub(r", [^,]* where the IOD requires it$", "", line.action) for line in lines)
    return Listing(tuple(f"{action}: {count}" for action, count in counts.most_common()))


def _grid(lines: Sequence[TagAction], codes: dict[str, str] | None = None) -> Grid:
    if codes is None:
        rows = tuple((_tag(line.tag), line.keyword, line.action, line.because) for line in lines)
        return Grid(("Tag", "Attribute", "What happens", "Why"), rows)
    coded = tuple((_tag(line.tag), line.keyword, codes[line.tag], line.action, line.because) for line in lines)
    return Grid(("Tag", "Attribute", "Basic Profile", "What happens", "Why"), coded)


def accepted_classes(header: HeaderPolicy) -> list[Block]:
    """Storage SOP classes that are de-identified, those that are held or refused, and why."""
    accepted: list[tuple[str, str]] = []
    held: list[tuple[str, str, str]] = []
    for uid, (name, kind, *_) in sorted(UID_dictionary.items(), key=lambda item: item[1][0]):
        if kind != "SOP Class" or not is_storage_class(uid):
            continue
        try:
            admit_class(uid, header)
        except (Hold, Refuse) as error:
            held.append((name, uid, REASONS[error.reason].says))
        else:
            accepted.append((name, uid))
    return [
        words.CLASSES.format(count=len(accepted)),
        Grid(("SOP class", "UID"), tuple(accepted)),
        "Held, with the reason:",
        Grid(("SOP class", "UID", "Reason"), tuple(held)),
        Listing(
            (
                f"Private SOP classes: held; {REASONS['private_sop_class'].says}.",
                f"Classes that are not storage classes of the standard: held; {REASONS['unknown_sop_class'].says}.",
                f"DICOMDIR and objects with elements of group 0004: refused; {REASONS['dicomdir'].says}.",
                f"Whole slide pictures of a label: left out of their study; {REASONS['slide_label'].says}.",
                words.NO_IDENTITY,
            )
        ),
    ]


def transfer_syntaxes() -> list[Block]:
    """Those that are read and written, and those that are not."""
    known = sorted((uid, entry[0]) for uid, entry in UID_dictionary.items() if entry[1] == "Transfer Syntax")
    read = [(name, uid) for uid, name in known if not uid.startswith(NOT_HERE)]
    refused = [(name, uid) for uid, name in known if uid.startswith(NOT_HERE)]
    return [
        words.SYNTAXES,
        Grid(("Transfer syntax", "UID"), tuple(read)),
        words.SYNTAXES_HELD,
        Grid(("Transfer syntax", "UID"), tuple(refused)),
    ]


def dummies() -> list[Block]:
    """How replacement values are made, by VR."""
    keyed = f"keyed: {TOKEN_LENGTH} characters that equal originals of a project share"
    rows = []
    for vr in VRS:
        value = dummy_value(vr, "", b"original", _EXAMPLE)
        text = value.decode("latin-1")
        if "ANON-" in text or "x-deid" in text:
            rows.append((vr, text.partition(":")[0] + ":x-deid:…" if vr == "UR" else "ANON-…", keyed))
        else:
            rows.append((vr, text if text.isprintable() else f"{len(value)} zero bytes", "the same for all"))
    return [
        words.DUMMIES,
        Grid(("VR", "Replacement", "How"), tuple(rows)),
    ]


def kept_private(header: HeaderPolicy) -> list[Block]:
    """Which private attributes stay, with everything that is asked of their values."""
    if SAFE_PRIVATE not in header.options:
        return [words.PRIVATE_GOES]
    blocks: list[Block] = [words.PRIVATE_STAYS]
    if header.private.keep:
        rows = tuple(
            (e.creator, f"({e.group},xx{e.element})", e.vr or "as listed", e.reason) for e in header.private.keep
        )
        blocks += ["Named by the site:", Grid(("Private Creator", "Element", "VR", "Reason"), rows)]
    if header.private.dispositions == "tcia":
        blocks.append(words.TCIA)
    safe = sorted(load_safe_private(header.edition).items())
    listed = tuple(
        (row.creator, f"({group:04X},xx{element:02X})", "/".join(row.vrs), row.meaning)
        for (_, group, element), row in safe
    )
    csa = "emptied but for technical fields" if header.private.csa_headers == "clean" else "removed"
    blocks += [
        f"Siemens CSA headers are {csa}.",
        f"PS3.15 Table E.3.10-1, {len(listed)} attributes:",
        Grid(("Private Creator", "Element", "VR", "Meaning"), listed),
    ]
    return blocks


def inserted(header: HeaderPolicy) -> list[Block]:
    """What the output says of itself."""
    rows = (
        ("(0012,0062)", "PatientIdentityRemoved", "YES"),
        (
            _tag(f"{METHOD:08X}"),
            dictionary()[METHOD].keyword,
            f"{IMPLEMENTATION_VERSION_NAME} PS3.15-{header.edition} …",
        ),
        (
            _tag(f"{METHOD_CODES:08X}"),
            dictionary()[METHOD_CODES].keyword,
            "CID 7050 codes of the profile and of options that were carried out on this object; earlier ones stay",
        ),
        ("(0028,0303)", "LongitudinalTemporalInformationModified", temporal_information(header)),
    )
    return [
        Grid(("Tag", "Attribute", "Value"), rows),
        words.META,
    ]
