"""Good inputs that `bench.fuzz` begins with: made conversations, pydicom's test files, the shipped policies."""

from __future__ import annotations

from pathlib import Path

MOST_BYTES = 60_000
ROOT = Path(__file__).resolve().parent.parent
FILES = ("research-basic.yaml", "routes.yaml", "destinations.yaml")  # of a policies folder; the first byte says which


def dimse_seeds() -> list[bytes]:
    from gateway.receive.pdus import AbortReason, abort
    from tests.receive import raw_peer as raw

    request = raw.associate_request()
    command, data = raw.store_command(), raw.dataset()
    stored = raw.p_data(raw.pdv(1, command, command=True)) + raw.p_data(raw.pdv(1, data))
    split = b"".join(
        raw.p_data(raw.pdv(1, data[at : at + 9], last=at + 9 >= len(data))) for at in range(0, len(data), 9)
    )
    echo = raw.p_data(raw.pdv(1, raw.store_command("", sop_class=raw.ECHO, field=0x30, data_set=False), command=True))
    commitment = "1.2.840.10008.1.20.1"
    asks = raw.element(8, 0x1195, b"1.2.3.4\0") + raw.element(8, 0x1199, b"")
    action = raw.store_command("1.2.840.10008.1.20.1.1", sop_class=commitment, field=0x130)
    syntaxes = ["1.2.840.10008.1.2", "1.2.840.10008.1.2.1"]
    many = raw.associate_request([(raw.CT, syntaxes), (raw.ECHO, syntaxes), (commitment, syntaxes)])
    release = bytes.fromhex("05000000000400000000")
    return [
        request + stored + release,
        request + raw.p_data(raw.pdv(1, command, command=True)) + split + stored,
        raw.associate_request([(raw.ECHO, syntaxes)]) + echo + release,
        many + raw.p_data(raw.pdv(5, action, command=True), raw.pdv(5, asks)) + abort(AbortReason.NOT_SPECIFIED),
    ]


def stow_seeds() -> list[bytes]:
    import pydicom.data

    whole = Path(str(pydicom.data.get_testdata_file("MR_truncated.dcm"))).read_bytes()[:3000]
    small = b"\0" * 128 + b"DICM" + bytes.fromhex("0200100055491400") + b"1.2.840.10008.1.2.1\0" + whole[400:600]
    bodies = []
    for objects in ([whole], [small, whole], [b""]):
        kind = b'multipart/related; type="application/dicom"; boundary=b0\n'
        parts = b"".join(b"--b0\r\nContent-Type: application/dicom\r\n\r\n" + one + b"\r\n" for one in objects)
        bodies.append(kind + parts + b"--b0--\r\n")
    return bodies


def dicom_seeds() -> list[bytes]:
    from bench.fuzz_seeds import seeds

    return seeds()


def frame_seeds() -> list[bytes]:
    """pydicom's small test files with pixels, compressed ones above all."""
    import pydicom.data

    folder = Path(pydicom.data.__file__).parent
    small = [path for path in sorted(folder.rglob("*.dcm")) if path.stat().st_size < MOST_BYTES]
    found = []
    for path in small:
        data = path.read_bytes()
        compressed = b"1.2.840.10008.1.2.4." in data[:600] or b"1.2.840.10008.1.2.5" in data[:600]
        if b"\xe0\x7f\x10\x00" in data and (compressed or len(found) % 4 == 0):
            found.append(data)
    return found


def policy_seeds() -> list[bytes]:
    own = [bytes([number]) + (ROOT / "policies" / name).read_bytes() for number, name in enumerate(FILES)]
    starters = sorted((ROOT / "policies" / "starters").glob("*.yaml"))
    return own + [b"\0" + path.read_bytes() for path in starters]
