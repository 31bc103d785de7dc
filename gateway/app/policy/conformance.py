"""The conformance statement that PS3.15 E.1.1 asks of a de-identifier, from the loaded policy and the code itself."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from gateway.app.policy import conformance_words as words
from gateway.app.policy.conformance_attributes import (
    accepted_classes,
    attribute_sections,
    dummies,
    inserted,
    kept_private,
    transfer_syntaxes,
)
from gateway.app.policy.page import escaped, page
from gateway.header.stamp import BASIC, temporal_information
from gateway.policy import HeaderPolicy, Policy
from gateway.policy.conformance import Block, Grid, Listing, Statement, numbered
from gateway.policy.explain import explain_sections
from gateway.policy.model import CLEAN_DESCRIPTORS, SAFE_PRIVATE
from gateway.policy.standard import FULL_DATES, MODIFIED_DATES, OPTION_CODES, standard_digest
from gateway.study import IMPLEMENTATION_CLASS_UID, IMPLEMENTATION_VERSION_NAME

PIXEL_OPTIONS = {  # code -> its meaning, and the stages that record it in objects on which they carried it out
    "113101": ("Clean Pixel Data Option", frozenset({"burned_in_text"})),
    "113102": ("Clean Recognizable Visual Features Option", frozenset({"deface"})),
}
YES, NO, BY_OBJECT = "yes", "no", "yes, in the objects on which it was carried out"
PER_OBJECT = frozenset({SAFE_PRIVATE, "clean-structured-content", "clean-graphics"})


def conformance_statement(policy: Policy) -> Statement:
    """The statement for one policy."""
    header = policy.header
    titled: list[tuple[str, Sequence[Block]]] = [
        ("Identification", _identification(policy)),
        ("Profile and options", _options(policy)),
        ("SOP classes", accepted_classes(header)),
        ("Transfer syntaxes", transfer_syntaxes()),
        ("Attributes", [words.BEFORE_AFTER]),
        ("Replacement values", dummies()),
        ("Identifiers and referential integrity", _integrity(policy)),
        ("Dates and times", _dates(header)),
        ("Patient characteristics", _characteristics(header)),
        ("Descriptions and other free text", _descriptors(header)),
        ("Structured content, graphics and documents", [_told(policy, "header", "Reports", "Graphics", "Documents")]),
        ("Private attributes", kept_private(header)),
        ("Pixel data", [Listing(tuple(explain_sections(policy)["pixels"])), words.PIXELS]),
        ("Attributes inserted", inserted(header)),
        ("Encrypted attributes and re-identification", _encrypted(policy)),
        ("Character sets", [words.CHARACTER_SETS]),
        ("Verification and restrictions", _restrictions(policy)),
    ]
    title = f"DICOM conformance statement: de-identification by policy {policy.name}"
    return Statement(title, (*numbered(titled), *attribute_sections(header)))


def _told(policy: Policy, part: str, *subjects: str) -> Listing:
    """What the explanation of the policy says about these subjects."""
    begins = tuple(f"{subject}:" for subject in subjects)
    return Listing(tuple(line for line in explain_sections(policy)[part] if line.startswith(begins)))


def _identification(policy: Policy) -> list[Block]:
    rows = (
        ("Product", f"deid-gateway {version('deid-gateway')}"),
        ("Implementation Class UID", IMPLEMENTATION_CLASS_UID),
        ("Implementation Version Name", IMPLEMENTATION_VERSION_NAME),
        ("Policy", policy.name),
        ("Policy digest (SHA-256)", policy.digest),
        ("Standard", f"DICOM PS3.15 {policy.header.edition}, Annex E"),
        ("Digest of the tables in use (SHA-256)", standard_digest(policy.header.edition)),
    )
    return [Grid(("What", "Value"), rows), words.THIS_POLICY]


def _options(policy: Policy) -> list[Block]:
    on = policy.header.options
    rows = [("Basic Application Level Confidentiality Profile", BASIC[0], YES)]
    staged = {name for name, _ in policy.pixels}
    rows += [(meaning, code, BY_OBJECT if staged & by else NO) for code, (meaning, by) in PIXEL_OPTIONS.items()]
    rows += [
        (meaning, code, NO if name not in on else BY_OBJECT if name in PER_OBJECT else YES)
        for name, (code, meaning) in OPTION_CODES.items()
    ]
    rows[1:] = sorted(rows[1:], key=lambda row: row[1])
    return [words.ROLE, Grid(("Profile or option", "Code (DCM)", "Claimed"), tuple(rows)), words.CLAIMS]


def _integrity(policy: Policy) -> list[Block]:
    uids = words.UIDS_STAY if "retain-uids" in policy.header.options else words.UIDS_REPLACED
    return [_told(policy, "header", "Patient ID"), uids, words.UIDS_OF_DICOM, words.SCOPE]


def _dates(header: HeaderPolicy) -> list[Block]:
    told = f"Longitudinal Temporal Information Modified (0028,0303) is {temporal_information(header)}."
    if MODIFIED_DATES in header.options and header.dates is not None:
        low, high = header.dates.shift_days
        return [words.DATES_SHIFTED.format(low=low, high=high), words.DATES_UNREADABLE, told]
    return [words.DATES_STAY if FULL_DATES in header.options else words.DATES_GO, told]


def _characteristics(header: HeaderPolicy) -> list[Block]:
    on = "retain-patient-characteristics" in header.options
    blocks: list[Block] = [words.CHARACTERISTICS_STAY if on else words.CHARACTERISTICS_GO, words.AGES]
    if header.keep:
        blocks.append("Kept by decision of the site, beyond the options:")
        blocks.append(Grid(("Attribute", "Reason"), tuple(sorted(header.keep.items()))))
    return blocks


def _descriptors(header: HeaderPolicy) -> list[Block]:
    if CLEAN_DESCRIPTORS not in header.options:
        return [words.TEXT_GOES]
    own = len(header.descriptors.words) if header.descriptors is not None else 0
    return [words.TEXT_CLEANED, words.TEXT_LIST.format(own=own), words.TEXT_MASK]


def _encrypted(policy: Policy) -> list[Block]:
    vault = _told(policy, "afterwards", "Vault")
    return [words.ENCRYPTED, vault if vault.items else words.NOTHING_BACK]


def _restrictions(policy: Policy) -> list[Block]:
    sections = explain_sections(policy)
    gate = Listing(tuple(line.strip() for line in sections["gate"]))
    return [words.VERIFIED, gate, Listing(tuple(sections["afterwards"]))]


def statement_page(statement: Statement) -> str:
    """The statement as a page."""
    parts = [f"<h1>{escaped(statement.title)}</h1>", '<nav aria-label="Contents"><ul>']
    parts += [
        f'<li><a href="#s{section.number}">{escaped(f"{section.number} {section.title}")}</a></li>'
        for section in statement.sections
    ]
    parts.append("</ul></nav><main>")
    for section in statement.sections:
        parts.append(f'<section id="s{section.number}"><h2>{escaped(f"{section.number} {section.title}")}</h2>')
        parts += [_markup(block) for block in section.blocks]
        parts.append("</section>")
    return page(statement.title, "\n".join([*parts, "</main>"]))


def _markup(block: Block) -> str:
    if isinstance(block, str):
        return f"<p>{escaped(block)}</p>"
    if isinstance(block, Listing):
        return f"<ul>{''.join(f'<li>{escaped(item)}</li>' for item in block.items)}</ul>"
    head = "".join(f'<th scope="col">{escaped(cell)}</th>' for cell in block.headings)
    body = "".join(f"<tr>{''.join(f'<td>{escaped(cell)}</td>' for cell in row)}</tr>" for row in block.rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
