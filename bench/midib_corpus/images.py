"""What images have and reports do not: the acquisition's own attributes, a vendor's private block, pixels."""

from __future__ import annotations

import datetime as dt

from bench.midib_corpus import clinical, fresh, kinds, pixels, technical, unseen, vendors, widened
from bench.midib_corpus.modules import add_table
from bench.midib_corpus.people import digits
from bench.midib_corpus.phrases import NAMES, RECORDS, planted_in
from bench.midib_corpus.recorder import Recorder, coerced
from bench.midib_corpus.reports import add_code
from bench.midib_corpus.scene import Series, fresh_uid
from bench.midib_score.key import digest_of

TRACER = ("Y-X1743", "SRT", "^18^Fluorine Fluorodeoxyglucose")
F18 = ("C-111A1", "SRT", "^18^Fluorine")


def add_image(rec: Recorder, series: Series, *, tcia_private: bool) -> bytes:
    """Everything but the modules that all objects share. Returns Pixel Data."""
    modality, rng = series.modality, series.rng
    rec.keep("ImageType", coerced("CS", kinds.IMAGE_TYPES[modality]), "1")
    for row in technical.IMAGE.strip().splitlines():
        if modality == "US" and row.split(" ")[0] in _NOT_COLOUR:
            continue
        if row.startswith("BurnedIn") and (series.burned or modality in ("CT", "MR", "PT")):
            continue
        add_table(rec, series, row)
    add_table(rec, series, technical.BY_MODALITY[modality])
    _extras(rec, series)
    add_private(rec, series, tcia_private=tcia_private)
    lines = burned_lines(series) if series.burned else ()
    attributes, data, box = pixels.draw(modality, rng, lines)
    for keyword, value in attributes.items():
        rec.keep(keyword, value, "1")
    pixels.set_pixels(rec.dirty, data)
    pixels.set_pixels(rec.clean, data if not box else bytes(len(data)))
    if box:
        rec.check("pixels_hidden", 0x7FE00010, "", box, NAMES)
    else:
        rec.check("pixels_retained", 0x7FE00010, "", digest_of(data), "TCIA-P15-PIX-K")
    return data


_NOT_COLOUR = frozenset(
    {"PhotometricInterpretation", "SamplesPerPixel", "RescaleIntercept", "RescaleSlope", "RescaleType"}
)


def burned_lines(series: Series) -> tuple[str, ...]:
    """What a console writes into the corner."""
    who = series.study.who
    return (f"{who.name.words} [{who.sex}]", f"DOB: {who.born:%m/%d/%Y}", f"{series.day:%m/%d/%Y}")


def _extras(rec: Recorder, series: Series) -> None:
    modality, rng, study = series.modality, series.rng, series.study
    if modality == "US":
        rec.keep("SamplesPerPixel", 3, "1")
        rec.keep("PhotometricInterpretation", "RGB", "1")
        rec.keep("PlanarConfiguration", 0, "1")
        region = rec.item("SequenceOfUltrasoundRegions")
        for keyword, number in _REGION:
            region.keep(keyword, number, "1")
    if modality in ("CT", "MR"):
        agent = rng.choice(series.own.of(clinical.AGENTS, widened.AGENTS, unseen.AGENTS, fresh.AGENTS))
        planted = planted_in(agent, study.who, rng, study.day) if rng.random() < 0.2 else None
        rec.describe("ContrastBolusAgent", planted or agent, "2")
    if modality in ("CR", "DX", "MG"):
        rec.describe("AcquisitionDeviceProcessingDescription", "GA 1.0 GT F GC 0.8 RN 4 RE 0.5")
    if modality == "CR":
        rec.remove("PlateID", digits(rng, 8), "HIPAA-M")
        rec.remove("CassetteID", digits(rng, 7), "HIPAA-M")
    if modality == "MG":
        view = rec.item("ViewCodeSequence")
        view.keep("CodeValue", "R-10242", "1")
        view.keep("CodingSchemeDesignator", "SNM3", "1")
        view.keep("CodeMeaning", "cranio-caudal", "1")
    if modality == "PT":
        _tracer(rec, series)
    if rng.random() < 0.5:
        derived = planted_in("Lossless JPEG selection value", study.who, rng, study.day, limit=400)
        if derived is not None:
            rec.hide("DerivationDescription", derived)


_REGION = (
    ("RegionSpatialFormat", 1),
    ("RegionDataType", 1),
    ("RegionFlags", 2),
    ("RegionLocationMinX0", 2),
    ("RegionLocationMinY0", 2),
    ("RegionLocationMaxX1", 20),
    ("RegionLocationMaxY1", 14),
    ("PhysicalUnitsXDirection", 3),
    ("PhysicalDeltaX", 0.0425),
)


def _tracer(rec: Recorder, series: Series) -> None:
    study, rng = series.study, series.rng
    item = rec.item("RadiopharmaceuticalInformationSequence")
    item.keep("Radiopharmaceutical", "Fluorodeoxyglucose", "3")
    item.keep("RadiopharmaceuticalStartTime", study.time, "3")
    item.date("RadiopharmaceuticalStartDateTime", f"{study.day:%Y%m%d}{study.time}")
    item.keep("RadionuclideTotalDose", series.pick("dose", ["370000000", "285500000"]), "3")
    item.keep("RadionuclideHalfLife", "6586.2", "3")
    item.keep("RadionuclidePositronFraction", "0.967", "3")
    add_code(item, "RadionuclideCodeSequence", F18)
    add_code(item, "RadiopharmaceuticalCodeSequence", TRACER)
    item.uid("RadiopharmaceuticalAdministrationEventUID", series.pick("dose uid", [fresh_uid(rng)]))


def add_private(rec: Recorder, series: Series, *, tcia_private: bool) -> None:
    """The vendor's block, and what a local system added. Without TCIA's list, only PS3.15's own rows are asked for."""
    for line in filter(None, (series.block + vendors.UNKNOWN).splitlines()):
        creator, group, offset, vr, fate, values = line.split(";", 5)
        text = series.pick(f"private {creator} {group} {offset}", values.split("|")) if fate != "delete" else values
        text = series.pick(f"filled {creator} {group} {offset}", [_filled(text, series)])
        place = (int(group, 16), creator, int(offset, 16))
        if fate == "tcia":
            fate = "keep" if tcia_private else "carry"
        before = len(rec.checks)
        rec.private(place, vr, text, "keep" if fate == "carry" else fate)
        if fate == "carry" or (fate in ("date", "uid") and not tcia_private):
            rec.checks[before:] = [check for check in rec.checks[before:] if check.answer_category in _UNDISPUTED]
    if series.rng.random() < 0.3:
        nested = rec.private_item((0x0009, "GEIIS", 0x10), stays=False)
        nested.remove("PatientName", series.study.who.name.dicom, NAMES, planted=series.study.who.name.words)
        nested.remove("PatientID", series.study.who.mrn, RECORDS)


_UNDISPUTED = frozenset({"HIPAA-C", "HIPAA-R", "DICOM-P15-BASIC-U"})


def _filled(text: str, series: Series) -> str:
    study, who, rng = series.study, series.study.who, series.rng
    if "{" not in text:
        return text
    noon = dt.datetime.combine(study.day, dt.time(12), dt.UTC)
    return text.format(
        name=who.name.words,
        last=who.name.last,
        mrn=who.mrn,
        born=f"{who.born:%Y%m%d}",
        referring=who.referring.dicom,
        street=who.street,
        hospital=who.hospital,
        date=f"{study.day:%Y%m%d}",
        datetime=f"{study.day:%Y%m%d}{study.time}.00",
        epoch=int(noon.timestamp()),
        uid=fresh_uid(rng),
        blob=(b"PHI " + who.name.dicom.encode() + bytes(rng.randbytes(24))).hex(),
        suite=digits(rng, 2),
        service=digits(rng, 9),
        seconds=digits(rng, 2),
        number=digits(rng, 5),
    )
