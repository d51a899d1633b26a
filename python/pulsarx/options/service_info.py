"""Service discovery of the official client: what a client may be given in place of a URL.

In process the place a client opened cannot become unreachable, so nothing is probed and nothing is
switched: the client opens the primary, or what the provider names first.
"""

from __future__ import annotations

from pulsarx.errors import OperationNotSupported
from pulsarx.options.argument_check import check_type, check_type_or_none
from pulsarx.options.authentication import Authentication
from pulsarx.options.service_url import parse_service_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

TLS_SCHEMES = ("pulsar+ssl:", "https:")
_NOT_HERE = (
    "is not supported when service_url is an AutoClusterFailover or ServiceInfoProvider; "
    "set it on each ServiceInfo"
)


class ServiceInfo:
    """The URL and options by which a client reaches a cluster. Immutable."""

    def __init__(
        self,
        service_url: str,
        authentication: Authentication | None = None,
        tls_trust_certs_file_path: str | None = None,
    ) -> None:
        """Keep a URL and what belongs to it.

        Args:
            service_url: With its scheme, as `pulsar:`, `file:` or `memory:`.
            authentication: The credentials there.
            tls_trust_certs_file_path: The authorities of its certificate (PEM).

        Raises:
            ValueError: The URL has no scheme, or an argument is of the wrong type.
        """
        check_type(str, service_url, "service_url")
        check_type_or_none(Authentication, authentication, "authentication")
        check_type_or_none(str, tls_trust_certs_file_path, "tls_trust_certs_file_path")
        if not service_url.partition(":")[1]:
            raise ValueError(
                f"service_url {service_url!r} has no scheme; write pulsar://host:port, "
                "file:folder or memory:"
            )
        self._keep(service_url, authentication, tls_trust_certs_file_path)

    def _keep(
        self,
        url: str,
        authentication: Authentication | None = None,
        certificates: str | None = None,
    ) -> None:
        self._service_url = url
        self._authentication = authentication
        self._tls_trust_certs_file_path = certificates

    @classmethod
    def of_url(cls, service_url: str) -> Self:
        """Return the service information of what a client was opened with.

        Args:
            service_url: A URL, or a path.
        """
        made = cls.__new__(cls)
        made._keep(service_url)
        return made

    @classmethod
    def wrap(cls, service_info: ServiceInfo) -> ServiceInfo:
        """Return the same: there is no native one behind it.

        Args:
            service_info: A ServiceInfo.

        Raises:
            ValueError: It is none.
        """
        check_type(ServiceInfo, service_info, "service_info")
        return service_info

    @property
    def service_url(self) -> str:
        """The URL."""
        return self._service_url

    @property
    def authentication(self) -> Authentication | None:
        """The credentials; None: there are none. Not in the official client."""
        return self._authentication

    @property
    def use_tls(self) -> bool:
        """Whether the scheme is one of TLS."""
        return self._service_url.lower().startswith(TLS_SCHEMES)

    @property
    def tls_trust_certs_file_path(self) -> str | None:
        """The authorities of its certificate; None: those of the system."""
        return self._tls_trust_certs_file_path

    def __repr__(self) -> str:
        return (
            f"ServiceInfo(service_url={self.service_url!r}, use_tls={self.use_tls!r}, "
            f"tls_trust_certs_file_path={self.tls_trust_certs_file_path!r})"
        )


class ServiceInfoProvider:
    """Base of what tells a client where its cluster is. Subclasses are the user's."""

    def initial_service_info(self) -> ServiceInfo:
        """Return the service that the client shall connect to.

        Raises:
            NotImplementedError: A subclass does not have it.
        """
        raise NotImplementedError

    def initialize(self, on_service_info_update: Callable[[ServiceInfo], None]) -> None:
        """Take the function by which to tell later changes.

        Args:
            on_service_info_update: Any thread may call it. It raises OperationNotSupported where
                the service lies elsewhere: an open client does not move.

        Raises:
            NotImplementedError: A subclass does not have it.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Take note that the client has closed."""


class AutoClusterFailover:
    """A cluster and others to turn to when it cannot be reached. Immutable by custom."""

    def __init__(
        self,
        primary: ServiceInfo,
        secondary: list[ServiceInfo],
        check_interval_ms: int = 5000,
        failover_threshold: int = 1,
        switch_back_threshold: int = 1,
    ) -> None:
        """Keep several services. A client opens the primary; nothing is probed, and nothing
        switched.

        Args:
            primary: The service to open.
            secondary: The others, one at least.
            check_interval_ms: Milliseconds between probes; checked, and without effect.
            failover_threshold: Failed probes; checked, and without effect.
            switch_back_threshold: Probes that succeed; checked, and without effect.

        Raises:
            ValueError: An argument is of the wrong type, secondary is empty, or a number is below
                1.
        """
        check_type(ServiceInfo, primary, "primary")
        check_type(list, secondary, "secondary")
        numbers = {
            "check_interval_ms": check_interval_ms,
            "failover_threshold": failover_threshold,
            "switch_back_threshold": switch_back_threshold,
        }
        for name, number in numbers.items():
            check_type(int, number, name)
        if not secondary:
            raise ValueError("secondary must hold one ServiceInfo or more")
        for index, each in enumerate(secondary):
            check_type(ServiceInfo, each, f"secondary[{index}]")
        for name, number in numbers.items():
            if number <= 0:
                raise ValueError(f"{name} must be above 0, not {number}")
        self.primary = primary
        self.secondary: list[ServiceInfo] = list(secondary)
        self.check_interval_ms = check_interval_ms
        self.failover_threshold = failover_threshold
        self.switch_back_threshold = switch_back_threshold

    def __repr__(self) -> str:
        return (
            f"AutoClusterFailover(primary={self.primary!r}, secondary={self.secondary!r}, "
            f"check_interval_ms={self.check_interval_ms!r}, "
            f"failover_threshold={self.failover_threshold!r}, "
            f"switch_back_threshold={self.switch_back_threshold!r})"
        )


class Discovery:
    """The provider that a client was given in place of a URL, and the service it names now. Any
    thread may use it."""

    def __init__(self, given: AutoClusterFailover | ServiceInfoProvider) -> None:
        """Asks a provider where to connect to, in this thread. ValueError: its answer is none."""
        self._provider: ServiceInfoProvider | None = None
        if isinstance(given, AutoClusterFailover):
            self.current: ServiceInfo = given.primary
            return
        self._provider = given
        self.current = _checked(given.initial_service_info())

    def start(self) -> None:
        """Hand the provider the function it tells changes by."""
        if self._provider is not None:
            self._provider.initialize(self._update)

    def _update(self, service_info: ServiceInfo) -> None:
        before = parse_service_url(self.current.service_url)
        if parse_service_url(_checked(service_info).service_url) != before:
            raise OperationNotSupported(
                detail=f"a client opened at {self.current.service_url} cannot move to "
                f"{service_info.service_url}; close it and open another"
            )
        self.current = service_info

    def close(self) -> None:
        """Tell the provider, once."""
        provider, self._provider = self._provider, None
        if provider is not None:
            provider.close()


def discovery_of(service_url: object, options: dict[str, Any]) -> Discovery | None:
    """None for what is no discovery. options: by name, those that belong on each ServiceInfo then.

    ValueError: one of them is given beside a discovery.
    """
    if not isinstance(service_url, (AutoClusterFailover, ServiceInfoProvider)):
        return None
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"{name} {_NOT_HERE}")
    return Discovery(service_url)


def _checked(service_info: object) -> ServiceInfo:
    if not isinstance(service_info, ServiceInfo):
        raise ValueError(
            f"a provider must name a ServiceInfo, not {type(service_info).__name__}: "
            f"{service_info!r}"
        )
    return service_info
