"""A document as PDF: A4, vector figures, fonts inside, the same bytes for the same document."""

from __future__ import annotations

import io
from functools import lru_cache
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

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
from gateway.app.preview.values import legible

MARGIN = 42.0  # points
PLAIN, BOLD, FIXED = (
    "DejaVuSans",
    "DejaVuSans-Bold",
    "DejaVuSansMono",
)  # matplotlib brings them, with all of Unicode's Latin


def to_pdf(document: Document) -> bytes:
    """The whole file."""
    from reportlab.lib.pagesizes import A4
    from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate, Paragraph

    _fonts()
    styles, width = _styles(), A4[0] - 2 * MARGIN
    buffer = io.BytesIO()
    made = BaseDocTemplate(
        buffer, pagesize=A4, title=document.title, author="deid-gateway", lang="en", invariant=1, pageCompression=1
    )

    def sheet(canvas: Any, template: Any) -> None:
        canvas.setFont(PLAIN, 7)
        canvas.setFillColor("#595959")
        canvas.drawString(MARGIN, 26, legible(document.foot))
        canvas.drawRightString(A4[0] - MARGIN, 26, f"page {template.page}")

    frame = Frame(MARGIN, 40, width, A4[1] - 40 - MARGIN, 0, 0, 0, 0)
    made.addPageTemplates(PageTemplate("sheet", [frame], onPage=sheet))
    story = [Paragraph(_text(document.title), styles["title"])]
    for block in document.blocks:
        story += _block(block, styles, width)
    made.build(story)
    return buffer.getvalue()


@lru_cache(maxsize=1)
def _fonts() -> None:
    import matplotlib as mpl
    from reportlab.pdfbase.pdfmetrics import registerFont, registerFontFamily
    from reportlab.pdfbase.ttfonts import TTFont

    folder = Path(mpl.get_data_path()) / "fonts" / "ttf"
    for name in (PLAIN, BOLD, FIXED):
        registerFont(TTFont(name, str(folder / f"{name}.ttf")))
    registerFontFamily(PLAIN, normal=PLAIN, bold=BOLD, italic=PLAIN, boldItalic=BOLD)


def _styles() -> dict[str, Any]:
    from reportlab.lib.styles import ParagraphStyle

    body = ParagraphStyle("body", fontName=PLAIN, fontSize=8.5, leading=12, spaceAfter=4, splitLongWords=1)
    heading = ParagraphStyle("2", body, fontName=BOLD, fontSize=11.5, leading=15, spaceBefore=12, keepWithNext=1)
    return {
        "body": body,
        "title": ParagraphStyle("title", body, fontName=BOLD, fontSize=15, leading=19, spaceAfter=8),
        "2": heading,
        "3": ParagraphStyle("3", heading, fontSize=9.5, leading=13, spaceBefore=8),
        "soft": ParagraphStyle("soft", body, textColor="#595959"),
        "notice": ParagraphStyle(
            "notice", body, textColor="#6b4400", backColor="#fff3d6", borderPadding=5, spaceBefore=6, spaceAfter=9
        ),
        "caption": ParagraphStyle(
            "caption", body, textColor="#595959", fontSize=7.5, leading=10, spaceBefore=4, keepWithNext=1
        ),
        "cell": ParagraphStyle("cell", body, fontSize=7, leading=9, spaceAfter=0),
        "head": ParagraphStyle("head", body, fontName=BOLD, fontSize=7, leading=9, spaceAfter=0),
        "code": ParagraphStyle("code", body, fontName=FIXED, fontSize=6.8, leading=8.6),
    }


def _text(text: str) -> str:
    return escape(legible(text))


def _block(block: Block, styles: dict[str, Any], width: float) -> list[Any]:
    from reportlab.platypus import KeepTogether, ListFlowable, ListItem, Paragraph, XPreformatted

    match block:
        case Heading():
            return [Paragraph(_text(block.text), styles[str(block.level)])]
        case Words():
            return [Paragraph(_text(block.text), styles[block.kind or "body"])]
        case Bullets():
            items = [ListItem(Paragraph(_text(line), styles["body"])) for line in block.lines]
            return (
                [ListFlowable(items, bulletType="bullet", start="•", bulletFontSize=7, leftIndent=10)] if items else []
            )
        case Facts():
            rows = tuple((name, value) for name, value in block.rows)
            return [_grid(rows, (0.24, 0.76), styles, width, lined=False)]
        case Table():
            caption = [Paragraph(_text(block.caption), styles["caption"])] if block.caption else []
            return [*caption, _grid((block.columns, *block.rows), block.widths, styles, width, lined=True)]
        case Code():
            lines = [_text(piece) for line in block.text.splitlines() for piece in _folded(line)]
            return [XPreformatted("\n".join(lines), styles["code"])]
        case Chart():
            words = f"{block.title}; {block.sense}. Dot: estimate; bar: its upper bound; dashes: the limit."
            return [KeepTogether([Paragraph(_text(words), styles["caption"]), _drawing(block, width)])]


def _folded(line: str, most: int = 118) -> list[str]:
    """A line of code in pieces that a sheet has room for."""
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    step = most - len(indent)
    return [line[:most], *(indent + line[start : start + step] for start in range(most, len(line), step))]


def _grid(
    rows: tuple[tuple[str, ...], ...], widths: tuple[float, ...], styles: dict[str, Any], width: float, *, lined: bool
) -> Any:
    from reportlab.platypus import Paragraph, Table, TableStyle

    cells = [
        [Paragraph(_text(cell), styles["head" if lined and number == 0 else "cell"]) for cell in row]
        for number, row in enumerate(rows)
    ]
    made = Table(cells, [width * share / sum(widths) for share in widths], repeatRows=int(lined), spaceAfter=8)
    look: list[Any] = [
        ("VALIGN", (0, 0), (-1, -1), "TOP"),
        ("LEFTPADDING", (0, 0), (-1, -1), 3),
        ("RIGHTPADDING", (0, 0), (-1, -1), 3),
        ("TOPPADDING", (0, 0), (-1, -1), 1.5),
        ("BOTTOMPADDING", (0, 0), (-1, -1), 1.5),
    ]
    if lined:
        look += [("LINEBELOW", (0, 0), (-1, -1), 0.4, "#c9c9c4"), ("BACKGROUND", (0, 0), (-1, 0), "#f4f4f2")]
    made.setStyle(TableStyle(look))
    return made


def _drawing(chart: Chart, width: float) -> Any:
    from reportlab.graphics.shapes import Drawing, Group

    height, shapes = drawn(chart)
    scale = width / WIDTH
    group = Group(*(_shape(shape, height) for shape in shapes), transform=(scale, 0, 0, scale, 0, 0))
    return Drawing(width, height * scale, group)


def _shape(shape: Shape, height: float) -> Any:
    from reportlab.graphics import shapes
    from reportlab.lib.colors import HexColor

    match shape:
        case Line():
            dashes = [3, 2] if shape.dashed else None
            return shapes.Line(
                shape.x0,
                height - shape.y0,
                shape.x1,
                height - shape.y1,
                strokeColor=HexColor(shape.ink),
                strokeWidth=shape.width,
                strokeDashArray=dashes,
            )
        case Dot():
            return shapes.Circle(
                shape.x, height - shape.y, shape.radius, fillColor=HexColor(shape.ink), strokeColor=None
            )
        case Label():
            return shapes.String(
                shape.x,
                height - shape.y,
                legible(shape.text),
                fontName=BOLD if shape.bold else PLAIN,
                fontSize=9.5,
                fillColor=HexColor(shape.ink),
                textAnchor="end" if shape.ends else "start",
            )
