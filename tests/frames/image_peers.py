"""Independent decoders for tests: DCMTK's dcmdjpeg, dcmdjpls and dcmdrle, and GDCM in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom import dcmread
from pydicom.pixels import pixel_array

from gateway.frames.syntaxes import (
    JPEG_BASELINE,
    JPEG_EXTENDED,
    JPEG_LOSSLESS,
    JPEG_LOSSLESS_SV1,
    JPEG_LS_LOSSLESS,
    JPEG_LS_LOSSY,
    RLE,
)
from tests.peers import dcmtk

Array = NDArray[Any]
DCMTK = {
    RLE: ["dcmdrle"],
    JPEG_LS_LOSSLESS: ["dcmdjpls"],
    JPEG_LS_LOSSY: ["dcmdjpls"],
    **{uid: ["dcmdjpeg", "+cn"] for uid in (JPEG_BASELINE, JPEG_EXTENDED, JPEG_LOSSLESS, JPEG_LOSSLESS_SV1)},
}
GDCM = """
import sys, gdcm
for path in sys.argv[1:]:
    reader = gdcm.ImageReader()
    reader.SetFileName(path)
    buffer = reader.GetImage().GetBuffer() if reader.Read() else None
    data = b"" if buffer is None else buffer.encode("utf-8", "surrogateescape")
    planar = reader.GetImage().GetPlanarConfiguration() if data else 0
    sys.stdout.buffer.write(len(data).to_bytes(8, "little") + bytes([planar]) + data)
"""


def by_dcmtk(path: Path, syntax: str, folder: Path) -> Array | None:
    """Stored values of all frames, or None where DCMTK has no decoder for the syntax."""
    if syntax not in DCMTK:
        return None
    target = folder / "dcmtk.dcm"
    name, *options = DCMTK[syntax]
    subprocess.run([dcmtk(name), *options, path, target], check=True, capture_output=True)
    return pixel_array(dcmread(target), raw=True)


def by_gdcm(paths: Sequence[Path], like: Array) -> list[Array]:
    """Words of all frames of each file, shaped like `like`; empty where GDCM cannot. A process of its own, because some
    inputs make GDCM abort.
    """
    out = subprocess.run([sys.executable, "-c", GDCM, *paths], check=True, capture_output=True).stdout
    found = []
    while out:
        size, planar = int.from_bytes(out[:8], "little"), out[8]
        words = np.frombuffer(out[9 : 9 + size], like.dtype)[: like.size] if size else np.zeros(0, like.dtype)
        if planar and size:
            words = np.moveaxis(words.reshape(*like.shape[:-3], 3, *like.shape[-3:-1]), -3, -1)
        found.append(words.reshape(like.shape) if size else words)
        out = out[9 + size :]
    return found
