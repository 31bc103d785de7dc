"""Sizes of the feature codec: for the paper's foundation models, and for our own small one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DecouplingConfig:
    """`features` channels of the frozen network's map; `codes` of Q at every place of it (paper: 32).

    `components` of the mixture that prices a code; `identity` dimensions of what the re-identification head says of the
    identity's codes, pooled to 4 x 4 places.
    """

    features: int
    codes: int
    width: int
    components: int
    identity: int

    def __post_init__(self) -> None:
        if min(self.features, self.codes, self.width, self.components, self.identity) < 1:
            raise ValueError("sizes are positive")
        if self.width % 8:
            raise ValueError("the width is a multiple of 8")


# The paper gives 32 channels and nothing else; MGCA's third stage and RETFound's patches both have 1024 channels.
PAPER = DecouplingConfig(features=1024, codes=32, width=256, components=3, identity=256)
SMALL = DecouplingConfig(features=64, codes=32, width=64, components=3, identity=64)
