"""Administration, in the groups and verbs of pulsar-admin: what `Client.admin` returns.

`Admin.at(folder)` asks the owner of a folder from any process, without a client.
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
    def at(cls, folder: str | os.PathLike[str]) -> Admin:
        """Administer a folder that another process may own: its owner is asked. Without an owner
        the folder is read, or owned for the moment of a call that changes something."""
        from pulsarx.admin.channel import OwnerChannel

        return cls(OwnerChannel(folder))
