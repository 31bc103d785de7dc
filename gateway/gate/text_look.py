"""From pictures to places that show text: what is read, and which of it counts.

Text counts unless all of it is a technical mark (`text_words`) or allowed by the policy. What the original's header
holds too counts however badly it was read, and what is surely text counts though no reader knows its script. So do
values that are the codes of its letters (`sample_text`) and codes for machines, which no reader of text sees.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from gateway.gate.machine_codes import codes_in
from gateway.gate.pixel_layout import Unseen
from gateway.gate.pixel_places import Seen
from gateway.gate.pixel_views import Grey
from gateway.gate.sample_text import SampleText
from gateway.gate.text_reading import Read, read_rapid, read_tesseract
from gateway.gate.text_sheets import EVERY_FRAME, Placed, Sheets
from gateway.gate.text_stack import Stack
from gateway.gate.text_words import MIN_LETTERS, HeaderWords, is_technical, letters

BRIGHTEST, DARKEST = "brightest channel", "darkest channel"
OPEN_STACKS = 6  # of pictures that differ in size or kind: three pictures each are held
LEAST_SURE, LEAST_FOUND = 0.6, 0.5  # rapidocr's reading, and its finding
UNREADABLE_FOUND, UNREADABLE_LETTERS, UNREADABLE_PIXELS = 0.8, 3, 64  # a line that is text, whatever it says
LINE_RATIO = 2.5  # length to height of a line
LARGE_PIXELS, LARGE_SURE = 128, 0.9  # on the sheet: boxes around anatomy are large
WORD_SURE, SHORT_WORD_SURE, WORD_LETTERS = 0.75, 0.9, 4  # tesseract's, from four letters and for three
HINT_SURE = 0.2  # enough where the header says the same


@dataclass(frozen=True, slots=True)
class Shown:
    """One place that shows text, or that cannot be looked at. Never the text."""

    instance: str
    where: str
    rule: str


@dataclass(slots=True)
class Look:
    """One judgement of many pictures: they go into stacks, and what is read out of these into `shown`."""

    header: HeaderWords
    codes: SampleText
    allow: frozenset[str]
    sheets: Sheets = field(default_factory=lambda: Sheets((read_rapid, read_tesseract)))
    frames: int = 0
    shown: list[Shown] = field(default_factory=list)
    unseen: list[Shown] = field(default_factory=list)
    _stacks: OrderedDict[tuple[object, ...], Stack] = field(default_factory=OrderedDict)
    _whole: Seen | None = None  # the picture before, if it is of a brightest channel
    _boxes: dict[tuple[str, str], list[tuple[int, Read]]] = field(default_factory=dict)

    def take(self, instance: str, series: str, picture: Seen | Unseen) -> None:
        """Look at one picture. Those of one series, place, view and size are compared with each other."""
        if isinstance(picture, Unseen):
            self.unseen.append(Shown(instance, picture.where, picture.rule))
            return
        self.frames += 1
        self._spelt(instance, picture)
        self._coded(instance, picture)
        self._judge(self._stack(series, picture).add(instance, picture, self._other(picture)))
        self._close(OPEN_STACKS)

    def _spelt(self, instance: str, picture: Seen) -> None:
        """Text in the values of the picture, once for each row in which some begins."""
        columns = picture.grey.shape[1]
        rows: dict[int, tuple[int, str]] = {}
        for start, stop, term in self.codes.in_values(picture.grey):
            rows.setdefault(start // columns, ((stop - 1) // columns + 1, term.rule))
        for top, (bottom, rule) in rows.items():
            where = f"{picture.place} frame {picture.frame} rows {top}-{bottom} columns 0-{columns}"
            one = Shown(instance, where, f"values that spell the {rule}")
            if one not in self.shown:  # several views of a frame may have the same values
                self.shown.append(one)

    def _coded(self, instance: str, picture: Seen) -> None:
        """QR and bar codes that can be read out of the picture, whatever they say."""
        for top, left, bottom, right in codes_in(picture.grey):
            where = f"{picture.place} frame {picture.frame} rows {top}-{bottom} columns {left}-{right}"
            one = Shown(instance, where, "a machine-readable code")
            if one not in self.shown:
                self.shown.append(one)

    def _other(self, picture: Seen) -> Grey | None:
        """The brightest channel for the darkest of the same frame, which comes right behind it."""
        before, self._whole = self._whole, picture if picture.view.endswith(BRIGHTEST) else None
        if before is None or (before.place, before.frame) != (picture.place, picture.frame):
            return None
        return before.grey if picture.view == before.view.replace(BRIGHTEST, DARKEST) else None

    def _stack(self, series: str, seen: Seen) -> Stack:
        key = series, seen.place, seen.view, seen.grey.shape
        stack = self._stacks.get(key)
        if stack is None:
            stack = self._stacks[key] = Stack(self.sheets)
        self._stacks.move_to_end(key)
        return stack

    def _close(self, open_stacks: int) -> None:
        while len(self._stacks) > open_stacks:
            _, stack = self._stacks.popitem(last=False)
            self._judge(stack.finish())

    def finish(self) -> None:
        """Close what is open and read what is left."""
        self._close(0)
        self._judge(self.sheets.flush())

    def _judge(self, placed: Iterable[Placed]) -> None:
        for one in placed:
            rule = self.rule_of(one)
            if rule and not self._known(one):
                self.shown.append(Shown(one.origin.instance, _where(one), rule))

    def _known(self, one: Placed) -> bool:
        """True when the same box was found before, by another reader or in another presentation of the frame."""
        origin, read = one.origin, one.read
        before = self._boxes.setdefault((origin.instance, origin.place), [])
        for frame, other in before:
            if EVERY_FRAME in (frame, origin.frame) or frame == origin.frame:
                rows = min(read.bottom, other.bottom) - max(read.top, other.top)
                columns = min(read.right, other.right) - max(read.left, other.left)
                if rows > 0 and columns > 0:
                    return True
        before.append((origin.frame, read))
        return False

    def rule_of(self, one: Placed) -> str:
        """Why what was read is a finding; "" when it is none."""
        read = one.read
        count = letters(read.text)
        if read.sure >= HINT_SURE and count >= MIN_LETTERS:
            rule = self.header.rule_of(read.text)
            if rule:
                return f"text as in {rule}"
        if read.reader == "rapidocr":
            return self._rapid(one, count)
        sure = WORD_SURE if count >= WORD_LETTERS else SHORT_WORD_SURE
        if count < WORD_LETTERS - 1 or read.sure < sure or is_technical(read.text, self.allow):
            return ""
        return "text"

    def _rapid(self, one: Placed, count: int) -> str:
        read = one.read
        if count >= MIN_LETTERS and is_technical(read.text, self.allow):
            return ""
        least = LARGE_SURE if one.height > LARGE_PIXELS else LEAST_SURE
        if count >= MIN_LETTERS and read.sure >= least and read.found >= LEAST_FOUND:
            return "text"
        long, short = sorted((read.bottom - read.top, read.right - read.left), reverse=True)
        line = long >= LINE_RATIO * short and one.height <= UNREADABLE_PIXELS and count >= UNREADABLE_LETTERS
        return "text that no reader knows" if line and read.found >= UNREADABLE_FOUND else ""


def _where(one: Placed) -> str:
    """Place, frame and box in pixels of the frame, half open."""
    frame = "every frame" if one.origin.frame == EVERY_FRAME else f"frame {one.origin.frame}"
    read = one.read
    return f"{one.origin.place} {frame} rows {read.top}-{read.bottom} columns {read.left}-{read.right}"
