"""One file in, one de-identified file out (PS3.15 Annex E, Basic Profile and options)."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from gateway.errors import Hold
from gateway.header.admission import DICOMDIR, admit, admit_class
from gateway.header.descriptors import cleaner_for
from gateway.header.elements import Buffer, Element, Reader
from gateway.header.encapsulated import replaced_document
from gateway.header.items import CONTENT_SEQUENCE
from gateway.header.key_objects import KEY_OBJECT_SELECTION
from gateway.header.options_done import carried_out, item_rules
from gateway.header.pieces import Pieces
from gateway.header.plan import plan_for
from gateway.header.private import PrivateElements
from gateway.header.private_words import OwnWords
from gateway.header.rewrite import Rewriter
from gateway.header.source import open_source, top_level
from gateway.header.stamp import METHOD_CODES, STAMPED, earlier_codes, file_meta, stamps
from gateway.header.uids import is_uid, new_uid
from gateway.header.values import Patient, Values
from gateway.policy import HeaderPolicy
from gateway.policy.model import CLEAN_DESCRIPTORS, SAFE_PRIVATE
from gateway.pseudonyms import Pseudonyms
from gateway.study import Step

STAGE_VERSION = "1"

TRAILING_BYTES = "trailing_bytes"


def scrub_file(source: Path, target: Path, *, policy: HeaderPolicy, pseudonyms: Pseudonyms) -> Step:
    """Write the de-identified copy of `source` to `target`, which is truncated; the caller syncs and renames it.

    A pure function of the bytes, the key and the policy; the transfer syntax stays. Raises Hold, Drop or Refuse for
    objects that cannot be cleaned (nothing is written then), OSError from the file system, nothing else for any bytes.
    """
    original = open_source(source)
    if original.meta_sop_class == DICOMDIR:
        admit_class(DICOMDIR, policy)
    reader, elements, trailing = top_level(original)
    facts = admit(elements, reader, policy)
    _refuse_overlay_in_pixels(elements, reader)
    plan = plan_for(policy, facts.sop_class)
    prefix = policy.patient_id.prefix
    days = pseudonyms.shift_days(facts.patient_id, *plan.shift) if plan.shift is not None else 0
    patient = Patient(pseudonyms.patient_id(facts.patient_id, prefix=prefix), days, prefix, facts.character_set)
    cleaner = cleaner_for(policy, plan, reader, elements, facts.character_set)
    clean_text = cleaner.item_text(facts.character_set) if cleaner and CLEAN_DESCRIPTORS in policy.options else None
    rules = item_rules(policy.options, facts.sop_class, original.data, clean_text)
    private = None
    if SAFE_PRIVATE in policy.options:
        gathered = partial(OwnWords, elements, reader, plan)
        private = PrivateElements(policy, days, gathered, cleaner, facts.character_set)
    values = Values(patient, pseudonyms)
    rewriter = Rewriter(reader, plan, values, rules=rules, private=private, cleaner=cleaner)
    document = replaced_document(facts.sop_class, elements, reader) if policy.encapsulated == "replace" else []
    parts = rewriter.top_level(elements, sorted([*STAMPED, *(tag for tag, _ in document)]))
    if facts.sop_class == KEY_OBJECT_SELECTION and CONTENT_SEQUENCE not in rewriter.cleaned:
        raise Hold("structured_content", at=f"{CONTENT_SEQUENCE:08X}")  # a selection of nothing
    done = carried_out(policy.options, rewriter.cleaned, private=rewriter.retained, overlays=rewriter.overlays)
    method_codes = next((element for element in elements if element.tag == METHOD_CODES), None)
    ours = sorted([*stamps(reader.syntax, policy, earlier_codes(method_codes, reader), done), *document])
    buffers = list(_joined(parts, [stamp for _, stamp in ours]))
    retained = "retain-uids" in policy.options and is_uid(facts.sop_instance)
    sop_instance = facts.sop_instance if retained else new_uid(facts.sop_instance, pseudonyms)
    with open(target, "wb") as file:
        file.write(file_meta(facts.sop_class, sop_instance, original.transfer_syntax))
        file.writelines(_deflated(buffers) if original.deflated else buffers)
    return Step("header", STAGE_VERSION, dict(sorted(rewriter.counts.items())), (TRAILING_BYTES,) if trailing else ())


def _joined(parts: Sequence[Pieces], stamps: Sequence[bytes]) -> Iterator[Buffer]:
    """Parts of the data set with our elements between them."""
    for part, stamp in zip(parts, stamps, strict=False):
        yield from part.finished()
        yield stamp
    yield from parts[-1].finished()


def _deflated(parts: Iterable[Buffer]) -> Iterable[bytes]:
    """Raw deflate at a fixed level, padded to even length (PS3.5 A.5)."""
    engine = zlib.compressobj(level=6, wbits=-zlib.MAX_WBITS)
    size = 0
    for part in parts:
        data = engine.compress(part)
        size += len(data)
        yield data
    data = engine.flush()
    yield data + bytes((size + len(data)) & 1)


def _refuse_overlay_in_pixels(elements: Iterable[Element], reader: Reader) -> None:
    """A retired form keeps an overlay in unused bits of Pixel Data, where removing its group does not reach it."""
    for element in elements:
        bit_position = element.tag & 0xFF00FFFF == 0x60000102
        if bit_position and any(reader.buffer[element.start : element.end]):
            raise Hold("overlay_in_pixels", at=f"{element.tag:08X}")
