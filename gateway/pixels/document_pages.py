"""The pages of a PDF as pictures, and a PDF made of nothing but pictures.

Rendered by pdfium with what its text layer knows of where text stands; written by pikepdf. Whatever else the file had
(text, metadata, attachments, scripts, forms, layers, earlier revisions) is not carried over.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gateway.errors import Hold

Bytes = NDArray[np.uint8]
Place = tuple[int, int, int, int]  # top, left, bottom, right, half open, pixels

DOTS_PER_INCH, POINTS_PER_INCH = 150, 72
SCALE = DOTS_PER_INCH / POINTS_PER_INCH
MAX_PAGES, MAX_PAGE_PIXELS = 200, 1 << 24
MARGIN = 2  # pixels around text of the text layer: antialiasing
DOCUMENT = "(0042,0011)"


@dataclass(frozen=True, slots=True)
class Page:
    """`shown` is (rows, columns, 3); `texts` are the runs of the text layer with their places."""

    shown: Bytes
    size_points: tuple[float, float]  # width, height
    texts: tuple[tuple[Place, str], ...]


def pages_of(data: bytes) -> Iterator[Page]:
    """Every page in turn. Raises Hold("encapsulated_document") for a file that cannot be shown whole."""
    import pypdfium2

    try:
        with pypdfium2.PdfDocument(data) as pdf:
            pdf.init_forms()
            if not 0 < len(pdf) <= MAX_PAGES:
                raise Hold("encapsulated_document", at=DOCUMENT)
            for index in range(len(pdf)):
                yield _page(pdf[index])
    except (pypdfium2.PdfiumError, ValueError, MemoryError):
        raise Hold("encapsulated_document", at=DOCUMENT) from None


def _page(page: Any) -> Page:
    width, height = page.get_size()
    if not 0 < width * height * SCALE * SCALE <= MAX_PAGE_PIXELS:
        raise Hold("encapsulated_document", at=DOCUMENT)
    bitmap = page.render(scale=SCALE, rev_byteorder=True)
    shown = np.ascontiguousarray(bitmap.to_numpy()[..., :3])
    if shown.ndim == 2:
        shown = np.repeat(shown[..., None], 3, 2)
    layer, where = page.get_textpage(), bitmap.get_posconv(page)  # which knows of turned and of cropped pages
    texts = []
    for index in range(layer.count_rects()):
        left, bottom, right, top = layer.get_rect(index)
        across, down = zip(where.to_bitmap(left, top), where.to_bitmap(right, bottom), strict=True)
        place = min(down) - MARGIN, min(across) - MARGIN, max(down) + 1 + MARGIN, max(across) + 1 + MARGIN
        texts.append((_inside(place, shown.shape[:2]), layer.get_text_bounded(left, bottom, right, top)))
    return Page(shown, (width, height), tuple(texts))


def _inside(place: Place, shape: tuple[int, ...]) -> Place:
    top, left, bottom, right = place
    return max(0, top), max(0, left), min(shape[0], bottom), min(shape[1], right)


def pdf_of(pages: Iterable[tuple[Bytes, tuple[float, float]]]) -> bytes:
    """A PDF with one picture (rows, columns, 3) on each page of `size_points`; the same pages give the same bytes."""
    import pikepdf

    pdf = pikepdf.new()
    for picture, (width, height) in pages:
        grey = bool((picture[..., :1] == picture).all())
        samples = np.ascontiguousarray(picture[..., 0] if grey else picture)
        page = pdf.add_blank_page(page_size=(width, height))
        image = pikepdf.Stream(pdf, zlib.compress(samples.tobytes(), 6))
        image.stream_dict = pikepdf.Dictionary(
            Type=pikepdf.Name.XObject,
            Subtype=pikepdf.Name.Image,
            Width=samples.shape[1],
            Height=samples.shape[0],
            ColorSpace=pikepdf.Name.DeviceGray if grey else pikepdf.Name.DeviceRGB,
            BitsPerComponent=8,
            Filter=pikepdf.Name.FlateDecode,
        )
        page.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(Im0=pdf.make_indirect(image)))
        page.Contents = pikepdf.Stream(pdf, b"q %.2f 0 0 %.2f 0 0 cm /Im0 Do Q" % (width, height))
    out = io.BytesIO()
    pdf.save(out, deterministic_id=True, object_stream_mode=pikepdf.ObjectStreamMode.disable, compress_streams=False)
    return out.getvalue()
