"""Who we are at an S3 store: the access key that destinations.yaml names, else that of the environment.

Read anew for every call, so that one can be renewed without a restart. Nobody on the network is asked for any.
"""

from __future__ import annotations

import os

from gateway.errors import EnvironmentFault
from gateway.forward.s3_signing import Credentials
from gateway.forward.stow_credentials import secret_in
from gateway.policy import Access

KEY_ID, SECRET, TOKEN = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"


def of(access: Access) -> Credentials:
    """Raises EnvironmentFault, never with what a file or a variable holds."""
    if access.password_file is not None:
        return Credentials(access.user, secret_in(access.password_file))
    key_id, secret, token = (os.environ.get(name, "") for name in (KEY_ID, SECRET, TOKEN))
    if not key_id or not secret:
        raise EnvironmentFault(
            f"no access key: write access_key_id and secret_key_file in destinations.yaml, or set {KEY_ID} and {SECRET}"
        )
    if not all(word.isascii() and word.isprintable() for word in (key_id, secret, token)):
        raise EnvironmentFault(f"{KEY_ID}, {SECRET} and {TOKEN} must each be one line of ASCII")
    return Credentials(key_id, secret, token)
