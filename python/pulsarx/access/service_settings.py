"""The address at which a service listens, and the clients that it serves."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.access.advertised_listeners import is_host, listeners_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pulsarx.access.access_settings import AccessSettings
    from pulsarx.access.advertised_listeners import AdvertisedListener
    from pulsarx.access.tls_settings import TlsSettings

DEFAULT_PORT = 6650
DEFAULT_PORT_TLS = 6651


class ServiceSettings:
    """A value. See serve."""

    __slots__ = (
        "access", "advertised_address", "advertised_listeners", "allow_anonymous", "host", "port",
        "tls", "tls_port",
    )  # fmt: skip

    def __init__(
        self,
        host: str,
        port: int | None,
        *,
        allow_anonymous: bool = False,
        access: AccessSettings | None = None,
        tls: TlsSettings | None = None,
        tls_port: int | None = None,
        advertised_address: str | None = None,
        advertised_listeners: Mapping[str, str | Iterable[str]] | None = None,
    ) -> None:
        """InvalidConfiguration: they do not fit together."""
        if allow_anonymous and access is not None:
            raise errors.InvalidConfiguration(
                detail="clients prove who they are, or are anonymous: give either access or "
                "allow_anonymous"
            )
        if tls is None and tls_port is not None:
            raise errors.InvalidConfiguration(
                detail=f"tls_port {tls_port}: give tls, the certificate of the server and its key"
            )
        if port is None and tls is None:
            raise errors.InvalidConfiguration(detail="give a port, or tls, to listen to")
        if access is not None and access.tls_authentication:
            if tls is None or tls.trust_certs_file is None:
                raise errors.InvalidConfiguration(
                    detail="tls_authentication: give tls with trust_certs_file, which says who may "
                    "sign the certificates of clients"
                )
        if advertised_address is not None and not is_host(advertised_address):
            raise errors.InvalidConfiguration(
                detail=f"advertised_address {advertised_address!r:.200}: give a host name or an "
                "address, without a port"
            )
        self.host: str = host
        self.port: int | None = port
        self.allow_anonymous: bool = allow_anonymous
        self.access: AccessSettings | None = access
        self.tls: TlsSettings | None = tls
        self.tls_port: int | None = (
            DEFAULT_PORT_TLS if tls is not None and tls_port is None else tls_port
        )
        self.advertised_address: str | None = advertised_address
        self.advertised_listeners: dict[str, AdvertisedListener] = listeners_of(
            advertised_listeners or {}
        )
