"""The statistics that `/metrics` tells, in the text format of Prometheus, under the names of
Pulsar's metrics.

Publishers of the same process want the interpreter, so the work is cut into slices of some 20
microseconds, two topics each, with longer pauses between them. Topics that are open are told, as in
Pulsar those that are loaded.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.dispatch.single_active_dispatcher import SingleActiveDispatcher
from pulsarx._pycore.ground.locks import Event
from pulsarx.admin.http_forms import CLUSTER
from pulsarx.broker.policies.quota_types import DESTINATION_STORAGE, MESSAGE_AGE
from pulsarx.broker.subscriptions.backlog import backlog_extent
from pulsarx.broker.topics.topic_gone import TopicGone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.subscriptions.subscription import Subscription
    from pulsarx.broker.topics.any_topic import AnyTopic

    PerSecond = Callable[..., tuple[float, ...]]
    Rows = list[tuple[str, tuple[Any, ...]]]  # labels, and a value for each metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PAUSE_SECONDS = 0.0001
# Between two pauses, some 20 microseconds each:
_COUNTERS_AT_ONCE = 6  # topics
_TOPICS_AT_ONCE = 2
_NAMES_AT_ONCE = 100
_LINES_AT_ONCE = 100
_CHUNK_SIZE = 64 << 10  # characters, about, that are sent at a time

# In the order of the values in the rows.
_OF_BROKER = (
    "pulsar_broker_topics_count",
    "pulsar_broker_producers_count",
    "pulsar_broker_subscriptions_count",
    "pulsar_broker_consumers_count",
    "pulsar_broker_rate_in",
    "pulsar_broker_rate_out",
    "pulsar_broker_throughput_in",
    "pulsar_broker_throughput_out",
    "pulsar_broker_storage_size",
    "pulsar_broker_msg_backlog",
)
_OF_NAMESPACE = ("pulsar_topics_count",)
_OF_TOPIC = (
    "pulsar_subscriptions_count",
    "pulsar_producers_count",
    "pulsar_consumers_count",
    "pulsar_rate_in",
    "pulsar_rate_out",
    "pulsar_throughput_in",
    "pulsar_throughput_out",
    "pulsar_average_msg_size",
    "pulsar_storage_size",
    "pulsar_storage_logical_size",
    "pulsar_msg_backlog",
    "pulsar_storage_backlog_size",
    "pulsar_storage_backlog_age_seconds",
    "pulsar_in_messages_total",
    "pulsar_in_bytes_total",
    "pulsar_publish_rate_limit_times",
    "pulsar_storage_offloaded_size",
    "pulsar_storage_backlog_quota_limit",
    "pulsar_storage_backlog_quota_limit_time",
    "pulsarx_storage_held_by_leases_size",
)
_OF_SUBSCRIPTION = (
    "pulsar_subscription_back_log",
    "pulsar_subscription_back_log_no_delayed",
    "pulsar_subscription_delayed",
    "pulsar_subscription_unacked_messages",
    "pulsar_subscription_blocked_on_unacked_messages",
    "pulsar_subscription_consumers_count",
    "pulsar_subscription_msg_rate_out",
    "pulsar_subscription_msg_throughput_out",
    "pulsar_out_messages_total",
    "pulsar_out_bytes_total",
    "pulsar_subscription_total_msg_expired",
    "pulsar_subscription_msg_rate_expired",
    "pulsar_subscription_msg_drop_rate",
)
_CONSUMERS, _RATE = (
    _OF_SUBSCRIPTION.index(f"pulsar_subscription_{name}")
    for name in ("consumers_count", "msg_rate_out")
)
_QUOTAS = (DESTINATION_STORAGE, MESSAGE_AGE)
# Two of them are told of subscriptions too, without these labels.
_OF_CONSUMER = (
    "pulsar_consumer_available_permits",
    "pulsar_consumer_unacked_messages",
    "pulsar_consumer_blocked_on_unacked_messages",
    "pulsar_consumer_msg_rate_out",
    "pulsar_consumer_msg_throughput_out",
    "pulsar_out_messages_total",
    "pulsar_out_bytes_total",
)


class Figures:
    """The figures of all open topics as they are gathered. One thread."""

    def __init__(
        self,
        broker: Broker,
        per_second: PerSecond,
        *,
        consumers: bool,
        pause: Callable[[], object],
        sees: Callable[[str], bool] | None = None,
    ) -> None:
        """consumers: whether there are rows for them. pause: called between two slices. sees:
        whether a topic is told of; None: each is."""
        self._broker = broker
        self._sees = sees
        self._per_second = per_second
        self._with_consumers = consumers
        self._pause = pause
        self._now_ms = broker.runtime.clock.now_ms()
        self._sums: list[Any] = [0] * len(_OF_TOPIC)
        self.namespaces: Rows = []
        self.topics: Rows = []
        self.subscriptions: Rows = []
        self.consumers: Rows = []

    def gather(self) -> None:
        self._count_topics()
        for number, topic in enumerate(self._broker.topics.open_topics()):
            if number % _TOPICS_AT_ONCE == _TOPICS_AT_ONCE - 1:
                self._pause()
            if self._sees is not None and not self._sees(topic.name):
                continue
            marks = len(self.subscriptions), len(self.consumers)
            try:
                self._add(topic)
            except (TopicGone, errors.AlreadyClosed, errors.TopicNotFound):
                del self.subscriptions[marks[0] :], self.consumers[marks[1] :]  # it was deleted

    def _count_topics(self) -> None:
        state = self._broker.catalogue.state
        counts = dict.fromkeys(list(state.namespaces) if self._sees is None else (), 0)
        names = [name for name, each in list(state.topics.items()) if not each.partition_count]
        # To ask for each whether it may be seen takes as long as to tell of it.
        at_once = _NAMES_AT_ONCE if self._sees is None else _TOPICS_AT_ONCE
        for number, name in enumerate([*names, *list(self._broker.volatile)]):
            if number % at_once == at_once - 1:
                self._pause()
            if self._sees is not None and not self._sees(name):
                continue
            namespace = _namespace_of(name)
            counts[namespace] = counts.get(namespace, 0) + 1
        self.namespaces = [
            (f'cluster="{CLUSTER}",namespace="{_escaped(name)}"', (count,))
            for name, count in counts.items()
        ]

    def broker(self) -> Rows:
        """Sums of the topics."""
        found = dict(zip(_OF_TOPIC, self._sums))
        found["pulsar_topics_count"] = len(self.topics)
        values = (found[name.replace("_broker", "")] for name in _OF_BROKER)
        return [(f'cluster="{CLUSTER}"', tuple(values))]

    def _add(self, topic: AnyTopic) -> None:
        name = topic.name
        place = _escaped(_namespace_of(name))
        labels = f'cluster="{CLUSTER}",namespace="{place}",topic="{_escaped(name)}"'
        messages, size = topic.published_since_opened()
        rate_in, throughput_in = self._per_second((name,), messages, size)
        ledgers = topic.ledger.ledgers()
        stored = sum(map(topic.ledger.size_of, ledgers)) if ledgers else 0
        subscriptions = topic.all_subscriptions()
        consumers, backlog, behind, age = 0, 0, 0, -1
        rate_out, throughput_out = 0.0, 0.0
        for each in subscriptions:
            row = self._add_subscription(labels, each)
            backlog += row[0]
            consumers += row[_CONSUMERS]
            rate_out += row[_RATE]
            throughput_out += row[_RATE + 1]
            if row[0] and each.durable:
                extent = backlog_extent(each.mark_delete(), topic.ledger, self._now_ms)
                behind = max(behind, extent["backlog_size"])
                age = max(age, extent["oldest_backlog_message_age_seconds"])
        readers = topic.reader_statistics() if topic.keeps_messages else {}
        for reader, figures in readers.items():
            row = self._add_reader(labels, name, reader, figures)
            backlog += row[0]
            consumers += row[_CONSUMERS]
            rate_out += row[_RATE]
            throughput_out += row[_RATE + 1]
        quotas = self._broker.runtime.policies.of_topic(topic.topic_name).messages.quotas
        values = (
            len(subscriptions) + len(readers),
            len(topic.producers.open_producers()),
            consumers,
            rate_in,
            rate_out,
            throughput_in,
            throughput_out,
            throughput_in / rate_in if rate_in else 0.0,
            stored,
            stored,
            backlog,
            behind,
            age,
            messages,
            size,
            topic.publish_rate_limited_times,
            sum(topic.ledger.size_of(each) for each in ledgers if topic.ledger.offloaded_ms(each)),
            *(quotas[kind].limit if kind in quotas else -1 for kind in _QUOTAS),
            topic.held_by_leases[1],
        )
        self.topics.append((labels, values))
        self._sums = [total + each for total, each in zip(self._sums, values)]

    def _add_subscription(self, of_topic: str, each: Subscription) -> tuple[Any, ...]:
        topic, name = each.topic.name, each.name
        labels = f'{of_topic},subscription="{_escaped(name)}"'
        core, dispatcher = each.core, each.dispatcher
        messages, size = core.given_messages, core.given_size
        rate, throughput = self._per_second((topic, name), messages, size)
        *_, expired, expiry_rate = core.expiry_statistics()  # entries, as in Pulsar
        drops = getattr(dispatcher, "drops", None)
        backlog = each.backlog()[0]  # entries, too
        delayed = min(dispatcher.delayed_messages(), backlog)
        in_order = isinstance(dispatcher, SingleActiveDispatcher)
        values = (
            backlog,
            backlog - delayed,
            delayed,
            0 if in_order else dispatcher.unacknowledged_messages(),  # as in Pulsar
            int(getattr(dispatcher, "is_blocked", False)),
            len(each.consumers()),
            rate,
            throughput,
            messages,
            size,
            expired,
            expiry_rate,
            0.0 if drops is None else drops.per_second(self._now_ms),
        )
        self.subscriptions.append((labels, values))
        if self._with_consumers:
            consumers = dispatcher.statistics()["consumers"]
            self._add_consumers(labels, topic, name, consumers, in_order)
        return values

    def _add_reader(
        self, of_topic: str, topic: str, name: str, figures: dict[str, Any]
    ) -> tuple[Any, ...]:
        labels = f'{of_topic},subscription="{name}"'
        counts = figures["msg_out_counter"], figures["bytes_out_counter"]
        rates = self._per_second((topic, name), *counts)
        backlog = figures["backlog_entries"]
        values = (backlog, backlog, 0, 0, 0, 1, *rates, *counts, 0, 0.0, 0.0)
        self.subscriptions.append((labels, values))
        if self._with_consumers:
            self._add_consumers(labels, topic, name, figures["consumers"], True)
        return values

    def _add_consumers(
        self, labels: str, topic: str, name: str, consumers: list[Any], in_order: bool
    ) -> None:
        for number, each in enumerate(consumers):
            counts = each["msg_out_counter"], each["bytes_out_counter"]
            consumer = each["consumer_name"]
            rate, throughput = self._per_second((topic, name, consumer), *counts)
            values = (
                each["available_permits"],
                0 if in_order else each["unacked_messages"],
                int(each["blocked_consumer_on_unacked_msgs"]),
                rate,
                throughput,
                *counts,
            )
            own = f'{labels},consumer_name="{_escaped(consumer)}",consumer_id="{number}"'
            self.consumers.append((own, values))


def rendered(figures: Figures, pause: Callable[[], object]) -> Iterator[bytes]:
    """The text, in pieces; all lines of a metric are together, as the format wants it."""
    lines: list[str] = []
    size = 0
    levels = (
        (_OF_BROKER, figures.broker()),
        (_OF_NAMESPACE, figures.namespaces),
        (_OF_TOPIC, figures.topics),
        (_OF_SUBSCRIPTION, figures.subscriptions),
        (_OF_CONSUMER, figures.consumers),
    )
    names = dict.fromkeys(name for metrics, _ in levels for name in metrics)
    for name in names:
        lines.append(f"# TYPE {name} gauge\n")
        for metrics, rows in levels:
            if name not in metrics:
                continue
            column = metrics.index(name)
            for start in range(0, len(rows), _LINES_AT_ONCE):
                some = [
                    f"{name}{{{labels}}} {values[column]}\n"
                    for labels, values in rows[start : start + _LINES_AT_ONCE]
                ]
                lines += some
                size += sum(map(len, some))
                pause()
                if size >= _CHUNK_SIZE:
                    yield "".join(lines).encode()
                    lines.clear()
                    size = 0
    yield "".join(lines).encode()


def pause() -> None:
    """Let others have the interpreter: a thread that only gives it back takes it again at once."""
    Event().wait(PAUSE_SECONDS)


def _namespace_of(topic: str) -> str:
    return topic.partition("://")[2].rpartition("/")[0]


def _escaped(label: str) -> str:
    if "\\" in label or '"' in label or "\n" in label:
        return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return label


# Counters -----------------------------------------------------------------------------------------


def counters(broker: Broker, pause: Callable[[], object]) -> dict[Any, tuple[int, ...]]:
    """The counters of topics, subscriptions and consumers, for Rates; those that count nothing left
    out."""
    found: dict[Any, tuple[int, ...]] = {}
    for number, topic in enumerate(broker.topics.open_topics()):
        name = topic.name
        try:
            found[(name,)] = topic.published_since_opened()
            for each in topic.all_subscriptions():
                if each.core.given_messages:
                    found[name, each.name] = each.core.given_messages, each.core.given_size
                    for consumer, *counts in each.dispatcher.given():
                        found[name, each.name, consumer] = tuple(counts)
        except errors.PulsarException:
            pass  # it was deleted; what its ledgers cannot tell, its statistics say
        if found.get((name,)) == (0, 0):
            del found[(name,)]
        if number % _COUNTERS_AT_ONCE == 0:
            pause()
    return found
