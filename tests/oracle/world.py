"""What a scenario sees: one of the two packages, and a broker behind it.

A scenario is a function that takes a `World`, uses the official client's API, and returns what it
has seen: nothing but what JSON can say, and nothing that differs from run to run. `@scenario` names
it after its module and itself; with `each=` it is run once for each value.
"""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable
from typing import Any

# Long enough for a message that is on its way, and for "there is none".
PATIENCE_MS = 5000
NOTHING_MS = 400

SCENARIOS: dict[str, Callable[[World], Any]] = {}
TYPES = ("Exclusive", "Failover", "Shared", "KeyShared")


def scenario(
    function: Callable[..., Any] | None = None, *, each: Iterable[Any] | None = None
) -> Any:
    """Add a function to the scenarios; each: it is called with the world and one of these."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        if each is None:
            _add(name, function)
        for value in each or ():
            _add(f"{name}[{value}]", lambda world, value=value: function(world, value))
        return function

    return add if function is None else add(function)


def _add(name: str, function: Callable[[World], Any]) -> None:
    if name in SCENARIOS:
        raise ValueError(f"two scenarios are called {name}")
    SCENARIOS[name] = function


class World:
    """A package (`pulsar`), its broker, and topics that nobody else uses."""

    def __init__(
        self, pulsar: Any, url: str, admin: Any, prefix: str, options: dict[str, Any]
    ) -> None:
        """prefix: of the topics' names. options: of every client."""
        self.pulsar = pulsar
        self.url = url
        self.admin = admin
        self.prefix = prefix
        self._options = options
        self._clients: list[Any] = []
        self._governed = False
        self._kept: list[Any] = []  # what a scenario made and named nowhere lives as long as it

    def client(self, **options: Any) -> Any:
        """A client of its own, closed at the end."""
        made = self.pulsar.Client(self.url, **(self._options | options))
        self._clients.append(made)
        return made

    def close(self) -> None:
        for each in self._clients:
            try:
                each.close()
            except self.pulsar.PulsarException:
                pass

    def topic(self, label: str = "topic") -> str:
        """The full name of a topic; the same for the same label."""
        return f"persistent://public/default/{self.prefix}-{label}"

    def governed(self, **policies: dict[str, Any]) -> str:
        """The full name of a topic in a namespace of its own with these policies, by name and
        arguments of `set_...`; the same namespace for the same scenario."""
        namespace = f"public/{self.prefix}"
        if not self._governed:
            self.admin.create_namespace(namespace)
            self._governed = True
        for name, values in policies.items():
            self.admin.set_policy(namespace, name, values)
        return f"persistent://{namespace}/topic"

    def partitioned(self, count: int, label: str = "partitioned") -> str:
        topic = self.topic(label)
        self.admin.create_partitioned(topic, count)
        return topic

    # What is said in short --------------------------------------------------------------------

    def subscribe(
        self,
        client: Any,
        kind: str = "Exclusive",
        topic: Any = None,
        name: str = "subscription",
        **options: Any,
    ) -> Any:
        """A consumer from Earliest."""
        options.setdefault("initial_position", self.pulsar.InitialPosition.Earliest)
        consumer_type = getattr(self.pulsar.ConsumerType, kind)
        made = client.subscribe(topic or self.topic(), name, consumer_type, **options)
        self._kept.append(made)
        return made

    def send(self, client: Any, payloads: Iterable[Any], topic: str = "", **options: Any) -> None:
        """Each payload in an entry of its own; (payload, key) with that key."""
        producer = client.create_producer(topic or self.topic(), **options)
        for each in payloads:
            payload, key = each if isinstance(each, tuple) else (each, None)
            producer.send(payload, partition_key=key)
        producer.close()

    def send_batch(self, client: Any, payloads: Iterable[Any], topic: str = "") -> None:
        """All in one batch."""
        producer = client.create_producer(
            topic or self.topic(), batching_enabled=True, batching_max_publish_delay_ms=60_000
        )
        for payload in payloads:
            producer.send_async(payload, lambda *_: None)
        producer.flush()
        producer.close()

    def receive(self, consumer: Any, count: int, *, acknowledge: bool = False) -> list[Any]:
        """So many messages, or fewer and "Timeout"."""
        found: list[Any] = []
        for _ in range(count):
            try:
                message = consumer.receive(PATIENCE_MS)
            except self.pulsar.Timeout:
                return [*found, "Timeout"]
            found.append(text(message.data()))
            if acknowledge:
                consumer.acknowledge(message)
        return found

    def messages(self, consumer: Any, count: int) -> list[Any]:
        return [consumer.receive(PATIENCE_MS) for _ in range(count)]

    def is_empty(self, consumer: Any) -> bool:
        """Whether nothing comes."""
        try:
            consumer.receive(NOTHING_MS)
        except self.pulsar.Timeout:
            return True
        return False

    def read(self, reader: Any) -> list[str]:
        found = []
        while reader.has_message_available():
            found.append(text(reader.read_next(PATIENCE_MS).data()))
        return found

    def outcome(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> str:
        """ "ok", or the name of the exception."""
        try:
            self._kept.append(function(*arguments, **options))
        except Exception as error:
            return type(error).__name__
        return "ok"

    def refused(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> bool:
        """Whether it raises: administrative calls raise different exceptions."""
        return self.outcome(function, *arguments, **options) != "ok"

    def compact(self, topic: str, partitions: int = 0) -> list[str]:
        """Compact a topic, or so many partitions; how it ended."""
        topics = [f"{topic}-partition-{each}" for each in range(partitions)] or [topic]
        for each in topics:
            self.admin.compact(each)
            self.settle(lambda each=each: self.admin.compaction(each) != "RUNNING")
        return [self.admin.compaction(each) for each in topics]

    def chunks(self, chunks: Iterable[tuple[str, int, int]], topic: str = "") -> None:
        """Store single chunks: of which message, which one, of how many."""
        from chunk_entries import chunk_entry

        now = int(time.time() * 1000)
        self.admin.store(
            topic or self.topic(),
            [
                chunk_entry(
                    f"{self.prefix}-{name}",
                    number,
                    count,
                    b"%s%d " % (name.encode(), number),
                    publish_ms=now,
                )
                for name, number, count in chunks
            ],
        )

    def pause(self, seconds: float) -> None:
        threading.Event().wait(seconds)

    def settle(self, holds: Callable[[], bool]) -> None:
        """Return once it holds: acknowledgements and statistics arrive some time later."""
        pause = threading.Event()
        for _ in range(PATIENCE_MS // 20):
            if holds():
                return
            pause.wait(0.02)


def text(data: bytes) -> str:
    return data.decode("latin-1") if len(data) < 100 else f"{len(data)} bytes"


def place(message_id: Any) -> list[int]:
    """Where in its ledger: ledgers are numbered differently."""
    return [message_id.partition(), message_id.entry_id(), message_id.batch_index()]


def store_entries(host: str, port: int, topic: str, entries: Iterable[bytes]) -> None:
    """Send entries as they are, over a connection of their own."""
    from pulsarx.wire.frames import FrameReader, frame_encode

    with socket.create_connection((host, port), timeout=10) as connection:
        reader = FrameReader(5 << 20)

        def ask(expected: str, name: str, entry: bytes | None = None, **values: Any) -> None:
            connection.sendall(frame_encode(name, values, entry))
            while data := connection.recv(1 << 16):
                for told, answer, _ in reader.feed(data):
                    if told == expected:
                        return
                    if told in ("ERROR", "SEND_ERROR"):
                        raise RuntimeError(f"{name}: {answer}")
            raise RuntimeError(f"no answer to {name}")

        ask("CONNECTED", "CONNECT", client_version="oracle", protocol_version=20)
        ask("PRODUCER_SUCCESS", "PRODUCER", topic=topic, producer_id=0, request_id=0)
        for number, entry in enumerate(entries):
            ask("SEND_RECEIPT", "SEND", entry, producer_id=0, sequence_id=number)


class RealAdmin:
    """The few administrative calls that scenarios need, over REST."""

    def __init__(self, url: str, web_url: str) -> None:
        self._url = f"{web_url}/admin/v2"
        address = urllib.parse.urlsplit(url)
        self._host, self._port = address.hostname or "", address.port or 0

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            f"{self._url}/{urllib.parse.quote(path, safe='/?=&%')}",
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            data = answer.read()
        return json.loads(data) if data else None

    @staticmethod
    def _path(topic: str) -> str:
        return topic.replace("://", "/")

    def create_partitioned(self, topic: str, count: int) -> None:
        self._call("PUT", f"{self._path(topic)}/partitions", count)

    def update_partitioned(self, topic: str, count: int) -> None:
        self._call("POST", f"{self._path(topic)}/partitions", count)

    def create(self, topic: str) -> None:
        self._call("PUT", self._path(topic))

    def delete(self, topic: str, force: bool = False) -> None:
        self._call("DELETE", f"{self._path(topic)}?force={str(force).lower()}")

    def exists(self, topic: str) -> bool:
        domain, _, name = topic.partition("://")
        return topic in self._call("GET", f"{domain}/{name.rpartition('/')[0]}")

    def terminate(self, topic: str) -> list[int]:
        """The place of the last message."""
        found = self._call("POST", f"{self._path(topic)}/terminate")
        return [found["partitionIndex"], found["entryId"], -1]

    def truncate(self, topic: str) -> None:
        self._call("DELETE", f"{self._path(topic)}/truncate")

    def roll_over(self, topic: str) -> None:
        """Close the ledger of a topic, and delete what is not kept."""
        self.unload(topic)
        self._call("GET", f"{self._path(topic)}/internalStats")  # loads it
        self._call("POST", f"{self._path(topic)}/trim")

    def compact(self, topic: str) -> None:
        self._call("PUT", f"{self._path(topic)}/compaction")

    def compaction(self, topic: str) -> str:
        return str(self._call("GET", f"{self._path(topic)}/compaction")["status"])

    def expire(self, topic: str, subscription: str, seconds: int) -> None:
        path = f"{self._path(topic)}/subscription/{subscription}/expireMessages/{seconds}"
        self._call("POST", path)

    def expire_by_policy(self, topic: str) -> None:
        """Look for expired messages now: a change of the policies does that."""
        namespace = topic.partition("://")[2].rpartition("/")[0]
        seconds = self._call("GET", f"namespaces/{namespace}/messageTTL")
        before = self._unexpired(topic)
        self.set_policy(namespace, "message_ttl", {"seconds": seconds})
        pause = threading.Event()
        for _ in range(PATIENCE_MS // 20):
            if not before or self._unexpired(topic) < before:
                return
            pause.wait(0.02)

    def _unexpired(self, topic: str) -> int:
        found = self._call("GET", f"{self._path(topic)}/stats")["subscriptions"]
        return sum(each["msgBacklog"] for each in found.values())

    def create_subscription(self, topic: str, subscription: str) -> None:
        self._call("PUT", f"{self._path(topic)}/subscription/{subscription}")

    def reset_cursor(self, topic: str, subscription: str, time_ms: int) -> None:
        path = f"{self._path(topic)}/subscription/{subscription}/resetcursor/{time_ms}"
        self._call("POST", path)

    def store(self, topic: str, entries: Iterable[bytes]) -> None:
        """As a producer with these on its wire does."""
        store_entries(self._host, self._port, topic, entries)

    def unload(self, topic: str) -> None:
        self._call("PUT", f"{self._path(topic)}/unload")

    def subscriptions(self, topic: str) -> list[str]:
        return sorted(self._call("GET", f"{self._path(topic)}/subscriptions"))

    def backlog(self, topic: str, subscription: str) -> int:
        found = self._call("GET", f"{self._path(topic)}/stats?getPreciseBacklog=true")
        return int(found["subscriptions"][subscription]["msgBacklog"])

    def statistics(self, topic: str) -> dict[str, Any]:
        found = self._call("GET", f"{self._path(topic)}/stats?getPreciseBacklog=true")
        return {
            "publishers": [
                [each["producerName"], each["accessMode"]] for each in found["publishers"]
            ],
            "subscriptions": {
                name: {
                    "type": each["type"],
                    "durable": each["isDurable"],
                    "backlog": each["msgBacklog"],
                    "unacknowledged": each["unackedMessages"],
                    "consumers": len(each["consumers"]),
                }
                for name, each in found["subscriptions"].items()
            },
            "deduplication": found.get("deduplicationStatus"),
            "epoch": found.get("topicEpoch"),
        }

    def skip(self, topic: str, subscription: str, count: int) -> None:
        self._call("POST", f"{self._path(topic)}/subscription/{subscription}/skip/{count}")

    def skip_all(self, topic: str, subscription: str) -> None:
        self._call("POST", f"{self._path(topic)}/subscription/{subscription}/skip_all")

    def delete_subscription(self, topic: str, subscription: str, force: bool = False) -> None:
        path = f"{self._path(topic)}/subscription/{subscription}"
        self._call("DELETE", f"{path}?force={str(force).lower()}")

    def create_namespace(self, namespace: str) -> None:
        self._call("PUT", f"namespaces/{namespace}", {})

    def delete_namespace(self, namespace: str) -> None:
        self._call("DELETE", f"namespaces/{namespace}")

    def set_policy(self, namespace: str, name: str, values: dict[str, Any]) -> None:
        path, body = REAL_POLICIES[name](**values)
        self._call("POST", f"namespaces/{namespace}/{path}", body)

    def set_schema_strategy(self, namespace: str, strategy: str) -> None:
        path = f"namespaces/{namespace}/schemaCompatibilityStrategy"
        self._call("PUT", path, strategy)

    def schema_versions(self, topic: str) -> int:
        path = self._path(topic).split("/", 1)[1]
        return len(self._call("GET", f"schemas/{path}/schemas")["getSchemaResponses"])


REAL_POLICIES: dict[str, Callable[..., tuple[str, Any]]] = {
    "message_ttl": lambda seconds: ("messageTTL", seconds),
    "retention": lambda time_minutes, size_mb: (
        "retention",
        {"retentionTimeInMinutes": time_minutes, "retentionSizeInMB": size_mb},
    ),
    "backlog_quota": lambda policy, limit_size=-1, limit_time=-1, type="destination_storage": (
        f"backlogQuota?backlogQuotaType={type}",
        {"policy": policy, "limitSize": limit_size, "limitTime": limit_time},
    ),
    "inactive_topic_policies": lambda mode, seconds, enabled: (
        "inactiveTopicPolicies",
        {
            "inactiveTopicDeleteMode": mode,
            "maxInactiveDurationSeconds": seconds,
            "deleteWhileInactive": enabled,
        },
    ),
    "delayed_delivery_policies": lambda active, tick_time_millis, max_delivery_delay_in_millis=0: (
        "delayedDelivery",
        {
            "active": active,
            "tickTime": tick_time_millis,
            "maxDeliveryDelayInMillis": max_delivery_delay_in_millis,
        },
    ),
    "deduplication": lambda enabled: ("deduplication", enabled),
    "subscription_types_enabled": lambda types: ("subscriptionTypesEnabled", types),
    "auto_subscription_creation": lambda allowed: (
        "autoSubscriptionCreation",
        {"allowAutoSubscriptionCreation": allowed},
    ),
    "auto_topic_creation": lambda allowed, type="non-partitioned", partitions=None: (
        "autoTopicCreation",
        {
            "allowAutoTopicCreation": allowed,
            "topicType": type,
            "defaultNumPartitions": partitions,
        },
    ),
}


class OwnAdmin:
    """The same calls, by `client.admin`."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._admin = client.admin

    def create_partitioned(self, topic: str, count: int) -> None:
        self._admin.topics.create_partitioned_topic(topic, count)

    def update_partitioned(self, topic: str, count: int) -> None:
        self._admin.topics.update_partitioned_topic(topic, count)

    def create(self, topic: str) -> None:
        self._admin.topics.create_non_partitioned_topic(topic)

    def delete(self, topic: str, force: bool = False) -> None:
        self._admin.topics.delete(topic, force)

    def exists(self, topic: str) -> bool:
        namespace = topic.partition("://")[2].rpartition("/")[0]
        return topic in self._admin.topics.get_list(namespace)

    def terminate(self, topic: str) -> list[int]:
        return place(self._admin.topics.terminate(topic))

    def truncate(self, topic: str) -> None:
        self._admin.topics.truncate(topic)

    def roll_over(self, topic: str) -> None:
        from pulsarx.testing import inspect

        self._admin.topics.unload(topic)
        inspect(self._client).settle()  # it is trimmed in the background

    def compact(self, topic: str) -> None:
        self._admin.topics.trigger_compaction(topic)

    def compaction(self, topic: str) -> str:
        return str(self._admin.topics.compaction_status(topic)["status"])

    def expire(self, topic: str, subscription: str, seconds: int) -> None:
        self._admin.topics.expire_messages(topic, subscription, seconds)

    def expire_by_policy(self, topic: str) -> None:
        """Expired messages are not delivered, whether they were looked for or not."""

    def create_subscription(self, topic: str, subscription: str) -> None:
        self._admin.topics.create_subscription(topic, subscription)

    def reset_cursor(self, topic: str, subscription: str, time_ms: int) -> None:
        self._admin.topics.reset_cursor(topic, subscription, time_ms)

    def store(self, topic: str, entries: Iterable[bytes]) -> None:
        from pulsarx.testing import inspect

        self._client.create_producer(topic).close()
        for each in entries:
            inspect(self._client).append_entry(topic, each)

    def unload(self, topic: str) -> None:
        self._admin.topics.unload(topic)

    def subscriptions(self, topic: str) -> list[str]:
        return sorted(self._admin.topics.get_subscriptions(topic))

    def backlog(self, topic: str, subscription: str) -> int:
        found = self._admin.topics.stats(topic)
        return int(found["subscriptions"][subscription]["msg_backlog"])

    def statistics(self, topic: str) -> dict[str, Any]:
        found = self._admin.topics.stats(topic)
        return {
            "publishers": [
                [each["producer_name"], each["access_mode"]] for each in found["publishers"]
            ],
            "subscriptions": {
                name: {
                    "type": each["type"],
                    "durable": each["is_durable"],
                    "backlog": each["msg_backlog"],
                    "unacknowledged": each["unacked_messages"],
                    "consumers": len(each["consumers"]),
                }
                for name, each in found["subscriptions"].items()
            },
            "deduplication": found["deduplication_status"],
            "epoch": found["topic_epoch"],
        }

    def skip(self, topic: str, subscription: str, count: int) -> None:
        self._admin.topics.skip_messages(topic, subscription, count)

    def skip_all(self, topic: str, subscription: str) -> None:
        self._admin.topics.skip_all_messages(topic, subscription)

    def delete_subscription(self, topic: str, subscription: str, force: bool = False) -> None:
        self._admin.topics.delete_subscription(topic, subscription, force)

    def create_namespace(self, namespace: str) -> None:
        self._admin.namespaces.create_namespace(namespace)

    def delete_namespace(self, namespace: str) -> None:
        self._admin.namespaces.delete_namespace(namespace)

    def set_policy(self, namespace: str, name: str, values: dict[str, Any]) -> None:
        getattr(self._admin.namespaces, f"set_{name}")(namespace, **values)

    def set_schema_strategy(self, namespace: str, strategy: str) -> None:
        self._admin.namespaces.set_schema_compatibility_strategy(namespace, strategy)

    def schema_versions(self, topic: str) -> int:
        return len(self._admin.schemas.get_all_schemas(topic))
