"""`dicom://AET@host:port`, `dicom-tls://AET@host:port`: C-STORE SCU (PS3.4 Annex B), in the clear or over TLS
(PS3.15 B.12). Data sets go out as they lie in the cleared files.

One presentation context for each SOP class and transfer syntax that is queued, so an archive that accepts one of them
takes what it can (cases.md 73), over as many associations as 128 contexts each need. Every answer is kept by instance:
a warning is stored, a failure is not (cases.md 68). An association that breaks loses the instance under way, which is
sent again by the next call; the others go on over a new one. An archive that takes no association is asked once and
left alone until the next call (cases.md 77).
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from gateway.errors import Hold, Retry, UsageError
from gateway.forward import dimse
from gateway.forward.association import Association, Peer, associate
from gateway.forward.pdus import MAX_CONTEXTS, Context
from gateway.forward.transport import Outgoing, Tally, TransportOptions, is_uid
from gateway.forward.verified import Verified, open_verified
from gateway.observe import log
from gateway.study import Receipt

# An AE title may hold anything but control characters and backslash (PS3.5 6.2), so the last @ ends it.
_URL = re.compile(
    r"dicom(?P<tls>-tls)?://(?P<title>[ -\[\]-~]{1,16})@(?P<host>\[[0-9A-Fa-f:.]+\]|[^@:/\[\]]+):(?P<port>[0-9]{1,5})"
)
FRUITLESS = 3  # associations in a row that broke without one answer, after which the rest waits for the next call


@dataclass(frozen=True, slots=True)
class DicomTransport:
    """C-STORE to one archive."""

    peer: Peer
    options: TransportOptions

    @classmethod
    def at(cls, url: str, options: TransportOptions) -> DicomTransport:
        """The transport of `dicom://AET@host:port`, or `dicom-tls:`. Raises UsageError for another form."""
        form = _URL.fullmatch(url)
        if form is None or not 0 < int(form["port"]) <= 65535:
            raise UsageError("an archive is dicom://AET@host:port, with an AE title of at most 16 characters")
        tls = options.access if form["tls"] else None
        return cls(Peer(form["host"].strip("[]"), int(form["port"]), form["title"], tls), options)

    def send(self, items: Sequence[Outgoing], on_receipt: Callable[[Receipt], None]) -> None:
        tally = Tally(on_receipt)
        try:
            for contexts, batch in _batches(_with_uids(items, tally)):
                self._send_batch(contexts, batch, tally)
        except Retry as error:
            if not tally.later:
                tally.later.append((error.reason, error.at))
        tally.close()

    def probe(self) -> None:
        """C-ECHO."""
        context = Context(dimse.VERIFICATION, dimse.IMPLICIT_LITTLE)
        with self._associate([context]) as association:
            status = association.echo(context) if context in association.accepted else 0x0122
        if status != 0:
            raise Retry("archive_rejects_us", at=f"{self.peer} (C-ECHO status {status:04X})")

    def _associate(self, contexts: Sequence[Context]) -> contextlib.AbstractContextManager[Association]:
        options = self.options
        return associate(
            self.peer,
            contexts,
            calling=options.ae_title,
            timeout_s=options.timeout_s,
            max_pdu_bytes=options.max_pdu_bytes,
        )

    def _send_batch(self, contexts: Sequence[Context], batch: Sequence[Outgoing], tally: Tally) -> None:
        """Offer all of `batch`, over one association or more when it breaks. Raises Retry when none is to be had, or
        FRUITLESS ones broke: an object that an archive cannot bear must not keep those behind it from being sent."""
        waiting = list(batch)
        fruitless = 0
        while waiting:
            offered, answered = len(waiting), tally.answered
            try:
                with self._associate(contexts) as association:
                    log("association_opened", host=self.peer.host, port=self.peer.port, count=len(waiting))
                    waiting = _without_refused(waiting, association, tally)
                    _send_over(association, waiting, tally)
            except Retry as lost:
                where = {"host": self.peer.host, "port": self.peer.port}
                log("association_lost", level=logging.WARNING, reason=lost.reason, at=lost.at, **where)
                fruitless = fruitless + 1 if tally.answered == answered else 0
                if len(waiting) == offered or fruitless == FRUITLESS:
                    raise


def _send_over(association: Association, waiting: list[Outgoing], tally: Tally) -> None:
    """Send from the front of `waiting`, taking off what was offered. Raises Retry when the association is lost."""
    with _Reader(list(waiting)) as reader:
        while (file := reader.next()) is not None:
            with file:
                item = waiting.pop(0).cleared
                if (file.size - file.offset) & 1:  # a fragment is even (PS3.8 E.1); archives hang on an odd one
                    tally.refused(item.name, "output_invalid", f"instance {item.name} (odd length)")
                    continue
                pieces = file.data_set(association.piece_bytes)
                try:
                    status = association.store(_context(file.item), item.sop_instance_uid, pieces, reader.read_ahead)
                except Retry as lost:
                    tally.postponed(item.name, lost.reason, f"instance {item.name}, {lost.at}")
                    raise
            tally.answered += 1
            _note(item.name, status, tally)


def _note(name: str, status: int, tally: Tally) -> None:
    at = f"instance {name} (status {status:04X})"
    kind = dimse.status_kind(status)
    if kind == "busy":
        tally.postponed(name, "archive_busy", at, status)
    elif kind == "failure":
        log("instance_refused", level=logging.WARNING, instance=name, status=f"{status:04X}")
        tally.refused(name, "archive_refuses", at, status)
    else:
        tally.delivered(name, status, kind)


class _Reader:
    """Opens and verifies files in order. `read_ahead` does so for the next one early, while an answer is awaited."""

    def __init__(self, items: list[Outgoing]) -> None:
        self._items = deque(items)
        self._ahead: Verified | Hold | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if isinstance(self._ahead, Verified):
            self._ahead.close()

    def read_ahead(self) -> None:
        """Raises nothing: what is wrong with the next file is said in its turn."""
        if self._ahead is None and self._items:
            try:
                self._ahead = open_verified(self._items.popleft())
            except Hold as broken:
                self._ahead = broken

    def next(self) -> Verified | None:
        """The next file, None after the last. Raises Hold clearance_broken."""
        self.read_ahead()
        file, self._ahead = self._ahead, None
        if isinstance(file, Hold):
            raise file
        return file


def _without_refused(waiting: Sequence[Outgoing], association: Association, tally: Tally) -> list[Outgoing]:
    """What can go under an accepted context; the rest is reported (results: PS3.8 Table 9-18)."""
    says = {1: "rejected", 2: "no reason given", 3: "SOP class not supported", 4: "transfer syntax not supported"}
    rest = []
    for item in waiting:
        result = association.results[_context(item)]
        if result == 0:
            rest.append(item)
        else:
            at = f"instance {item.cleared.name} ({says.get(result, 'unknown result')})"
            tally.refused(item.cleared.name, "archive_refuses_syntax", at)
    return rest


def _context(item: Outgoing) -> Context:
    return Context(item.cleared.sop_class_uid, item.cleared.transfer_syntax_uid)


def _with_uids(items: Sequence[Outgoing], tally: Tally) -> Iterator[Outgoing]:
    """Items whose UIDs are UIDs; the others are reported and held."""
    for item in items:
        one = item.cleared
        if all(map(is_uid, (one.sop_class_uid, one.sop_instance_uid, one.transfer_syntax_uid))):
            yield item
        else:
            tally.refused(one.name, "output_invalid", f"instance {one.name}")


def _batches(items: Iterable[Outgoing]) -> Iterator[tuple[list[Context], list[Outgoing]]]:
    """Items by at most 128 contexts each, in their order."""
    by_context: dict[Context, list[Outgoing]] = {}
    for item in items:
        by_context.setdefault(_context(item), []).append(item)
    contexts = list(by_context)
    for at in range(0, len(contexts), MAX_CONTEXTS):
        some = contexts[at : at + MAX_CONTEXTS]
        yield some, [item for context in some for item in by_context[context]]
