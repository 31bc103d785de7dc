"""The `header:` part of a policy file: options, patient id, dates and what is kept, and the rules between them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydicom.datadict import keyword_for_tag, repeater_has_keyword

from gateway.policy.descriptors_section import DescriptorsShape, resolve_descriptors
from gateway.policy.document import Document, Faulty, close_match
from gateway.policy.kept import why_not_kept
from gateway.policy.model import (
    CARRIED_OUT,
    CLEAN_DESCRIPTORS,
    SAFE_PRIVATE,
    DatePolicy,
    HeaderPolicy,
    Sentence,
    Strict,
)
from gateway.policy.parsing import parse
from gateway.policy.patient_id_section import PatientIdPolicy, check_files
from gateway.policy.private_section import PrivatePolicy
from gateway.policy.standard import FULL_DATES, MODIFIED_DATES, OPTIONS, all_keywords, tag_of_keyword

MIN_SHIFTS = 30  # fewer possible shifts are guessed from one date that somebody knows


def _option(name: str) -> str:
    if name in CARRIED_OUT:
        return name
    if name in OPTIONS:
        raise Faulty(f"this version cannot carry out the option {name} yet", "remove it")
    raise Faulty(f"unknown option {name}", close_match(name, OPTIONS) or f"options: {', '.join(sorted(CARRIED_OUT))}")


def _keyword(word: str) -> str:
    if tag_of_keyword(word) is not None:
        return word
    if repeater_has_keyword(word):
        raise Faulty(f"{word} belongs to a repeating group, which is not kept by name", "remove it from keep")
    digits = re.sub(r"[(),\s]", "", word)
    if re.fullmatch(r"[0-9A-Fa-f]{8}", digits):
        keyword = keyword_for_tag(int(digits, 16))
        raise Faulty(f"{word} is a tag, a keyword is needed", f"write {keyword}" if keyword else "")
    raise Faulty(f"unknown DICOM keyword {word}", close_match(word, all_keywords()))


def _present(dates: DatePolicy | None) -> DatePolicy:
    if dates is None:
        raise Faulty("dates is empty", "write dates: {} for the default, or remove it")
    return dates


class HeaderShape(Strict):
    """`header:` as it is written."""

    options: tuple[Annotated[str, AfterValidator(_option)], ...] = ()
    patient_id: PatientIdPolicy = PatientIdPolicy()
    dates: Annotated[DatePolicy | None, AfterValidator(_present)] = None
    keep: Mapping[Annotated[str, AfterValidator(_keyword)], Sentence] = Field(default_factory=dict)
    private: PrivatePolicy = PrivatePolicy()
    encapsulated: Literal["hold", "replace"] = "hold"
    descriptors: DescriptorsShape | None = None


def _check_kept(document: Document, shape: HeaderShape, edition: str) -> None:
    """Faults of attributes that the table of this edition does not let a policy keep by name."""
    for word in shape.keep:
        if says := why_not_kept(word, edition):
            document.fault(("header", "keep", word), says, "remove it from keep")


def resolve_header(document: Document, edition: str) -> HeaderPolicy | None:
    """`header:` of a document with the rules between its parts, or None with the faults recorded."""
    if "header" not in document.data:
        return HeaderPolicy(edition=edition)
    shape, damaged = parse(HeaderShape, document, ("header",), document.data["header"])
    if shape is None:
        return None
    _check_kept(document, shape, edition)
    options = frozenset(shape.options)
    if len(options) < len(shape.options):
        twice = sorted({name for name in shape.options if shape.options.count(name) > 1})
        document.fault(("header", "options"), f"an option is here twice: {', '.join(twice)}", "remove one of them")
    if {FULL_DATES, MODIFIED_DATES} <= options:
        says = f"{FULL_DATES} and {MODIFIED_DATES} exclude each other (CID 7050: never 113106 with 113107)"
        document.fault(("header", "options"), says, "keep one of them")
    if shape.dates is not None and MODIFIED_DATES not in options and "options" not in damaged:
        says = f"dates says how to shift, but the option {MODIFIED_DATES} is not on"
        document.fault(("header", "dates"), says, "add the option, or remove dates")
    if shape.dates is not None and "dates" not in damaged:
        low, high = shape.dates.shift_days
        shifts = high - low + 1 - (low <= 0 <= high)
        if shifts < MIN_SHIFTS:
            says = f"shift_days allows only {shifts} different shifts, at least {MIN_SHIFTS} are needed"
            document.fault(("header", "dates", "shift_days"), says, "widen the range; the default is [-365, 365]")
    if shape.private != PrivatePolicy() and SAFE_PRIVATE not in options and not {"options", "private"} & damaged:
        says = f"private says what stays, but the option {SAFE_PRIVATE} is not on"
        document.fault(("header", "private"), says, "add the option, or remove private")
    descriptors = resolve_descriptors(document, shape.descriptors) if shape.descriptors is not None else None
    if descriptors is not None and CLEAN_DESCRIPTORS not in options and "options" not in damaged:
        says = f"descriptors says which words may stay, but the option {CLEAN_DESCRIPTORS} is not on"
        document.fault(("header", "descriptors"), says, "add the option, or remove descriptors")
    if "patient_id" not in damaged:
        check_files(document, shape.patient_id)
    if document.faults:
        return None
    given = {"dates": shape.dates} if shape.dates is not None else {}
    return HeaderPolicy(
        edition=edition,
        options=options,
        patient_id=shape.patient_id,
        keep=shape.keep,
        private=shape.private,
        encapsulated=shape.encapsulated,
        descriptors=descriptors if descriptors is not None and descriptors.words else None,
        **given,
    )
