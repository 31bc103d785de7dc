"""Settings of signing in on the review page by the hospital's OpenID provider. Part of `settings.Settings`."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings

from gateway.message_settings import Words, words_of


class OidcSettings(BaseSettings):
    """`app.review.provider` makes a registration of these."""

    review_oidc_issuer: str = Field(
        "", description="OpenID provider that people sign in by, as it names itself: https://…; empty = local accounts"
    )
    review_oidc_client_id: str = Field("", description="what the provider knows the review page as")
    review_oidc_secret_file: Path | None = Field(
        None, description="file with the client's secret, mode 0600; unset = the provider asks for none"
    )
    review_oidc_ca: Path | None = Field(
        None, description="PEM file of authorities for the provider; unset = those of the machine"
    )
    review_oidc_name_claim: str = Field(
        "preferred_username", description="claim that people are named by in the ledger; no two may have the same"
    )
    review_oidc_role_claim: str = Field(
        "groups", description="claim of the ID token that roles come from, such as groups or realm_access.roles"
    )
    review_oidc_roles: Words = Field(
        (), description="who is what: role=value-of-that-claim, comma separated; whoever has none of them gets nowhere"
    )

    @field_validator("review_oidc_roles", mode="before")
    @classmethod
    def _split_roles_of_claims(cls, value: object) -> object:
        return words_of(value)

    @field_validator("review_oidc_roles")
    @classmethod
    def _pair(cls, pairs: tuple[str, ...]) -> tuple[str, ...]:
        if not all(role and value for role, _, value in (pair.partition("=") for pair in pairs)):
            raise ValueError("each is role=value, e.g. reviewer=deid-reviewers")
        return pairs

    @model_validator(mode="after")
    def _together(self) -> OidcSettings:
        needed = (self.review_oidc_issuer, self.review_oidc_client_id, self.review_oidc_roles)
        if any(needed) and not all(needed):
            raise ValueError(
                "DEID_REVIEW_OIDC_ISSUER, DEID_REVIEW_OIDC_CLIENT_ID and DEID_REVIEW_OIDC_ROLES go together"
            )
        return self
