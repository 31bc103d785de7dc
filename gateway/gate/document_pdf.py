"""What a PDF about to leave carries beside the pictures of its pages (ISO 32000-1), and those pages rendered.

Nothing but pages drawn from images and lines may be there: no text layer, metadata, attachment, script, form,
annotation, hidden layer or thumbnail, no object that no page uses, no earlier revision, no bytes around the file. So
what the pages show when they are rendered, and what their images show by themselves, is all that can be found in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from gateway.gate.decoding_codestream import examine_jpeg
from gateway.gate.pixel_layout import Unseen
from gateway.gate.pixel_places import Seen

DOTS_PER_INCH = 150
MAX_PAGES, MAX_PAGE_PIXELS, MAX_OBJECTS = 500, 1 << 25, 20_000
POINTS_PER_INCH = 72
PADDING = b" \0\r\n"
_TRAILER = frozenset({"/Root", "/Size", "/ID", "/Type", "/W", "/Index", "/Length", "/Filter", "/DecodeParms"})
# Kind of object -> the keys it may have, and of what kind the objects under them are.
_KINDS: dict[str, tuple[frozenset[str], dict[str, str]]] = {
    "catalog": (frozenset({"/Type", "/Pages", "/Version"}), {"/Pages": "pages"}),
    "pages": (frozenset({"/Type", "/Kids", "/Count", "/MediaBox", "/Parent"}), {"/Kids": "kids"}),
    "page": (
        frozenset({"/Type", "/Parent", "/MediaBox", "/CropBox", "/Rotate", "/Resources", "/Contents"}),
        {"/Resources": "resources", "/Contents": "content"},
    ),
    "resources": (frozenset({"/XObject", "/ProcSet"}), {"/XObject": "images"}),
    "content": (frozenset({"/Length", "/Filter", "/DecodeParms"}), {}),
    "image": (
        frozenset({"/Type", "/Subtype", "/Width", "/Height", "/ColorSpace", "/BitsPerComponent", "/Filter"})
        | {"/DecodeParms", "/Length"},
        {},
    ),
}
_SPACES = {"/DeviceGray": 1, "/DeviceRGB": 3}
_DRAWING = re.compile(rb"(?:\s+|[-+]?[0-9.]+|q|Q|cm|Do|/[A-Za-z0-9]{1,16})*")  # place an image, and nothing else


def faults(data: bytes) -> Iterator[str]:
    """The rules that the file breaks; each says what is there and may hide something. Raises what pikepdf raises."""
    import io

    import pikepdf

    if not data.startswith(b"%PDF-") or not data.rstrip(PADDING).endswith(b"%%EOF"):
        yield "bytes around the PDF"
    if data.count(b"%%EOF") != 1 or data.count(b"startxref") != 1:
        yield "an earlier revision of the PDF"
    with pikepdf.open(io.BytesIO(data), suppress_warnings=True) as pdf:
        if pdf.is_encrypted:
            yield "an encrypted PDF"
        if pdf.trailer.keys() - _TRAILER:
            yield "metadata of the PDF"
        if pdf.Root.keys() - _KINDS["catalog"][0]:
            yield "more than pages in the PDF: metadata, scripts, forms, attachments or layers"
        if len(pdf.pages) > MAX_PAGES or len(pdf.objects) > MAX_OBJECTS:
            yield "a PDF too large to look at"
            return
        known: set[tuple[int, int]] = set()
        yield from _tree(pdf.Root, known)
        loose = {tuple(one.objgen) for one in pdf.objects if not _is_file_structure(one)} - known
        if loose:
            yield "an object that no page of the PDF uses"


def _is_file_structure(one: Any) -> bool:
    """Object and cross-reference streams (7.5.7, 7.5.8): they carry the file, not its content."""
    import pikepdf

    return one is None or (isinstance(one, pikepdf.Stream) and str(one.get("/Type", "")) in ("/ObjStm", "/XRef"))


def _tree(root: Any, known: set[tuple[int, int]]) -> Iterator[str]:
    """Faults of catalog, page tree, pages, their contents and images; `known` collects which objects these are."""
    import pikepdf

    waiting: list[tuple[str, Any]] = [("catalog", root)]
    while waiting:
        kind, node = waiting.pop()
        if isinstance(node, pikepdf.Object) and node.is_indirect:
            if kind in ("pages", "page") and tuple(node.objgen) in known:
                yield "a page tree that runs in circles"
                return
            known.add((node.objgen[0], node.objgen[1]))
        if isinstance(node, pikepdf.Array) and kind in ("kids", "content"):
            waiting += [(_kind_of_page(one) if kind == "kids" else kind, one) for one in node]
            continue
        if kind == "images" and isinstance(node, pikepdf.Dictionary):
            waiting += [("image", one) for one in node.values()]
            continue
        if kind not in _KINDS or not isinstance(node, pikepdf.Dictionary | pikepdf.Stream):
            yield "more than images on a page of the PDF"
            continue
        allowed, below = _KINDS[kind]
        if node.keys() - allowed or not _is_plain(kind, node):
            yield "more than images on a page of the PDF"
        waiting += [(below[key], node[key]) for key in node.keys() & below.keys()]


def _kind_of_page(node: Any) -> str:
    return "page" if str(node.get("/Type", "")) == "/Page" else "pages"


def _is_plain(kind: str, node: Any) -> bool:
    """A content stream only places images; an image has as many bytes as it has pixels, or is a JPEG and no more."""
    if kind == "content":
        return _DRAWING.fullmatch(node.read_bytes()) is not None
    if kind != "image":
        return True
    samples = _SPACES.get(str(node.get("/ColorSpace", "")))
    if str(node.get("/Subtype", "")) != "/Image" or samples is None or int(node.get("/BitsPerComponent", 0)) != 8:
        return False
    if str(node.get("/Filter", "")) == "/DCTDecode":
        facts = examine_jpeg(node.read_raw_bytes(), "image")
        return (facts.columns, facts.rows, facts.samples) == (int(node["/Width"]), int(node["/Height"]), samples)
    return len(node.read_bytes()) == int(node["/Width"]) * int(node["/Height"]) * samples


def pictures_in(data: bytes, place: str) -> Iterator[Seen]:
    """Every image of the PDF by itself, whether and how ever a page shows it. Raises what pikepdf and Pillow raise."""
    import io

    import pikepdf

    with pikepdf.open(io.BytesIO(data), suppress_warnings=True) as pdf:
        images = [one for one in pdf.objects if isinstance(one, pikepdf.Stream) and one.get("/Subtype") == "/Image"]
        for index, image in enumerate(images):
            grey = np.asarray(pikepdf.PdfImage(image).as_pil_image().convert("L"), np.float32)
            yield Seen(place, index, len(images), f"image {index}", grey, 1.0)


def text_layer(data: bytes) -> Iterator[int]:
    """Pages, from 0, that have text as text, seen or not. Raises what pdfium raises."""
    import pypdfium2

    with pypdfium2.PdfDocument(data) as pdf:
        for index, page in enumerate(pdf):
            if page.get_textpage().count_chars():
                yield index


def rendered(data: bytes, place: str) -> Iterator[Seen]:
    """Every page as it is shown, in grey. Raises Unseen for a page too large, and what pdfium raises."""
    import pypdfium2

    with pypdfium2.PdfDocument(data) as pdf:
        pages = len(pdf)
        for index in range(pages):
            page = pdf[index]
            scale = DOTS_PER_INCH / POINTS_PER_INCH
            width, height = page.get_size()
            if not 0 < width * height * scale * scale <= MAX_PAGE_PIXELS:
                raise Unseen(f"{place} page {index}", "a page too large to look at")
            grey = page.render(scale=scale, grayscale=True).to_numpy()
            grey = grey[..., 0] if grey.ndim == 3 else grey
            yield Seen(place, index, pages, f"page {index}", grey.astype(np.float32), 1.0)
            page.close()
