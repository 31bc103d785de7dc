"""Whatever bytes come, the server lives, keeps nothing half-written, and answers the next peer."""

from __future__ import annotations

import socket
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.receive import commands, pdus
from gateway.receive.pdus import ProtocolFault
from tests.peers import wait_until
from tests.receive.raw_peer import CT, RawPeer, associate_request, dataset, element, p_data, pdv, store_command

CONVERSATION = associate_request() + p_data(pdv(1, store_command(), command=True), pdv(1, dataset()))
relaxed = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def throw(port: int, data: bytes) -> None:
    """Send and hang up, reading whatever comes."""
    with RawPeer(port) as peer:
        try:
            peer.send(data)
            peer.socket.shutdown(socket.SHUT_WR)
            peer.closed()
        except OSError:
            pass


def still_serves(door) -> None:
    with door.peer() as peer:
        peer.associate()
        assert peer.store(dataset()) == 0x0000
        peer.release()
    wait_until(lambda: not door.receiver._open, seconds=10, what="every thread has ended")
    assert door.parts() == []
    assert door.value("deid_unforeseen_failures_total", stage="receive") == 0


@relaxed
@given(st.lists(st.one_of(st.binary(max_size=300), st.just(associate_request()), st.just(p_data(pdv(1, b"x"))))))
def test_random_bytes_and_pdus(door, pieces):
    throw(door.port, b"".join(pieces))
    still_serves(door)


@relaxed
@given(st.data())
def test_a_conversation_with_bytes_changed_cut_out_or_put_in(door, data):
    mutated = bytearray(CONVERSATION)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(mutated) - 1))
        how = data.draw(st.sampled_from(["change", "cut", "insert", "truncate"]))
        if how == "change":
            mutated[at] = data.draw(st.integers(0, 255))
        elif how == "cut":
            del mutated[at : at + data.draw(st.integers(1, 8))]
        elif how == "insert":
            mutated[at:at] = data.draw(st.binary(min_size=1, max_size=8))
        else:
            del mutated[max(at, 1) :]
        if not mutated:
            break
    throw(door.port, bytes(mutated))
    still_serves(door)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=600), st.integers(0, 400))
def test_an_associate_request_is_read_or_is_a_protocol_fault(garbage, keep):
    body = associate_request()[6 : 6 + keep] + garbage
    try:
        pdus.read_caller(body)
        request = pdus.read_request(body)
    except ProtocolFault:
        return
    assert all(context.context_id for context in request.contexts)


@settings(max_examples=300)
@given(st.binary(max_size=300), st.integers(0, 200))
def test_a_command_set_is_read_or_malformed(garbage, keep):
    try:
        command = commands.parse(store_command()[:keep] + garbage)
    except commands.MalformedCommand:
        return
    assert 0 <= command.field <= 0xFFFF
    commands.response(command, 0)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (struct.pack(">BxI", 9, 0), 1),  # no such PDU
        (struct.pack(">BxI", 0x2, 4), 2),  # an acceptance
        (struct.pack(">BxI4x", 0x6, 4), 2),  # a release reply
        (struct.pack(">BxI5x", 0x5, 5), 6),  # a release request of another length
        (struct.pack(">BxI", 4, 0), 6),  # P-DATA without a PDV
        (struct.pack(">BxI", 4, 131073), 6),  # longer than we announced
        (struct.pack(">BxI", 4, 0xFFFFFFFF), 6),
        (struct.pack(">BxIIBB", 4, 6, 1, 1, 3), 6),  # PDV shorter than its own header
        (struct.pack(">BxIIBB", 4, 6, 100, 1, 3), 6),  # PDV longer than its PDU
        (p_data(pdv(1, store_command(), command=True) + b"\0\0"), 6),  # rest of a PDV header; closed below
        (p_data(pdv(3, store_command(), command=True)), 6),  # a context that nobody proposed
        (p_data(pdv(1, b"data before any command")), 5),
        (p_data(pdv(1, store_command(), command=True), pdv(1, store_command(), command=True)), 5),
        (p_data(pdv(1, store_command(field=0x8001), command=True)), 5),  # an answer to nothing
        (p_data(pdv(1, b"\0" * 7, command=True)), 6),
        (p_data(pdv(1, element(0, 0x0100, b"\1\0"), command=True)), 6),  # no Message ID
        (p_data(pdv(1, element(8, 0x0100, b"\1\0"), command=True)), 6),  # not group 0000
        (p_data(pdv(1, struct.pack("<HHI", 0, 0x100, 0xFFFFFFFF), command=True)), 6),
        (p_data(pdv(1, b"\0" * 65_000, command=True, last=False)) * 2, 6),  # a command without end
    ],
)
def test_each_breach_of_the_protocol_is_aborted_with_its_reason(door, sent, reason):
    """PS3.8 Table 9-26, source service provider."""
    with door.peer() as peer:
        peer.associate([(CT, ["1.2.840.10008.1.2"])])
        peer.send(sent)
        assert peer.abort_reason() == (2, reason)
        assert peer.closed()
    still_serves(door)


@pytest.mark.parametrize("broken", ["no contexts", "even id", "same id twice"])
def test_requests_with_impossible_contexts_are_aborted(door, broken):
    request = associate_request([(CT, ["1.2.840.10008.1.2"]), (CT, ["1.2.840.10008.1.2.1"])])
    second = request.rindex(b"\x20\x00", 0, request.rindex(CT.encode()))
    if broken == "no contexts":
        first = request.index(b"\x20\x00", 74 + 20)
        body = request[6:first] + request[request.rindex(b"\x50\x00") :]
        request = struct.pack(">BxI", 1, len(body)) + body
    else:
        changed = bytearray(request)
        changed[second + 4] = 2 if broken == "even id" else 1
        request = bytes(changed)
    with door.peer() as peer:
        peer.send(request)
        assert peer.abort_reason() == (0, 0)
