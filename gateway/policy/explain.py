"""A policy in plain language: everything but the tag by tag part, which `header` describes."""

from __future__ import annotations

from typing import Any

from gateway.policy.model import CLEAN_DESCRIPTORS, SAFE_PRIVATE, HeaderPolicy, Policy, plain
from gateway.policy.patient_id_section import PatientIdPolicy
from gateway.policy.standard import FULL_DATES, OPTION_CODES, load_table, tag_of_keyword


def explain_policy(policy: Policy) -> list[str]:
    """One sentence a line, in the order of the file."""
    parts = explain_sections(policy).values()
    return [f"Policy {policy.name}, digest {policy.digest}.", *(line for lines in parts for line in lines)]


def explain_sections(policy: Policy) -> dict[str, list[str]]:
    """The sentences by the part of the file that they explain."""
    return {"header": _header(policy), "pixels": _pixels(policy), "gate": _gate(policy), "afterwards": _after(policy)}


def _header(policy: Policy) -> list[str]:
    header = policy.header
    rows = len(load_table(header.edition))
    lines = [
        f"Header: the Basic Profile of PS3.15 Table E.1-1, edition {header.edition} ({rows} rows), at every depth."
    ]
    for name in sorted(header.options):
        code, meaning = OPTION_CODES[name]
        lines.append(f"Option {name}: {meaning}, recorded in the objects as {code}.")
    lines += _patient_id(header.patient_id)
    if header.dates is not None:
        low, high = header.dates.shift_days
        lines.append(
            f"Dates: all dates of a patient move by the same number of days, between {low} and {high}, never 0; "
            "intervals stay, calendar dates do not."
        )
    elif FULL_DATES in header.options:
        lines.append("Dates: kept as they are; with them somebody may find the visit again.")
    else:
        lines.append("Dates: removed, or replaced by a dummy where the object type demands one.")
    lines += _contents(header)
    for keyword, reason in sorted(header.keep.items()):
        tag = tag_of_keyword(keyword) or 0
        lines.append(f"Kept: {keyword} ({tag >> 16:04X},{tag & 0xFFFF:04X}), because: {reason}")
    return lines


def _patient_id(rule: PatientIdPolicy) -> list[str]:
    if rule.pseudonym == "keyed":
        prefix = f'"{rule.prefix}" and ' if rule.prefix else ""
        says = f"replaced by {prefix}a pseudonym made with the project's key; "
        lines = [f"Patient ID: {says}the same person gets another one in another project."]
    else:
        place = f"the table {rule.table} of the database {rule.sql}" if rule.sql else f"the file {rule.table}"
        lines = [f"Patient ID: replaced by what {place} gives; a study of somebody who is not in it is held."]
    if rule.merge:
        lines.append(f"Patient ID: those that {rule.merge} merges count as one person, under the surviving ID.")
    return lines


def _contents(header: HeaderPolicy) -> list[str]:
    """What happens to private elements, reports, drawings and documents."""
    lines = []
    if SAFE_PRIVATE in header.options:
        private = header.private
        tcia = ", changed and extended by TCIA's dispositions" if private.dispositions == "tcia" else ""
        lines.append(
            f"Private: what PS3.15 Table E.3.10-1 calls safe stays{tcia}; its UIDs are mapped, its dates follow the "
            "options, bulk data and long text go; everything else private goes."
        )
        lines += [f"Private, kept: ({e.group},xx{e.element}) of {e.creator}, because: {e.reason}" for e in private.keep]
        csa = "emptied but for technical fields" if private.csa_headers == "clean" else "removed"
        lines.append(f"Private: Siemens CSA headers are {csa}.")
    else:
        lines.append("Private: everything private goes.")
    if CLEAN_DESCRIPTORS in header.options:
        own = len(header.descriptors.words) if header.descriptors is not None else 0
        site = f", {own} words of the site's own among them" if own else ""
        lines.append(
            "Descriptions: they stay without the object's own names, numbers and dates, without whatever else looks "
            f"like one, and without every word that the list does not know{site}. Ages over 89 become 90."
        )
    if "clean-structured-content" in header.options:
        lines.append("Reports: content items are cleaned one by one, by PS3.15 Table E.3.4-1 and by their value types.")
    else:
        lines.append("Reports: held; of key objects the selection stays, their words go.")
    if "clean-graphics" in header.options:
        lines.append("Graphics: drawn annotations stay without their text; overlays and curves go.")
    documents = "replaced by blank ones" if header.encapsulated == "replace" else "held"
    lines.append(f"Documents: encapsulated documents are {documents}.")
    return lines


def _parameters(value: Any) -> str:
    return _told(plain(value)) or "no parameters"


def _told(items: dict[str, Any]) -> str:
    """Parameters in one line; those of a group stand in parentheses, and what it does not set is left out."""
    parts = ((name, item) for name, item in items.items())
    return ", ".join(
        f"{name} ({_told(_set(item))})" if isinstance(item, dict) else f"{name} {item}" for name, item in parts
    )


def _set(items: dict[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in items.items() if item is not None}


def _pixels(policy: Policy) -> list[str]:
    if not policy.pixels:
        return ["Pixels: not changed; nothing is removed from the pictures themselves."]
    return [_stage(name, stage) for name, stage in policy.pixels]


def _stage(name: str, stage: Any) -> str:
    """What a stage says of itself, or its parameters."""
    if not hasattr(stage, "describe"):
        return f"Pixels: {name} ({_parameters(stage)})."
    return f"Pixels, {name}: {str(stage.describe()).removesuffix('.')}."


def _gate(policy: Policy) -> list[str]:
    gate = policy.gate
    lines = [f"Gate, every study: {name} ({_parameters(check)})." for name, check in sorted(gate.study.items())]
    lines += [f"Gate, every release: {name} ({_parameters(check)})." for name, check in sorted(gate.release.items())]
    for entry in gate.not_assessed:
        aspects, modality = (" and ".join(words).replace("_", " ") for words in (entry.aspects, entry.modality))
        lines.append(f"Not assessed, yet let through: {aspects} of {modality}. Because: {entry.reason}")
        lines.append(f"  Answers for it: {entry.approver}")
    lines.append("Whatever else a study carries and no check judges holds the study.")
    return lines


def _after(policy: Policy) -> list[str]:
    lines = []
    if policy.escalate is not None:
        levels = ", ".join(f"{level:g}" for level in policy.escalate.levels)
        attempts = policy.escalate.max_attempts
        lines.append(
            f"Escalation: {policy.escalate.stage} is tried at levels {levels}, at most {attempts} times; "
            "the first that passes is kept, and every try is stricter than the one before."
        )
    if policy.release is None:
        lines.append("Release: each study leaves by itself once it is cleared.")
    else:
        closes = {"nightly": "every night", "full": "once it has them", "manual": "when somebody closes it"}
        close = closes[policy.release.close]
        held = "all of it is held"
        fails = (
            f"studies of its weakest level are made at the next one and it is judged again, at most {policy.looks} "
            f"times; then {held}"
        )
        lines.append(
            f"Release: cleared studies wait for at least {policy.release.min_subjects} people; it closes {close}; "
            f"when it fails, {fails if policy.looks > 1 else held}."
        )
    retain = policy.retain
    lines.append(
        f"Retention: originals {retain.originals_days} days, held studies {retain.held_days} days, "
        f"references {retain.references_days} days."
    )
    if policy.vault is not None:
        roles = " and ".join(policy.vault.roles)
        lines.append(
            "Vault: Patient ID, issuer, study UID and accession numbers are kept beside the pseudonym, encrypted, "
            f"for {policy.vault.days} days; {roles} may open them, each time with a line in the ledger."
        )
    if policy.needs_two:
        lines.append(
            "Review: a held study leaves, or begins again otherwise, when two people agreed on the review page."
        )
    to = f"only {policy.forward.to}" if policy.forward.to else "where the route says"
    if policy.forward.shadow:
        lines.append("Shadow: everything is done and judged, and nothing leaves; a study ends as shadowed.")
    else:
        commits = policy.forward.verify == "storage-commitment"
        sure = "committed to keep every instance" if commits else "answered for every instance"
        lines.append(f"Forward: to {to}; a study counts as sent when the archive {sure}.")
    return lines
