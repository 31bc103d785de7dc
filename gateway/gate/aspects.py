"""What a candidate carries that somebody must judge, and who does: a check, or a person under `gate.not_assessed`.

Found in the content, never by what the header claims about itself (cases.md 6, 24: neither class nor BurnedInAnnotation
is evidence). There is no exemption by modality: whatever holds image samples may show text, a face and a person.
`gate.not_assessed` names the modalities for which a person answers, one by one; an object without a modality is
nobody's.

    header                 every object
    burned_in_text         image samples at any depth (icons too), overlays, binary blocks in private elements
    recognizable_features  image samples at any depth, surfaces, binary blocks in private elements
    image_identity         image samples at any depth, binary blocks in private elements
    document_content       encapsulated documents and models, but for the blank ones below
    waveform_content       waveform samples: speech, and curves that are personal too
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from gateway.gate.bytescan import Scan, scan_file
from gateway.gate.reading import Pair, judging
from gateway.gate.walk import Leaf
from gateway.policy import GatePolicy
from gateway.study import NotAssessed

HEADER, TEXT, FEATURES, IDENTITY = "header", "burned_in_text", "recognizable_features", "image_identity"
DOCUMENT, WAVEFORM = "document_content", "waveform_content"
ASPECTS = frozenset({HEADER, TEXT, FEATURES, IDENTITY, DOCUMENT, WAVEFORM})

MODALITY = 0x00080060
_IMAGE = frozenset({0x7FE00008, 0x7FE00009, 0x7FE00010})
_SURFACE = frozenset({0x00660016, 0x00660023, 0x00660029})  # point coordinates, triangle and edge point indices
_DOCUMENT, _WAVEFORM = 0x00420011, 0x54001010
_BULK = frozenset({"OB", "OD", "OF", "OL", "OV", "OW", "UN"})
# sha256 of documents that say nothing: the empty page, clinical document, solid, object and material that stand in for
# whatever was encapsulated (PS3.15 Table E.1-1: D). One byte more or other, and it is a document again.
_BLANK_DOCUMENTS = frozenset(
    {
        "fa40cc61c0be5751ff15b2a026f68c57e8f961981001adf564e044cc5962b3b5",  # application/pdf, 324 bytes
        "06ffc694665c4dd852d103e1715b6ae173f14670b977030c62037c66e89b35b9",  # text/xml, 786
        "7f488652d1bf4c91a1b4062ab9f4bb7498eda89f0a4680856e848e707a1984e2",  # model/stl, 84
        "74a316c45666e9f76fd9a6943f3b2b405f17b3f967af5572a0b7c19dd1b6b991",  # model/obj and model/mtl, 10
    }
)
_BLANK_BYTES = 1024
PRIVATE_BULK_BYTES = 1024  # a private block of this size may be a picture of 32 x 32


def aspects_of(scan: Scan) -> frozenset[str]:
    """The aspects that the content of one object carries."""
    found = {HEADER}
    for leaf in scan.leaves:
        if not leaf.size:
            continue
        group = leaf.tag >> 16
        if leaf.tag in _IMAGE or (group & 1 and leaf.vr in _BULK and leaf.size >= PRIVATE_BULK_BYTES):
            found |= {TEXT, FEATURES, IDENTITY}
        elif 0x6000 <= group <= 0x60FF and leaf.tag & 0xFFFF == 0x3000:
            found.add(TEXT)
        elif leaf.tag in _SURFACE:
            found.add(FEATURES)
        elif leaf.tag == _DOCUMENT:
            if not _is_blank(leaf):
                found.add(DOCUMENT)
        elif leaf.tag == _WAVEFORM:
            found.add(WAVEFORM)
    return frozenset(found)


def _is_blank(leaf: Leaf) -> bool:
    return leaf.size <= _BLANK_BYTES and hashlib.sha256(leaf.raw).hexdigest() in _BLANK_DOCUMENTS


def count_aspects(pairs: Sequence[Pair]) -> Counter[tuple[str, str]]:
    """How many candidates carry each (aspect, modality); modality "" when none is stated."""
    counts: Counter[tuple[str, str]] = Counter()
    for pair in pairs:
        with judging(pair.name):
            scan = scan_file(pair.candidate)
            counts.update((aspect, scan.text(MODALITY)) for aspect in aspects_of(scan))
    return counts


def account_for(
    counts: Counter[tuple[str, str]], judged: frozenset[str], gate: GatePolicy
) -> tuple[tuple[NotAssessed, ...], tuple[NotAssessed, ...]]:
    """What no check judges: (accepted by a person, open); an open one has reason and approver ""."""
    accepted, left_open = [], []
    for (aspect, modality), instances in sorted(counts.items()):
        entry = next((e for e in gate.not_assessed if aspect in e.aspects and modality in e.modality), None)
        if entry is None and aspect in judged:
            continue
        if entry is None:
            left_open.append(NotAssessed(aspect, modality, instances, "", ""))
        else:
            accepted.append(NotAssessed(aspect, modality, instances, entry.reason, entry.approver))
    return tuple(accepted), tuple(left_open)
