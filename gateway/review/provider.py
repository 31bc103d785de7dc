"""An OpenID provider: where it is asked, what it says of who signed in, and what that person may do here.

OpenID Connect Core 1.0 by authorization code, with PKCE (RFC 7636), state and nonce; the ID token is checked by Authlib
and joserfc against the provider's keys. Anything missing, wrong or out of reach lets nobody in. No value of a token is
told, logged or kept.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlencode

from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from joserfc.jws import extract_compact

from gateway.errors import EnvironmentFault
from gateway.review.asking import Asking, is_safe, out_of_reach
from gateway.review.roles import GRANTS, Role
from gateway.tls import OPEN_TO_OTHERS

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384")  # never a shared secret, or none
LEEWAY_S = 60
KEPT_S, KEYS_AGAIN_S = 3600.0, 30.0  # how long what it says of itself counts; how often its keys are asked for at most


class NotLetIn(Exception):
    """Signing in by the provider has failed, and what a person is told of it. It holds no value."""


@dataclass(frozen=True, slots=True)
class Registration:
    """What provider and gateway know of each other. `roles` maps values of the role claim to roles."""

    issuer: str
    client_id: str
    roles: Mapping[str, Role]
    secret_file: Path | None = None
    ca_file: Path | None = None
    name_claim: str = "preferred_username"
    role_claim: str = "groups"

    def secret(self) -> str:
        """Read at every use, so that it can be renewed. Raises EnvironmentFault."""
        if self.secret_file is None:
            return ""
        try:
            if stat.S_IMODE(self.secret_file.stat().st_mode) & OPEN_TO_OTHERS:
                raise EnvironmentFault(f"{self.secret_file} can be read or written by others; chmod 600 it")
            return self.secret_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            raise EnvironmentFault(f"{self.secret_file} cannot be read; see DEID_REVIEW_OIDC_SECRET_FILE") from None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try to sign in, from our page to the provider and back."""

    began: float
    redirect_uri: str
    state: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    nonce: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48), repr=False)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who signed in: `subject` is a SHA-256 over issuer and sub, which never change for a person; a name may."""

    name: str
    role: Role
    subject: str


class Provider:
    """One provider. Safe to share between threads."""

    def __init__(self, registration: Registration, now: Callable[[], float] = time.time) -> None:
        self.registration = registration
        self._now = now
        self._asking = Asking(registration.ca_file)
        self._lock = Lock()
        self._about: tuple[float, dict[str, Any]] = (-KEPT_S, {})
        self._keys: tuple[float, list[dict[str, Any]]] = (-KEPT_S, [])

    def address(self, attempt: Attempt) -> str:
        """Where the browser goes to sign in. Raises EnvironmentFault when the provider cannot be asked about itself."""
        return str(
            prepare_grant_uri(
                self._endpoint("authorization_endpoint"),
                self.registration.client_id,
                "code",
                redirect_uri=attempt.redirect_uri,
                scope="openid profile",
                state=attempt.state,
                nonce=attempt.nonce,
                code_challenge=create_s256_code_challenge(attempt.verifier),
                code_challenge_method="S256",
            )
        )

    def leaving(self, back: str) -> str:
        """Where the browser goes to sign out there as well, "" where the provider has no such page."""
        end = self._about[1].get("end_session_endpoint", "")
        asked = {"client_id": self.registration.client_id, "post_logout_redirect_uri": back}
        return f"{end}?{urlencode(asked)}" if is_safe(end) and "?" not in end else ""

    def identity(self, attempt: Attempt, code: str) -> Identity:
        """Who came back with this code. Raises NotLetIn, and EnvironmentFault when the provider cannot be asked."""
        answer = self._exchange(attempt, code)
        claims = self._claims(str(answer.get("id_token", "")), attempt.nonce, answer.get("access_token"))
        subject = hashlib.sha256(f"{claims['iss']}\0{claims['sub']}".encode()).hexdigest()
        name = str(claims.get(self.registration.name_claim, "")).casefold()
        if not re.fullmatch(r"[a-z0-9][a-z0-9._@-]{1,62}", name):
            raise NotLetIn("Your account there has no name that this page can write down.")
        return Identity(name, self._role(claims), subject)

    # -- what it says -------------------------------------------------------------------------------------------------

    def _exchange(self, attempt: Attempt, code: str) -> dict[str, Any]:
        """The code for tokens, once."""
        mine, secret = self.registration, self.registration.secret()
        body = prepare_token_request(
            "authorization_code", code=code, redirect_uri=attempt.redirect_uri, code_verifier=attempt.verifier
        )
        supported = self._metadata().get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        method = "client_secret_basic" if "client_secret_basic" in supported else "client_secret_post"
        auth = ClientAuth(mine.client_id, secret, method if secret else "none")
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        where, headers, body = auth.prepare("POST", self._endpoint("token_endpoint"), headers, body)
        status, answer = self._asking.ask("POST", where, headers, body)
        if status != 200:
            raise NotLetIn("The sign-in provider did not confirm it. Try again.")
        return answer

    def _claims(self, token: str, nonce: str, access_token: object) -> CodeIDToken:
        """Raises NotLetIn unless the token is the provider's, for us, for this attempt and of now (Core 3.1.3.7)."""
        mine = self.registration
        try:
            found = jwt.decode(token, self._key_of(token), algorithms=list(ALGORITHMS))
            options = {
                "iss": {"essential": True, "value": mine.issuer},
                "aud": {"essential": True, "value": mine.client_id},
            }
            params = {"nonce": nonce, "client_id": mine.client_id, "access_token": access_token}
            claims = CodeIDToken(found.claims, found.header, options, params)
            claims.validate(now=int(self._now()), leeway=LEEWAY_S)
        except (JoseError, ValueError, TypeError, KeyError):
            raise NotLetIn(
                "What the sign-in provider says does not hold. Try again; tell who runs this page."
            ) from None
        if not isinstance(claims["sub"], str) or not claims["sub"]:
            raise NotLetIn("The sign-in provider does not say who you are.")
        return claims

    def _role(self, claims: Mapping[str, Any]) -> Role:
        """The role of the claim that contains its others. Raises NotLetIn for none, and for two that are apart."""
        value: Any = claims
        parts = [self.registration.role_claim] if self.registration.role_claim in claims else None
        for part in parts or self.registration.role_claim.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        values = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        roles = {
            self.registration.roles[one] for one in values if isinstance(one, str) and one in self.registration.roles
        }
        whole = [role for role in roles if all(GRANTS[role] >= GRANTS[other] for other in roles)]
        if not whole:
            raise NotLetIn("Your account there has no role here, or two that do not go together.")
        return whole[0]

    def _key_of(self, token: str) -> Any:
        """The key that signed it, by its id; the keys are asked for anew when it is not among those known."""
        kid = extract_compact(token.encode()).headers().get("kid")
        for again in (False, True):
            keys = self._key_list(again=again)
            named = [key for key in keys if kid is None or key.get("kid") == kid]
            if len(named) == 1:
                return KeySet.import_key_set({"keys": named}).keys[0]
        raise ValueError("no such key")

    def _key_list(self, *, again: bool) -> list[dict[str, Any]]:
        at, keys = self._keys
        age_s = self._now() - at
        if age_s >= KEPT_S or (again and age_s >= KEYS_AGAIN_S):
            status, answer = self._asking.ask("GET", self._endpoint("jwks_uri"), {}, None)
            listed = answer.get("keys")
            if status != 200 or not isinstance(listed, list):
                raise out_of_reach()
            keys = [key for key in listed if isinstance(key, dict) and key.get("use", "sig") == "sig"]
            keys = [key for key in keys if key.get("kty") in ("RSA", "EC")]
            with self._lock:
                self._keys = (self._now(), keys)
        return keys

    def _metadata(self) -> dict[str, Any]:
        """OpenID Connect Discovery 1.0. One that names another issuer is not ours."""
        at, about = self._about
        if self._now() - at >= KEPT_S:
            where = self.registration.issuer.rstrip("/") + "/.well-known/openid-configuration"
            status, about = self._asking.ask("GET", where, {}, None)
            if status != 200 or about.get("issuer") != self.registration.issuer:
                raise out_of_reach()
            with self._lock:
                self._about = (self._now(), about)
        return about

    def _endpoint(self, name: str) -> str:
        where = self._metadata().get(name)
        if not isinstance(where, str) or not is_safe(where):
            raise out_of_reach()
        return where
