"""Encoded pixels to arrays and back, every storage transfer syntax, without any loss that the object did not have.

Who changes pixels uses this and nothing below it. It never looks at what the pixels show; the gate never uses it.
"""

from __future__ import annotations

from gateway.frames.boxes import Box
from gateway.frames.changes import Changes
from gateway.frames.image import EncodedImage
from gateway.frames.output import change_header, redact, replace_frames, transcode
from gateway.frames.syntaxes import KEYWORDS

__all__ = ["KEYWORDS", "Box", "Changes", "EncodedImage", "change_header", "redact", "replace_frames", "transcode"]
