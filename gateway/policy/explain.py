"""A policy in plain language: everything but the tag by tag part, which `header` describes."""

from __future__ import annotations

from typing import Any

from gateway.policy.model import Policy, plain
from gateway.policy.standard import FULL_DATES, OPTION_CODES, load_table, tag_of_keyword


def explain_policy(policy: Policy) -> list[str]:
    """One sentence a line, in the order of the file."""
    return [
        f"Policy {policy.name}, digest {policy.digest}.",
        *_header(policy),
        *_pixels(policy),
        *_gate(policy),
        *_after(policy),
    ]


def _header(policy: Policy) -> list[str]:
    header = policy.header
    rows = len(load_table(header.edition))
    lines = [
        f"Header: the Basic Profile of PS3.15 Table E.1-1, edition {header.edition} ({rows} rows), at every depth."
    ]
    for name in sorted(header.options):
        code, meaning = OPTION_CODES[name]
        lines.append(f"Option {name}: {meaning}, recorded in the objects as {code}.")
    prefix = f'"{header.patient_id.prefix}" and ' if header.patient_id.prefix else ""
    lines.append(
        f"Patient ID: replaced by {prefix}a pseudonym made with the project's key; "
        "the same person gets another one in another project."
    )
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
    for keyword, reason in sorted(header.keep.items()):
        tag = tag_of_keyword(keyword) or 0
        lines.append(f"Kept: {keyword} ({tag >> 16:04X},{tag & 0xFFFF:04X}), because: {reason}")
    return lines


def _parameters(value: Any) -> str:
    items = plain(value)
    return ", ".join(f"{name} {item}" for name, item in items.items()) or "no parameters"


def _pixels(policy: Policy) -> list[str]:
    if not policy.pixels:
        return ["Pixels: not changed; nothing is removed from the pictures themselves."]
    return [f"Pixels: {stage} ({_parameters(parameters)})." for stage, parameters in policy.pixels]


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
        lines.append(f"Escalation: {policy.escalate.stage} is tried at levels {levels}, at most {attempts} times.")
    if policy.release is None:
        lines.append("Release: each study leaves by itself once it is cleared.")
    else:
        close = "every night" if policy.release.close == "nightly" else "when somebody closes it"
        lines.append(
            f"Release: cleared studies wait for at least {policy.release.min_subjects} people; it closes {close}; "
            "when it fails, all of it is held."
        )
    retain = policy.retain
    lines.append(
        f"Retention: originals {retain.originals_days} days, held studies {retain.held_days} days, "
        f"references {retain.references_days} days."
    )
    to = f"only {policy.forward.to}" if policy.forward.to else "where the route says"
    lines.append(f"Forward: to {to}; a study counts as sent when the archive answered for every instance.")
    return lines
