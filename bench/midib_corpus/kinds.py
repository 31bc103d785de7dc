"""SOP class and Image Type by modality."""

from __future__ import annotations

SOP_CLASSES = {
    "CR": "1.2.840.10008.5.1.4.1.1.1",
    "CT": "1.2.840.10008.5.1.4.1.1.2",
    "DX": "1.2.840.10008.5.1.4.1.1.1.1",
    "MG": "1.2.840.10008.5.1.4.1.1.1.2",
    "MR": "1.2.840.10008.5.1.4.1.1.4",
    "PT": "1.2.840.10008.5.1.4.1.1.128",
    "SR": "1.2.840.10008.5.1.4.1.1.88.33",
    "US": "1.2.840.10008.5.1.4.1.1.3.1",
}
IMAGE_TYPES = {
    "CR": "DERIVED\\PRIMARY",
    "CT": "ORIGINAL\\PRIMARY\\AXIAL",
    "DX": "ORIGINAL\\PRIMARY\\",
    "MG": "DERIVED\\PRIMARY",
    "MR": "ORIGINAL\\PRIMARY\\M\\ND",
    "PT": "ORIGINAL\\PRIMARY",
    "US": "ORIGINAL\\PRIMARY\\ABDOMINAL\\0001",
}
