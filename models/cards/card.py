"""The card of a learned part, as a strict type: an unknown key, a missing one or a wrong kind is an error."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
NAME = r"[a-z0-9][a-z0-9.-]{0,63}"
Name = Annotated[str, StringConstraints(pattern=f"^{NAME}$")]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True, max_length=4000)]


class CardError(ValueError):
    """A card, or what it names, that cannot be used. The text names file and reason, never a person."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Weights(_Strict):
    """A safetensors file beside the card (or in `models/weights`), known by its sha256."""

    file: FileName
    sha256: Sha256


class TrainedOn(_Strict):
    """One cohort that a part was trained on. `people_sha256` is that of the file with one hash for each person."""

    cohort: Name
    people: Annotated[int, Field(ge=1)]
    people_file: FileName
    people_sha256: Sha256
    synthetic: bool


class Impostors(_Strict):
    """Distances between scans of different people, against which one study is judged: an .npz beside the weights."""

    file: FileName
    sha256: Sha256
    people: Annotated[int, Field(ge=1)]
    metric: str


class Risk(_Strict):
    """At one `level` (quantile r): rank-1 of the worst attack and its one-sided upper bound."""

    level: Annotated[float, Field(gt=0, lt=1)]
    rank1: Annotated[float, Field(ge=0, le=1)]
    upper: Annotated[float, Field(ge=0, le=1)]


class Calibration(_Strict):
    """Which level of an anonymiser gives which risk, on people whom neither it nor the attacker was trained on.

    `people` were judged among `gallery` of them, by attackers that started from the card `attacker` and were trained at
    each level on `auxiliary` other people; `cohort_sha256` says who all of them were. `untouched`: rank-1 of the
    weakest of these attackers in untouched originals. `domain`: between which limits the statistics of the judged
    pictures lie: elsewhere nothing is promised. Levels are sorted, the weakest first.
    """

    cohort: Text
    cohort_sha256: Sha256
    synthetic: bool
    people: Annotated[int, Field(ge=1)]
    auxiliary: Annotated[int, Field(ge=1)]
    attacker: Name
    gallery: Annotated[int, Field(ge=2)]
    confidence: Annotated[float, Field(gt=0.5, lt=1)]
    on: date
    untouched: Annotated[float, Field(ge=0, le=1)]
    levels: Annotated[tuple[Risk, ...], Field(min_length=1)]
    domain: Annotated[Mapping[str, tuple[float, float]], Field(min_length=1)]

    @model_validator(mode="after")
    def _falls(self) -> Calibration:
        """Levels fall, and a stronger one never has the greater bound: a policy reads the list in this order."""
        pairs = list(zip(self.levels, self.levels[1:], strict=False))
        if any(weak.level <= strong.level or weak.upper < strong.upper for weak, strong in pairs):
            raise ValueError("levels go from the weakest to the strongest, and their bounds do not rise")
        return self

    def meeting(self, target_rank1: float) -> tuple[float, ...]:
        """Levels whose bound keeps the target, the weakest first. None when the attackers find no more than that in
        untouched originals: what they do not find behind a level says nothing then.
        """
        if self.untouched <= target_rank1:
            return ()
        return tuple(one.level for one in self.levels if one.upper <= target_rank1)


class PatientPrivacy(_Strict):
    """Differential privacy of the weights: adding or removing one patient with all scans changes how likely any weights
    are by a factor of e^`epsilon` at most, but for `delta`.

    DP-SGD: in each of `steps` a person is drawn with chance `sampling_rate`, the own gradient clipped to norm `clip`,
    noise of spread `noise_multiplier` × `clip` added. `epsilon` is that of all `steps`, `steps_taken` may be fewer.
    `people` are protected, `people_unprotected` had a say without. `covers` and `leaves_out` say what it speaks of.
    """

    unit: Literal["patient"]
    epsilon: Annotated[float, Field(gt=0)]
    delta: Annotated[float, Field(gt=0, lt=1)]
    noise_multiplier: Annotated[float, Field(gt=0)]
    clip: Annotated[float, Field(gt=0)]
    sampling_rate: Annotated[float, Field(gt=0, le=1)]
    steps: Annotated[int, Field(ge=1)]
    steps_taken: Annotated[int, Field(ge=0)]
    accountant: Text
    people: Annotated[int, Field(ge=1)]
    people_unprotected: Annotated[int, Field(ge=0)]
    covers: Text
    leaves_out: Text


class Published(_Strict):
    """Weights that somebody else published and a site brings: which file, and where in it the network lies.

    `paths`, `prefixes`, `heads` as in `models.checkpoints.Layout`. `tensors` and `parameters` (BatchNorm's statistics
    are no parameters) are what the network has: the file must have as many. `choices`: parameters that only the file's
    owner knows, such as the fold; whoever imports says them. `preparation`: what must have been done to the pixels by
    tools that are not here; the encoder works once `parameters.prepared` says so.
    """

    files: Annotated[tuple[Text, ...], Field(min_length=1)]
    paths: Annotated[tuple[str, ...], Field(min_length=1)] = ("",)
    prefixes: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    tensors: Annotated[int, Field(ge=1)]
    parameters: Annotated[int, Field(ge=1)]
    choices: Mapping[str, Annotated[tuple[str | int, ...], Field(min_length=1)]] = Field(default_factory=dict)
    preparation: Text | None = None


class Imported(_Strict):
    """Out of which file a site's weights were made, on which day, and what of it was left out or not run."""

    sha256: Sha256
    container: Text
    on: date
    dropped: Mapping[str, int] = Field(default_factory=dict)
    inert: tuple[str, ...] = ()


class Card(_Strict):
    """`algorithm` is a key of `ENCODERS` for an attacker, of the stage's own table for an anonymiser.

    `dimensions` of its embedding; `fixed_input_sha256` is that of its output for the fixed input of `gateway.embed`,
    the same on every CPU, so that weights and code that drifted apart are noticed. `valid_until` bounds its
    calibration. `takes` says which fixed input it gets; without it, cards for CT, MR or PT get a volume, others an
    image.
    """

    name: Name
    role: Literal["attacker", "anonymiser", "segmenter"]
    algorithm: Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{1,64}$")]
    modalities: Annotated[tuple[str, ...], Field(min_length=1)]
    anatomy: tuple[str, ...] = ()
    dimensions: Annotated[int, Field(ge=1)]
    parameters: Mapping[str, str | int | float | bool | tuple[float, ...]] = Field(default_factory=dict)
    takes: Literal["image", "volume", "measures"] | None = None
    weights: Weights | None = None
    published: Published | None = None
    imported: Imported | None = None
    trained_on: tuple[TrainedOn, ...] = ()
    impostors: Impostors | None = None
    calibration: Calibration | None = None
    privacy: PatientPrivacy | None = None
    metrics: Mapping[str, str | float | int] = Field(default_factory=dict)
    intended_use: Text
    limits: Text
    licence: Text
    source: Text
    fixed_input_sha256: Sha256 | None = None
    valid_until: date | None = None
