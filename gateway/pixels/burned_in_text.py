"""The stage `burned_in_text`: text in pixels is found, judged and redacted (PS3.15 E.3.1, Clean Pixel Data Option).

Every frame of every object with pixels is looked at, whatever BurnedInAnnotation, SOP class or ImageType say
(cases.md 6, 7, 24). Regions that a rule knows of the device go unseen. What may be text and cannot be judged holds.
The estimate has boxes, kinds and scores; what was read is never stored.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import StringConstraints

from gateway.durable import sync_file, sync_folder
from gateway.errors import Hold
from gateway.frames import Box, Changes, EncodedImage, redact
from gateway.pixels.regions import (
    Place,
    RegionRule,
    image_regions,
    outside,
    rule_for,
    tables_digest,
)
from gateway.pixels.stage import Estimate, Instance, Scope, Work
from gateway.pixels.text_engine import engine
from gateway.pixels.text_judge import Judge, Kind
from gateway.pixels.text_pages import LINES, is_page
from gateway.pixels.text_series import SeriesStack, stacks_of
from gateway.pixels.text_stack import look_through
from gateway.pixels.text_words import Kept, folded, hints_of, shipped_kept
from gateway.policy.document import Faulty
from gateway.study import Step

NAME = "burned_in_text"
EVERY_FRAME = -1
PAGE = "page"
BURNED_IN_ANNOTATION = 0x00280301
CLEAN_PIXEL_DATA = ("113101", "DCM", "Clean Pixel Data Option")
CLEANED = Changes({BURNED_IN_ANNOTATION: ("CS", "NO")}, method_codes=(CLEAN_PIXEL_DATA,))

AllowedWord = Annotated[str, StringConstraints(min_length=1, max_length=32, pattern=r"^[^\W_]+$")]
Found = tuple[int, int, int, int, int]  # frame or EVERY_FRAME, top, left, bottom, right


@dataclass(frozen=True)
class BurnedInText:
    """Fields are the policy parameters. `report_page` is what becomes of a frame that shows a page of text and no
    image: all of it goes, it holds, or its lines are judged as others are. `tables` is set to the digest of the shipped
    rules and words, so that it is part of the policy; a policy or a snapshot that names another one does not load.
    """

    VERSION: ClassVar[str] = "6"
    SCOPE: ClassVar[Scope] = Scope.SERIES

    detector: Literal["ocr"] = "ocr"
    redact: Literal["all", "identifying"] = "all"
    allow: tuple[AllowedWord, ...] = ()
    on_low_confidence: Literal["hold", "redact"] = "hold"
    unknown_device: Literal["detect", "hold"] = "detect"
    outside_image: Literal["detect", "blank"] = "detect"
    report_page: Literal["redact", "hold", "lines"] = "redact"
    regions: tuple[RegionRule, ...] = field(default=())
    tables: str = ""

    def __post_init__(self) -> None:
        if self.allow and self.redact == "all":
            raise Faulty("allow says what may stay, and redact: all leaves nothing", "write redact: identifying")
        if self.tables not in ("", tables_digest()):
            raise Faulty(
                "the region rules or the kept words of policies/regions are not those that tables names",
                "leave tables out; a study that began under other rules begins anew",
            )
        object.__setattr__(self, "tables", tables_digest())

    def describe(self) -> str:
        what = (
            "redacts all text" if self.redact == "all" else "redacts text unless every word of it is on the kept list"
        )
        low = "holds" if self.on_low_confidence == "hold" else "redacts"
        unknown = ", holds devices that no region rule knows" if self.unknown_device == "hold" else ""
        around = ", blanks all outside of an ultrasound's image" if self.outside_image == "blank" else ""
        page = {
            "redact": ", fills pages of reports whole",
            "hold": ", holds pages of reports",
            "lines": "",
        }[self.report_page]
        return (
            f"Text: looks for it on every frame, {what}, {low} what it cannot judge{unknown}{around}{page}. "
            "QR and bar codes go, whatever they say."
        )

    def estimate(self, group: Sequence[Instance], work: Work) -> Estimate:  # noqa: ARG002 - the policy adds nothing
        """Boxes by instance. Raises Hold for pixels that cannot be decoded."""
        headers = {instance.name: _header(instance) for instance in group}
        keep = Kept(shipped_kept() | {folded(word) for word in self.allow}) if self.redact == "identifying" else None
        judge = Judge(hints_of(headers.values()), keep)
        found: dict[str, dict[str, Any]] = {
            instance.name: self._known(headers[instance.name], instance) for instance in group
        }
        hits: dict[tuple[str, Kind], dict[Place, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
        for members in stacks_of(group):
            lines: dict[int, list[Place]] = defaultdict(list)
            with SeriesStack(members) as stack:
                for one in look_through(stack, engine(), judge):
                    name, frame = stack.member(one.frame)
                    hits[name, one.hit.kind][one.hit.place][frame] = one.hit.score
                    lines[one.frame].append(one.hit.place)
                for at, on_frame in sorted(lines.items()) if self.report_page != "lines" else ():
                    if len(on_frame) >= LINES and is_page(stack.shown(at), on_frame):
                        name, frame = stack.member(at)
                        found[name].setdefault(PAGE, []).append([frame, 0, 0, *stack.shown(at).shape[:2], 1.0])
        for (name, kind), places in sorted(hits.items()):
            frames = found[name]["frames"]
            found[name][str(kind)] = [
                [frame, *place, score]
                for place, scores in sorted(places.items())
                for frame, score in _collapsed(scores, frames)
            ]
        return Estimate({"instances": found})

    def apply(self, group: Sequence[Instance], work: Work, estimate: Estimate) -> list[Step]:  # noqa: ARG002
        """Redact what was found. Raises Hold(text_uncertain, device_unknown, report_in_pixels), what writing raises."""
        facts: Mapping[str, Mapping[str, Any]] = estimate.facts["instances"]
        for instance in group:
            self._judge(instance, facts[instance.name])
        return [self._clean(instance, facts[instance.name]) for instance in group]

    def _known(self, header: Any, instance: Instance) -> dict[str, Any]:
        """What is known before anything is looked at: the device's rule, its regions, how many frames there are."""
        with EncodedImage.open(instance.candidate) as image:
            frames, rows, columns = image.frames, image.rows, image.columns
        rule = rule_for(header, self.regions)
        regions = [*rule.blank] if rule else []
        if self.outside_image == "blank" or (rule and rule.outside_image == "blank"):
            regions += outside(image_regions(header), rows, columns)
        known = {"frames": frames, "rule": rule.name if rule else ""}
        return known | {"region": [[EVERY_FRAME, *place, 1.0] for place in regions] if frames else []}

    def _judge(self, instance: Instance, facts: Mapping[str, Any]) -> None:
        if facts["frames"] and not facts["rule"] and self.unknown_device == "hold":
            raise Hold("device_unknown", at=instance.name)
        pages = {entry[0] for entry in facts.get(PAGE, ())}
        if pages and self.report_page == "hold":
            raise Hold("report_in_pixels", at=f"{instance.name}, frame {min(pages) + 1}")
        doubtful = [] if len(pages) == facts["frames"] else _beside(facts.get(Kind.UNCERTAIN, ()), pages)
        if doubtful and self.on_low_confidence == "hold":
            frame, top, left, bottom, right, _ = doubtful[0]
            where = "every frame" if frame == EVERY_FRAME else f"frame {frame + 1}"
            raise Hold(
                "text_uncertain", at=f"{instance.name}, {where}, rows {top} to {bottom}, columns {left} to {right}"
            )

    def _clean(self, instance: Instance, facts: Mapping[str, Any]) -> Step:
        boxes: list[Box] = []
        counts: Counter[str] = Counter(frames=facts["frames"])
        for kind in ("region", PAGE, Kind.HINT, Kind.TEXT, Kind.UNCERTAIN):
            entries = facts.get(kind, ())
            boxes += [Box(frame, top, left, bottom, right) for frame, top, left, bottom, right, _ in entries]
            counts[str(kind)] += len(entries)
        counts["kept"] = len(facts.get(Kind.KEPT, ()))
        if boxes:
            redact(instance.candidate, instance.candidate, boxes, CLEANED)
            sync_file(instance.candidate)
            sync_folder(instance.candidate.parent)
        notes = (f"region_rule={facts['rule']}",) if facts["rule"] else ()
        return Step(NAME, self.VERSION, {key: count for key, count in counts.items() if count}, notes)


def _header(instance: Instance) -> Any:
    """The header as received: its words are hints, its device has a rule."""
    with EncodedImage.open(instance.original) as image:
        return image.dataset


def _beside(entries: Sequence[Any], pages: set[int]) -> list[Any]:
    """Entries on other frames than those."""
    return [entry for entry in entries if entry[0] not in pages]


def _collapsed(scores: Mapping[int, float], frames: int) -> list[tuple[int, float]]:
    """A place on every frame is one entry."""
    if len(scores) == frames and frames > 1:
        return [(EVERY_FRAME, max(scores.values()))]
    return sorted(scores.items())
