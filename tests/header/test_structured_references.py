"""One map for all objects: what refers to what is the same before and after (cases.md 31, 34, 35)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pydicom
import pytest
from header_objects import CT, KOS, PSEUDONYMS, SYNTAXES, ct_base, encoded, one, policy
from pydicom.dataset import Dataset
from pydicom.uid import UID_dictionary
from reports import content, report

from gateway.header import scrub_file
from gateway.header.beyond_table import STRUCTURAL_UIDS

ALL = policy("clean-structured-content", "clean-graphics", "retain-longitudinal-modified-dates", "retain-safe-private")
STUDY, CT_SERIES, FRAME = "1.2.3.100", "1.2.3.100.1", "1.2.3.100.9"
SLICES = [f"1.2.3.100.1.{i}" for i in range(3)]


def base(sop_class: str, series: str, instance: str, modality: str) -> Dataset:
    ds = ct_base()
    ds.SOPClassUID, ds.SOPInstanceUID, ds.Modality = sop_class, instance, modality
    ds.StudyInstanceUID, ds.SeriesInstanceUID = STUDY, series
    ds.ContentDate, ds.ContentTime = "20200131", "101500"
    if sop_class != CT:
        del ds.PixelData
    return ds


def reference(uid: str, sop_class: str = CT) -> Dataset:
    return one(ReferencedSOPClassUID=sop_class, ReferencedSOPInstanceUID=uid)


def series_reference(keyword: str = "ReferencedInstanceSequence") -> Dataset:
    return one(SeriesInstanceUID=CT_SERIES, **{keyword: [reference(uid) for uid in SLICES]})


def ct(index: int) -> Dataset:
    ds = base(CT, CT_SERIES, SLICES[index], "CT")
    ds.FrameOfReferenceUID = FRAME
    ds.SourceImageSequence = [reference(SLICES[0])]
    ds.ReferencedImageSequence = [reference(SLICES[-1])]
    return ds


def presentation_state() -> Dataset:
    ds = base("1.2.840.10008.5.1.4.1.1.11.1", "1.2.3.100.2", "1.2.3.100.2.1", "PR")
    ds.ReferencedSeriesSequence = [series_reference("ReferencedImageSequence")]
    ds.GraphicAnnotationSequence = [
        one(
            GraphicLayer="L1",
            ReferencedImageSequence=[reference(SLICES[1])],
            GraphicObjectSequence=[one(GraphicType="POINT", GraphicData=[1.0, 2.0])],
        )
    ]
    return ds


def structure_set() -> Dataset:
    """Case 3: five levels deep, and a Referenced SOP Instance UID that is the study's UID."""
    ds = base("1.2.840.10008.5.1.4.1.1.481.3", "1.2.3.100.3", "1.2.3.100.3.1", "RTSTRUCT")
    series = one(SeriesInstanceUID=CT_SERIES, ContourImageSequence=[reference(uid) for uid in SLICES])
    study = one(
        ReferencedSOPClassUID="1.2.840.10008.3.1.2.3.1",
        ReferencedSOPInstanceUID=STUDY,
        RTReferencedSeriesSequence=[series],
    )
    ds.ReferencedFrameOfReferenceSequence = [one(FrameOfReferenceUID=FRAME, RTReferencedStudySequence=[study])]
    contour = one(ContourGeometricType="POINT", NumberOfContourPoints=1, ContourData=["1", "2", "3"])
    contour.ContourImageSequence = [reference(SLICES[2])]
    ds.StructureSetROISequence = [one(ROINumber=1, ReferencedFrameOfReferenceUID=FRAME, ROIName="GTV")]
    ds.ROIContourSequence = [one(ReferencedROINumber=1, ContourSequence=[contour])]
    return ds


def segmentation() -> Dataset:
    ds = base("1.2.840.10008.5.1.4.1.1.66.4", "1.2.3.100.4", "1.2.3.100.4.1", "SEG")
    ds.FrameOfReferenceUID = FRAME
    ds.ReferencedSeriesSequence = [series_reference()]
    ds.DimensionOrganizationSequence = [one(DimensionOrganizationUID="1.2.3.100.4.8")]
    ds.DimensionIndexSequence = [one(DimensionOrganizationUID="1.2.3.100.4.8", DimensionIndexPointer=0x0020000E)]
    derived = one(SourceImageSequence=[reference(SLICES[0])], DerivationCodeSequence=[])
    ds.PerFrameFunctionalGroupsSequence = [one(DerivationImageSequence=[derived])]
    ds.SegmentSequence = [one(SegmentNumber=1, SegmentLabel="Liver", TrackingUID="1.2.3.100.4.7", TrackingID="a")]
    ds.PixelData = bytes(128)
    ds["PixelData"].VR = "OW"
    return ds


def key_object() -> Dataset:
    image = content("IMAGE", None, ReferencedSOPSequence=[reference(SLICES[1])])
    segments = content("COMPOSITE", None)
    segments.ReferencedSOPSequence = [reference("1.2.3.100.4.1", "1.2.840.10008.5.1.4.1.1.66.4")]
    ds = report(image, segments, sop_class=KOS)
    ds.ContentSequence = [image, segments]
    ds.StudyInstanceUID, ds.SeriesInstanceUID, ds.SOPInstanceUID = STUDY, "1.2.3.100.5", "1.2.3.100.5.1"
    evidence = one(SeriesInstanceUID=CT_SERIES, ReferencedSOPSequence=[reference(uid) for uid in SLICES])
    ds.CurrentRequestedProcedureEvidenceSequence = [one(StudyInstanceUID=STUDY, ReferencedSeriesSequence=[evidence])]
    ds.IdenticalDocumentsSequence = [one(StudyInstanceUID=STUDY, ReferencedSeriesSequence=[evidence])]
    return ds


def registration() -> Dataset:
    ds = base("1.2.840.10008.5.1.4.1.1.66.1", "1.2.3.100.6", "1.2.3.100.6.1", "REG")
    ds.FrameOfReferenceUID = FRAME
    ds.RegistrationSequence = [one(FrameOfReferenceUID=FRAME, ReferencedImageSequence=[reference(SLICES[0])])]
    ds.ReferencedSeriesSequence = [series_reference()]
    ds.StudiesContainingOtherReferencedInstancesSequence = [
        one(StudyInstanceUID="1.2.3.200", ReferencedSeriesSequence=[one(SeriesInstanceUID="1.2.3.200.1")])
    ]
    return ds


def dose_report() -> Dataset:
    """RDSR: the irradiation event that the image names as well, a device observer, text with a UID in it."""
    event = content("UIDREF", ("113769", "DCM"), UID="1.2.3.100.77")
    ds = report(event, content("UIDREF", ("121012", "DCM"), UID="1.2.3.100.78"))
    ds.SOPClassUID = "1.2.840.10008.5.1.4.1.1.88.67"
    ds.StudyInstanceUID, ds.SeriesInstanceUID, ds.SOPInstanceUID = STUDY, "1.2.3.100.8", "1.2.3.100.8.1"
    return ds


def objects() -> list[Dataset]:
    images = [ct(index) for index in range(3)]
    images[0].IrradiationEventUID = "1.2.3.100.77"
    return [
        *images,
        presentation_state(),
        structure_set(),
        segmentation(),
        key_object(),
        registration(),
        dose_report(),
    ]


def uids(ds: Dataset, path: str = "") -> Iterator[tuple[str, str]]:
    """(where, UID) of every UID that names an instance or part of one."""
    for element in ds:
        where = f"{path}/{element.keyword}"
        if element.VR == "SQ":
            for index, item in enumerate(element.value):
                yield from uids(item, f"{where}[{index}]")
        elif element.VR == "UI" and element.keyword not in STRUCTURAL_UIDS:
            for value in [element.value] if isinstance(element.value, str) else element.value:
                if value not in UID_dictionary:
                    yield where, str(value)


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_the_graph_of_all_uids_of_a_study_is_isomorphic_before_and_after(tmp_path: Path, syntax: str) -> None:
    """Every object is cleaned by itself, in any order and encoding, as separate sessions and associations do."""
    before: list[tuple[str, str]] = []
    after: list[tuple[str, str]] = []
    for index, ds in enumerate(objects()):
        source, target = tmp_path / f"{index}.dcm", tmp_path / f"{index}.out"
        source.write_bytes(encoded(ds, syntax))
        scrub_file(source, target, policy=ALL, pseudonyms=PSEUDONYMS)
        before += [(f"{index}{where}", uid) for where, uid in uids(ds)]
        after += [(f"{index}{where}", uid) for where, uid in uids(pydicom.dcmread(target))]
    assert [where for where, _ in before] == [where for where, _ in after]
    mapping = dict(zip((uid for _, uid in before), (uid for _, uid in after), strict=True))
    assert [uid for _, uid in after] == [mapping[uid] for _, uid in before]  # a function
    assert len(set(mapping.values())) == len(mapping)  # and one to one
    assert not set(mapping) & set(mapping.values())
    counted = Counter(uid for _, uid in before)
    assert counted[SLICES[0]] > 5
    assert counted["1.2.3.100.77"] == 2


def test_identifiers_inside_numbers_of_a_contour_and_a_matrix_are_left_alone(tmp_path: Path) -> None:
    ds = structure_set()
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(encoded(ds))
    scrub_file(source, target, policy=ALL, pseudonyms=PSEUDONYMS)
    out = pydicom.dcmread(target)
    contour = out.ROIContourSequence[0].ContourSequence[0]
    assert [float(v) for v in contour.ContourData] == [1.0, 2.0, 3.0]
