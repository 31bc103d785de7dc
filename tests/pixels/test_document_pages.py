"""Where a PDF may hold words beside its page: nothing of them is left, and the page itself stays where no text was."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pikepdf
import pypdfium2
import pytest
from pikepdf import Array, Dictionary, Name, Stream
from test_pixel_documents import PDF, SIZE, WORK, document, files, judged

from gateway.header.encapsulated import BLANKS
from gateway.pixels.document_pages import SCALE, pages_of, pdf_of
from gateway.pixels.documents import Documents
from gateway.study import Outcome

WORDS = "Zzsynth Leaktest"
SQUARE = b"0.4 g 30 200 60 60 re f "  # left, bottom, width, height: what a page shows beside its text


def font(pdf: pikepdf.Pdf) -> pikepdf.Object:
    return pdf.make_indirect(Dictionary(Type=Name.Font, Subtype=Name.Type1, BaseFont=Name.Helvetica))


def line(left: int = 120, bottom: int = 220) -> bytes:
    return f"BT /F1 18 Tf {left} {bottom} Td ({WORDS}) Tj ET ".encode()


def a_page(pdf: pikepdf.Pdf, content: bytes = SQUARE) -> pikepdf.Page:
    page = pdf.add_blank_page(page_size=SIZE)
    page.Resources = Dictionary(Font=Dictionary(F1=font(pdf)))
    page.Contents = Stream(pdf, content)
    return page


def form_within_a_form(pdf: pikepdf.Pdf, page: pikepdf.Page) -> None:
    resources = Dictionary(Font=Dictionary(F1=font(pdf)))
    kind = {"Type": Name.XObject, "Subtype": Name.Form, "BBox": Array([0, 0, *SIZE])}
    inner = pdf.make_indirect(Stream(pdf, line(), Dictionary(**kind, Resources=resources)))
    outer = Stream(pdf, b"/Fm0 Do", Dictionary(**kind, Resources=Dictionary(XObject=Dictionary(Fm0=inner))))
    page.Resources.XObject = Dictionary(Fm1=pdf.make_indirect(outer))
    page.contents_add(Stream(pdf, b"/Fm1 Do"))


def annotation(pdf: pikepdf.Pdf, page: pikepdf.Page) -> None:
    resources = Dictionary(Font=Dictionary(F1=font(pdf)))
    form = Dictionary(Type=Name.XObject, Subtype=Name.Form, BBox=Array([0, 0, 220, 40]), Resources=resources)
    look = pdf.make_indirect(Stream(pdf, line(5, 10), form))
    note = Dictionary(Type=Name.Annot, Subtype=Name.FreeText, Rect=Array([120, 110, 340, 150]), F=4)
    note.Contents, note.T, note.AP = WORDS, WORDS, Dictionary(N=look)
    page.Annots = Array([pdf.make_indirect(note)])


def layer_that_is_off(pdf: pikepdf.Pdf, page: pikepdf.Page) -> None:
    page.contents_add(Stream(pdf, b"/OC /L1 BDC " + line() + b"EMC"))
    group = pdf.make_indirect(Dictionary(Type=Name.OCG, Name=WORDS))
    page.Resources.Properties = Dictionary(L1=group)
    pdf.Root.OCProperties = Dictionary(OCGs=Array([group]), D=Dictionary(OFF=Array([group]), Order=Array([group])))


def metadata(pdf: pikepdf.Pdf, _page: pikepdf.Page) -> None:
    pdf.docinfo["/Author"] = WORDS
    with pdf.open_metadata() as xmp:
        xmp["dc:title"] = WORDS
    pdf.Root.PageLabels = Dictionary(Nums=Array([0, Dictionary(P=WORDS)]))


def attachment(pdf: pikepdf.Pdf, _page: pikepdf.Page) -> None:
    pdf.attachments[f"{WORDS}.txt"] = WORDS.encode()


def field_of_a_form(pdf: pikepdf.Pdf, page: pikepdf.Page) -> None:
    field = Dictionary(Type=Name.Annot, Subtype=Name.Widget, FT=Name.Tx, T="patient", V=WORDS, F=2)  # hidden
    field.Rect = Array([120, 210, 340, 250])
    page.Annots = Array([pdf.make_indirect(field)])
    pdf.Root.AcroForm = Dictionary(Fields=Array([page.Annots[0]]), DA="/F1 12 Tf 0 g")


def white_on_white(pdf: pikepdf.Pdf, page: pikepdf.Page) -> None:
    page.contents_add(Stream(pdf, b"1 g " + line(120, 60)))


def written(*parts: Callable[[pikepdf.Pdf, pikepdf.Page], None], content: bytes = SQUARE) -> bytes:
    pdf, out = pikepdf.new(), io.BytesIO()
    page = a_page(pdf, content)
    for part in parts:
        part(pdf, page)
    pdf.save(out, compress_streams=False)
    return out.getvalue()


def with_an_earlier_revision(now: bytes) -> bytes:
    """The content of the page of a file replaced by what `now` says (ISO 32000-1, 7.5.6): the old bytes stay in it."""
    first = written(content=SQUARE + line())
    with pikepdf.open(io.BytesIO(first)) as pdf:
        number = pdf.pages[0].Contents.objgen[0]
        size, root = int(pdf.trailer.Size), pdf.Root.objgen[0]
    previous = int(first[first.rindex(b"startxref") :].split()[1])
    update = b"\n%d 0 obj\n<< /Length %d >>\nstream\n%s\nendstream\nendobj\n" % (number, len(now), now)
    numbers = number, len(first) + 1, size, root, previous, len(first) + len(update)
    table = b"xref\n%d 1\n%010d 00000 n \ntrailer\n<< /Size %d /Root %d 0 R /Prev %d >>\nstartxref\n%d\n%%%%EOF\n"
    return first + update + table % numbers


def cleaned(folder: Path, data: bytes) -> bytes:
    """What the stage makes of a PDF; the gate lets it pass, and nothing in it says the words."""
    assert WORDS.encode() in data
    instance = files(folder, data, BLANKS[PDF].data)
    stage = Documents(pdf="redact")
    stage.apply([instance], WORK, stage.estimate([instance], WORK))
    verdict = judged(instance)
    assert verdict.outcome is Outcome.PASS, verdict.findings
    after = document(instance)
    says_nothing(after)
    return after


def says_nothing(data: bytes) -> None:
    with pikepdf.open(io.BytesIO(data)) as pdf:
        said = b"".join(one.read_bytes() + one.unparse() for one in pdf.objects if isinstance(one, Stream))
        said += b"".join(one.unparse() for one in pdf.objects if not isinstance(one, Stream))
    assert not any(part in text for part in (b"Zzsynth", b"Leaktest") for text in (data, said))
    with pypdfium2.PdfDocument(data) as pdf:
        assert not any(pdf[index].get_textpage().get_text_range().strip() for index in range(len(pdf)))


def changed(before: bytes, after: bytes) -> np.ndarray:
    """Which pixels of the one page differ."""
    one, other = (next(iter(pages_of(data))).shown.astype(int) for data in (before, after))
    return np.abs(one - other).max(2) > 40


def inside(mask: np.ndarray, left: int, top: int, right: int, bottom: int) -> np.ndarray:
    """The part of it in a rectangle of points, from the page's upper left corner."""
    return mask[int(top * SCALE) : int(bottom * SCALE), int(left * SCALE) : int(right * SCALE)]


def test_what_a_page_shows_of_other_objects_is_covered_where_it_shows(tmp_path: Path) -> None:
    before = written(form_within_a_form, annotation)
    apart = changed(before, cleaned(tmp_path, before))
    height = SIZE[1]
    text = [(110, height - 240, 300, height - 205), (110, height - 150, 300, height - 105)]
    assert all(inside(apart, *place).sum() > 100 for place in text)
    assert sum(inside(apart, *place).sum() for place in text) == apart.sum()  # the square beside them stays


def test_what_a_page_does_not_show_is_gone_and_the_page_is_as_it_was(tmp_path: Path) -> None:
    before = written(layer_that_is_off, metadata, attachment, field_of_a_form, white_on_white)
    assert not changed(before, cleaned(tmp_path, before)).any()


def test_an_earlier_revision_and_what_lies_beyond_the_crop_go_with_the_file_that_they_were_in() -> None:
    pdf, out = pikepdf.new(), io.BytesIO()
    a_page(pdf, SQUARE + line(120, 20)).CropBox = Array([0, 60, *SIZE])
    pdf.save(out, compress_streams=False)
    for data in (with_an_earlier_revision(SQUARE), out.getvalue()):
        assert WORDS.encode() in data
        pages = [(page.shown, page.size_points) for page in pages_of(data)]
        assert (pages[0][0].min(2) < 128).sum() == pytest.approx((60 * SCALE) ** 2, rel=0.05)  # the square alone
        says_nothing(pdf_of(pages))


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_the_text_layer_of_a_turned_and_cropped_page_is_covered_where_it_shows(turn: int) -> None:
    """Without any reading: the places of the text layer alone cover every dark pixel of the line."""
    pdf, out = pikepdf.new(), io.BytesIO()
    page = a_page(pdf, line())
    page.Rotate, page.CropBox = turn, Array([40, 30, *SIZE])
    pdf.save(out)
    (found,) = pages_of(out.getvalue())
    dark = found.shown.max(2) < 128
    assert dark.sum() > 200
    for (top, left, bottom, right), text in found.texts:
        assert text.strip() in WORDS
        dark[top:bottom, left:right] = False
    assert not dark.any()
