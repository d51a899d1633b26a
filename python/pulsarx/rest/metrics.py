"""The statistics that `/metrics` tells, in the text format of Prometheus, in the order of
`metric_table`.

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
from pulsarx.broker.transactions.broker_transaction import COORDINATOR
from pulsarx.rest.metric_table import (
    BROKER,
    CONSUMER,
    LEVELS,
    LOG,
    NAMESPACE,
    SERVER,
    SUBSCRIPTION,
    TOPIC,
    TRANSACTIONS,
    VERSION,
)
from pulsarx.rest.server_figures import pulsarx_version, server_figures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.subscriptions.subscription import Subscription
    from pulsarx.broker.topics.any_topic import AnyTopic
    from pulsarx.rest.metric_table import Level, Metric
    from pulsarx.rest.server_figures import LogCount

    PerSecond = Callable[..., tuple[float, ...]]
    Rows = list[tuple[str, tuple[Any, ...]]]  # labels, and a value for each metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PAUSE_SECONDS = 0.0001
# Between two pauses, some 20 microseconds each:
_COUNTERS_AT_ONCE = 6  # topics
_TOPICS_AT_ONCE = 2
_NAMES_AT_ONCE = 100
_LINES_AT_ONCE = 100
_CLUSTER = f'cluster="{CLUSTER}"'
_CHUNK_SIZE = 64 << 10  # characters, about, that are sent at a time

_CONSUMERS, _RATE, _AGE = map(
    SUBSCRIPTION.names.index,
    (
        "pulsar_subscription_consumers_count",
        "pulsar_subscription_msg_rate_out",
        "pulsarx_subscription_backlog_age_seconds",
    ),
)
_QUOTAS = (DESTINATION_STORAGE, MESSAGE_AGE)
# By its name each metric, and the levels that tell it, with its place in the rows of each.
_METRICS: dict[str, Metric] = {}
_COLUMNS: dict[str, list[tuple[Level, int]]] = {}
for _level in LEVELS:
    for _column, _metric in enumerate(_level.metrics):
        _METRICS.setdefault(_metric.name, _metric)
        _COLUMNS.setdefault(_metric.name, []).append((_level, _column))


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
        log: LogCount | None = None,
    ) -> None:
        """consumers: whether there are rows for them. pause: called between two slices. sees:
        whether a topic is told of; None: each is, and the server itself. log: what is told of."""
        self._broker = broker
        self._sees = sees
        self._per_second = per_second
        self._with_consumers = consumers
        self._pause = pause
        self._now_ms = broker.runtime.clock.now_ms()
        self._log = log
        self._sums: list[Any] = [0] * len(TOPIC.metrics)
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
            (f'{_CLUSTER},namespace="{_escaped(name)}"', (count,)) for name, count in counts.items()
        ]

    def rows(self) -> dict[Level, Rows]:
        """All that was gathered, by its level."""
        return {
            **self._of_server(),
            BROKER: self._of_broker(),
            NAMESPACE: self.namespaces,
            TOPIC: self.topics,
            SUBSCRIPTION: self.subscriptions,
            CONSUMER: self.consumers,
        }

    def _of_server(self) -> dict[Level, Rows]:
        """Nothing for a role that is told of some topics alone."""
        if self._sees is not None:
            return {}
        known = server_figures(self._broker)
        log = [] if self._log is None else self._log.rows()
        return {
            SERVER: [(_CLUSTER, tuple(known.get(name) for name in SERVER.names))],
            VERSION: [(f'{_CLUSTER},version="{_escaped(pulsarx_version())}"', (1,))],
            LOG: [(f'{_CLUSTER},level="{level}"', (count,)) for level, count in log],
            TRANSACTIONS: [(f'{_CLUSTER},coordinator_id="{COORDINATOR}"', self._of_coordinator())],
        }

    def _of_coordinator(self) -> tuple[float, ...]:
        coordinator = self._broker.runtime.transactions_if_any
        if coordinator is None:
            return (0,) * len(TRANSACTIONS.metrics)
        found = coordinator.open_transactions()
        oldest_ms = min((each.opened_ms for each in found), default=self._now_ms)
        return (
            len(found),
            max(self._now_ms - oldest_ms, 0) / 1000,
            coordinator.created_count,
            coordinator.committed_count,
            coordinator.aborted_count,
            coordinator.timeout_count,
        )

    def _of_broker(self) -> Rows:
        """Sums of the topics."""
        found = dict(zip(TOPIC.names, self._sums))
        found["pulsar_topics_count"] = len(self.topics)
        values = (found[name.replace("_broker", "")] for name in BROKER.names)
        return [(_CLUSTER, tuple(values))]

    def _add(self, topic: AnyTopic) -> None:
        name = topic.name
        place = _escaped(_namespace_of(name))
        labels = f'{_CLUSTER},namespace="{place}",topic="{_escaped(name)}"'
        messages, size = topic.published_since_opened()
        rate_in, throughput_in = self._per_second((name,), messages, size)
        ledgers = topic.ledger.ledgers()
        stored = sum(map(topic.ledger.size_of, ledgers)) if ledgers else 0
        subscriptions = topic.all_subscriptions()
        consumers, backlog, behind, age = 0, 0, 0, -1
        rate_out, throughput_out = 0.0, 0.0
        for each in subscriptions:
            row, size_behind = self._add_subscription(labels, each)
            backlog += row[0]
            consumers += row[_CONSUMERS]
            rate_out += row[_RATE]
            throughput_out += row[_RATE + 1]
            behind = max(behind, size_behind)
            age = max(age, row[_AGE])
        readers = topic.reader_statistics() if topic.keeps_messages else {}
        for reader, figures in readers.items():
            row = self._add_reader(labels, name, reader, figures)
            backlog += row[0]
            consumers += row[_CONSUMERS]
            rate_out += row[_RATE]
            throughput_out += row[_RATE + 1]
        writer = topic.tail.writer
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
            int(writer is not None and writer.state == "poisoned"),
            *_transactions(topic),
        )
        self.topics.append((labels, values))
        self._sums = [total + each for total, each in zip(self._sums, values)]

    def _add_subscription(self, of_topic: str, each: Subscription) -> tuple[tuple[Any, ...], int]:
        """Its values, and the bytes from its oldest message on."""
        topic, name = each.topic.name, each.name
        labels = f'{of_topic},subscription="{_escaped(name)}"'
        core, dispatcher = each.core, each.dispatcher
        messages, size = core.given_messages, core.given_size
        rate, throughput = self._per_second((topic, name), messages, size)
        *_, expired, expiry_rate = core.expiry_statistics()  # entries, as in Pulsar
        accepted, rejected = core.filter_statistics()
        drops = getattr(dispatcher, "drops", None)
        backlog = each.backlog()[0]  # entries, too
        delayed = min(dispatcher.delayed_messages(), backlog)
        in_order = isinstance(dispatcher, SingleActiveDispatcher)
        size_behind, age = 0, -1
        if backlog and each.durable:
            extent = backlog_extent(each.mark_delete(), each.topic.ledger, self._now_ms)
            size_behind = extent["backlog_size"]
            age = extent["oldest_backlog_message_age_seconds"]
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
            accepted + rejected,
            accepted,
            rejected,
            0.0 if drops is None else drops.per_second(self._now_ms),
            age,
        )
        self.subscriptions.append((labels, values))
        if self._with_consumers:
            consumers = dispatcher.statistics()["consumers"]
            self._add_consumers(labels, topic, name, consumers, in_order)
        return values, size_behind

    def _add_reader(
        self, of_topic: str, topic: str, name: str, figures: dict[str, Any]
    ) -> tuple[Any, ...]:
        labels = f'{of_topic},subscription="{name}"'
        counts = figures["msg_out_counter"], figures["bytes_out_counter"]
        rates = self._per_second((topic, name), *counts)
        backlog = figures["backlog_entries"]
        accepted = figures["filter_accepted_msg_count"]
        rejected = figures["filter_rejected_msg_count"]
        filtered = accepted + rejected, accepted, rejected
        values = (backlog, backlog, 0, 0, 0, 1, *rates, *counts, 0, 0.0, *filtered, 0.0, -1)
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
    found = figures.rows()
    for name, metric in _METRICS.items():
        lines.append(f"# HELP {name} {metric.meaning} ({metric.unit})\n")
        lines.append(f"# TYPE {name} {metric.kind}\n")
        for level, column in _COLUMNS[name]:
            rows = found.get(level, [])
            for start in range(0, len(rows), _LINES_AT_ONCE):
                some = [
                    f"{name}{{{labels}}} {values[column]}\n"
                    for labels, values in rows[start : start + _LINES_AT_ONCE]
                    if values[column] is not None
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


def _transactions(topic: AnyTopic) -> tuple[int, int, int, int]:
    known = topic.tail.transactions
    if known is None:
        return 0, 0, 0, 0
    return len(known), known.committed_count, known.aborted_count, known.held_messages()


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
