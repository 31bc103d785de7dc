"""Pictures, words and bits in places that no viewer shows and no detector of text looks at.

Overlays and curves that are left, an overlay in unused bits of the pixels, icons, frames beyond NumberOfFrames, bytes
behind the last frame or behind a compressed one, comments in compressed streams, values that differ but show as the
same colour of a palette or as the same padding. The picture itself stays bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from gateway.durable import writing
from gateway.errors import Hold
from gateway.frames import Changes, EncodedImage
from gateway.frames.source import PYDICOM_FAILURES
from gateway.frames.tidying import survey, tidy
from gateway.pixels.hidden_values import look_alikes
from gateway.pixels.stage import Estimate, Instance, Scope, Work
from gateway.study import Step

ICON, OVERLAY_BIT_POSITION = 0x00880200, 0x60000102
GROUPS = {0x50: "curves", 0x60: "overlays"}  # repeating groups 5000-50FF, 6000-60FF


@dataclass(frozen=True)
class HiddenPixels:
    """Put it first, before detectors look: what is left is then what is shown.

    Step.counts says how many elements or frames held what: curves, overlays, icons (elements); extra_frames,
    trailing_bytes, stream_extras, unused_bits, altered_values (`gateway.frames.tidying`).
    """

    VERSION: ClassVar[str] = "2"
    SCOPE: ClassVar[Scope] = Scope.INSTANCE

    look_alikes: Literal["merge", "keep"] = "merge"  # values that show as the same colour, or as the same padding

    def estimate(self, _group: Sequence[Instance], _work: Work) -> Estimate:
        return Estimate()

    def apply(self, group: Sequence[Instance], _work: Work, _estimate: Estimate) -> list[Step]:
        """Raises Hold: overlay_in_pixels, pixels_unreadable, video_unsupported, unsupported_transfer_syntax,
        transcoding_failed.
        """
        return [self._apply(instance) for instance in group]

    def _apply(self, instance: Instance) -> Step:
        _refuse_overlay_in_values(instance.original)
        with EncodedImage.open(instance.candidate) as image:
            places = _places(image)
            canonical = look_alikes(image) if self.look_alikes == "merge" else None
            counts = survey(image, canonical)
        for kind in places.values():
            counts[kind] = counts.get(kind, 0) + 1
        if counts:
            with writing(instance.candidate) as file:
                changes = Changes(remove=frozenset(places))
                tidy(instance.candidate, Path(file.name), counts, canonical, changes)
        return Step("hidden_pixels", self.VERSION, dict(sorted(counts.items())))

    def describe(self) -> str:
        return (
            "Hidden pixels: overlays, curves and icons are removed, and so are unused bits, frames and bytes beyond "
            "the picture and comments in compressed frames; differences that a palette or a padding range hides "
            + ("go." if self.look_alikes == "merge" else "stay.")
        )


def _refuse_overlay_in_values(original: Path) -> None:
    """An overlay in unused bits goes with them. One in bits of the values cannot be told from the picture: Hold."""
    with EncodedImage.open(original) as image:
        lowest = image.high_bit - image.bits_stored + 1
        for tag in image.dataset.keys():  # noqa: SIM118
            if int(tag) & 0xFF00FFFF == OVERLAY_BIT_POSITION:
                try:
                    position = int(image.dataset[tag].value or 0)
                except PYDICOM_FAILURES:
                    raise Hold("overlay_in_pixels", at=f"{int(tag):08X}") from None
                if position and lowest <= position <= image.high_bit:
                    raise Hold("overlay_in_pixels", at=f"{int(tag):08X}")


def _places(image: EncodedImage) -> dict[int, str]:
    """Top-level elements that are pictures of their own: tag -> what it counts as."""
    places = {}
    for tag in image.dataset.keys():  # noqa: SIM118 - iterating a Dataset would read every value
        kind = "icons" if tag == ICON else GROUPS.get(int(tag) >> 24)
        if kind and not int(tag) >> 16 & 1:
            places[int(tag)] = kind
    return places
