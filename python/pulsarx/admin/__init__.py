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
from pulsarx.admin.transactions import Transactions

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

    from pulsarx.admin.channel import Channel
    from pulsarx.options.authentication import Authentication

__all__ = ["Admin", "Brokers", "Namespaces", "Schemas", "Tenants", "Topics", "Transactions"]


class Admin:
    """The groups of calls. Any thread may call.

    Changes are on the device when a call returns, whatever durability the client has. Each call
    raises, besides what it says itself: AlreadyClosed when its client is closed;
    OperationNotSupported when it changes something and the client was opened read_only;
    FolderOwnedError or Timeout when the process that owns the folder cannot be reached or does not
    answer; FolderError when there is no such folder; StorageError when the disk refuses;
    InvalidTopicName for what is no name. At the URL of a REST API also ConnectError,
    AuthenticationError and AuthorizationError, and OperationNotSupported for what the API does not
    have.
    """

    def __init__(self, channel: Channel) -> None:
        """Use `Client.admin` or `at`.

        Args:
            channel: By which the calls are done.
        """
        self.brokers: Brokers = Brokers(channel)
        self.tenants: Tenants = Tenants(channel)
        self.namespaces: Namespaces = Namespaces(channel)
        self.schemas: Schemas = Schemas(channel)
        self.topics: Topics = Topics(channel)
        self.transactions: Transactions = Transactions(channel)

    def _repr_html_(self) -> str:
        """Show the tenants, namespaces, topics and subscriptions in a notebook."""
        from pulsarx.tables.notebook import facts_html

        tenants = self.tenants.get_tenants()
        namespaces = [name for tenant in tenants for name in self.namespaces.get_namespaces(tenant)]
        facts: dict[str, object] = {
            "tenants": ", ".join(tenants),
            "namespaces": ", ".join(namespaces),
        }
        return facts_html("Admin", facts) + self.topics._repr_html_()

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

        Args:
            folder: A path; or an http:// or https:// URL, that of a Pulsar admin REST API: of
                `pulsarx serve`, or of any Pulsar cluster.
            authentication: At such a URL AuthenticationToken, AuthenticationBasic,
                AuthenticationTLS or AuthenticationOauth2.
            tls_trust_certs_file_path: The authorities of https:// servers; None: those of the
                system.

        Returns:
            The groups.

        Raises:
            InvalidConfiguration: A folder has no authentication and no TLS.
            InvalidUrl: The URL is none.

        Example:
            from pulsarx.admin import Admin

            with pulsarx.Client("events"):  # here, or in another process
                print(Admin.at("events").topics.get_list())
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
