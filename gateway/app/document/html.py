"""A document as one HTML file that needs nothing else: no script, no fetch, figures as SVG."""

from __future__ import annotations

from gateway.app.document.blocks import (
    WIDTH,
    Block,
    Bullets,
    Chart,
    Code,
    Document,
    Dot,
    Facts,
    Heading,
    Label,
    Line,
    Shape,
    Table,
    Words,
    drawn,
)
from gateway.app.policy.page import escaped, page

STYLE = """
.notice { border-left: 4px solid var(--warn); background: var(--warn-paper); color: var(--warn);
  padding: .5rem .9rem; border-radius: .3rem; }
td { overflow-wrap: break-word; }
dl { display: grid; grid-template-columns: minmax(9rem, auto) 1fr; gap: .15rem 1rem; max-width: 60rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
pre { background: var(--shade); padding: .7rem .9rem; overflow-x: auto; font-size: .82rem; border-radius: .3rem; }
figure { margin: 1rem 0; max-width: 48rem; } figcaption { color: var(--soft); font-size: .87rem; }
figure svg { width: 100%; height: auto; background: #fff; border-radius: .3rem; }
@media print { pre { white-space: pre-wrap; overflow-wrap: anywhere; } @page { size: A4; margin: 15mm; } }
"""


def to_html(document: Document) -> str:
    """The whole page."""
    body = "\n".join(map(_block, document.blocks))
    title = f"<header><h1>{escaped(document.title)}</h1></header>"
    return page(
        document.title,
        f'{title}\n<main>\n{body}\n</main>\n<footer class="soft">{escaped(document.foot)}</footer>',
        STYLE,
    )


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f"<h{block.level}>{escaped(block.text)}</h{block.level}>"
        case Words():
            return (
                f'<p class="{block.kind}">{escaped(block.text)}</p>' if block.kind else f"<p>{escaped(block.text)}</p>"
            )
        case Bullets():
            return "<ul>" + "".join(f"<li>{escaped(line)}</li>" for line in block.lines) + "</ul>"
        case Facts():
            rows = "".join(f"<dt>{escaped(name)}</dt><dd>{escaped(value)}</dd>" for name, value in block.rows)
            return f"<dl>{rows}</dl>"
        case Table():
            return _table(block)
        case Code():
            return "<pre>" + "\n".join(escaped(line) for line in block.text.splitlines()) + "</pre>"
        case Chart():
            return _chart(block)


def _table(block: Table) -> str:
    head = "".join(f'<th scope="col">{escaped(name)}</th>' for name in block.columns)
    body = "".join("<tr>" + "".join(f"<td>{escaped(cell)}</td>" for cell in row) + "</tr>" for row in block.rows)
    caption = f"<caption>{escaped(block.caption)}</caption>" if block.caption else ""
    return f'<div class="wide"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _chart(block: Chart) -> str:
    height, shapes = drawn(block)
    body = "".join(map(_shape, shapes))
    return (
        f'<figure><svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {height:g}" role="img" '
        f'aria-label="{escaped(block.title)}" font-family="system-ui, sans-serif" font-size="11">{body}</svg>'
        f"<figcaption>{escaped(block.title)}; {block.sense}. Dot: estimate; bar: its upper bound; dashes: the limit."
        "</figcaption></figure>"
    )


def _shape(shape: Shape) -> str:
    match shape:
        case Line():
            dashes = ' stroke-dasharray="3 2"' if shape.dashed else ""
            return (
                f'<line x1="{shape.x0:.1f}" y1="{shape.y0:.1f}" x2="{shape.x1:.1f}" y2="{shape.y1:.1f}" '
                f'stroke="{shape.ink}" stroke-width="{shape.width:g}"{dashes}/>'
            )
        case Dot():
            return f'<circle cx="{shape.x:.1f}" cy="{shape.y:.1f}" r="{shape.radius:g}" fill="{shape.ink}"/>'
        case Label():
            anchor = ' text-anchor="end"' if shape.ends else ""
            weight = ' font-weight="700"' if shape.bold else ""
            return (
                f'<text x="{shape.x:.1f}" y="{shape.y:.1f}" fill="{shape.ink}"{anchor}{weight}>'
                f"{escaped(shape.text)}</text>"
            )
