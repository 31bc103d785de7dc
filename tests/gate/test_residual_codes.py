"""The gate holds a picture out of which a QR or bar code can be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import zxingcpp
from gate_cases import encode
from residual_cases import background, judged, with_pixels

from gateway.study import Outcome


@pytest.mark.parametrize("dtype", ["u1", "u2"])
@pytest.mark.parametrize("name", ["QRCode", "DataMatrix", "Code128"])
def test_a_code_is_a_finding_with_its_place_and_without_what_it_says(tmp_path: Path, name: str, dtype: str) -> None:
    label = np.asarray(
        zxingcpp.write_barcode_to_image(
            zxingcpp.create_barcode("LEAK0001", getattr(zxingcpp.BarcodeFormat, name)), scale=2
        )
    )
    picture = background(160, 400).astype(dtype)
    picture[20 : 20 + label.shape[0], 30 : 30 + label.shape[1]] = label.astype(dtype) * (1 if dtype == "u1" else 7)
    verdict = judged(tmp_path, encode(with_pixels(picture)))
    assert (verdict.outcome, verdict.reason) == (Outcome.HOLD, "residual_text")
    assert "machine-readable code" in str(verdict)
    assert "LEAK0001" not in str(verdict)
