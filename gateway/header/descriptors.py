"""Clean Descriptors (PS3.15 E.3.5, CID 7050 113105): descriptions and comments stay, what identifies in them goes.

A `Cleaner` belongs to one object. It knows the object's own names, numbers, dates and places, which it collects from
everything that the policy removes or replaces, and the allow-list with the site's own words. A pure function of the
object's bytes and the policy. Code strings, numbers and UIDs are not its business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from gateway.header.actions import CLEANED, cleans_text
from gateway.header.descriptors_charset import decoded_value
from gateway.header.descriptors_harvest import CHARACTER_SET, Entry, Harvest, own_words
from gateway.header.descriptors_masking import Masked, masked, without_own
from gateway.header.descriptors_own import OwnWords
from gateway.header.descriptors_words import words_with
from gateway.header.elements import Element, Reader
from gateway.header.plan import Plan
from gateway.policy import HeaderPolicy

__all__ = ["CHARACTER_SET", "Cleaner", "cleaner_for", "own_of"]

WHOLE = frozenset({"LT", "ST", "UT"})  # a backslash is text here (PS3.5 6.4)
REMEMBERED_BYTES = 1024
MAX_CLEANED_BYTES = 1 << 14  # longer than any LT: cleaning takes time with the square of the length


@dataclass(frozen=True, slots=True)
class Cleaner:
    """Cleans the texts of one object."""

    own: OwnWords

    def text(self, text: str) -> Masked:
        """One text, for instance that of a content item."""
        return masked(text, self.own)

    def descriptor(self, vr: str, value: bytes, character_set: bytes) -> bytes | None:
        """A value field of a text VR, cleaned; as it came when nothing is masked.

        None when it is too long or cannot be written back.

        Empty when nothing is left of any of its values; a value among several may become empty, its place stays.
        """
        return _cleaned(self.own, vr, value, character_set, strict=True)

    def technical(self, vr: str, value: bytes, character_set: bytes) -> bytes | None:
        """A value field that the policy keeps, without the object's own names, numbers and dates; None if too long."""
        return _cleaned(self.own, vr, value, character_set, strict=False)

    def item_text(self, character_set: bytes) -> Callable[[bytes], bytes]:
        """The cleaning of the text of content items (UT), b"" for one of which nothing is left."""
        return lambda value: self.descriptor("UT", value, character_set) or b""

    def unknown_words(self, vr: str, value: bytes, character_set: bytes) -> tuple[str, ...]:
        """The words of a descriptor that are masked only because nobody knows them: what a site may want to allow."""
        text = decoded_value(value, character_set).text.strip(" \0")
        texts = [text] if vr in WHOLE else text.split("\\")
        return tuple(word for one in texts for word in masked(one, self.own).unknown if not self.own.is_strong(word))


def cleaner_for(
    policy: HeaderPolicy, plan: Plan, reader: Reader, elements: Sequence[Element], character_set: bytes
) -> Cleaner | None:
    """The cleaner of an object, or None when the policy asks for no cleaning of text."""
    if not cleans_text(policy.options):
        return None
    harvest = Harvest(reader, plan, policy.edition)
    harvest.take(elements, 0, character_set, reader)
    return Cleaner(own_of(policy, frozenset(harvest.entries)))


def own_of(policy: HeaderPolicy, entries: frozenset[Entry]) -> OwnWords:
    """The words of an object that says these values, under a policy's list."""
    site = policy.descriptors.words if policy.descriptors is not None else ()
    return own_words(entries, words_with(site))


def _cleaned(own: OwnWords, vr: str, value: bytes, character_set: bytes, *, strict: bool) -> bytes | None:
    if vr not in CLEANED:
        return value
    if len(value) > MAX_CLEANED_BYTES:
        return None
    clean = _remembered if len(value) <= REMEMBERED_BYTES else _clean
    return clean(own, vr, value, character_set, strict)


def _clean(own: OwnWords, vr: str, value: bytes, character_set: bytes, strict: bool) -> bytes | None:  # noqa: FBT001
    decoded = decoded_value(value, character_set)
    bare = decoded.text.strip(" \0")
    texts = [bare] if vr in WHOLE else bare.split("\\")
    cleaned = [masked(text, own).text if strict else without_own(text, own) for text in texts]
    if cleaned == texts:
        return value
    if not any(text.strip() for text in cleaned):
        return b""
    return decoded.encode("\\".join(cleaned))


_remembered = lru_cache(maxsize=1 << 12)(_clean)
