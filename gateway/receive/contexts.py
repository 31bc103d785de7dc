"""Which presentation contexts are accepted: Verification, every storage class, every transfer syntax; storage
commitment where it is answered.

Transfer syntaxes are accepted without being decodable here: objects are stored as sent, and what a later stage cannot
read is held there (cases.md 76). SOP classes that nobody knows are refused in negotiation: the sender learns it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydicom._uid_dict import UID_dictionary
from pydicom.uid import UID, ExplicitVRLittleEndian, ImplicitVRLittleEndian
from pynetdicom.presentation import AllStoragePresentationContexts, PresentationContext

from gateway.receive import commitment

VERIFICATION = "1.2.840.10008.1.1"

# In the standard, but not yet in pydicom's dictionary (PS3.6 Table A-1).
_NEWER_SYNTAXES = (
    "1.2.840.10008.1.2.4.110",  # JPEG XL Lossless
    "1.2.840.10008.1.2.4.111",  # JPEG XL JPEG Recompression
    "1.2.840.10008.1.2.4.112",  # JPEG XL
    "1.2.840.10008.1.2.8.1",  # Deflated Image Frame Compression
)
# Patients' objects of older archives; pynetdicom lists only what is current.
_RETIRED_CLASSES = frozenset(
    uid
    for uid, (name, kind, _info, retired, _keyword) in UID_dictionary.items()
    if kind == "SOP Class" and retired and "Storage" in name and uid.startswith("1.2.840.10008.5.1.4.1.1.")
)

ACCEPTED, ABSTRACT_SYNTAX_NOT_SUPPORTED, TRANSFER_SYNTAXES_NOT_SUPPORTED = 0, 3, 4  # PS3.8 Table 9-18

TRANSFER_SYNTAXES = frozenset(
    {uid for uid, entry in UID_dictionary.items() if entry[1] == "Transfer Syntax"} | set(_NEWER_SYNTAXES)
)
STORAGE_CLASSES = (
    frozenset(str(context.abstract_syntax) for context in AllStoragePresentationContexts) | _RETIRED_CLASSES
)
_PLAIN = frozenset({ImplicitVRLittleEndian, ExplicitVRLittleEndian})  # of what is no object


class Contexts:
    """What this receiver accepts; `private` are SOP classes from the settings."""

    def __init__(self, private: Iterable[str] = (), *, commits: bool = False) -> None:
        self._stored = STORAGE_CLASSES | {*private}
        self._classes = self._stored | {VERIFICATION, *([commitment.CLASS_UID] if commits else [])}

    def takes(self, class_uid: str) -> bool:
        """Whether objects of this SOP class are stored."""
        return class_uid in self._stored

    def negotiate(self, proposed: Sequence[PresentationContext], *, reports: bool = False) -> list[PresentationContext]:
        """One answer for each proposed context, in order; `reports`: the peer is an SCP of storage commitment.

        Of several transfer syntaxes the *sender's* first is taken: it is the one it holds its objects in, and nothing
        need be re-encoded on either side.
        """
        answers = []
        for asked in proposed:
            answer = PresentationContext()
            answer.context_id = asked.context_id
            answer.abstract_syntax = asked.abstract_syntax
            usable: list[str | bytes | UID] = [
                syntax
                for syntax in asked.transfer_syntax
                if syntax in (TRANSFER_SYNTAXES if asked.abstract_syntax in self._stored else _PLAIN)
            ]
            known = asked.abstract_syntax in self._classes or (
                reports and asked.abstract_syntax == commitment.CLASS_UID
            )
            if not known:
                answer.result = ABSTRACT_SYNTAX_NOT_SUPPORTED
            elif not usable:
                answer.result = TRANSFER_SYNTAXES_NOT_SUPPORTED
            else:
                answer.result = ACCEPTED
            # With a refusal the syntax is not significant, but the item must be there (PS3.8 9.3.3.2).
            answer.transfer_syntax = [*usable, *asked.transfer_syntax, ImplicitVRLittleEndian][:1]
            answers.append(answer)
        return answers
