"""`dicom://AET@host:port`: C-STORE SCU (PS3.4 Annex B). Data sets go out as they lie in the cleared files.

One presentation context for each SOP class and transfer syntax that is queued, so an archive that accepts one of them
takes what it can (cases.md 73), over as many associations as 128 contexts each need. Every answer is kept by instance:
a warning is stored, a failure is not (cases.md 68). An association that breaks loses the instance under way, which is
sent again by the next call; the others go on over a new one, a few times. An archive that takes no association, or is
silent, is left alone until the next call (cases.md 77).
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from gateway.errors import Hold, Retry, UsageError
from gateway.forward import dimse
from gateway.forward.association import Association, Peer, associate
from gateway.forward.pdus import MAX_CONTEXTS, Context
from gateway.forward.transport import Outgoing, Tally, TransportOptions, is_uid
from gateway.forward.verified import Verified, open_verified
from gateway.observe import log
from gateway.study import Receipt

ASSOCIATIONS = 3  # per call and group of contexts, when they break while sending
BUSY_IN_A_ROW = 5  # answers "out of resources" after which the rest waits for the next call


@dataclass(frozen=True, slots=True)
class DicomTransport:
    """C-STORE to one archive."""

    peer: Peer
    options: TransportOptions

    @classmethod
    def at(cls, url: str, options: TransportOptions) -> DicomTransport:
        """The transport of `dicom://AET@host:port`. Raises UsageError for another form."""
        parts = urlsplit(url)
        try:
            title, host, port = unquote(parts.username or "").strip(), parts.hostname, parts.port
        except ValueError:
            title, host, port = "", None, None
        if parts.scheme != "dicom" or not host or not port or not 0 < len(title) <= 16 or not title.isascii():
            raise UsageError("an archive is dicom://AET@host:port, with an AE title of at most 16 characters")
        return cls(Peer(host, port, title), options)

    def send(self, items: Sequence[Outgoing], on_receipt: Callable[[Receipt], None]) -> None:
        tally = Tally(on_receipt)
        try:
            for contexts, batch in _batches(_with_uids(items, tally)):
                if not self._send_batch(contexts, batch, tally):
                    break
        except Retry as error:
            if (error.reason, error.at) not in tally.later:
                tally.later.insert(0, (error.reason, error.at))
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

    def _send_batch(self, contexts: Sequence[Context], batch: Sequence[Outgoing], tally: Tally) -> bool:
        """Offer all of `batch`, over one association or a few when it breaks. False when the archive is full.
        Raises Retry when no association is to be had, or too many broke."""
        waiting = list(batch)
        for left in reversed(range(ASSOCIATIONS)):
            before = len(waiting)
            try:
                with self._associate(contexts) as association:
                    log("association_opened", host=self.peer.host, port=self.peer.port, count=len(waiting))
                    waiting = _without_refused(waiting, association, tally)
                    return _send_over(association, waiting, tally)
            except Retry as lost:
                where = {"host": self.peer.host, "port": self.peer.port}
                log("association_lost", level=logging.WARNING, reason=lost.reason, at=lost.at, **where)
                if not left or lost.reason == "archive_unreachable" or len(waiting) == before:
                    raise
                if not waiting:
                    return True
        raise AssertionError("the last round returns or raises")


def _send_over(association: Association, waiting: list[Outgoing], tally: Tally) -> bool:
    """Send from the front of `waiting`, taking off what was offered. False when the archive is out of resources."""
    busy = 0
    with contextlib.closing(_read_ahead(list(waiting))) as files:
        for file in files:
            item = waiting.pop(0).cleared
            context = _context(file.item)
            try:
                status = association.store(context, item.sop_instance_uid, file.data_set(association.piece_bytes))
            except Retry as lost:
                tally.postponed(item.name, lost.reason, f"instance {item.name}, {lost.at}")
                raise
            at = f"instance {item.name} (status {status:04X})"
            kind = dimse.status_kind(status)
            if kind == "busy":
                tally.postponed(item.name, "archive_busy", at, status)
            elif kind == "failure":
                log("instance_refused", level=logging.WARNING, instance=item.name, status=f"{status:04X}")
                tally.refused(item.name, "archive_refuses", at, status)
            else:
                tally.delivered(item.name, status, kind)
            busy = busy + 1 if kind == "busy" else 0
            if busy == BUSY_IN_A_ROW:
                return False
    return True


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


def _read_ahead(items: Sequence[Outgoing]) -> Generator[Verified, None, None]:
    """The files of `items`, opened and verified, one ahead of the one being sent: hashing and the network overlap."""
    with ThreadPoolExecutor(1, thread_name_prefix="forward-read") as pool:
        coming = deque(pool.submit(open_verified, item) for item in items[:1])
        try:
            for following in (*items[1:], None)[: len(items)]:
                with coming.popleft().result() as file:
                    if following is not None:
                        coming.append(pool.submit(open_verified, following))
                    yield file
        finally:
            for future in coming:
                with contextlib.suppress(Hold):
                    future.result().close()
