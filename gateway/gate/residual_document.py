"""Check `residual_document`: does an encapsulated document about to leave say anything of the person?

A PDF may hold pages of images and nothing else (`document_pdf`); its pages are rendered and read as `residual_text`
reads pictures: text outside the technical marks and `allow` is a finding. Documents of other kinds (clinical documents,
models) may only be the blank ones that stand in for a removed one. What a document says of itself is no evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar
from xml.parsers import expat

from gateway.gate import document_pdf
from gateway.gate.attributes import Kept
from gateway.gate.bytescan import scan_file
from gateway.gate.pixel_layout import Unseen
from gateway.gate.reading import PARSER_FAILURES, Pair, judging, read_original
from gateway.gate.sample_text import SampleText
from gateway.gate.terms import Terms
from gateway.gate.text_look import Look, Shown
from gateway.gate.text_words import HeaderWords, words_of
from gateway.gate.walk import Leaf
from gateway.policy import HeaderPolicy, Policy
from gateway.study import IMPLEMENTATION_CLASS_UID, Finding, Outcome, Verdict

NAME = "residual_document"
DOCUMENT = 0x00420011
MAX_FINDINGS = 1000
MAX_BLANK_BYTES = 1 << 14
_XML_WORDS = frozenset({"NA", "Removed", "POCD_HD000040", "2.16.840.1.113883.1.3", IMPLEMENTATION_CLASS_UID})
_XML_NAMES = re.compile(r"urn:hl7-org:v3|http://www\.w3\.org/2001/XMLSchema-instance|20000101(?:120000)?")
_XML_ELEMENTS = frozenset(
    {
        *("ClinicalDocument", "typeId", "id", "code", "title", "effectiveTime", "confidentialityCode", "recordTarget"),
        *("patientRole", "author", "time", "assignedAuthor", "custodian", "assignedCustodian", "component"),
        *("representedCustodianOrganization", "nonXMLBody", "text"),
    }
)
_COMMENT = re.compile(rb"(?:#[ \t]*removed[ \t]*)?")
_STL_HEADER, _STL_BYTES = 80, 84


@dataclass(frozen=True)
class ResidualDocument:
    """No document may say anything; `allow` holds words that may stay on rendered pages beside the technical marks."""

    allow: tuple[str, ...] = ()

    judges: ClassVar[frozenset[str]] = frozenset({"document_content"})

    def __post_init__(self) -> None:
        if any(not word.strip() or " " in word.strip() for word in self.allow):
            raise ValueError("allow is a list of single words")

    def judge(self, pairs: Sequence[Pair], policy: Policy) -> Verdict:  # noqa: ARG002 - the protocol of a check
        """Judge all candidates. Raises Hold("gate_failed") when a file cannot be read."""
        terms = Terms(Kept(HeaderPolicy()))
        for pair in pairs:
            with judging(pair.name):
                terms.harvest(read_original(pair))
        look = Look(HeaderWords(terms), SampleText(terms.samples), words_of(self.allow))
        documents = 0
        found: list[Shown] = []
        for pair in pairs:
            with judging(pair.name):
                for leaf in scan_file(pair.candidate).leaves:
                    if leaf.tag == DOCUMENT and leaf.size:
                        documents += 1
                        found += [Shown(pair.name, where, rule) for where, rule in _faults(leaf, look, pair.name)]
        with judging("pages"):
            look.finish()
        findings = [Finding(NAME, one.instance, one.where, one.rule) for one in (*found, *look.unseen, *look.shown)]
        return Verdict(
            NAME,
            Outcome.HOLD if findings else Outcome.PASS,
            reason="" if not findings else "gate_failed" if look.unseen else "residual_document",
            findings=tuple(findings[:MAX_FINDINGS]),
            assessed={"instances": len(pairs), "documents": documents, "pages": look.frames},
        )


def _faults(leaf: Leaf, look: Look, instance: str) -> Iterator[tuple[str, str]]:
    """(place, rule) of what a document must not hold; its pages are handed to `look`."""
    data = leaf.raw
    if data[:1024].lstrip().startswith(b"%PDF"):
        yield from _pdf(leaf, data, look, instance)
    elif len(data) > MAX_BLANK_BYTES or not (_says_nothing(data) or _is_empty_solid(data) or _is_empty_xml(data)):
        yield leaf.path, "a document that is none of the blank ones"


def _pdf(leaf: Leaf, data: bytes, look: Look, instance: str) -> Iterator[tuple[str, str]]:
    import pikepdf
    import pypdfium2

    try:
        yield from ((leaf.path, rule) for rule in sorted(set(document_pdf.faults(data))))
        for page in document_pdf.text_layer(data):
            yield f"{leaf.path} page {page}", "a text layer"
        for picture in chain(document_pdf.rendered(data, leaf.path), document_pdf.pictures_in(data, leaf.path)):
            look.take(instance, instance, picture)
    except Unseen as unseen:
        look.take(instance, "", unseen)
    except (pikepdf.PdfError, pypdfium2.PdfiumError, *PARSER_FAILURES):
        look.take(instance, "", Unseen(leaf.path, "a PDF that cannot be looked at"))


def _says_nothing(data: bytes) -> bool:
    """Comments that say `removed`, and empty lines (OBJ, MTL)."""
    return all(_COMMENT.fullmatch(line) for line in data.strip(b" \0").splitlines())


def _is_empty_solid(data: bytes) -> bool:
    """A binary STL without triangles whose header says nothing."""
    return len(data) == _STL_BYTES and data[:_STL_HEADER].strip(b" \0") in (b"", b"Removed") and not any(data[80:])


def _is_empty_xml(data: bytes) -> bool:
    """An XML document without a person: its texts and attributes are those of a blank one. No entities, no DOCTYPE."""
    said: list[str] = []
    names: set[str] = set()

    def element(name: str, attributes: dict[str, str]) -> None:
        names.add(name)
        said.extend(attributes.values())

    parser = expat.ParserCreate()
    parser.StartElementHandler = element
    parser.CharacterDataHandler = lambda text: said.append(text.strip())
    parser.CommentHandler = said.append
    parser.ProcessingInstructionHandler = lambda target, text: said.append(f"{target} {text}")
    parser.StartDoctypeDeclHandler = lambda *_: said.append("DOCTYPE")
    try:
        parser.Parse(data.strip(b" \0"), True)
    except expat.ExpatError:
        return False
    if names - _XML_ELEMENTS:
        return False
    return all(not word or word in _XML_WORDS or _XML_NAMES.fullmatch(word) for word in said)
