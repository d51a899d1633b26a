"""The settings of how clients authenticate, and of which roles are superusers."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.policies.permissions import checked_role

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class AccessSettings:
    """A value. Names and meanings are those of Pulsar's broker.conf. At least one of
    token_secret_key, token_public_key, basic_auth_conf and tls_authentication is given."""

    __slots__ = (
        "anonymous_user_role", "basic_auth_conf", "restrict_metrics", "superuser_roles",
        "tls_authentication",
        "token_audience", "token_audience_claim", "token_auth_claim", "token_public_key",
        "token_secret_key",
    )  # fmt: skip

    def __init__(
        self,
        *,
        token_secret_key: str | None = None,
        token_public_key: str | None = None,
        token_auth_claim: str = "sub",
        token_audience: str | None = None,
        token_audience_claim: str = "aud",
        basic_auth_conf: str | None = None,
        tls_authentication: bool = False,
        superuser_roles: Iterable[str] = (),
        anonymous_user_role: str | None = None,
        restrict_metrics: bool = False,
    ) -> None:
        """token_secret_key: of tokens signed with HS256, HS384 or HS512; `file:///path`, a path,
        `data:;base64,...`, or base64. token_public_key: of tokens signed with RS, PS or ES; as
        that, in PEM or DER. token_auth_claim: the claim that is the role. token_audience: what the
        claim token_audience_claim must have. basic_auth_conf: a file of htpasswd, with bcrypt alone
        (`htpasswd -B`). tls_authentication: a client is who the common name of its certificate
        says. superuser_roles: may do everything; others what they were granted.
        anonymous_user_role: the role of clients that do not prove who they are, by none of these
        ways; None: they are not let in. restrict_metrics: `/metrics` tells a role of those topics
        alone to which it may publish or subscribe; else, as Pulsar's, of all.
        """
        if isinstance(superuser_roles, str):
            raise errors.InvalidConfiguration(
                detail="superuser_roles is a str; give a list of names"
            )
        self.token_secret_key: str | None = token_secret_key
        self.token_public_key: str | None = token_public_key
        self.token_auth_claim: str = token_auth_claim
        self.token_audience: str | None = token_audience
        self.token_audience_claim: str = token_audience_claim
        self.basic_auth_conf: str | None = basic_auth_conf
        self.tls_authentication: bool = tls_authentication
        self.superuser_roles: frozenset[str] = frozenset(superuser_roles)
        self.anonymous_user_role: str | None = anonymous_user_role
        self.restrict_metrics: bool = restrict_metrics
        if anonymous_user_role is not None:
            try:
                checked_role(anonymous_user_role)
            except ValueError as error:
                raise errors.InvalidConfiguration(detail=f"anonymous_user_role: {error}") from None
        if anonymous_user_role in self.superuser_roles:
            raise errors.InvalidConfiguration(
                detail=f"anonymous_user_role {anonymous_user_role} is a superuser: whoever reaches "
                "the address could do everything. Grant it what it needs, or allow anonymous "
                "clients"
            )
        if token_secret_key is not None and token_public_key is not None:
            raise errors.InvalidConfiguration(
                detail="give either token_secret_key or token_public_key"
            )
        if not self.has_tokens and basic_auth_conf is None and not tls_authentication:
            raise errors.InvalidConfiguration(
                detail="no client could authenticate: give token_secret_key, token_public_key, "
                "basic_auth_conf or tls_authentication"
            )

    @property
    def has_tokens(self) -> bool:
        return self.token_secret_key is not None or self.token_public_key is not None

    def __repr__(self) -> str:
        # Never the keys: this ends up in logs.
        return f"<AccessSettings of {', '.join(self.methods)}>"

    @property
    def methods(self) -> list[str]:
        """The ways to authenticate that are set, by Pulsar's names."""
        has = {
            "token": self.has_tokens,
            "basic": self.basic_auth_conf is not None,
            "tls": self.tls_authentication,
        }
        return [name for name, there in has.items() if there]
