"""The metrics of `/metrics`: each is declared here, once, with unit, meaning and labels.

`metrics` and `server_figures` give the values, in this order; `tools/write_metrics.py` writes the
list in `docs/monitoring.md` from it. A leaf.
"""

from __future__ import annotations

from typing import NamedTuple

GAUGE, COUNTER = "gauge", "counter"


class Metric(NamedTuple):
    """One metric. Its name is Pulsar's where Pulsar has it, else it begins with `pulsarx_`."""

    name: str
    unit: str
    meaning: str  # without a full stop
    alert: str = ""  # the alert of deploy/prometheus/pulsarx.rules.yml that looks at it
    falls: bool = False  # though its name, which is Pulsar's, ends with _total

    @property
    def kind(self) -> str:
        """The type that Prometheus is told: what only grows is a counter."""
        return COUNTER if self.name.endswith("_total") and not self.falls else GAUGE


class Level(NamedTuple):
    """Metrics that have the same labels."""

    title: str
    labels: tuple[str, ...]
    metrics: tuple[Metric, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.metrics)


_CLUSTER = ("cluster",)
_TOPIC = ("cluster", "namespace", "topic")
_SUBSCRIPTION = (*_TOPIC, "subscription")

SERVER = Level(
    "The server",
    _CLUSTER,
    (
        Metric(
            "pulsarx_storage_free_bytes",
            "bytes",
            "room on the device of the folder for the user of the server; a folder in memory has "
            "none",
            "PulsarxDiskFull",
        ),
        Metric(
            "pulsarx_storage_capacity_bytes",
            "bytes",
            "size of that device",
            "PulsarxDiskFull",
        ),
        Metric(
            "pulsarx_damage_found_total",
            "places",
            "damaged places that were met since the folder was opened: by subscriptions, in "
            "cursors, and in what a killed owner left",
            "PulsarxDamage",
        ),
        Metric(
            "pulsarx_catalogue_failed",
            "0 or 1",
            "1: it is unknown whether a commit of the catalogue is on the device; nothing is "
            "created or changed until the folder is opened anew",
            "PulsarxFlushFailed",
        ),
        Metric(
            "process_start_time_seconds",
            "seconds",
            "when the process was started, since 1970",
        ),
        Metric("process_cpu_seconds_total", "seconds", "processor time that it has taken"),
        Metric("process_resident_memory_bytes", "bytes", "memory that it holds"),
        Metric("process_open_fds", "files", "files it has open", "PulsarxFilesRunOut"),
        Metric("process_max_fds", "files", "files it may have open", "PulsarxFilesRunOut"),
    ),
)
VERSION = Level(
    "The version",
    ("cluster", "version"),
    (Metric("pulsarx_build_info", "1", "the version of PulsarX that serves, as a label"),),
)
LOG = Level(
    "The log",
    ("cluster", "level"),
    (
        Metric(
            "pulsarx_log_messages_total",
            "messages",
            "messages under the logger pulsarx of this level (warning, error, critical) since the "
            "server was started",
            "PulsarxLogErrors",
        ),
    ),
)
BROKER = Level(
    "The folder: sums of its open topics",
    _CLUSTER,
    (
        Metric("pulsar_broker_topics_count", "topics", "open topics"),
        Metric("pulsar_broker_producers_count", "producers", "connected producers"),
        Metric("pulsar_broker_subscriptions_count", "subscriptions", "subscriptions, and readers"),
        Metric("pulsar_broker_consumers_count", "consumers", "connected consumers, and readers"),
        Metric("pulsar_broker_rate_in", "messages a second", "published"),
        Metric("pulsar_broker_rate_out", "messages a second", "dispatched to consumers"),
        Metric("pulsar_broker_throughput_in", "bytes a second", "published"),
        Metric("pulsar_broker_throughput_out", "bytes a second", "dispatched to consumers"),
        Metric("pulsar_broker_storage_size", "bytes", "stored in ledgers"),
        Metric("pulsar_broker_msg_backlog", "entries", "not acknowledged, of all subscriptions"),
        Metric(
            "pulsarx_broker_storage_flush_failed",
            "topics",
            "topics with pulsarx_storage_flush_failed",
            "PulsarxFlushFailed",
        ),
    ),
)
TRANSACTIONS = Level(
    "Transactions",
    ("cluster", "coordinator_id"),
    (
        Metric("pulsar_txn_active_count", "transactions", "open"),
        Metric(
            "pulsarx_txn_oldest_age_seconds",
            "seconds",
            "since the oldest open one was opened; 0: none is open",
            "PulsarxTransactionOpen",
        ),
        Metric("pulsar_txn_created_total", "transactions", "opened since the folder was"),
        Metric("pulsar_txn_committed_total", "transactions", "of those: committed"),
        Metric("pulsar_txn_aborted_total", "transactions", "of those: aborted, for any reason"),
        Metric("pulsar_txn_timeout_total", "transactions", "of those: as their time was over"),
    ),
)
NAMESPACE = Level(
    "Namespaces",
    ("cluster", "namespace"),
    (Metric("pulsar_topics_count", "topics", "topics, those that are not open too"),),
)
TOPIC = Level(
    "Topics that are open",
    _TOPIC,
    (
        Metric("pulsar_subscriptions_count", "subscriptions", "subscriptions, and readers"),
        Metric("pulsar_producers_count", "producers", "connected producers"),
        Metric("pulsar_consumers_count", "consumers", "connected consumers, and readers"),
        Metric("pulsar_rate_in", "messages a second", "published"),
        Metric("pulsar_rate_out", "messages a second", "dispatched to consumers"),
        Metric("pulsar_throughput_in", "bytes a second", "published"),
        Metric("pulsar_throughput_out", "bytes a second", "dispatched to consumers"),
        Metric("pulsar_average_msg_size", "bytes", "mean size of what is published"),
        Metric("pulsar_storage_size", "bytes", "stored in ledgers"),
        Metric(
            "pulsar_storage_logical_size", "bytes", "the same; Pulsar counts one copy of several"
        ),
        Metric("pulsar_msg_backlog", "entries", "not acknowledged, of all subscriptions"),
        Metric(
            "pulsar_storage_backlog_size",
            "bytes",
            "from the oldest message on that a subscription has not acknowledged",
        ),
        Metric(
            "pulsar_storage_backlog_age_seconds",
            "seconds",
            "age of that message; -1: there is none",
        ),
        Metric("pulsar_in_messages_total", "messages", "published since the topic was opened"),
        Metric("pulsar_in_bytes_total", "bytes", "the same"),
        Metric(
            "pulsar_publish_rate_limit_times",
            "times",
            "how often producers were held back by the publish rate since the topic was opened",
        ),
        Metric("pulsar_storage_offloaded_size", "bytes", "stored in an object store"),
        Metric(
            "pulsar_storage_backlog_quota_limit",
            "bytes",
            "backlog quota by size; -1: there is none",
        ),
        Metric(
            "pulsar_storage_backlog_quota_limit_time",
            "seconds",
            "backlog quota by age; -1: there is none",
        ),
        Metric(
            "pulsarx_storage_held_by_leases_size",
            "bytes",
            "what retention would remove if no job held a lease on it",
        ),
        Metric(
            "pulsarx_storage_flush_failed",
            "0 or 1",
            "1: a flush has failed; nothing more is confirmed on the topic until the folder is "
            "opened anew",
        ),
        Metric(
            "pulsar_txn_tb_active_total",
            "transactions",
            "open ones with messages in the topic",
            falls=True,
        ),
        Metric(
            "pulsar_txn_tb_committed_total",
            "transactions",
            "committed ones with messages in the topic since it was opened",
        ),
        Metric("pulsar_txn_tb_aborted_total", "transactions", "the same of aborted ones"),
        Metric(
            "pulsarx_txn_held_messages",
            "messages",
            "stored behind the first message of an open transaction, so that nobody sees them yet",
        ),
    ),
)
SUBSCRIPTION = Level(
    "Subscriptions and readers",
    _SUBSCRIPTION,
    (
        Metric("pulsar_subscription_back_log", "entries", "not acknowledged", "PulsarxNoConsumer"),
        Metric(
            "pulsar_subscription_back_log_no_delayed",
            "entries",
            "not acknowledged, without those that wait for their time",
            "PulsarxSubscriptionStuck",
        ),
        Metric("pulsar_subscription_delayed", "messages", "wait for their time"),
        Metric(
            "pulsar_subscription_unacked_messages",
            "messages",
            "dispatched and not acknowledged (Shared and Key_Shared)",
        ),
        Metric(
            "pulsar_subscription_blocked_on_unacked_messages",
            "0 or 1",
            "1: so many that nothing is dispatched",
            "PulsarxSubscriptionBlocked",
        ),
        Metric(
            "pulsar_subscription_consumers_count",
            "consumers",
            "connected consumers",
            "PulsarxNoConsumer",
        ),
        Metric("pulsar_subscription_msg_rate_out", "messages a second", "dispatched"),
        Metric("pulsar_subscription_msg_throughput_out", "bytes a second", "dispatched"),
        Metric(
            "pulsar_out_messages_total",
            "messages",
            "dispatched since the topic was opened, redeliveries included",
            "PulsarxSubscriptionStuck",
        ),
        Metric("pulsar_out_bytes_total", "bytes", "the same"),
        Metric(
            "pulsar_subscription_total_msg_expired",
            "entries",
            "expired unacknowledged since the topic was opened",
        ),
        Metric("pulsar_subscription_msg_rate_expired", "entries a second", "expire"),
        Metric(
            "pulsar_subscription_filter_processed_msg_count",
            "messages",
            "that the selector was asked about since the topic was opened",
        ),
        Metric(
            "pulsar_subscription_filter_accepted_msg_count",
            "messages",
            "that it matched, those that came again included",
        ),
        Metric(
            "pulsar_subscription_filter_rejected_msg_count",
            "messages",
            "that it did not match: they count as acknowledged",
        ),
        Metric(
            "pulsar_subscription_msg_drop_rate",
            "messages a second",
            "dropped for want of permits (non-persistent topics)",
        ),
        Metric(
            "pulsarx_subscription_backlog_age_seconds",
            "seconds",
            "age of the oldest message that is not acknowledged; -1: there is none, or the "
            "subscription is not durable",
            "PulsarxOldestMessage",
        ),
    ),
)
# Two of them are told of subscriptions too, without these labels.
CONSUMER = Level(
    "Consumers, with ?consumers=true",
    (*_SUBSCRIPTION, "consumer_name", "consumer_id"),
    (
        Metric(
            "pulsar_consumer_available_permits", "messages", "messages that it may still be sent"
        ),
        Metric(
            "pulsar_consumer_unacked_messages",
            "messages",
            "dispatched to it and not acknowledged (Shared and Key_Shared)",
        ),
        Metric(
            "pulsar_consumer_blocked_on_unacked_messages",
            "0 or 1",
            "1: so many that it is sent nothing",
        ),
        Metric("pulsar_consumer_msg_rate_out", "messages a second", "dispatched to it"),
        Metric("pulsar_consumer_msg_throughput_out", "bytes a second", "dispatched to it"),
        Metric("pulsar_out_messages_total", "messages", "dispatched to it"),
        Metric("pulsar_out_bytes_total", "bytes", "dispatched to it"),
    ),
)
LEVELS = (SERVER, VERSION, LOG, BROKER, TRANSACTIONS, NAMESPACE, TOPIC, SUBSCRIPTION, CONSUMER)
