"""Siemens CSA headers (0029,xx10) and (0029,xx20): emptied but for a list of technical fields, and still readable.

Format "SV10" (little endian): "SV10", 04 03 02 01, number of tags, 77; then each tag: name (64 bytes), multiplicity,
VR (4), type, number of items, 77 or 205; then each item: four words of which the second is the length of its value;
the value, padded to a multiple of four. Names and values end at the first NUL; what follows is left-over memory, which
may hold anything, so it is blanked as well.

Offsets and lengths stay as they are (cases.md 22): a reader finds the same fields, those that are not listed without a
value. What is not exactly this format is not cleaned.
"""

from __future__ import annotations

import re
import struct

MAGICS = (b"SV10\x04\x03\x02\x01", b"SV10\0\0\0\0")  # the second as some rewriters leave it
CHECKS = frozenset({77, 205})
MAX_TAGS, MAX_ITEMS = 256, 1024  # far beyond what devices write
_HEAD = struct.Struct("<II")
_TAG = struct.Struct("<64si4siii")
_ITEM = struct.Struct("<iiii")
_NAME = re.compile(rb"[A-Za-z0-9_.]{1,63}")
_NUMBER = re.compile(rb"\s*[-+]?[0-9]{1,12}(\.[0-9]*)?([eE][-+]?[0-9]{1,3})?\s*")

# Diffusion, slice timing and order, mosaic, phase encoding, geometry, echo and readout: all numbers.
NUMBERS = frozenset(
    word.encode()
    for word in (
        *("B_value", "B_matrix", "DiffusionGradientDirection", "NumberOfImagesInMosaic", "MosaicRefAcqTimes"),
        *("SliceNormalVector", "SliceMeasurementDuration", "TimeAfterStart", "ProtocolSliceNumber", "MultistepIndex"),
        *("BandwidthPerPixelPhaseEncode", "PhaseEncodingDirectionPositive", "RealDwellTime", "ReadoutOS"),
        *("EchoLinePosition", "EchoColumnPosition", "EchoPartitionPosition", "EchoTrainLength", "EchoTime"),
        *("RepetitionTime", "InversionTime", "FlipAngle", "NumberOfAverages", "ImagedNucleusFrequency"),
        *("Rows", "Columns", "PixelSpacing", "SliceThickness", "SpacingBetweenSlices", "SliceLocation"),
        *("ImagePositionPatient", "ImageOrientationPatient", "Actual3DImaPartNumber", "SlicePosition_PCS"),
        *("ImaAbsTablePosition", "ImaRelTablePosition", "AbsTablePosition", "RelTablePosition"),
        *("PhaseGradientAmplitude", "ReadoutGradientAmplitude", "SelectionGradientAmplitude", "FlowVenc"),
        *("PercentSampling", "PercentPhaseFieldOfView", "PixelBandwidth", "NumberOfPhaseEncodingSteps"),
        *("AcquisitionMatrix", "SequenceMask", "DataPointRows", "DataPointColumns", "NumberOfFrames"),
        *("TriggerTime", "NominalInterval", "CardiacNumberOfImages", "RFEchoTrainLength"),
        *("SliceArrayConcatenations", "SliceResolution", "MeasuredFourierLines"),
    )
)
# Fields with a few words of their own.
CODES = {
    b"DiffusionDirectionality": frozenset({b"DIRECTIONAL", b"BMATRIX", b"ISOTROPIC", b"NONE"}),
    b"RFSWDDataType": frozenset({b"measured", b"predicted"}),
    b"GSWDDataType": frozenset({b"measured", b"predicted"}),
    b"ImagedNucleus": frozenset({b"1H", b"3HE", b"7LI", b"13C", b"19F", b"23NA", b"31P", b"129XE"}),
    b"MRAcquisitionType": frozenset({b"2D", b"3D", b"1D", b"4D"}),
    b"PhaseEncodingDirection": frozenset({b"ROW", b"COL"}),
    b"VariableFlipAngleFlag": frozenset({b"Y", b"N"}),
}
# Numbers with a few letters among them: loop counters, matrix, acceleration.
PATTERNS = {
    b"ICE_Dims": re.compile(rb"[X0-9]{1,5}(_[X0-9]{1,5}){3,20}"),
    b"AcquisitionMatrixText": re.compile(rb"\d{1,4}[ps]?\*\d{1,4}[ps]?"),
    b"ImaPATModeText": re.compile(rb"p\d"),
    b"PATModeText": re.compile(rb"p\d"),
}


def cleaned_csa(value: bytes) -> bytes | None:
    """The header with its listed fields only, of the same length; None when it is not SV10 from end to end."""
    if not value.startswith(MAGICS) or len(value) < 16:
        return None
    tags, check = _HEAD.unpack_from(value, 8)
    if check != 77 or not 0 < tags <= MAX_TAGS:
        return None
    out = bytearray(len(value))
    out[:16] = value[:16]
    position = 16
    for _ in range(tags):
        position = _clean_tag(value, out, position)
        if position < 0:
            return None
    return bytes(out)  # behind the last tag: zeros


def _clean_tag(value: bytes, out: bytearray, position: int) -> int:
    """Write one tag to `out`; the offset behind it, -1 when it is none."""
    if position + _TAG.size > len(value):
        return -1
    field, multiplicity, vr, kind, items, check = _TAG.unpack_from(value, position)
    name = field.partition(b"\0")[0]
    if _NAME.fullmatch(name) is None or check not in CHECKS or not 0 <= items <= MAX_ITEMS:
        return -1
    vr = vr.partition(b"\0")[0]
    if not vr.isalpha() or len(vr) != 2:
        return -1
    _TAG.pack_into(out, position, name, multiplicity, vr, kind, items, check)
    position += _TAG.size
    for _ in range(items):
        if position + _ITEM.size > len(value):
            return -1
        words = _ITEM.unpack_from(value, position)
        length = words[1]
        start = position + _ITEM.size
        if not 0 <= length <= len(value) - start:
            return -1
        _ITEM.pack_into(out, position, *words)
        text = value[start : start + length].partition(b"\0")[0]
        if _stays(name, text):
            out[start : start + len(text)] = text
        position = start + (length + 3) // 4 * 4
    return position if position <= len(value) else -1


def _stays(name: bytes, text: bytes) -> bool:
    if name in NUMBERS:
        return _NUMBER.fullmatch(text) is not None
    if name in PATTERNS:
        return PATTERNS[name].fullmatch(text.strip()) is not None
    return text.strip() in CODES.get(name, ())
