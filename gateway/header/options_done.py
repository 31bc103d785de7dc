"""The rules that a policy's options bring for whole items, and which of these options an object may claim afterwards.

An option is claimed (CID 7050) only when it was carried out on this object: a report without the option's content, or
an object without private elements that stayed, was de-identified by the rest of the profile alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from gateway.header import graphics, structured
from gateway.header.admission import is_report
from gateway.header.elements import Buffer
from gateway.header.items import CONTENT_SEQUENCE, ItemRule
from gateway.header.key_objects import KEY_OBJECT_SELECTION, references_only
from gateway.policy.model import SAFE_PRIVATE
from gateway.policy.standard import DEFAULT_EDITION

BY_OBJECT = frozenset({SAFE_PRIVATE, structured.OPTION, graphics.OPTION})


def item_rules(
    options: AbstractSet[str],
    sop_class: str,
    data: Buffer,
    clean_text: structured.CleanText | None,
    edition: str = DEFAULT_EDITION,
) -> Mapping[int, ItemRule]:
    """Rules by the tag of their sequence. `data` is the encoded data set."""
    rules: dict[int, ItemRule] = {}
    if structured.OPTION in options:
        by_position = is_report(sop_class) and structured.refers_by_position(data)
        content = structured.ContentItems(options, clean_text, edition, all_stay=by_position)
        steps = structured.ContentItems(options, clean_text, edition, all_stay=True, identifiers=True)
        rules = {**dict.fromkeys(structured.CONTENT, content), structured.MEASURED_VALUE: structured.cap_age}
        rules[structured.PREPARATION_STEP_ITEMS] = steps  # Type 1: its template wants the specimen's identifier
    elif sop_class == KEY_OBJECT_SELECTION:
        rules[CONTENT_SEQUENCE] = references_only
    if graphics.OPTION in options:
        rules[graphics.GRAPHIC_ANNOTATION] = graphics.Annotations(options)
    return rules


def carried_out(options: AbstractSet[str], cleaned: AbstractSet[int], *, private: int, overlays: int) -> frozenset[str]:
    """The options that this object may claim.

    `cleaned` are the sequences of which a rule kept something, `private` counts private elements that stayed,
    `overlays` elements of overlays and curves that went.
    """
    done = set(options - BY_OBJECT)
    if private:
        done.add(SAFE_PRIVATE)
    if cleaned & (structured.CONTENT | {structured.WAVEFORM_ANNOTATION}):
        done.add(structured.OPTION)
    if graphics.GRAPHIC_ANNOTATION in cleaned and not overlays:
        done.add(graphics.OPTION)
    return frozenset(done & options)
