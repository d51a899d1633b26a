"""Administration, in the groups and verbs of pulsar-admin: what `Client.admin` returns."""

from __future__ import annotations

from pulsarx.admin.namespaces import Namespaces
from pulsarx.admin.topics import Topics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.broker import Broker
    from pulsarx.broker.read_only_broker import ReadOnlyBroker


class Admin:
    """The groups. Any thread may call."""

    def __init__(self, broker: Broker | ReadOnlyBroker, read_only: bool) -> None:
        """read_only: the client may change nothing, whoever the broker belongs to."""
        self.namespaces = Namespaces(broker, read_only)
        self.topics = Topics(broker, read_only)
