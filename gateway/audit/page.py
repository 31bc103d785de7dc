"""The report for people: one HTML file that needs nothing else, and the same figures as JSON beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any

from gateway.audit.figures import bar_figure, density_figure
from gateway.audit.page_cells import ATTACKS, FOUND, LINKAGE, PROBES, RELEASE, SECTIONS, VERSUS, Cells, Row
from gateway.audit.page_words import glossary, in_short, of_audit, of_comparison, versus
from gateway.durable import writing

JSON, HTML = "audit.json", "audit.html"
FIGURE = re.compile(r"([-+]?[\d.,]+( %)?)?")  # columns of anything else are read from the left

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1d2126;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem;border-bottom:1px solid #d5d9de}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}caption{text-align:left;color:#555}
td{white-space:nowrap}td[colspan]{white-space:normal}
td,th{padding:.25rem .6rem;text-align:right;border-bottom:1px solid #e6e8eb}
td:first-child,th:first-child,.words{text-align:left}th{font-weight:600;background:#f4f5f7}
.mark{background:#fff3cd;border:1px solid #e3b23c;padding:.5rem 1rem}
.short{background:#f4f5f7;padding:.2rem 1.2rem .6rem;margin-top:1.2rem}.short h2{margin-top:.8rem;border:0}
.short li{margin:.35rem 0}details{margin-top:1rem}summary{cursor:pointer;font-weight:600}dt{font-weight:600}
dd{margin:0 0 .4rem 1.2rem}
.figures{margin-top:1.2rem;display:flex;flex-wrap:wrap;gap:1rem}.figures svg{max-width:100%;height:auto}
.scroll{overflow-x:auto}@media print{body{margin:0}}
"""


def write_report(report: Mapping[str, Any], folder: Path) -> tuple[Path, Path]:
    """Write audit.json and audit.html (0600, whole or not at all) into `folder`; their paths."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    data, page = folder / JSON, folder / HTML
    with writing(data) as file:
        file.write(json.dumps(report, indent=1, sort_keys=True).encode() + b"\n")
    with writing(page) as file:
        file.write(html_of(report).encode())
    return data, page


def html_of(report: Mapping[str, Any]) -> str:
    """The page. Every text that came from a file is escaped."""
    title, sections = KINDS[report["kind"]]
    body = "".join(sections(report))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{STYLE}</style>'
        f"<main><h1>{title}</h1>{_head(report)}{body}</main></html>\n"
    )


def _head(report: Mapping[str, Any]) -> str:
    marks = ""
    if report["synthetic"]:
        marks += '<p class="mark"><strong>Synthetic</strong>: these people do not exist.</p>'
    for name, count in report.get("people_trained_on", {}).items():
        marks += (
            f'<p class="mark">{escape(name)} was trained on {count} of these people: that '
            "flatters it. Judge it on others.</p>"
        )
    if not report.get("enough_people", True):
        marks += '<p class="mark">Fewer than 50 people: no evidence for a release, whatever the figures say.</p>'
    return (
        f"<p>{report['people']} people, {report['scans']} scans. Bounds are one-sided and by person: the 99th "
        "percentile of a bootstrap for D<sub>sys</sub>, 95 % for rank-1 and attributes. A limit compares with a bound, "
        "and for D<sub>sys</sub> with what it has over the reading of shuffled labels. This report makes no claim of "
        "anonymity; a comparison of encoders isolates no cause, for they differ in training, input and size at once."
        "</p>" + marks
    )


def _audit(report: Mapping[str, Any]) -> Iterable[str]:
    tables = report["tables"]
    linkage = [row for row in tables["linkage"] if "d_sys" in row]
    yield in_short(of_audit(report)) + glossary()
    yield "<h2>Linkage</h2>"
    omega = f"{report['options']['omega']:g}"
    yield _table(tables["linkage"], LINKAGE, f"can two visits of one person be told from two people? ω = {omega}")
    if linkage:
        bars = [(f"{r['encoder']}, {r['metric']}", *_bar(r["d_sys"])) for r in linkage]
        yield f'<div class="figures">{bar_figure(bars, "D_sys with its upper bound", "shuffled labels")}'
        yield "".join(density_figure(r["densities"], f"{r['encoder']}, {r['metric']}") for r in linkage) + "</div>"
        yield "<h2>Re-identification</h2>"
        yield _table(linkage, FOUND, "is the nearest scan of another visit the same person's?")
        yield "<h2>Canberra and cosine</h2>"
        yield _table(versus(linkage), VERSUS, "the same embeddings, compared in two ways: an attacker takes the better")
    for name, title, cells, note in SECTIONS:
        if tables.get(name):
            yield f"<h2>{title}</h2>" + _table(tables[name], cells, note)


def _comparison(report: Mapping[str, Any]) -> Iterable[str]:
    rows = report["tables"]["attacks"]
    yield in_short(of_comparison(report)) + glossary()
    yield "<h2>Two attacks on what is released</h2>"
    yield _table(
        rows,
        ATTACKS,
        "before: another visit among untouched originals; void: nobody is found there either, which says nothing",
    )
    drawn = [row for row in rows if "d_sys" in row]
    if drawn:
        names = [f"{r['encoder']}, {r['metric']}, {r['attack'].replace('_', ' ')}" for r in drawn]
        bars = [(name, *_bar(r["d_sys"])) for name, r in zip(names, drawn, strict=True)]
        yield f'<div class="figures">{bar_figure(bars, "D_sys after, with its upper bound", "shuffled labels")}'
        yield "".join(density_figure(r["densities"], n) for n, r in zip(names, drawn, strict=True)) + "</div>"


def _release(report: Mapping[str, Any]) -> Iterable[str]:
    words = "Released." if report["passed"] else "Held: " + "; ".join(report["reasons"]) + "."
    yield f'<p class="mark"><strong>{escape(words)}</strong></p>'
    rows, probes = report["tables"]["attacks"], report["tables"]["probes"]
    yield "<h2>Attacks on each level</h2>"
    yield _table(rows, RELEASE, "each level is a look, and each look spends a part of the error: alpha")
    drawn = [row for row in rows if "d_sys" in row]
    for level in sorted({row["level"] for row in drawn}):
        here = [row for row in drawn if row["level"] == level]
        bars = [
            (f"{r['encoder']}, {r['view']}, {r['metric']}, {r['attack'].replace('_', ' ')}", *_bar(r["d_sys"]))
            for r in here
        ]
        figure = bar_figure(bars, f"Level {level}: D_sys with its upper bound", "shuffled labels")
        yield f'<div class="figures">{figure}</div>'
    yield "<h2>What can be inferred, before and after</h2>"
    yield _table(probes, PROBES, "without a limit: what is left to use")


def _bar(found: Row) -> tuple[float, float, float]:
    return found["value"], found["upper"], found["null_mean"]


def _table(rows: Iterable[Row], cells: Cells, note: str) -> str:
    rows = list(rows)
    read = [[of(row) for _, of in cells] for row in rows if "no_evidence" not in row]
    words = [not all(FIGURE.fullmatch(line[column]) for line in read) for column in range(len(cells))]
    marks = [' class="words"' if one else "" for one in words]
    head = "".join(f'<th scope="col"{mark}>{escape(name)}</th>' for mark, (name, _) in zip(marks, cells, strict=True))
    lines = iter(read)
    body = "".join(_none(row, len(cells)) if "no_evidence" in row else _line(next(lines), marks) for row in rows)
    return f'<div class="scroll"><table><caption>{escape(note)}</caption><tr>{head}</tr>{body}</table></div>'


def _line(texts: Iterable[str], marks: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<td{mark}>{escape(text)}</td>" for text, mark in zip(texts, marks, strict=True)) + "</tr>"


def _none(row: Row, columns: int) -> str:
    named = [
        str(row[key]) for key in ("encoder", "metric", "attack", "attribute", "value", "gap", "mates") if key in row
    ]
    text = f"{', '.join(named)}: no evidence ({row['no_evidence']})"
    return f'<tr><td colspan="{columns}">{escape(text)}</td></tr>'


KINDS: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], Iterable[str]]]] = {
    "audit": ("Linkability audit", _audit),
    "comparison": ("What remains linkable after anonymisation", _comparison),
    "embedding release": ("Release of embeddings", _release),
}
