"""Who we are at a DICOMweb archive: a token (RFC 6750) or a user with a password (RFC 7617), read from files.

They are read anew for every call, so that one can be renewed without a restart.
"""

from __future__ import annotations

import base64
import stat
from collections.abc import Mapping
from pathlib import Path

from gateway.errors import EnvironmentFault
from gateway.policy import Access
from gateway.tls import OPEN_TO_OTHERS

LONGEST_BYTES = 16 * 1024


def headers_of(access: Access) -> Mapping[str, str]:
    """The Authorization header, {} when none is asked for. Raises EnvironmentFault, never with what a file holds."""
    if access.token_file is not None:
        return {"Authorization": f"Bearer {secret_in(access.token_file)}"}
    if access.password_file is not None:
        pair = f"{access.user}:{secret_in(access.password_file)}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
    return {}


def secret_in(path: Path) -> str:
    """One line of a file that nobody else can read. Raises EnvironmentFault."""
    try:
        with open(path, "rb") as file:
            mode = stat.S_IMODE(path.stat().st_mode)
            data = file.read(LONGEST_BYTES + 1)
    except OSError as error:
        raise EnvironmentFault(f"{path} cannot be read ({error.strerror})") from None
    if mode & OPEN_TO_OTHERS:
        raise EnvironmentFault(f"{path} is open to others (mode {mode:04o}); run chmod 600 on it")
    try:
        text = data.decode("ascii").strip()
    except UnicodeDecodeError:
        text = ""
    if not text or not text.isprintable() or len(data) > LONGEST_BYTES:
        raise EnvironmentFault(f"{path} must hold one line of ASCII")
    return text
