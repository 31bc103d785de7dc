"""Settings: what differs between machines, from `DEID_*` environment variables and `HOME/.env`.

Few, strict, with units in their names. What differs between *studies* is policy, and lives in YAML, not here.
Also the layout of a home folder: one place knows where a running gateway keeps its things.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from dotenv import dotenv_values
from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from gateway.errors import EnvironmentFault, UsageError
from gateway.limit_settings import LimitSettings
from gateway.message_settings import Words, words_of
from gateway.oidc_settings import OidcSettings
from gateway.process_settings import ProcessSettings

SHIPPED_POLICIES = Path(__file__).resolve().parent.parent / "policies"

Urls = Annotated[Mapping[str, SecretStr], NoDecode]


class Settings(ProcessSettings, LimitSettings, OidcSettings):
    """Every setting, its unit and its default. Unknown `DEID_*` names are refused by `load_settings`."""

    model_config = SettingsConfigDict(env_prefix="DEID_", extra="ignore", frozen=True, validate_default=True)

    policies: Path = Field(SHIPPED_POLICIES, description="folder of policy YAML, routes.yaml and destinations.yaml")
    key: SecretStr | None = Field(None, description="master key, hex; else HOME/keys/master.key or DEID_KEY_FILE")
    key_file: Path | None = Field(None, description="file that holds the master key in hex, mode 0600")
    lookup_urls: Urls = Field(
        {}, description="databases with look-up tables: name=URL, spaces between several; policies name them (sql:)"
    )

    require_approval: bool = Field(False, description="load only policies that were approved (`policy approve`)")
    approvers_needed: int = Field(1, ge=1, le=5, description="different people who must approve a policy")

    ae_title: str = Field("DEID", max_length=16, description="our AE title, called by the PACS, calling the archive")
    dicom_host: str = Field("127.0.0.1", description="address that the DICOM port binds to")
    dicom_port: int = Field(11112, ge=0, le=65535, description="0 = any free port")
    dicom_plain: bool = Field(True, description="take DICOM in the clear on dicom_port; false = over TLS only")
    dicom_tls_port: int | None = Field(
        None, ge=0, le=65535, description="port for DICOM over TLS (2762 by custom); unset = none, 0 = any"
    )
    dicom_tls_certificate: Path | None = Field(None, description="PEM file: our certificate for DICOM over TLS")
    dicom_tls_key: Path | None = Field(None, description="PEM file with its key, mode 0600")
    dicom_tls_ca: Path | None = Field(
        None, description="PEM file: who vouches for senders, who must then show a certificate; unset = they need none"
    )
    stow_host: str = Field("127.0.0.1", description="address that DICOMweb (STOW-RS) binds to")
    stow_port: int | None = Field(None, ge=0, le=65535, description="port of DICOMweb; unset = none, 0 = any")
    stow_clients: Words = Field(
        (), description="who may send by it: AET@host#SHA256-of-token, comma separated; * for any host; empty = nobody"
    )
    stow_tls_certificate: Path | None = Field(None, description="PEM file: DICOMweb speaks TLS itself")
    stow_tls_key: Path | None = Field(None, description="PEM file with the key of that certificate, mode 0600")
    stow_tls_ca: Path | None = Field(
        None, description="PEM file: who vouches for senders, who must then show a certificate as well"
    )
    http_host: str = Field("127.0.0.1", description="address that /metrics, /healthz and /readyz bind to")
    http_port: int = Field(8080, ge=0, le=65535, description="0 = any free port")
    review_host: str = Field("127.0.0.1", description="address that the review page binds to")
    review_port: int | None = Field(None, ge=0, le=65535, description="port of the review page; unset = none, 0 = any")
    review_url: str = Field(
        "", description="how browsers reach the review page, e.g. https://deid.example; empty = on this machine only"
    )
    review_tls_certificate: Path | None = Field(None, description="PEM file: the review page speaks TLS itself")
    review_tls_key: Path | None = Field(None, description="PEM file with the key of that certificate")
    allowed_peers: Words = Field(
        (),
        description="who may send: AET@host, comma separated; * for any host; AET@host#SHA256 with that certificate",
    )
    called_ae_titles: Words = Field((), description="AE titles we answer to besides ae_title, for routing by called AE")
    private_sop_classes: Words = Field((), description="private storage SOP classes to accept (and then hold)")
    commitment: Literal["off", "intake", "decision"] = Field(
        "off", description="storage commitment to senders: off, once on disk (intake), or once it was sent (decision)"
    )
    commitment_peers: Words = Field((), description="where reports of it go: AET@host:port, comma separated")

    quiet_s: float = Field(30.0, ge=0, description="a study is complete when nothing came for this long")
    forced_complete_s: float = Field(3600.0, gt=0, description="a study is closed after this, whatever still comes")
    use_expected_count: bool = Field(True, description="close early when NumberOfStudyRelatedInstances is reached")
    poll_s: float = Field(0.5, gt=0, le=1.0, description="how often the engine looks for intents and quiet studies")

    workers: int = Field(max(1, (os.cpu_count() or 2)), ge=1, description="processes for heavy steps")
    retry_limit: int = Field(12, ge=1, description="attempts to reach an archive before the study is held")
    retry_base_s: float = Field(5.0, gt=0, description="first pause between attempts; doubles up to retry_max_s")
    retry_max_s: float = Field(900.0, gt=0, description="longest pause between attempts")

    @field_validator(
        *("allowed_peers", "called_ae_titles", "private_sop_classes", "stow_clients", "commitment_peers"), mode="before"
    )
    @classmethod
    def _split(cls, value: object) -> object:
        return words_of(value)

    @field_validator("lookup_urls", mode="before")
    @classmethod
    def _named(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        pairs = [word.partition("=") for word in value.split()]
        if not all(re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}", name) and url for name, _, url in pairs):
            raise ValueError("each is name=URL; names are small letters, digits and dashes")
        if len({name for name, _, _ in pairs}) < len(pairs):
            raise ValueError("a name is there twice")
        return {name: url for name, _, url in pairs}

    @field_validator("allowed_peers")
    @classmethod
    def _peer(cls, peers: tuple[str, ...]) -> tuple[str, ...]:
        for peer in peers:
            title, at, host = peer.partition("@")
            host, mark, certificate = host.partition("#")
            if not (at and title and host) or len(title) > 16:
                raise ValueError("each peer is AET@host, e.g. PACS@10.0.0.7, or PACS@* for any host")
            if mark and not re.fullmatch(r"[0-9a-f]{64}", certificate):
                raise ValueError("behind # stands the SHA-256 of a certificate, 64 small hexadecimal digits")
        return peers

    @field_validator("stow_clients")
    @classmethod
    def _client(cls, clients: tuple[str, ...]) -> tuple[str, ...]:
        if not all(re.fullmatch(r"[^@#]{1,16}@[^@#]+#[0-9a-f]{64}", client) for client in clients):
            raise ValueError("each client is AET@host#SHA256 of its token, in 64 small hexadecimal digits")
        if len({client.rpartition("#")[2] for client in clients}) < len(clients):
            raise ValueError("two clients have one token")
        return clients

    @field_validator("commitment_peers")
    @classmethod
    def _report_to(cls, peers: tuple[str, ...]) -> tuple[str, ...]:
        places = [re.fullmatch(r"([^@]{1,16})@[^@]+:([0-9]{1,5})", peer) for peer in peers]
        if not all(place is not None and 0 < int(place[2]) < 65536 for place in places):
            raise ValueError("each is AET@host:port, e.g. CT1@10.0.0.9:104")
        return peers

    @model_validator(mode="after")
    def _tls(self) -> Settings:
        if (self.dicom_tls_port is None) != (self.dicom_tls_certificate is None and self.dicom_tls_key is None) or (
            (self.dicom_tls_certificate is None) != (self.dicom_tls_key is None)
        ):
            raise ValueError("DEID_DICOM_TLS_PORT, DEID_DICOM_TLS_CERTIFICATE and DEID_DICOM_TLS_KEY go together")
        if (self.stow_tls_certificate is None) != (self.stow_tls_key is None) or (
            self.stow_tls_ca is not None and self.stow_tls_key is None
        ):
            raise ValueError(
                "DEID_STOW_TLS_CERTIFICATE and DEID_STOW_TLS_KEY go together, and DEID_STOW_TLS_CA with them"
            )
        if not self.dicom_plain and self.dicom_tls_port is None:
            raise ValueError("DEID_DICOM_PLAIN=false leaves no DICOM port; set DEID_DICOM_TLS_PORT")
        if self.dicom_tls_ca is None and any("#" in peer for peer in self.allowed_peers):
            raise ValueError("DEID_ALLOWED_PEERS asks for certificates; set DEID_DICOM_TLS_CA")
        return self


def load_settings(home: Path, **overrides: object) -> Settings:
    """Settings from `overrides`, then the environment, then `home/.env`. Raises UsageError with every fault at once."""
    known = {f"DEID_{name.upper()}" for name in Settings.model_fields} | {"DEID_HOME"}
    try:
        written = {name.upper() for name in (*os.environ, *dotenv_values(home / ".env"))}
    except UnicodeDecodeError:
        raise UsageError(f"{home / '.env'} is not UTF-8 text; save it as UTF-8") from None
    unknown = sorted(name for name in written if name.startswith("DEID_") and name not in known)
    if unknown:
        raise UsageError(f"unknown settings: {', '.join(unknown)}; `deid-gateway settings` lists those that exist")
    try:
        return Settings(_env_file=home / ".env", **overrides)  # type: ignore[call-arg, arg-type]
    except ValidationError as error:
        faults = "; ".join(
            (f"DEID_{str(e['loc'][0]).upper()}: " if e["loc"] else "") + e["msg"]
            for e in error.errors(include_input=False)
        )
        raise UsageError(f"settings: {faults}") from None


@dataclass(frozen=True, slots=True)
class Home:
    """Where a running gateway keeps what it owns. Every folder is 0700."""

    root: Path

    FOLDERS = ("keys", "spool", "work", "estimates", "held", "vault", "policies", "logs", "journal")

    @property
    def keys(self) -> Path:
        """The master key, the keys that pseudonyms were rotated to, the vault's key."""
        return self.root / "keys"

    @property
    def master_key(self) -> Path:
        return self.keys / "master.key"

    @property
    def vault(self) -> Path:
        """Who is behind a pseudonym, encrypted; empty unless a policy asks for it."""
        return self.root / "vault"

    @property
    def spool(self) -> Path:
        return self.root / "spool"

    @property
    def work(self) -> Path:
        """Candidates: encoded, not yet cleared or not yet sent. Pseudonymous."""
        return self.root / "work"

    @property
    def estimates(self) -> Path:
        """What pixel stages estimated (boxes, masks), by study: computed once, used by every replay."""
        return self.root / "estimates"

    @property
    def held(self) -> Path:
        """What `scrub` could not clear."""
        return self.root / "held"

    @property
    def journal(self) -> Path:
        return self.root / "journal"

    @property
    def policy_snapshots(self) -> Path:
        """Policies by digest: a study finishes under the policy it began with."""
        return self.root / "policies"

    @property
    def ledger(self) -> Path:
        return self.root / "ledger.jsonl"

    @property
    def database(self) -> Path:
        return self.root / "database.sqlite"

    @property
    def engine_database(self) -> Path:
        return self.root / "engine.sqlite"

    @property
    def engine_lock(self) -> Path:
        return self.root / "engine.lock"

    def create(self, *, generate_key: bool = True) -> bool:
        """Make the folders and, when there is none, a master key (mode 0600). True when a key was generated.

        Without `generate_key` the key is held elsewhere (DEID_KEY, DEID_KEY_FILE): a second one lying here would take
        its place, unnoticed, once that setting is forgotten. Raises EnvironmentFault when a folder cannot be made ours.
        """
        try:
            for folder in (self.root, *(self.root / name for name in self.FOLDERS)):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                folder.chmod(0o700)
        except OSError as error:
            raise EnvironmentFault(
                f"{self.root} cannot be made a home: {error.strerror}; name a folder that belongs to this user"
            ) from error
        if not generate_key:
            return False
        try:
            handle = os.open(self.master_key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return False
        try:
            with os.fdopen(handle, "w") as file:
                file.write(secrets.token_hex(32) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError:  # half a key would be taken for the key the next time
            self.master_key.unlink()
            raise
        return True

    def require(self) -> None:
        """Raise EnvironmentFault unless `create` was run here."""
        if not (self.root / "keys").is_dir():
            raise EnvironmentFault(f"{self.root} is not a gateway home; run `deid-gateway init {self.root}` first")
