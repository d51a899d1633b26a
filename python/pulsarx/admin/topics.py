"""`client.admin.topics`: what topics there are, their partitions and what is in them."""

from __future__ import annotations

from pulsarx.admin.backlog_quotas import BacklogQuotas
from pulsarx.admin.policy_methods import TopicPolicies
from pulsarx.admin.topic_subscriptions import TopicSubscriptions
from pulsarx.message_id import MessageId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pulsarx.admin.channel import Channel
    from pulsarx.admin.peeked_message import PeekedMessage


class Topics(TopicSubscriptions, BacklogQuotas, TopicPolicies):
    """Any thread may call. TopicNotFound: there is no such topic."""

    _LEVEL = "topic"

    def __init__(self, channel: Channel) -> None:
        """Use `Admin.topics`.

        Args:
            channel: By which the calls are done.
        """
        self._channel = channel

    def get_list(
        self,
        namespace: str = "public/default",
        include_system_topic: bool = False,
        domain: str | None = None,
    ) -> list[str]:
        """Return the full names of the topics of a namespace; for a partitioned topic those of its
        partitions.

        A client opened read_only does not see non-persistent topics without partitions, which are
        not stored.

        Args:
            namespace: `tenant/namespace`.
            include_system_topic: Those of the system, too.
            domain: `persistent` or `non-persistent`; None: of both.

        Raises:
            TopicNotFound: There is no such namespace.
            ValueError: There is no such domain.

        Example:
            client.admin.topics.create_non_partitioned_topic("returns")
            assert "persistent://public/default/returns" in client.admin.topics.get_list()
        """
        arguments = {
            "namespace": namespace,
            "include_system_topic": bool(include_system_topic),
            "domain": "any" if domain is None else domain,
        }
        found: list[str] = self._channel.perform("topics.get_list", arguments)
        return found

    def get_partitioned_topic_list(self, namespace: str = "public/default") -> list[str]:
        """Return the full names of the partitioned topics of a namespace.

        Args:
            namespace: `tenant/namespace`.

        Raises:
            TopicNotFound: There is no such namespace.
        """
        arguments = {"namespace": namespace}
        found: list[str] = self._channel.perform("topics.get_partitioned_topic_list", arguments)
        return found

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows: the topics of all namespaces and their subscriptions."""
        from pulsarx.admin.namespaces import Namespaces
        from pulsarx.admin.tenants import Tenants
        from pulsarx.tables.notebook import topics_html

        return topics_html(self, Tenants(self._channel), Namespaces(self._channel))

    # Creating -------------------------------------------------------------------------------------

    def create_non_partitioned_topic(self, topic: str) -> None:
        """Create a topic without partitions.

        Args:
            topic: A name.

        Raises:
            NotAllowedError: It exists, or its namespace has max_topics_per_namespace.
            TopicNotFound: There is no such namespace.
            InvalidTopicName: It is no name of one.

        Durability:
            It is on the device when this returns.
        """
        self._channel.perform("topics.create_non_partitioned_topic", {"topic": topic})

    def create_partitioned_topic(self, topic: str, partitions: int) -> None:
        """Create a topic with partitions, each of which is a topic: `<topic>-partition-0` and so
        on.

        Args:
            topic: A name.
            partitions: How many, from 1.

        Raises:
            NotAllowedError: It exists, or there would be too many partitions or topics.
            TopicNotFound: There is no such namespace.
            InvalidTopicName: It is no name of one.
            ValueError: partitions is out of bounds.

        Durability:
            All are on the device when this returns, in one commit.

        Example:
            client.admin.topics.create_partitioned_topic("clicks", 4)
            producer = client.create_producer("clicks")
            producer.send(b"one", partition_key="ada")
        """
        arguments = {"topic": topic, "partitions": partitions}
        self._channel.perform("topics.create_partitioned_topic", arguments)

    def update_partitioned_topic(self, topic: str, partitions: int) -> None:
        """Add partitions to a partitioned topic.

        The durable subscriptions of partition 0 begin on each new partition at its first message,
        and open producers use it at once. Keys change their partition.

        Args:
            topic: A name.
            partitions: How many there are then.

        Raises:
            NotAllowedError: The number cannot be reduced.
            TopicNotFound: There is no such partitioned topic.
            ValueError: partitions is out of bounds.

        Durability:
            The new ones are on the device when this returns, in one commit.
        """
        arguments = {"topic": topic, "partitions": partitions}
        self._channel.perform("topics.update_partitioned_topic", arguments)

    def get_partitioned_topic_metadata(self, topic: str) -> dict[str, int]:
        """Return {"partitions": how many}; 0 for a topic without partitions.

        Args:
            topic: A name.

        Raises:
            TopicNotFound: There is no such topic.
        """
        arguments = {"topic": topic}
        found: dict[str, int] = self._channel.perform(
            "topics.get_partitioned_topic_metadata", arguments
        )
        return found

    # Permissions ----------------------------------------------------------------------------------

    def grant_permission(self, topic: str, role: str, actions: Iterable[str]) -> None:
        """Let a role use a topic, which need not exist yet, through a service that authenticates
        its clients. On a partitioned topic it may use its partitions too. Deleting the topic
        revokes it.

        Args:
            topic: A name.
            role: As the service names it.
            actions: `produce` and `consume`; they replace those granted before.

        Raises:
            TopicNotFound: There is no such namespace.
            ValueError: There is no such action, or no role.

        Durability:
            It is on the device when this returns.
        """
        arguments = {"topic": topic, "role": role, "actions": list(actions)}
        self._channel.perform("topics.grant_permission", arguments)

    def revoke_permissions(self, topic: str, role: str) -> None:
        """Take back what a role was granted on the topic itself; its producers and consumers are
        closed, unless it was granted the same on the namespace.

        Args:
            topic: A name.
            role: As the service names it.

        Raises:
            NotAllowedError: It was granted nothing.
            TopicNotFound: There is no such namespace.

        Durability:
            It is on the device when this returns.
        """
        self._channel.perform("topics.revoke_permissions", {"topic": topic, "role": role})

    def get_permissions(self, topic: str) -> dict[str, list[str]]:
        """Return roles, and what they were granted on the topic or its namespace.

        Args:
            topic: A name.

        Raises:
            TopicNotFound: There is no such namespace.
        """
        arguments = {"topic": topic}
        found: dict[str, list[str]] = self._channel.perform("topics.get_permissions", arguments)
        return found

    # Ending ---------------------------------------------------------------------------------------

    def delete(self, topic: str, force: bool = False) -> None:
        """Delete a topic without partitions: its messages, subscriptions and policies.

        Messages that were received stay readable. A topic created with its name later is another
        one; only consumers that subscribe to it then, or by a pattern, receive from it.

        Args:
            topic: A name.
            force: Producers, consumers and readers are closed, and a job that reads it fails.

        Raises:
            NotAllowedError: Producers, consumers or readers are attached, or a job reads it under a
                lease; or it has partitions.
            TopicNotFound: There is no such topic.

        Durability:
            It is gone from the device when this returns.

        Example:
            client.admin.topics.create_non_partitioned_topic("returns")
            client.admin.topics.delete("returns")
        """
        self._channel.perform("topics.delete", {"topic": topic, "force": bool(force)})

    def delete_partitioned_topic(self, topic: str, force: bool = False) -> None:
        """Delete a partitioned topic with all its partitions, in one commit; see delete.

        Args:
            topic: A name.
            force: As delete.

        Raises:
            NotAllowedError: One of them is in use.
            TopicNotFound: There is no such partitioned topic.

        Durability:
            All are gone from the device when this returns.
        """
        arguments = {"topic": topic, "force": bool(force)}
        self._channel.perform("topics.delete_partitioned_topic", arguments)

    def terminate(self, topic: str) -> MessageId:
        """Terminate a topic: it takes no more messages, for good. Producers get TopicTerminated;
        consumers and readers get the messages that are stored.

        Args:
            topic: A name.

        Returns:
            The id of its last message; (-1,-1,-1,-1) when it has none.

        Raises:
            OperationNotSupported: It has partitions, or is non-persistent.
            TopicNotFound: There is no such topic.

        Durability:
            It is on the device when this returns.
        """
        found = self._channel.perform("topics.terminate", {"topic": topic})
        last: MessageId = MessageId.from_text(found)
        return last

    def truncate(self, topic: str) -> None:
        """Remove all messages of a topic, or of each of its partitions, and its compacted ledger:
        they are acknowledged on every subscription, whatever retention says. Ledgers that a job
        reads under a lease stay until the lease ends. Messages published meanwhile stay.

        Args:
            topic: A name.

        Raises:
            OperationNotSupported: It is non-persistent.
            TopicNotFound: There is no such topic.

        Durability:
            They are gone from the device when this returns.
        """
        self._channel.perform("topics.truncate", {"topic": topic})

    def unload(self, topic: str) -> None:
        """Seal the open ledger of a topic, or of each of its partitions, and store the positions of
        its subscriptions. Its clients stay connected; a topic of a folder without clients is
        closed, and its memory freed.

        Args:
            topic: A name.

        Raises:
            TopicNotFound: There is no such topic.

        Durability:
            The positions are on the device when this returns.
        """
        self._channel.perform("topics.unload", {"topic": topic})

    def get_last_message_id(self, topic: str) -> MessageId:
        """Return the id of the last message of a non-partitioned topic; (-1,-1,-1,-1) when it is
        empty.

        Args:
            topic: A name.

        Raises:
            OperationNotSupported: It has partitions, or is non-persistent.
            TopicNotFound: There is no such topic.
        """
        found = self._channel.perform("topics.get_last_message_id", {"topic": topic})
        last: MessageId = MessageId.from_text(found)
        return last

    def examine_message(
        self, topic: str, initial_position: str = "latest", message_position: int = 1
    ) -> PeekedMessage:
        """Return one message of a non-partitioned topic by its position. A Pulsar broker counts
        entries, not messages.

        Args:
            topic: A name.
            initial_position: `latest`: counted from the last message backwards; `earliest`: from
                the first one.
            message_position: Which one, from 1.

        Raises:
            NotAllowedError: There are fewer messages.
            OperationNotSupported: The topic has partitions, or is non-persistent; or, from the last
                one, messages in chunks.
            TopicNotFound: There is no such topic.
            ValueError: An argument is none of these.
        """
        from pulsarx.admin.peeked_message import PeekedMessage

        if initial_position not in ("latest", "earliest"):
            raise ValueError(
                f"initial_position is 'latest' or 'earliest', not {initial_position!r:.100}"
            )
        if message_position.__class__ is not int or message_position < 1:
            raise ValueError(f"message_position must be 1 or more, not {message_position!r:.100}")
        arguments = {
            "topic": topic,
            "number": message_position,
            "from_end": initial_position == "latest",
        }
        return PeekedMessage(self._channel.perform("topics.examine_message", arguments))

    def get_message_by_id(self, topic: str, message_id: MessageId) -> PeekedMessage | None:
        """Return one message by its id, whatever was acknowledged of it; None: there is none.

        Args:
            topic: A name; of a partition, where the topic has some.
            message_id: The id. One without a batch index means the first message of its batch.

        Raises:
            OperationNotSupported: The topic has partitions, or is non-persistent.
            TopicNotFound: There is no such topic.
        """
        from pulsarx.admin.peeked_message import PeekedMessage

        arguments = {"topic": topic, "message_id": message_id.to_text()}
        found = self._channel.perform("topics.get_message_by_id", arguments)
        return None if found is None else PeekedMessage(found)

    def get_message_id_by_index(self, topic: str, index: int) -> MessageId:
        """Return the id of the message of an index, the number of it among all that a
        non-partitioned topic ever had; see `Message.index`. A Pulsar broker names the entry alone.

        Args:
            topic: A name.
            index: From 0.

        Raises:
            NotAllowedError: There is no such message, or not any more.
            OperationNotSupported: The topic has partitions, or is non-persistent.
            TopicNotFound: There is no such topic.
            ValueError: index is negative.
        """
        arguments = {"topic": topic, "index": index}
        found = self._channel.perform("topics.get_message_id_by_index", arguments)
        made: MessageId = MessageId.from_text(found)
        return made

    # Compacting -----------------------------------------------------------------------------------

    def trigger_compaction(self, topic: str) -> None:
        """Begin to compact a topic, or each of its partitions, and return at once; see
        compaction_status.

        The last message of each key is kept in a ledger of its own, which consumers and readers
        with is_read_compacted read instead of the messages that were compacted. A key whose last
        message has no value, or an empty one, is removed. Others see the topic as it is, until
        retention removes its messages.

        Args:
            topic: A name.

        Raises:
            NotAllowedError: A compaction is running.
            OperationNotSupported: The topic is non-persistent.
            TopicNotFound: There is no such topic.

        Durability:
            The compacted ledger is on the device when the status is SUCCESS.
        """
        self._channel.perform("topics.trigger_compaction", {"topic": topic})

    def compaction_status(self, topic: str) -> dict[str, str]:
        """Return {"status": NOT_RUN, RUNNING, SUCCESS or ERROR, "last_error": why}. A partitioned
        topic is RUNNING or ERROR when one of its partitions is. A client opened read_only answers
        SUCCESS when there is a compacted ledger.

        Args:
            topic: A name.

        Raises:
            OperationNotSupported: The topic is non-persistent.
            TopicNotFound: There is no such topic.
        """
        found: dict[str, str] = self._channel.perform("topics.compaction_status", {"topic": topic})
        return found

    def offload(self, topic: str, size_threshold: int = 0) -> None:
        """Begin to copy the oldest sealed ledgers of a topic, or of each of its partitions, to the
        object store of `BrokerOptions(offload_url=...)`, and return at once; see offload_status.

        Each copy is read back before it counts. The file of a ledger goes later, by the policy
        offload_deletion_lag; readers then fetch it from the object store, and nothing else changes.

        Args:
            topic: A name.
            size_threshold: The newest bytes that stay, from 0.

        Raises:
            OperationNotSupported: There is no object store, or the topic is non-persistent.
            NotAllowedError: The topic is being offloaded.
            ValueError: size_threshold is negative.
            TopicNotFound: There is no such topic.

        Durability:
            A file goes only when its copy is in the object store.
        """
        arguments = {"topic": topic, "size_threshold": size_threshold}
        self._channel.perform("topics.offload", arguments)

    def offload_status(self, topic: str) -> dict[str, str]:
        """Return {"status": NOT_RUN, RUNNING, SUCCESS or ERROR, "last_error": why} of the last run
        since the topic was opened. A partitioned topic is RUNNING or ERROR when one of its
        partitions is.

        Args:
            topic: A name.

        Raises:
            OperationNotSupported: The topic is non-persistent.
            TopicNotFound: There is no such topic.
        """
        found: dict[str, str] = self._channel.perform("topics.offload_status", {"topic": topic})
        return found

    def merge_ledgers(self, topic: str, size_max: int = 1 << 20) -> dict[str, int]:
        """Merge the files of a topic's small ledgers, or of each of its partitions: those that are
        sealed, have a file to themselves and are under no lease of a job, about 32 MiB to a file.

        Message ids, positions and counts stay as they are, and readers go on reading meanwhile. The
        file goes when retention has removed the last of its ledgers.

        Args:
            topic: A name.
            size_max: Ledgers of less than that many bytes are merged.

        Returns:
            {"ledgers": how many, "files": into how many}.

        Raises:
            ValueError: size_max is below 1.
            OperationNotSupported: The topic is non-persistent.
            TopicNotFound: There is no such topic.

        Durability:
            The merged file is on the device when this returns.
        """
        arguments = {"topic": topic, "size_max": size_max}
        found: dict[str, int] = self._channel.perform("topics.merge_ledgers", arguments)
        return found

    # Statistics -----------------------------------------------------------------------------------

    def get_backlog_size(self, topic: str, message_id: MessageId = MessageId.earliest) -> int:
        """Return the bytes that a non-partitioned topic holds from a message on: the backlog of a
        subscription whose first unacknowledged message that is.

        Args:
            topic: A name.
            message_id: The id of that message.

        Raises:
            OperationNotSupported: The topic has partitions, or is non-persistent.
            TopicNotFound: There is no such topic.
            ValueError: message_id is no MessageId.
        """
        if not isinstance(message_id, MessageId):
            raise ValueError(f"message_id must be a MessageId, not {type(message_id).__name__}")
        arguments = {"topic": topic, "message_id": message_id.to_text()}
        found: int = self._channel.perform("topics.get_backlog_size", arguments)
        return found

    def stats(self, topic: str) -> dict[str, Any]:
        """Return entries, messages and bytes stored, ledgers, producers, and for each subscription
        its type, its backlog in messages, entries and bytes, the age of the oldest message in it
        (-1: there is none), what is unacknowledged, the permits of each consumer, and the keys held
        back. Under "compaction" how far the topic is compacted, how much that left and what the
        last run did.

        Args:
            topic: A name.

        Raises:
            OperationNotSupported: It has partitions; see partitioned_stats.
            TopicNotFound: There is no such topic.

        Example:
            stats = client.admin.topics.stats("orders")
            print(stats["subscriptions"]["billing"]["msg_backlog"])
        """
        found: dict[str, Any] = self._channel.perform("topics.stats", {"topic": topic})
        return _with_tuples(found)

    def partitioned_stats(self, topic: str) -> dict[str, Any]:
        """Return the sum of the statistics of all partitions, and under "partitions" those of each.

        Args:
            topic: A name.

        Raises:
            TopicNotFound: There is no partitioned topic of this name.
        """
        found: dict[str, Any] = self._channel.perform("topics.partitioned_stats", {"topic": topic})
        for each in found["partitions"].values():
            _with_tuples(each)
        return found


def _with_tuples(figures: dict[str, Any]) -> dict[str, Any]:
    """Positions and ranges are tuples whoever answers: the JSON of another process has lists."""
    if "horizon" in figures.get("compaction", ()):
        figures["compaction"]["horizon"] = tuple(figures["compaction"]["horizon"])
    for each in (*figures["subscriptions"].values(), *figures.get("readers", {}).values()):
        if "mark_delete_position" in each:
            each["mark_delete_position"] = tuple(each["mark_delete_position"])
        if "hash_ranges" in each:
            each["hash_ranges"] = [tuple(row) for row in each["hash_ranges"]]
    return figures
