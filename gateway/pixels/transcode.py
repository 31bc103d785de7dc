"""Forward in the transfer syntax that the destination of a policy wants, without any loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from gateway.durable import writing
from gateway.errors import Hold
from gateway.frames import KEYWORDS, Changes, EncodedImage, transcode
from gateway.pixels.stage import Estimate, Instance, Scope, Work
from gateway.policy import HeaderPolicy
from gateway.study import Step

Keyword = Literal[
    "explicit-little",
    "implicit-little",
    "deflated",
    "rle",
    "jpeg-lossless-sv1",
    "jpeg-ls-lossless",
    "jpeg-2000-lossless",
    "htj2k-lossless",
]


@dataclass(frozen=True)
class Transcode:
    """Put `pixels: - transcode: {to: ...}` last: stages before it see, and keep, the syntax that arrived.

    Stored values stay as they are, and so does the SOP Instance UID (PS3.3 C.12.4.1.1). What went through lossy
    compression is decoded, and still says so. Objects without pixel data only change between native syntaxes: for a
    compressed one they get explicit VR little endian. `otherwise`: what becomes of pixels that a compressed syntax
    cannot hold unchanged, such as those of 1 bit (segments), of floats, and for some of 32 bits (dose).
    """

    VERSION: ClassVar[str] = "1"
    SCOPE: ClassVar[Scope] = Scope.INSTANCE

    to: Keyword
    otherwise: Literal["explicit-little", "hold"] = "explicit-little"

    @staticmethod
    def misfit(_header: HeaderPolicy, after: tuple[str, ...]) -> tuple[str, str] | None:
        """A stage behind it could write another syntax than the one that was asked for."""
        return ("transcode is not the last stage", f"put it behind {after[-1]}") if after else None

    def estimate(self, _group: Sequence[Instance], _work: Work) -> Estimate:
        return Estimate()

    def apply(self, group: Sequence[Instance], _work: Work, _estimate: Estimate) -> list[Step]:
        """Raises Hold: transcoding_failed, video_unsupported, pixels_unreadable, unsupported_transfer_syntax."""
        return [self._apply(instance) for instance in group]

    def _apply(self, instance: Instance) -> Step:
        with EncodedImage.open(instance.candidate) as image:
            syntax, frames = image.transfer_syntax, image.frames
        if syntax == KEYWORDS[self.to]:
            return Step("transcode", self.VERSION)
        try:
            self._write(instance.candidate, self.to)
        except Hold as hold:
            if hold.reason != "transcoding_failed" or self.otherwise == "hold" or self.to == self.otherwise:
                raise
            self._write(instance.candidate, self.otherwise)
            return Step("transcode", self.VERSION, {"frames": frames, "otherwise": 1})
        return Step("transcode", self.VERSION, {"frames": frames})

    @staticmethod
    def _write(candidate: Path, keyword: Keyword) -> None:
        with writing(candidate) as file:
            transcode(candidate, Path(file.name), KEYWORDS[keyword], Changes())

    def describe(self) -> str:
        return (
            f"Transfer syntax: everything is forwarded as {self.to}, without loss; what that cannot say unchanged "
            + ("goes as explicit-little" if self.otherwise == "explicit-little" else "is held")
            + ", and video is held."
        )
