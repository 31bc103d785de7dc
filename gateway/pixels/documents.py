"""The stage `documents`: what an encapsulated PDF shows, without its text (PS3.15 Table E.1-1, (0042,0011): D).

The header stage has put a blank document in the place of every one (`header: {encapsulated: replace}`). With
`pdf: redact` the original's pages are rendered, text is found in its text layer and by looking, and filled; the pages
go back as pictures and nothing else. With `stub` the blank one stays. Documents of other kinds (clinical documents,
models) stay blank, or hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import pydicom
from pydantic import StringConstraints
from pydicom.dataset import Dataset
from pydicom.errors import InvalidDicomError

from gateway.durable import sync_file, sync_folder
from gateway.errors import Hold
from gateway.frames import Changes, change_header
from gateway.pixels.document_pages import Place, pages_of, pdf_of
from gateway.pixels.machine_codes import codes_in, is_pattern
from gateway.pixels.stage import Estimate, Instance, Scope, Work
from gateway.pixels.text_engine import engine
from gateway.pixels.text_ground import covered
from gateway.pixels.text_judge import Judge, Kind
from gateway.pixels.text_look import look
from gateway.pixels.text_words import Hints, Kept, folded, hints_of, shipped_kept
from gateway.policy import HeaderPolicy
from gateway.policy.document import Faulty
from gateway.study import Step

NAME = "documents"
DOCUMENTS = "1.2.840.10008.5.1.4.1.1.104."
PDF = DOCUMENTS + "1"
DOCUMENT, LENGTH = 0x00420011, 0x00420015
AllowedWord = Annotated[str, StringConstraints(min_length=1, max_length=32, pattern=r"^[^\W_]+$")]


@dataclass(frozen=True)
class Documents:
    """Fields are the policy parameters. `text` and `allow` say which text goes, as in `burned_in_text`."""

    VERSION: ClassVar[str] = "2"
    SCOPE: ClassVar[Scope] = Scope.INSTANCE

    pdf: Literal["redact", "stub", "hold"] = "stub"
    other: Literal["stub", "hold"] = "stub"
    text: Literal["all", "identifying"] = "all"
    allow: tuple[AllowedWord, ...] = ()
    on_low_confidence: Literal["hold", "redact"] = "redact"

    def __post_init__(self) -> None:
        if self.allow and self.text == "all":
            raise Faulty("allow says what may stay, and text: all leaves nothing", "write text: identifying")

    @staticmethod
    def misfit(header: HeaderPolicy, _after: tuple[str, ...]) -> tuple[str, str] | None:
        """The header holds documents before this stage sees them, unless it puts blank ones in their place."""
        if header.encapsulated == "replace":
            return None
        return "the header holds documents before this stage sees them", "write header: {encapsulated: replace}"

    def describe(self) -> str:
        text = "all text" if self.text == "all" else "text unless every word of it is on the kept list"
        pdf = {
            "redact": f"PDFs are made again of pictures of their pages, {text} filled",
            "stub": "PDFs are replaced by a blank page",
            "hold": "PDFs hold",
        }[self.pdf]
        return f"Documents: {pdf}; others {'are replaced by blank ones' if self.other == 'stub' else 'hold'}."

    def estimate(self, group: Sequence[Instance], work: Work) -> Estimate:  # noqa: ARG002 - the policy adds nothing
        """Boxes by page. Raises Hold("encapsulated_document") for a PDF that cannot be shown."""
        (instance,) = group
        header = _header(instance)
        kind = str(header.get("SOPClassUID", ""))
        if kind != PDF or self.pdf != "redact":
            return Estimate({"class": kind if kind.startswith(DOCUMENTS) else ""})
        keep = Kept(shipped_kept() | {folded(word) for word in self.allow}) if self.text == "identifying" else None
        hints = hints_of([header])
        judge = Judge(hints, keep)
        pages = []
        for page in pages_of(_document(header)):
            found = [
                [*place, str(Kind.TEXT)] for place, text in page.texts if text.strip() and not _stays(text, keep, hints)
            ]
            codes = codes_in(page.shown, faint=True)
            seen = [hit for hit in look(page.shown, engine(), judge) if not is_pattern(hit, codes)]
            found += [[*hit.place, str(hit.kind)] for hit in seen if hit.kind is not Kind.KEPT]
            found += [[*place, str(Kind.TEXT)] for place in codes]
            pages.append(found)
        return Estimate({"class": kind, "pages": pages})

    def apply(self, group: Sequence[Instance], work: Work, estimate: Estimate) -> list[Step]:  # noqa: ARG002
        """Write the cleaned PDF into the candidate. Raises Hold(encapsulated_document, text_uncertain)."""
        (instance,) = group
        kind = estimate.facts["class"]
        if not kind:
            return [Step(NAME, self.VERSION)]
        if (self.pdf if kind == PDF else self.other) == "hold":
            raise Hold("encapsulated_document", at=instance.name)
        if "pages" not in estimate.facts:
            return [Step(NAME, self.VERSION, {"blank": 1})]
        return [self._redact(instance, estimate.facts["pages"])]

    def _redact(self, instance: Instance, pages: Sequence[Sequence[Any]]) -> Step:
        counts: Counter[str] = Counter(pages=len(pages))
        counts.update(kind for page in pages for *_, kind in page)
        if counts[Kind.UNCERTAIN] and self.on_low_confidence == "hold":
            raise Hold("text_uncertain", at=instance.name)
        shown = pages_of(_document(_header(instance)))
        data = pdf_of(
            (covered(page.shown, [_place(box) for box in boxes]), page.size_points)
            for page, boxes in zip(shown, pages, strict=True)
        )
        changes = Changes({DOCUMENT: ("OB", data + b"\n" * (len(data) % 2)), LENGTH: ("UL", len(data) + len(data) % 2)})
        change_header(instance.candidate, instance.candidate, changes)
        sync_file(instance.candidate)
        sync_folder(instance.candidate.parent)
        return Step(NAME, self.VERSION, {key: count for key, count in counts.items() if count})


def _stays(text: str, keep: Kept | None, hints: Hints) -> bool:
    return keep is not None and keep.covers(text, hints)


def _place(box: Sequence[Any]) -> Place:
    top, left, bottom, right = box[:4]
    return top, left, bottom, right


def _header(instance: Instance) -> Dataset:
    """The object as received: its words are hints. Raises Hold."""
    try:
        return pydicom.dcmread(instance.original, defer_size=1 << 16, force=True)
    except (OSError, InvalidDicomError, ValueError, EOFError):
        raise Hold("unreadable_object", at=instance.name) from None


def _document(header: Dataset) -> bytes:
    """The PDF. (0042,0015) is its length without padding, where it is stated (PS3.3 C.24.2). Raises Hold."""
    try:
        data = header[DOCUMENT].value
        stated = header.get("EncapsulatedDocumentLength")
    except (KeyError, OSError, ValueError):
        raise Hold("encapsulated_document", at="(0042,0011)") from None
    if not isinstance(data, bytes):
        raise Hold("encapsulated_document", at="(0042,0011)")
    return data[: int(stated)] if stated and 0 < int(stated) <= len(data) else data
