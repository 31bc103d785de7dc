"""QR and bar codes that can be read out of a view of a frame, in the range that a viewer would open it in."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gateway.gate.pixel_views import Grey, window


def codes_in(grey: Grey) -> Iterator[tuple[int, int, int, int]]:
    """(top, left, bottom, right) of each code."""
    import zxingcpp

    for code in zxingcpp.read_barcodes(np.ascontiguousarray(window(grey))):
        at = code.position
        corners = (at.top_left, at.top_right, at.bottom_right, at.bottom_left)
        ys, xs = [corner.y for corner in corners], [corner.x for corner in corners]
        yield min(ys), min(xs), max(ys), max(xs)
