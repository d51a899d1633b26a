"""`client.admin.transactions`: open transactions, what they hold back, and aborting one."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.admin.channel import Channel

    Figures = dict[str, Any]


class Transactions:
    """Any thread may call. OperationNotSupported: the client is read_only, and knows none that are
    open."""

    def __init__(self, channel: Channel) -> None:
        """Use `Admin.transactions`.

        Args:
            channel: By which the calls are done.
        """
        self._channel = channel

    def get_transactions(self) -> list[Figures]:
        """Return all open transactions, the oldest first: each as `get_transaction_metadata`, with
        `age_ms` and `held_messages`, by topic the number of messages that readers do not see
        because of it. Pulsar has no such list."""
        found: list[Figures] = self._channel.perform("transactions.get_transactions", {})
        return found

    def get_transaction_metadata(self, most: int, least: int) -> Figures:
        """Return what is known of an open transaction: `txn_id` as text, `status`,
        `open_timestamp`, `timeout_at` (its timeout, in milliseconds), `owner` (the role that opened
        it over a network), `produced_partitions` (by topic the `start_position`) and
        `acked_partitions` (by topic the subscriptions).

        Args:
            most: The first number of its id, `Transaction.txn_id`: the coordinator.
            least: The second one.

        Raises:
            TransactionNotFound: It has ended, or never was.
        """
        found: Figures = self._channel.perform(
            "transactions.get_transaction_metadata", {"most": most, "least": least}
        )
        return found

    def get_slow_transactions(self, timeout_ms: int) -> dict[str, Figures]:
        """Return the open transactions that were opened with a longer timeout, whatever their age,
        as Pulsar does, by their ids as text.

        Args:
            timeout_ms: Milliseconds.
        """
        found: dict[str, Figures] = self._channel.perform(
            "transactions.get_slow_transactions", {"timeout_ms": timeout_ms}
        )
        return found

    def abort_transaction(self, most: int, least: int) -> None:
        """Abort a transaction: nobody sees what was sent in it, and what was acknowledged in it is
        delivered again. Its client learns that when it commits.

        Args:
            most: The first number of its id, `Transaction.txn_id`: the coordinator.
            least: The second one.

        Raises:
            TransactionNotFound: It has ended, or never was.

        Durability:
            Nothing of it comes back, whatever is killed.
        """
        self._channel.perform("transactions.abort_transaction", {"most": most, "least": least})

    def list_transaction_coordinators(self) -> list[Figures]:
        """Return the coordinators: of a folder one, {"id": 0}, and over HTTP with
        `broker_service_url`."""
        found: list[Figures] = self._channel.perform(
            "transactions.list_transaction_coordinators", {}
        )
        return found

    def get_coordinator_stats(self) -> dict[int, Figures]:
        """Return by the number of each coordinator: `state`, `least_sig_bits` (the last number that
        was given to a transaction, -1: none was), `low_water_mark`, `ongoing_txn_size`, and since
        the folder was opened `created_count`, `committed_count`, `aborted_count` and
        `timeout_count`."""
        found: dict[str, Figures] = self._channel.perform("transactions.get_coordinator_stats", {})
        return {int(number): stats for number, stats in found.items()}

    def get_transaction_buffer_stats(self, topic: str) -> Figures:
        """Return of a topic `max_read_position`, `ongoing_txn_size`, since it was opened
        `committed_txn_count` and `aborted_txn_count`, and `held_messages`, those that are stored
        and not seen yet.

        Args:
            topic: A name of a topic without partitions, or a partition.

        Raises:
            TopicNotFound: There is no such topic.
        """
        found: Figures = self._channel.perform(
            "transactions.get_transaction_buffer_stats", {"topic": topic}
        )
        return found

    def get_transaction_in_buffer_stats(self, topic: str, most: int, least: int) -> Figures:
        """Return where the messages of an open transaction begin in a topic, `start_position`, and
        whether it was `aborted`.

        Args:
            topic: A name of a topic without partitions, or a partition.
            most: The first number of its id, `Transaction.txn_id`: the coordinator.
            least: The second one.

        Raises:
            TopicNotFound: There is no such topic.
        """
        found: Figures = self._channel.perform(
            "transactions.get_transaction_in_buffer_stats",
            {"topic": topic, "most": most, "least": least},
        )
        return found

    def get_pending_ack_stats(self, topic: str, subscription_name: str) -> Figures:
        """Return of a subscription `ongoing_txn_size`, the number of open transactions in which its
        messages are acknowledged.

        Args:
            topic: A name of a topic without partitions, or a partition.
            subscription_name: A name.

        Raises:
            TopicNotFound: There is no such topic.
            SubscriptionNotFound: There is no such subscription.
        """
        found: Figures = self._channel.perform(
            "transactions.get_pending_ack_stats", {"topic": topic, "name": subscription_name}
        )
        return found
