"""What a report says in words, for readers who are no statisticians: the worst findings, and what columns mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

Row = Mapping[str, Any]

GLOSSARY: tuple[tuple[str, str], ...] = (
    ("encoder", "A program that turns a scan into a list of numbers, by which an attacker compares scans."),
    ("distance", "How two such lists are compared: Canberra, cosine or Euclid. An attacker takes the best."),
    (
        "linkage, D_sys",
        "Whether two scans of one person can be told from scans of two people: 0 not at all, 1 always (ω: prior odds).",
    ),
    (
        "at most",
        "The upper bound: with other people of the same kind the figure would hardly be larger. Decide by it.",
    ),
    ("shuffled", "What the same calculation shows when the names are dealt out at random: what small numbers pretend."),
    (
        "excess, at most",
        "The upper bound of linkage without what shuffled names show as well. Limits in a policy apply to it.",
    ),
    ("p", "How often chance alone gives as large a figure. 0.01 and below is no chance."),
    ("rank-1", "How often the scan found nearest is of the same person."),
    ("one mate of G", "Among G people, one of whom is the right one with one other scan. Chance is 1 in G."),
    ("leave one out", "Among all other scans, several of them of the same person. Larger for people with many scans."),
    ("AUC, EER", "How well pairs are told apart over all thresholds: AUC 0.5 is chance, 1 perfect; EER 0.5 and 0."),
    ("balanced accuracy", "How often the attribute is guessed rightly, each of its values counting the same."),
    ("no evidence", "Too few people or scans to say anything: not a sign of safety."),
)


def glossary() -> str:
    """The meaning of the columns, folded away until it is asked for."""
    body = "".join(f"<dt>{escape(term)}</dt><dd>{escape(text)}</dd>" for term, text in GLOSSARY)
    return f"<details><summary>What the columns mean</summary><dl>{body}</dl></details>"


def in_short(sentences: Iterable[str]) -> str:
    """A list of sentences about the worst findings."""
    body = "".join(f"<li>{escape(one)}</li>" for one in sentences)
    return f'<section class="short"><h2>In short</h2><ul>{body}</ul></section>' if body else ""


def of_audit(report: Row) -> Iterator[str]:
    """The strongest attacker in each respect."""
    tables = report["tables"]
    found = [row for row in tables.get("linkage", ()) if "fixed_gallery" in row]
    if not found:
        yield "No attacker could be measured: nobody has scans of two visits, or too few people do."
        return
    worst = max(found, key=lambda row: row["fixed_gallery"]["upper"])
    fixed = worst["fixed_gallery"]
    yield (
        f"Shown one scan, the best attacker here ({_who(worst)}) picks out the person's scan of another visit among "
        f"{fixed['gallery']} people in {_share(fixed['rank1'])} of tries, at most {_share(fixed['upper'])}; guessing "
        f"would in {_share(fixed['chance'])}."
    )
    worst = max(found, key=lambda row: row["d_sys"]["upper"])
    d = worst["d_sys"]
    yield (
        f"Linkage is {d['value']:.2f} of 1 ({_who(worst)}), at most {d['upper']:.2f}; shuffled names read "
        f"{d['null_mean']:.2f}. Without that it is at most {d['excess_upper']:.2f}: limits apply to this."
        + (" It may be chance alone." if d["p"] > 0.01 else "")
    )
    unequal = [row for row in tables.get("worst_people", ()) if "always_found" in row]
    if unequal:
        worst = max(unequal, key=lambda row: row["always_found"])
        yield (
            f"{worst['always_found']} of {worst['people']} people are found every time, {worst['never_found']} never: "
            "an average hides them."
        )
    inferred = [row for row in tables.get("attributes", ()) if row.get("where") == "within" and "upper" in row]
    for name in dict.fromkeys(row["attribute"] for row in inferred):
        best = max((row for row in inferred if row["attribute"] == name), key=lambda row: row["balanced_accuracy"])
        yield (
            f"{name} is read from the scans of a person rightly in {_share(best['balanced_accuracy'])} "
            f"({best['encoder']}; {_share(best['lower'])} to {_share(best['upper'])}); guessing would be in "
            f"{_share(best['chance'])}."
        )


def of_comparison(report: Row) -> Iterator[str]:
    """The strongest attacker of each attack that is not void, before and after."""
    rows = report["tables"]["attacks"]
    for attack, holds in (
        ("same_scan", "the original of the very scan that was released"),
        ("other_visit", "a scan of another visit of the same person"),
    ):
        mine = [row for row in rows if row["attack"] == attack]
        found = [row for row in mine if "fixed_gallery" in row and not row["void"]]
        if not found:
            yield f"Whoever holds {holds}: no attacker could be measured. That is no sign of safety."
            continue
        worst = max(found, key=lambda row: row["fixed_gallery"]["upper"])
        fixed = worst["fixed_gallery"]
        yield (
            f"Whoever holds {holds} finds the person among {fixed['gallery']} in {_share(fixed['rank1'])} of tries, at "
            f"most {_share(fixed['upper'])} ({_who(worst)}); guessing would in {_share(fixed['chance'])}."
        )
    both = [row for row in rows if row["attack"] == "other_visit" and "d_sys" in row and not row["void"]]
    if both:
        before, after = (max(row[key]["value"] for row in both) for key in ("d_sys_before", "d_sys"))
        most = max(row["d_sys"]["excess_upper"] for row in both)
        yield (
            f"Linkage to another visit is {after:.2f} after, {before:.2f} before, of 1; without what shuffled names "
            f"read too it is at most {most:.2f} after: limits apply to this."
        )
    void = [row for row in rows if row.get("void")]
    if void:
        yield (
            f"{len(void)} of {len(rows)} figures are void: there the attacker finds nobody on untouched originals "
            "either, so that finding nobody afterwards is no sign of safety."
        )


def versus(linkage: Sequence[Row]) -> list[dict[str, Any]]:
    """Canberra beside cosine, encoder by encoder: which of the two links more."""
    by = {(row["encoder"], row["metric"]): row for row in linkage if "d_sys" in row}
    rows = []
    for encoder in dict.fromkeys(row["encoder"] for row in linkage):
        canberra, cosine = (by.get((encoder, metric)) for metric in ("canberra", "cosine"))
        if canberra is not None and cosine is not None:
            rows.append({"encoder": encoder, "canberra": canberra, "cosine": cosine})
    return rows


def _who(row: Row) -> str:
    return f"{row['encoder']}, {row['metric']}"


def _share(value: float) -> str:
    return f"{100 * value:.0f} %" if value >= 0.1 else f"{100 * value:.1f} %"
