"""Stage `documents` and check `residual_document`: a PDF loses its text, its layers and its baggage, or holds."""

from __future__ import annotations

import copy
import io
from pathlib import Path

import numpy as np
import pikepdf
import pydicom
import pypdfium2
import pytest
import zxingcpp
from PIL import Image, ImageDraw, ImageFont
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian

from gateway.errors import Hold
from gateway.gate import Pair
from gateway.gate.residual_document import ResidualDocument
from gateway.header.encapsulated import BLANKS
from gateway.pixels.documents import Documents
from gateway.pixels.stage import Estimate, Instance, Work
from gateway.policy import GatePolicy, HeaderPolicy, Policy
from gateway.study import Outcome, Verdict

PDF, CDA, STL = (f"1.2.840.10008.5.1.4.1.1.104.{number}" for number in (1, 2, 3))
POLICY = Policy(name="test", header=HeaderPolicy(), gate=GatePolicy(study={"residual_document": ResidualDocument()}))
WORK = Work(POLICY, bytes(32))
SIZE = (420, 300)  # points


def a_picture(text: str) -> Image.Image:
    """A grey square with a line of text under it; synthetic."""
    image = Image.new("L", (600, 200), 255)
    draw = ImageDraw.Draw(image)
    draw.rectangle((20, 20, 120, 120), fill=90)
    draw.text((150, 60), text, font=ImageFont.load_default(28), fill=0)
    return image


def a_report(
    *,
    picture: str = "Quastenflosser Egon",
    words: str = "Zzsynth Leaktest born 31 Jan 1950",
    drawn: Image.Image | None = None,
) -> bytes:
    """One page: a picture that shows one name, and a text layer with another; metadata, script and attachment."""
    pdf = pikepdf.new()
    page = pdf.add_blank_page(page_size=SIZE)
    buffer = io.BytesIO()
    (drawn or a_picture(picture)).save(buffer, "JPEG", quality=95)
    image = pikepdf.Stream(pdf, buffer.getvalue())
    image.stream_dict = pikepdf.Dictionary(
        Type=pikepdf.Name.XObject,
        Subtype=pikepdf.Name.Image,
        Width=600,
        Height=200,
        ColorSpace=pikepdf.Name.DeviceGray,
        BitsPerComponent=8,
        Filter=pikepdf.Name.DCTDecode,
    )
    font = pikepdf.Dictionary(Type=pikepdf.Name.Font, Subtype=pikepdf.Name.Type1, BaseFont=pikepdf.Name.Helvetica)
    page.Resources = pikepdf.Dictionary(
        XObject=pikepdf.Dictionary(Im0=image), Font=pikepdf.Dictionary(F1=pdf.make_indirect(font))
    )
    content = f"q 360 0 0 120 30 20 cm /Im0 Do Q BT /F1 14 Tf 40 240 Td ({words}) Tj ET".encode()
    page.Contents = pikepdf.Stream(pdf, content)
    pdf.docinfo["/Title"] = words
    pdf.attachments["note.txt"] = words.encode()
    pdf.Root.OpenAction = pikepdf.Dictionary(S=pikepdf.Name.JavaScript, JS="app.alert('x')")
    out = io.BytesIO()
    pdf.save(out)
    return out.getvalue()


def an_object(data: bytes, sop_class: str = PDF) -> Dataset:
    ds = Dataset()
    ds.SOPClassUID, ds.SOPInstanceUID, ds.Modality = sop_class, "2.25.77", "DOC"
    ds.PatientName, ds.PatientID, ds.PatientBirthDate = "Zzsynth^Leaktest", "LEAK0001", "19500131"
    ds.MIMETypeOfEncapsulatedDocument = "application/pdf"
    ds.EncapsulatedDocument = data + b"\0" * (len(data) % 2)
    ds.EncapsulatedDocumentLength = len(data)
    ds.file_meta = FileMetaDataset()
    ds.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    return ds


def files(folder: Path, original: bytes, candidate: bytes, sop_class: str = PDF) -> Instance:
    """The original, and a candidate without identity in its header that holds another document."""
    before, after = an_object(original, sop_class), an_object(candidate, sop_class)
    after.PatientName, after.PatientID, after.PatientBirthDate = "", "PSEUDO", ""
    instance = Instance("0001", folder / "original", folder / "candidate")
    before.save_as(instance.original, enforce_file_format=True)
    after.save_as(instance.candidate, enforce_file_format=True)
    return instance


def document(instance: Instance) -> bytes:
    ds = pydicom.dcmread(instance.candidate)
    return ds.EncapsulatedDocument[: ds.EncapsulatedDocumentLength]


def judged(instance: Instance, **parameters: object) -> Verdict:
    pair = Pair(instance.name, instance.original, instance.candidate)
    return ResidualDocument(**parameters).judge([pair], POLICY)


def stored(estimate: Estimate) -> Estimate:
    """As it comes back from the disk."""
    return Estimate(copy.deepcopy(dict(estimate.facts)))


def test_a_redacted_pdf_keeps_its_picture_and_loses_everything_that_tells(tmp_path: Path) -> None:
    instance = files(tmp_path, a_report(), BLANKS[PDF].data)
    stage = Documents(pdf="redact")
    estimate = stored(stage.estimate([instance], WORK))
    (step,) = stage.apply([instance], WORK, estimate)
    assert (step.stage, step.counts["pages"]) == ("documents", 1)
    data = document(instance)
    with pikepdf.open(io.BytesIO(data)) as pdf:
        assert not pdf.docinfo
        assert not pdf.attachments
        assert "/OpenAction" not in pdf.Root
    with pypdfium2.PdfDocument(data) as pdf:
        assert tuple(round(side) for side in pdf[0].get_size()) == SIZE
        assert pdf[0].get_textpage().count_chars() == 0
        shown = pdf[0].render(scale=150 / 72, grayscale=True).to_numpy().squeeze()
    square = shown[int((300 - 20 - 100) * 150 / 72), int((30 + 40) * 150 / 72)]
    assert abs(int(square) - 90) <= 6  # the picture's grey square is still there
    assert judged(instance).outcome is Outcome.PASS


def test_the_same_pdf_is_redacted_to_the_same_bytes(tmp_path: Path) -> None:
    stage = Documents(pdf="redact")
    written = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        instance = files(tmp_path / name, a_report(), BLANKS[PDF].data)
        stage.apply([instance], WORK, stored(stage.estimate([instance], WORK)))
        written.append(instance.candidate.read_bytes())
    assert written[0] == written[1]


def test_an_estimate_holds_no_word_of_the_document(tmp_path: Path) -> None:
    instance = files(tmp_path, a_report(), BLANKS[PDF].data)
    facts = str(Documents(pdf="redact").estimate([instance], WORK).facts).lower()
    assert not any(word in facts for word in ("zzsynth", "leaktest", "quastenflosser", "egon", "1950"))


def test_only_identifying_text_goes_where_the_policy_says_so(tmp_path: Path) -> None:
    instance = files(tmp_path, a_report(picture="120 kV 200 mA"), BLANKS[PDF].data)
    stage = Documents(pdf="redact", text="identifying")
    stage.apply([instance], WORK, stored(stage.estimate([instance], WORK)))
    with pypdfium2.PdfDocument(document(instance)) as pdf:
        shown = pdf[0].render(scale=150 / 72, grayscale=True).to_numpy().squeeze()
    rows = slice(int(180 * 150 / 72), int(240 * 150 / 72))
    assert shown[rows, int(120 * 150 / 72) : int(300 * 150 / 72)].min() < 100  # the marks are there
    assert judged(instance).outcome is Outcome.PASS


@pytest.mark.parametrize(("sop_class", "parameters"), [(PDF, {"pdf": "hold"}), (CDA, {"other": "hold"})])
def test_documents_hold_where_the_policy_says_so(tmp_path: Path, sop_class: str, parameters: dict[str, str]) -> None:
    instance = files(tmp_path, a_report(), BLANKS[sop_class].data, sop_class)
    stage = Documents(**parameters)  # type: ignore[arg-type]
    with pytest.raises(Hold, match="encapsulated_document"):
        stage.apply([instance], WORK, stage.estimate([instance], WORK))


@pytest.mark.parametrize("sop_class", sorted(BLANKS))
def test_a_blank_document_stays_blank_and_passes(tmp_path: Path, sop_class: str) -> None:
    instance = files(tmp_path, a_report(), BLANKS[sop_class].data, sop_class)
    before = instance.candidate.read_bytes()
    stage = Documents()
    stage.apply([instance], WORK, stage.estimate([instance], WORK))
    assert instance.candidate.read_bytes() == before
    verdict = judged(instance)
    assert (verdict.outcome, verdict.assessed["documents"]) == (Outcome.PASS, 1)


@pytest.mark.parametrize("broken", [b"", b"%PDF-1.4\nnothing\n%%EOF", b"no PDF at all"], ids=["empty", "bad", "other"])
def test_a_pdf_that_cannot_be_shown_holds(tmp_path: Path, broken: bytes) -> None:
    instance = files(tmp_path, broken or b"\0\0", BLANKS[PDF].data)
    with pytest.raises(Hold, match="encapsulated_document"):
        Documents(pdf="redact").estimate([instance], WORK)


def test_a_qr_code_on_a_page_goes_and_the_gate_holds_one_that_stays(tmp_path: Path) -> None:
    label = a_picture("")
    code = zxingcpp.write_barcode_to_image(zxingcpp.create_barcode("LEAK0001", zxingcpp.BarcodeFormat.QRCode), scale=5)
    label.paste(Image.fromarray(np.asarray(code)), (400, 20))
    report = a_report(words="", drawn=label)
    instance = files(tmp_path, report, report)
    assert "machine-readable code" in str(judged(instance))
    stage = Documents(pdf="redact")
    stage.apply([instance], WORK, stored(stage.estimate([instance], WORK)))
    page = pypdfium2.PdfDocument(document(instance))[0].render(scale=2).to_numpy()
    assert not zxingcpp.read_barcodes(page)
    assert judged(instance).outcome is Outcome.PASS


def test_objects_that_are_no_documents_are_left_alone(tmp_path: Path) -> None:
    instance = files(tmp_path, b"", b"", "1.2.840.10008.5.1.4.1.1.2")
    before = instance.candidate.read_bytes()
    stage = Documents(pdf="hold", other="hold")
    assert stage.apply([instance], WORK, stage.estimate([instance], WORK))[0].counts == {}
    assert instance.candidate.read_bytes() == before


def test_an_untouched_report_is_held_by_the_gate(tmp_path: Path) -> None:
    verdict = judged(files(tmp_path, a_report(), a_report()))
    rules = {finding.rule for finding in verdict.findings}
    assert (verdict.outcome, verdict.reason) == (Outcome.HOLD, "residual_document")
    assert "a text layer" in rules
    assert any("metadata" in rule for rule in rules)
    assert any(rule.startswith("text") for rule in rules)
    assert not any(word in str(verdict).lower() for word in ("zzsynth", "quastenflosser"))


def _plain(picture: Image.Image, *, content: bytes = b"", extra: str = "") -> bytes:
    """A PDF of one image of a page, as the stage writes it, with something added."""
    pdf = pikepdf.new()
    page = pdf.add_blank_page(page_size=SIZE)
    image = pikepdf.Stream(pdf, np.asarray(picture).tobytes())
    image.stream_dict = pikepdf.Dictionary(
        Type=pikepdf.Name.XObject,
        Subtype=pikepdf.Name.Image,
        Width=picture.width,
        Height=picture.height,
        ColorSpace=pikepdf.Name.DeviceGray,
        BitsPerComponent=8,
    )
    page.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(Im0=pdf.make_indirect(image)))
    page.Contents = pikepdf.Stream(pdf, content or b"q 420 0 0 300 0 0 cm /Im0 Do Q")
    if extra:
        pdf.Root[extra] = pdf.make_indirect(pikepdf.Stream(pdf, b"Zzsynth"))
    out = io.BytesIO()
    pdf.save(out, deterministic_id=True, object_stream_mode=pikepdf.ObjectStreamMode.disable)
    return out.getvalue()


EMPTY = Image.new("L", (420, 300), 255)


def test_pictures_alone_pass(tmp_path: Path) -> None:
    assert judged(files(tmp_path, a_report(), _plain(EMPTY))).findings == ()


@pytest.mark.parametrize(
    "data",
    [
        _plain(EMPTY, extra="/Metadata"),
        _plain(EMPTY, content=b"q 420 0 0 300 0 0 cm /Im0 Do Q % Zzsynth Leaktest"),
        _plain(EMPTY) + b"Zzsynth Leaktest",
        _plain(EMPTY) + _plain(EMPTY),
        _plain(EMPTY).replace(b"%PDF-", b"junk%PDF-", 1),
    ],
    ids=["metadata", "comment", "tail", "two", "head"],
)
def test_whatever_is_beside_the_pictures_is_a_finding(tmp_path: Path, data: bytes) -> None:
    assert judged(files(tmp_path, a_report(), data)).outcome is Outcome.HOLD


def test_a_picture_that_no_page_shows_is_looked_at(tmp_path: Path) -> None:
    hidden = _plain(a_picture("Quastenflosser Egon"), content=b"q 1 0 0 1 900 900 cm /Im0 Do Q")
    verdict = judged(files(tmp_path, a_report(), hidden))
    assert verdict.reason == "residual_document"


@pytest.mark.parametrize(
    ("sop_class", "data"),
    [
        (STL, b"Zzsynth Leaktest".ljust(80) + bytes(4)),
        (STL, b"Removed".ljust(80) + b"\1\0\0\0" + bytes(50)),
        (CDA, BLANKS[CDA].data.replace(b"Removed", b"Zzsynth", 1)),
        (CDA, BLANKS[CDA].data.replace(b"<text>", b"<text><!-- Zzsynth -->", 1)),
        (CDA, BLANKS[CDA].data.replace(b"nonXMLBody", b"Zzsynth")),
    ],
    ids=["solid with a name", "solid", "text", "comment", "element"],
)
def test_other_documents_may_only_be_blank(tmp_path: Path, sop_class: str, data: bytes) -> None:
    verdict = judged(files(tmp_path, a_report(), data, sop_class))
    assert {finding.rule for finding in verdict.findings} == {"a document that is none of the blank ones"}
