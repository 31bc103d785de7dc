"""Check `residual_face`: can a person still be recognised by the face in what is about to leave?

Volumes: the surface seen from in front is rendered from original and candidate, by decoders and code that no scrubber
uses, and a detector looks for a face in both (`face_detector`). A face that is seen in the candidate is a finding; so
is the surface of the original's face where much of it is still in place, or where the relief of the two is alike, which
finds what a detector does not. Single planes in the frame of reference of a volume with a face must not show the
original's pixels there. Flat pictures are judged by themselves (`face_picture`), whatever their class says;
photographs and colour pictures are held (`face_photograph`), because no detector of ours vouches for them. A study
without any of this passes with what was looked at as its evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gateway.gate.aspects import FEATURES
from gateway.gate.bytescan import scan_file
from gateway.gate.face_average import own_relief_left
from gateway.gate.face_compare import Likeness, compare
from gateway.gate.face_detector import Face, find_face
from gateway.gate.face_photograph import in_natural_colours, is_drawn, is_photograph
from gateway.gate.face_picture import SEEN, face_score
from gateway.gate.face_reading import Headers, Side, headers_of
from gateway.gate.face_surface import compressed, uptake_scale
from gateway.gate.pixel_layout import SAMPLE_TAGS, Unseen
from gateway.gate.pixel_places import pictures
from gateway.gate.reading import Pair, judging
from gateway.gate.walk import tag_path
from gateway.policy import Policy
from gateway.study import Finding, Outcome, Verdict
from gateway.volumes import Plane, Stack, read

NAME = "residual_face"
READ_MM = 2.0
SURFACES = frozenset({0x00660016, 0x00660023, 0x00660029})
TOP_SAMPLES = tuple(map(tag_path, SAMPLE_TAGS))
# An average face in place of 4 faces of people, T1 and CT, kept at most 0.33 of the places and 0.09 of the own relief;
# left in its upper half, 0.83 and 0.20; only smoothed, 0.35 and 0.74.
AVERAGE_KEPT = 0.6
OWN_LEFT = 0.15
# The steps that voxels of PET make in a cut can look like a small face: up to 1.07 of what counts as seen, where real
# faces in PET have 1.4 and more. Only where the original's face was seen, and so is compared with what is there now.
COARSE_MM, COARSE_SEEN = 3.0, 1.2
NEAR_POINTS = 12  # of a face's surface in a plane, from which on the plane shows it


@dataclass(frozen=True)
class ResidualFace:
    """`max_kept`: the share of the original's face surface that may lie where it was. `max_likeness`: the correlation
    of both reliefs that may remain. `average_face`: a face may be seen, because the policy puts an average one there;
    it must be that one (`face_average`), and these two limits, which any face would break, give way to AVERAGE_KEPT
    and OWN_LEFT.
    """

    max_kept: float = 0.15
    max_likeness: float = 0.6
    average_face: bool = False

    judges: ClassVar[frozenset[str]] = frozenset({FEATURES})

    def __post_init__(self) -> None:
        if not 0 <= self.max_kept < 1 or not 0 <= self.max_likeness < 1:
            raise ValueError("max_kept and max_likeness are shares, 0 or more and below 1")

    def judge(self, pairs: Sequence[Pair], policy: Policy) -> Verdict:  # noqa: ARG002 - the protocol of a check
        """Judge all candidates together. Raises Hold("gate_failed") when a file cannot be read."""
        look = _Look(self, pairs, headers_of(pairs))
        look.at_volumes()
        look.at_strays()
        look.at_other_places()
        held = bool(look.found or look.unseen)
        reason = "residual_face" if look.found else "gate_failed"
        return Verdict(
            NAME,
            Outcome.HOLD if held else Outcome.PASS,
            reason=reason if held else "",
            findings=tuple(look.found + look.unseen),
            assessed={"instances": len(pairs), **look.counts},
        )


@dataclass
class _Look:
    """One judgement."""

    check: ResidualFace
    pairs: Sequence[Pair]
    headers: Headers
    found: list[Finding] = field(default_factory=list)
    unseen: list[Finding] = field(default_factory=list)
    counts: dict[str, int] = field(
        default_factory=lambda: {"volumes": 0, "faces_before": 0, "faces_after": 0, "planes": 0, "pictures": 0}
    )
    faces: dict[str, list[Face]] = field(default_factory=dict)
    judged: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        names = [pair.name for pair in self.pairs]
        self.before = Side([pair.original for pair in self.pairs], names, original=True)
        self.after = Side([pair.candidate for pair in self.pairs], names, original=False)

    def at_volumes(self) -> None:
        for stack in self.headers.stacks:
            name = self.pairs[stack.planes[0].instance].name
            try:
                with judging(name):
                    self._volume(stack, name)
            except Unseen as unseen:
                self.unseen.append(Finding(NAME, name, unseen.where, unseen.rule))

    def _volume(self, stack: Stack, name: str) -> None:
        hounsfield = self.headers.hounsfield(stack.planes[0].instance)
        before, after = read(stack, self.before, READ_MM), read(stack, self.after, READ_MM)
        if self.headers.emission(stack.planes[0].instance):
            scale = uptake_scale(before.values)
            before, after = compressed(before, scale), compressed(after, scale)
        self.counts["volumes"] += 1
        self.judged.add(stack.frame_of_reference)
        original = find_face(before, hounsfield=hounsfield)
        seen = original is not None and original.is_seen
        same = np.array_equal(before.values, after.values)
        now = original if same else find_face(after, hounsfield=hounsfield)
        if seen and original is not None:
            self.counts["faces_before"] += 1
            self.faces.setdefault(stack.frame_of_reference, []).append(original)
        coarse = seen and not same and float(before.spacing_mm.max()) >= COARSE_MM
        if now is not None and now.score >= (COARSE_SEEN if coarse else 1.0):
            self.counts["faces_after"] += 1
            if not self.check.average_face or same:
                self.found.append(Finding(NAME, name, "volume", "a face is seen in the surface"))
        if seen and original is not None:
            likeness = compare(original, after, hounsfield=hounsfield)
            if self.check.average_face:
                self._compare_average(likeness, own_relief_left(original, after, hounsfield=hounsfield), name)
            else:
                self._compare(likeness, name)

    def _compare_average(self, likeness: Likeness, own: float, name: str) -> None:
        if likeness.kept > AVERAGE_KEPT:
            self.found.append(Finding(NAME, name, "volume", "the surface of the original's face is in place"))
        if own > OWN_LEFT:
            self.found.append(Finding(NAME, name, "volume", "what is the person's own in the face is still there"))

    def _compare(self, likeness: Likeness, name: str) -> None:
        if likeness.kept > self.check.max_kept:
            self.found.append(Finding(NAME, name, "volume", "the surface of the original's face is in place"))
        if likeness.relief > self.check.max_likeness:
            self.found.append(Finding(NAME, name, "volume", "the surface is like that of the original's face"))

    def at_strays(self) -> None:
        """Frames outside volumes: planes against the faces of their frame of reference, all others as pictures."""
        for stray in self.headers.strays:
            name = self.pairs[stray.instance].name
            try:
                plane = stray.plane
                if plane is not None and plane.frame_of_reference and plane.frame_of_reference in self.judged:
                    self.counts["planes"] += 1
                    self._plane(plane, name)
                else:
                    self._frame(stray.instance, stray.frame, name)
            except Unseen as unseen:
                self.unseen.append(Finding(NAME, name, unseen.where, unseen.rule))

    def _plane(self, plane: Plane, name: str) -> None:
        """A plane must not keep the pixels of the original where a face's surface lies."""
        for face in self.faces.get(plane.frame_of_reference, []):
            rows, columns = np.nonzero(np.isfinite(face.depth_mm()))
            points = face.surface.points(rows + face.rows.start, columns + face.columns.start)
            at = (np.linalg.inv(plane.affine()) @ np.column_stack([points, np.ones(len(points))]).T)[:3]
            deep = max(plane.thickness_mm, 3.0) / (plane.thickness_mm or 1.0) / 2
            index = np.rint(at[:2]).astype(int)
            near = (np.abs(at[2]) <= deep) & (index >= 0).all(0) & (index[0] < plane.columns) & (index[1] < plane.rows)
            if near.sum() < NEAR_POINTS:
                continue
            column, row = index[:, near]
            kept = float((self.before(plane)[row, column] == self.after(plane)[row, column]).mean())
            if kept > self.check.max_kept:
                where = f"frame {plane.frame}"
                self.found.append(Finding(NAME, name, where, "a plane through the face keeps the original's pixels"))

    def _frame(self, instance: int, frame: int, name: str) -> None:
        values, where = self.after.frame(instance, frame), f"frame {frame}"
        colours = self.after.coloured(instance, values)
        grey = np.asarray(values if colours is None else colours, np.float32)
        drawn = is_drawn(self.headers.datasets[instance])
        if colours is not None and not drawn and in_natural_colours(colours, self.after.photometric(instance)):
            self.counts["pictures"] += 1
            self.found.append(Finding(NAME, name, where, "a colour picture is not judged by any detector here"))
        else:
            self._picture(name, where, grey if grey.ndim == 2 else grey.mean(axis=2), instance)

    def _picture(self, name: str, where: str, grey: NDArray[np.float32], instance: int) -> None:
        self.counts["pictures"] += 1
        if is_photograph(self.headers.datasets[instance]):
            self.found.append(Finding(NAME, name, where, "a photograph is not judged by any detector here"))
        elif face_score(grey) >= SEEN:
            self.found.append(Finding(NAME, name, where, "a face is seen in a picture"))

    def at_other_places(self) -> None:
        """Icons, private pictures, surfaces: what carries features beside the pixel data."""
        for number, pair in enumerate(self.pairs):
            with judging(pair.name):
                scan = scan_file(pair.candidate)
                if any(leaf.tag in SURFACES and leaf.size for leaf in scan.leaves):
                    self.found.append(Finding(NAME, pair.name, "surface", "a surface model is not judged here"))
                rest = [leaf for leaf in scan.leaves if not leaf.path.startswith(TOP_SAMPLES)]
                for one in pictures(replace(scan, leaves=rest)):
                    if isinstance(one, Unseen):
                        self.unseen.append(Finding(NAME, pair.name, one.where, one.rule))
                    elif not one.place.startswith("(60"):
                        self._picture(pair.name, one.place, one.grey, number)
