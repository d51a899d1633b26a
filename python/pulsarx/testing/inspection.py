"""A look behind an open client: its topics as the broker has them, its folder, its threads. For
tests; what it shows may change with any version."""

from __future__ import annotations

import os

from pulsarx.broker import registry
from pulsarx.broker.topics.partitioned_topic import PartitionedTopic
from pulsarx.client import Client
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx import aio
    from pulsarx._pycore.ground.work_pool import WorkPool
    from pulsarx.broker.broker import Broker
    from pulsarx.broker.catalogue.catalogue import Catalogue
    from pulsarx.broker.folder.data_directory import DataDirectory
    from pulsarx.broker.folder.memory_directory import MemoryDirectory
    from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.subscriptions.subscription import Subscription
    from pulsarx.ground.owner import MemberOwner
    from pulsarx.message_id import MessageId


class Inspection:
    """Shows the folder that a client has open, in this process. Any thread may call."""

    def __init__(self, client: Client) -> None:
        """Look behind a client; see inspect.

        Args:
            client: An open one.

        Raises:
            AttributeError: It is closed, or was never opened.
        """
        self.client = client  # that of a client of coroutines is the one behind it
        broker: Any = client._broker
        self.broker: Broker = broker
        self.owner: MemberOwner = client._owner
        self.listener_pool: WorkPool = client._pool  # the threads that listeners run in

    def settle(self) -> None:
        """Return when nothing is going on in the background: ledgers that are full are sealed, what
        is not needed is removed, what was forgotten is closed."""
        queues = self.runtime.job_queues
        while not all(each.idle for each in queues):
            for each in queues:
                each.wait()

    def post(self, job: Callable[[], object]) -> None:
        """Post a job to the background, behind those it has.

        Args:
            job: Called without arguments.
        """
        self.runtime.background.post(job)

    @property
    def owns_folder(self) -> bool:
        """Whether this process owns the folder now; else the client goes through the owner."""
        path = self.directory.path
        return path is not None and registry.find(os.path.realpath(path)) is not None

    @property
    def connection(self) -> Any:
        """The connection to the owner of the folder, of a client beside it."""
        beside: Any = self.broker
        return beside.connection

    @property
    def runtime(self) -> BrokerRuntime:
        """Clock, randomness and background work, which the topics of the folder share."""
        return self.broker.runtime

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue of the folder."""
        return self.broker.catalogue

    @property
    def directory(self) -> DataDirectory | MemoryDirectory:
        """The data directory, or what memory has in its place."""
        return self.broker.directory

    def topic(self, name: str) -> Any:
        """Return a topic as the broker has it.

        Args:
            name: The name of a topic without partitions, or of a partition.

        Raises:
            TopicNotFound: There is none.
        """
        return self.broker.topic(TopicName.of(name), create=False)

    def partitioned_topic(self, name: str) -> PartitionedTopic:
        """Return a partitioned topic as the broker has it.

        Args:
            name: The name of the topic.

        Raises:
            TopicNotFound: There is none.
        """
        return self.broker.topics.partitioned_topic(TopicName.of(name))

    def ledger(self, topic: str) -> ManagedLedger:
        """Return the list of ledgers of a topic.

        Args:
            topic: As topic.

        Raises:
            TopicNotFound: There is none.
        """
        found: ManagedLedger = self.topic(topic).ledger
        return found

    def append_entry(self, topic: str, entry: bytes) -> MessageId:
        """Store an entry as it is, as a server would for the producer at its other end: whatever
        its metadata say, if its checksum holds.

        Args:
            topic: As topic.
            entry: Its bytes, from the magic number on.

        Returns:
            The id of the entry.

        Raises:
            TopicNotFound: There is no such topic.
            CorruptDataError: Its checksum, or what it says of itself, does not hold.
            ValueError: It was not stored; the text says why.

        Durability:
            The entry is as durable as after send.
        """
        from pulsarx._pycore.publish.entry_intake import EntryIntake
        from pulsarx._pycore.publish.entry_publisher import LedgerPublisher
        from pulsarx.broker_options import ENTRY_SIZE_MAX
        from pulsarx.compression import compress, decompress

        there, told = self.topic(topic), []
        publisher = LedgerPublisher(
            there.name, there.tail, self.runtime.completions, self.runtime.durability_code
        )
        intake = EntryIntake(
            publisher,
            decompress,
            compress,
            ENTRY_SIZE_MAX,
            1 << 30,
            there.hold_chunks,
        )
        intake.publish(entry, lambda result, message_id: told.append((result, message_id)))
        intake.flush()
        if told[0][1] is None:
            raise ValueError(f"the entry was not stored: {told[0][0]}")
        message_id: MessageId = told[0][1]
        return message_id

    def waiting_producers(self, topic: str) -> int:
        """Return how many producers wait to have a topic to themselves.

        Args:
            topic: As topic.

        Raises:
            TopicNotFound: There is none.
        """
        return len(self.topic(topic).producers._waiting)

    @property
    def kept_producers(self) -> int:
        """How many the client keeps alive, because they have their topic to themselves."""
        return len(self.client._kept)

    def subscription(self, topic: str, name: str) -> Subscription:
        """Return a subscription as the broker has it.

        Args:
            topic: As topic.
            name: The name of the subscription.

        Raises:
            TopicNotFound: There is no such topic.
            KeyError: It has no such subscription.
        """
        found: Subscription = self.topic(topic).subscriptions[name]
        return found


def inspect(client: Client | aio.Client) -> Inspection:
    """Return what an open client has behind it.

    Args:
        client: One of threads, or of asyncio.

    Raises:
        AttributeError: It is closed, or was never opened.
    """
    return Inspection(client_behind(client))


def client_behind(client: Client | aio.Client) -> Client:
    """Return a client itself, or the one behind a client of coroutines. Under the alias `pulsar`
    both have a `_client`."""
    return client if isinstance(client, Client) else client._client
