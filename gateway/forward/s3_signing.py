"""AWS Signature Version 4 for one request to S3: who we are, and that method, place, headers and content are ours.

Written out here because the libraries that carry it ask the network for credentials, follow proxies, try again by
themselves and make their own TLS; what it computes is compared with AWS's published examples and with botocore.
Source: "Authenticating Requests: Using the Authorization Header (AWS Signature Version 4)", Amazon S3 API Reference.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote, urlsplit

ALGORITHM = "AWS4-HMAC-SHA256"
EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class Credentials:
    """An access key. `token`: of a session that ends, "" for a lasting key."""

    access_key_id: str
    secret_key: str = field(repr=False)
    token: str = field(default="", repr=False)


def signed_headers(
    method: str,
    url: str,
    headers: Mapping[str, str],
    *,
    sha256: str,
    credentials: Credentials,
    region: str,
    now: datetime,
) -> dict[str, str]:
    """`headers` and those that sign them; all are signed. `sha256`: of the body, in hex; `now`: in UTC. The path of
    `url` is not yet encoded; a query is not signed here, for none is asked.
    """
    parts = urlsplit(url)
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    sent = {**headers, "x-amz-content-sha256": sha256, "x-amz-date": stamp}
    if credentials.token:
        sent["x-amz-security-token"] = credentials.token
    lines = {name.lower(): " ".join(value.split()) for name, value in {**sent, "host": parts.netloc}.items()}
    names = ";".join(sorted(lines))
    request = "\n".join(
        (
            method,
            quote(parts.path or "/", safe="/-_.~"),
            "",
            *(f"{name}:{lines[name]}" for name in sorted(lines)),
            "",
            names,
            sha256,
        )
    )
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    text = "\n".join((ALGORITHM, stamp, scope, hashlib.sha256(request.encode()).hexdigest()))
    key = f"AWS4{credentials.secret_key}".encode()
    for word in (stamp[:8], region, "s3", "aws4_request", text):
        key = hmac.digest(key, word.encode(), "sha256")
    proof = f"Credential={credentials.access_key_id}/{scope}, SignedHeaders={names}, Signature={key.hex()}"
    return {**sent, "Authorization": f"{ALGORITHM} {proof}"}
