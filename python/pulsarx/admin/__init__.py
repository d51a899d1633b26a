"""Administration: the object that `Client.admin` returns, with the groups and calls of
pulsar-admin.

`Admin.at(folder)` asks the owner of a folder from any process, without a client; `Admin.at(url)`
Pulsar's admin REST API.
"""

from __future__ import annotations

from pulsarx.admin.brokers import Brokers
from pulsarx.admin.namespaces import Namespaces
from pulsarx.admin.schemas import Schemas
from pulsarx.admin.tenants import Tenants
from pulsarx.admin.topics import Topics

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

    from pulsarx.admin.channel import Channel
    from pulsarx.options.authentication import Authentication

__all__ = ["Admin", "Brokers", "Namespaces", "Schemas", "Tenants", "Topics"]


class Admin:
    """The groups. Any thread may call."""

    def __init__(self, channel: Channel) -> None:
        """Use `Client.admin` or `at`."""
        self.brokers = Brokers(channel)
        self.tenants = Tenants(channel)
        self.namespaces = Namespaces(channel)
        self.schemas = Schemas(channel)
        self.topics = Topics(channel)

    @classmethod
    def at(
        cls,
        folder: str | os.PathLike[str],
        *,
        authentication: Authentication | None = None,
        tls_trust_certs_file_path: str | None = None,
    ) -> Admin:
        """Administer a folder that another process may own: its owner is asked. Without an owner
        the folder is read, or owned for the moment of a call that changes something.

        An http:// or https:// URL is that of a Pulsar admin REST API: of `pulsarx serve`, or of any
        Pulsar cluster.

        authentication: at such a URL AuthenticationToken, AuthenticationBasic or AuthenticationTLS.
        tls_trust_certs_file_path: the authorities of https:// servers; else those of the system.
        InvalidConfiguration: they are given with a folder, which needs no authentication.
        """
        if isinstance(folder, str) and folder.lower().startswith(("http://", "https://")):
            from pulsarx.admin.http_channel import HttpChannel

            return cls(HttpChannel(folder, authentication, tls_trust_certs_file_path))
        if authentication is not None or tls_trust_certs_file_path is not None:
            from pulsarx.errors import InvalidConfiguration

            raise InvalidConfiguration(
                detail=f"{folder}: a folder has no authentication and no TLS"
            )
        from pulsarx.admin.channel import OwnerChannel

        return cls(OwnerChannel(folder))
