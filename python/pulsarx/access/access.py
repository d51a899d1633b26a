"""The one place that knows who a client is and what it may do: for connections of the binary
protocol, and for requests over HTTP."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.access.identity import Identity
from pulsarx.broker.policies.permissions import (
    CONSUME,
    PRODUCE,
    actions_of,
    may_use_subscription,
)
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from pulsarx.access.access_settings import AccessSettings
    from pulsarx.broker.catalogue.catalogue import Catalogue
    from pulsarx.clock import Clock


class Access:
    """Any thread may call but the main one, which runs no function of the broker."""

    def __init__(self, settings: AccessSettings, catalogue: Catalogue, clock: Clock) -> None:
        """InvalidConfiguration: a key or a file cannot be used. ImportError: a package is
        missing; the text says which."""
        from pulsarx.access.basic_users import BasicUsers
        from pulsarx.access.password_queue import PasswordQueue
        from pulsarx.access.tokens import TokenVerifier

        self.methods: tuple[str, ...] = tuple(settings.methods)
        self._catalogue = catalogue
        self._clock = clock
        self._superusers = settings.superuser_roles
        self._anonymous_role = settings.anonymous_user_role
        self._by_certificate = settings.tls_authentication
        self._restricts_metrics = settings.restrict_metrics
        users = settings.basic_auth_conf
        self._tokens = TokenVerifier(settings) if settings.has_tokens else None
        self._passwords = PasswordQueue(BasicUsers(users)) if users is not None else None

    @property
    def knows_all(self) -> bool:
        """Whether everybody who is let in has proved who he is."""
        return self._anonymous_role is None

    def close(self) -> None:
        """Nobody is let in any more. Idempotent."""
        if self._passwords is not None:
            self._passwords.close()

    # Who ------------------------------------------------------------------------------------------

    def authenticate(
        self, method: str, data: bytes, certificate_name: str | None, host: str
    ) -> Identity | Future[Identity]:
        """method, data: as a CONNECT has them. certificate_name: of the client's certificate, which
        was verified. host: its address. A future where it takes its time. AuthenticationError, in
        the future too: it is not proved who it is. ServiceUnitNotReady: too many ask that."""
        if method == "token" and self._tokens is not None:
            try:
                token = data.decode("ascii")
            except UnicodeDecodeError:
                raise errors.AuthenticationError(detail="the token is no text") from None
            return self._tokens.verify(token, self._clock.now_ms())
        if method == "basic" and self._passwords is not None:
            return self._passwords.identify(data, host)
        if method == "tls" and self._by_certificate:
            if not certificate_name:
                raise errors.AuthenticationError(detail="the client has no certificate with a name")
            return Identity(certificate_name)
        if self._anonymous_role is not None and method not in self.methods:
            return Identity(self._anonymous_role)  # as in Pulsar, who tries nothing that is asked
        raise errors.AuthenticationError(detail=f"authentication by {method or 'nothing'!r:.50}")

    # What -----------------------------------------------------------------------------------------

    def is_superuser(self, role: str) -> bool:
        return role in self._superusers

    def may_administer(self, role: str, tenant: str) -> bool:
        """Whether a role may change what is in a tenant, and use its topics."""
        if role in self._superusers:
            return True
        found = self._catalogue.state.tenants.get(tenant)
        return found is not None and role in found.get("admin_roles", ())

    def require_superuser(self, role: str, what: str) -> None:
        if not self.is_superuser(role):
            raise errors.AuthorizationError(
                detail=f"role {role} may not {what}: superusers alone may"
            )

    def require_admin(self, role: str, tenant: str, what: str) -> None:
        if not self.may_administer(role, tenant):
            raise errors.AuthorizationError(
                detail=f"role {role} may not {what}: administrators of tenant {tenant} may"
            )

    def require_produce(self, role: str, topic: str) -> None:
        self._require(role, topic, (PRODUCE,))

    def require_consume(self, role: str, topic: str) -> None:
        self._require(role, topic, (CONSUME,))

    def require_subscribe(self, role: str, topic: str, subscription: str) -> None:
        """To consume by a subscription."""
        self.require_consume(role, topic)
        name = TopicName.of(topic)
        namespace = name.namespace_name
        if self.may_administer(role, namespace.partition("/")[0]):
            return
        policies = self._catalogue.namespace_policies(namespace) or {}
        if not may_use_subscription(policies, role, subscription):
            raise errors.AuthorizationError(
                detail=f"role {role} may not use subscription {subscription:.200} on {name}"
            )

    def require_lookup(self, role: str, topic: str) -> None:
        """To find the topic and to see what it is like."""
        self._require(role, topic, (PRODUCE, CONSUME))

    def metrics_filter(self, role: str) -> Callable[[str], bool] | None:
        """A filter of the topics whose figures the role is told; None: of all."""
        if not self._restricts_metrics or self.is_superuser(role):
            return None

        def sees(topic: str) -> bool:
            try:
                self.require_lookup(role, topic)
            except errors.AuthorizationError:
                return False
            return True

        return sees

    def _require(self, role: str, topic: str, any_of: tuple[str, ...]) -> None:
        name = TopicName.of(topic)
        namespace = name.namespace_name
        if self.may_administer(role, namespace.partition("/")[0]):
            return
        policies = self._catalogue.namespace_policies(namespace) or {}
        for each in (None, name.full, name.partitioned_name):
            if not actions_of(policies, role, each).isdisjoint(any_of):
                return
        raise errors.AuthorizationError(
            detail=f"role {role} may not {' or '.join(any_of)} on {name}"
        )

    def require_in_namespace(self, role: str, namespace: str) -> None:
        """To see which topics it has."""
        if self.may_administer(role, namespace.partition("/")[0]):
            return
        policies = self._catalogue.namespace_policies(namespace) or {}
        if not actions_of(policies, role, None):
            raise errors.AuthorizationError(detail=f"role {role} may not use namespace {namespace}")
