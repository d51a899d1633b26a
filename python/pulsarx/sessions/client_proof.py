"""Authenticates the client at the other end of a connection, and says what it may do."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.access.identity import Identity
from pulsarx.wire import commands
from pulsarx.wire.protobuf import WireError
from pulsarx.wire.server_errors import code_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from typing import Any, NoReturn

    from pulsarx.access.access import Access
    from pulsarx.sessions.context import SessionContext

    Values = dict[str, Any]

SERVER_VERSION = "PulsarX"


def subscribing(subscription: str) -> Callable[[Access, str, str], None]:
    """A check that requires of a role that it may consume by a subscription."""

    def check(access: Access, role: str, topic: str) -> None:
        access.require_subscribe(role, topic, subscription)

    return check


class ClientProof:
    """Calls of one session alone, but for check."""

    def __init__(self, context: SessionContext) -> None:
        # The name in the client's certificate, which was verified; asked for by CONNECT.
        self.certificate_name: Callable[[], str | None] = lambda: None
        self.host = ""  # the client's address
        self._access = context.server.access
        self._tell, self._wake = context.tell, context.wake
        self._identity: Identity | None = None  # where clients are asked who they are
        # The CONNECT of a client whose password is being checked, and what that says.
        self._proof: tuple[Values, Future[Identity]] | None = None
        self._method = ""  # by which it has proved who it is
        self._can_refresh = False  # the client answers an AUTH_CHALLENGE
        self.is_challenged: bool = False

    def begin(self, values: Values) -> bool:
        """Take a CONNECT; whether it is known who the client is: else wake is called when it is,
        and `take` has it. WireError: it does not prove who it is, and was told so."""
        if self._access is not None:
            if values["original_principal"]:
                error = errors.AuthenticationError(
                    detail="a proxy that speaks for others is not trusted"
                )
                self._end_unproved(error)
            found = self._proved(values["auth_method_name"], values["auth_data"])
            if not isinstance(found, Identity):
                self._proof = values, found
                found.add_done_callback(lambda _: self._wake())
                return False
            self._identity = found
            self._method = values["auth_method_name"]
            features = values["feature_flags"] or {}
            self._can_refresh = features.get("supports_auth_refresh", False)
        return True

    @property
    def is_proving(self) -> bool:
        """Whether it is being found out who the client is, before anything else is done; wake is
        called when it is known."""
        return self._proof is not None

    def take(self) -> Values | None:
        """The CONNECT of which it is known by now who sent it; None: there is none. As begin."""
        if self._proof is None or not self._proof[1].done():
            return None
        values, proof = self._proof
        self._proof = None
        try:
            self._identity = proof.result()
        except errors.AuthenticationError as error:
            self._end_unproved(error)
        self._method = values["auth_method_name"]
        return values

    def _proved(self, method: str | None, data: bytes | None) -> Identity | Future[Identity]:
        assert self._access is not None
        name = self.certificate_name()
        try:
            return self._access.authenticate(method or "", data or b"", name, self.host)
        except (errors.AuthenticationError, errors.ServiceUnitNotReady) as error:
            self._end_unproved(error)

    def _end_unproved(self, error: errors.PulsarException) -> NoReturn:
        """Tell the client, and nothing of why; that is in the log."""
        self._tell(
            "ERROR",
            request_id=commands.FROM_BROKER,
            error=code_of(error),
            message="Failed to authenticate",
        )
        raise WireError(f"it was not authenticated: {errors.detail_of(error)}")

    def check(self, now_ms: int) -> bool:
        """Whether the connection may go on: a client whose proof has expired is asked for another,
        and may go on until the next check. In any thread."""
        identity = self._identity
        if identity is None or identity.expires_ms is None or now_ms < identity.expires_ms:
            return True
        if not self._can_refresh or self.is_challenged:
            return False
        self.is_challenged = True
        self._tell(
            "AUTH_CHALLENGE",
            server_version=SERVER_VERSION,
            challenge={"method": self._method, "data": b"PulsarAuthRefresh"},
            protocol_version=commands.PROTOCOL_VERSION,
        )
        return True

    def answered(self, values: Values) -> None:
        if self._access is None or not self.is_challenged:
            raise WireError("an AUTH_RESPONSE that was not asked for")
        response = values["response"] or {}
        if response.get("method") != self._method:
            error = errors.AuthenticationError(detail="the client proves who it is in another way")
            self._end_unproved(error)
        found = self._proved(self._method, response.get("data"))
        if not isinstance(found, Identity) or (
            self._identity is not None and found.role != self._identity.role
        ):
            self._end_unproved(
                errors.AuthenticationError(detail="the client has become another role")
            )
        self._identity = found
        self.is_challenged = False

    @property
    def role(self) -> str | None:
        """Return the role of the client; None: clients are not asked who they are."""
        return None if self._identity is None else self._identity.role

    @property
    def is_superuser(self) -> bool:
        return (
            self._access is not None
            and self._identity is not None
            and self._access.is_superuser(self._identity.role)
        )

    def require(self, check: Callable[[Access, str, str], None], name: str) -> None:
        """AuthorizationError: the client may not do it with a topic, or in a namespace."""
        if self._access is not None and self._identity is not None:
            check(self._access, self._identity.role, name)
