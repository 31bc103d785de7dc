"""The preview as a page. It holds identifying values, and says so at its head and on every printed sheet."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator, Sequence

from gateway.app.policy.page import escaped, page, require_page, write_page
from gateway.app.preview.files import FilePreview
from gateway.app.preview.names import SIGNS, counted, name_of, tag_text
from gateway.app.preview.rows import Outcome, Row
from gateway.errors import REASONS
from gateway.policy import Policy

__all__ = ["preview_page", "require_page", "write_page"]

WARNING = (
    "This page holds the identifying values of the files below. Keep it where you may keep them, send it to nobody, "
    "and delete it when you have read it."
)
CLASSES = {
    Outcome.KEPT: "kept",
    Outcome.INSIDE: "inside",
    Outcome.REPLACED: "replaced",
    Outcome.EMPTIED: "emptied",
    Outcome.REMOVED: "removed",
    Outcome.ADDED: "added",
}
_MEANINGS = (
    *(
        ("D", "a dummy of the same VR"),
        ("Z", "empty, or a dummy"),
        ("X", "removed"),
        ("K", "kept, and a sequence entered"),
    ),
    *(("C", "cleaned or shifted, by an option"), ("U", "a new UID, the same one wherever it stands")),
    ("X/Z/D and the like", "the first that the attribute's Type at its place allows"),
)
CODES = (
    "<details><summary>What the codes mean</summary><ul>"
    + "".join(f'<li><span class="mono">{code}</span> {escaped(says)}</li>' for code, says in _MEANINGS)
    + "</ul></details>"
)
COLUMNS = (
    "<colgroup>"
    + "".join(f'<col class="{name}">' for name in ("sign", "tag", "name", "vr", "value", "value", "code", "why"))
    + "</colgroup>"
)
STYLE = (
    """
thead th { position: sticky; top: 0; }
table.rows { table-layout: fixed; min-width: 62rem; }
col.sign { width: 3.2rem; } col.tag { width: 9.5rem; } col.name { width: 17%; } col.vr { width: 2.8rem; }
col.value { width: 21%; } col.code { width: 4.6rem; }
table.rows td { overflow-wrap: anywhere; } td.sign { font-weight: 700; text-align: center; }
del { text-decoration: none; color: var(--gone); background: var(--gone-paper); }
ins { text-decoration: none; color: var(--new); background: var(--new-paper); }
tr.removed td.sign { color: var(--gone); } tr.added td.sign { color: var(--new); }
tr.replaced td.sign, tr.emptied td.sign { color: var(--warn); }
abbr { text-decoration: none; }
tr.item td { background: var(--shade); color: var(--soft); }
fieldset { border: 1px solid var(--line); border-radius: .3rem; margin: 1rem 0; display: flex; flex-wrap: wrap;
  gap: .4rem 1.2rem; }
figure { margin: .5rem 0; } figure img { max-width: 100%; } figcaption { color: var(--soft); font-size: .85rem; }
label { white-space: nowrap; }
.held { color: var(--gone); font-weight: 600; } .leaves { color: var(--new); font-weight: 600; }
"""
    + "".join(
        f"body:has(#show-{name}:not(:checked)) tr.{name} {{ display: none; }}\n" for name in sorted(CLASSES.values())
    )
    + """@media print {
  thead th { position: static; }
  table.rows { min-width: 0; font-size: 7.5pt; } th, td { padding: 2pt; }
  col.sign { width: 5%; } col.tag { width: 11%; } col.vr { width: 3.5%; } col.code { width: 6%; }
  @page { size: A4 landscape; margin: 10mm 10mm 14mm;
    @bottom-center { content: "holds identifying values"; font-size: 8pt; } } }
"""
)


def preview_page(policy: Policy, previews: Sequence[FilePreview], *, keyed: str, changes: bool = False) -> str:
    """The whole page. `keyed` says whose key made the pseudonyms; with `changes` what stays is left out."""
    total: Counter[Outcome] = Counter()
    for one in previews:
        total.update(one.counts)
    digest = f'<span class="mono">{escaped(policy.digest)}</span>'
    parts = [
        "<header>",
        f"<h1>What {escaped(policy.name)} does to {len(previews)} file{'s' * (len(previews) != 1)}</h1>",
        f'<p class="warning" role="note">{escaped(WARNING)}</p>',
        f'<p class="soft">Policy digest {digest}; PS3.15 edition {policy.header.edition}; {escaped(keyed)}.</p>',
        CODES,
        "</header>",
        "<main>",
        _overview(previews),
        _switches(total),
        *(_file(number, one, changes=changes) for number, one in enumerate(previews, 1)),
        "</main>",
    ]
    return page(f"Policy preview: {policy.name}", "\n".join(parts), STYLE)


def _overview(previews: Sequence[FilePreview]) -> str:
    rows = [
        f'<tr><td><a href="#file-{number}">{escaped(str(one.file))}</a></td><td>{escaped(one.kind)}</td>'
        f"<td>{_verdict(one)}</td></tr>"
        for number, one in enumerate(previews, 1)
    ]
    return (
        '<div class="wide"><table><caption>Files</caption><thead><tr><th scope="col">File</th><th scope="col">Kind</th>'
        f'<th scope="col">What would become of it</th></tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _verdict(one: FilePreview) -> str:
    if one.leaves:
        return '<span class="leaves">would leave</span>'
    reason, at = (one.reason, one.at) if one.reason else (one.gate_reason, one.gate_at)
    if one.held_by is not None:
        return f'<span class="held">held with its study</span>, because of {escaped(str(one.held_by))}'
    where = f" at {at}" if at else ""
    known = REASONS.get(reason)
    says = f": {known.says}{where}; {known.hint}" if known is not None else where
    by = "" if one.reason else " by the gate"
    return f'<span class="held">held{by}, {escaped(reason)}</span>{escaped(says)}'


def _switches(total: Counter[Outcome]) -> str:
    boxes = [
        f'<label><input type="checkbox" id="show-{CLASSES[outcome]}" checked> '
        f'<span class="mono">{escaped(SIGNS[outcome])}</span> {escaped(outcome)} ({total[outcome]})</label>'
        for outcome in Outcome
    ]
    return f'<fieldset class="screen"><legend>Show</legend>{"".join(boxes)}</fieldset>'


def _file(number: int, one: FilePreview, *, changes: bool) -> str:
    title = f'<section id="file-{number}"><h2>{escaped(str(one.file))}</h2>'
    facts = f"<p>{escaped(one.kind)}; {_verdict(one)}.</p>"
    stages = "".join(f"<li>pixel stage {escaped(step.stage)}: {escaped(counted(step))}</li>" for step in one.steps[1:])
    if stages:
        facts += f"<ul>{stages}</ul>"
    for place, picture in enumerate(one.pictures, 1):
        source = f"data:image/png;base64,{base64.b64encode(picture).decode('ascii')}"
        words = f"picture {place}: before, after, and what changed"
        facts += f'<figure><img src="{source}" alt="{words}"><figcaption>{words}</figcaption></figure>'
    if not one.rows:
        return f"{title}{facts}</section>"
    told = ", ".join(f"{one.counts[outcome]} {outcome}" for outcome in Outcome if one.counts.get(outcome))
    head = "".join(
        f'<th scope="col">{text}</th>'
        for text in ("<span title='outcome'>What</span>", "Tag", "Attribute", "VR", "Before", "After", "Code", "Why")
    )
    shown = (row for row in one.rows if not (changes and row.outcome is Outcome.KEPT))
    body = "\n".join(_rows(shown))
    return (
        f'{title}{facts}<div class="wide"><table class="rows"><caption>{escaped(told)}</caption>'
        f"{COLUMNS}<thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div></section>"
    )


def _rows(rows: Iterator[Row]) -> Iterator[str]:
    for row in rows:
        kind, sign = CLASSES[row.outcome], escaped(SIGNS[row.outcome])
        mark = f'<td class="sign mono"><abbr title="{escaped(row.outcome)}">{sign}</abbr></td>'
        indent = f' style="padding-left:{0.5 + row.depth * 0.6:.1f}rem"'
        if row.number:
            yield (
                f'<tr class="{kind} item">{mark}<td class="tag"{indent} colspan="2">{escaped(name_of(row))}</td>'
                f'<td colspan="3">{escaped(row.before or "")}</td>'
                f'<td class="mono">{escaped(row.code)}</td><td class="why">{escaped(row.why)}</td></tr>'
            )
            continue
        yield (
            f'<tr class="{kind}">{mark}<td class="tag mono"{indent}>{tag_text(row.tag)}</td>'
            f'<td class="name">{escaped(name_of(row))}</td><td class="mono">{escaped(row.vr)}</td>'
            f'<td class="value">{_before(row)}</td><td class="value">{_after(row)}</td>'
            f'<td class="mono">{escaped(row.code)}</td><td class="why">{escaped(row.why)}</td></tr>'
        )


def _before(row: Row) -> str:
    if not row.before:
        return ""
    changed = row.outcome in (Outcome.REPLACED, Outcome.EMPTIED, Outcome.REMOVED)
    return f"<del>{escaped(row.before)}</del>" if changed else escaped(row.before)


def _after(row: Row) -> str:
    if not row.after:
        return ""
    changed = row.outcome in (Outcome.REPLACED, Outcome.ADDED)
    return f"<ins>{escaped(row.after)}</ins>" if changed else escaped(row.after)
