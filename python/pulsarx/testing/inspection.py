"""A look behind an open client: its topics as the broker has them, its folder, its threads. For
tests; what it shows may change with any version."""

from __future__ import annotations

from pulsarx.broker.topics.partitioned_topic import PartitionedTopic
from pulsarx.client import ClientOwner
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.catalogue.catalogue import Catalogue
    from pulsarx.broker.folder.data_directory import DataDirectory
    from pulsarx.broker.folder.memory_directory import MemoryDirectory
    from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.subscriptions.subscription import Subscription
    from pulsarx.client import Client
    from pulsarx.owner import MemberOwner


class Inspection:
    """Shows the folder that a client has open, in this process. Any thread may call."""

    def __init__(self, client: Client) -> None:
        broker: Any = client._broker
        self.broker: Broker = broker
        self.owner: MemberOwner = ClientOwner(client)

    def settle(self) -> None:
        """Return when nothing is going on in the background: ledgers that are full are sealed,
        what is not needed is removed, what was forgotten is closed."""
        queues = self.runtime.job_queues
        while not all(each.idle for each in queues):
            for each in queues:
                each.wait()

    def post(self, job: Callable[[], object]) -> None:
        """Have the background do something, behind what it does already."""
        self.runtime.background.post(job)

    @property
    def runtime(self) -> BrokerRuntime:
        return self.broker.runtime

    @property
    def catalogue(self) -> Catalogue:
        return self.broker.catalogue

    @property
    def directory(self) -> DataDirectory | MemoryDirectory:
        return self.broker.directory

    def topic(self, name: str) -> Any:
        """TopicNotFound: there is none."""
        return self.broker.topic(TopicName.of(name), create=False)

    def partitioned_topic(self, name: str) -> PartitionedTopic:
        return self.broker.topics.partitioned_topic(TopicName.of(name))

    def ledger(self, topic: str) -> ManagedLedger:
        """The list of ledgers of a topic."""
        found: ManagedLedger = self.topic(topic).ledger
        return found

    def subscription(self, topic: str, name: str) -> Subscription:
        found: Subscription = self.topic(topic).subscriptions[name]
        return found


def inspect(client: Client) -> Inspection:
    """See Inspection. AttributeError: the client is closed, or was never opened."""
    return Inspection(client)
