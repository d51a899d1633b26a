"""Topics that the broker itself writes: what it tells of changes of topic policies, and the topic
of the health check."""

from __future__ import annotations

import json

from pulsarx import errors
from pulsarx._pycore.ground.locks import Lock
from pulsarx._pycore.publish.completion_queue import CompletionQueue
from pulsarx._pycore.publish.entry_intake import EntryIntake
from pulsarx._pycore.publish.entry_publisher import LedgerPublisher
from pulsarx._pycore.publish.partition_hash import partition_hash
from pulsarx._pycore.ranges.entry_codec import encode_entry
from pulsarx.broker.catalogue import changes
from pulsarx.compression import compress, decompress
from pulsarx.enumerations import HashingScheme
from pulsarx.topic_name import HEARTBEAT_NAMESPACE, TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.topics.topic import Topic
    from pulsarx.broker.topics.topic_directory import TopicDirectory

CHANGE_EVENTS = "__change_events"
CHANGE_EVENTS_PARTITIONS = 4
HEALTHCHECK = TopicName.of(f"persistent://{HEARTBEAT_NAMESPACE}/healthcheck")
HEALTHCHECK_PATIENCE_MS = 10_000
PRODUCER_NAME = "pulsarx-broker"


class ChangeEvents:
    """Tells of changes of topic policies, in the topic `__change_events` of their namespace: one
    message a change, its key the full name of the topic, its content the policies of the topic as
    JSON, or null where it has none any more. Calls of the control plane.

    The catalogue is the truth. The commit that changes policies says that an event is expected,
    and another one that it was told; what is expected when a folder is opened is told then. So an
    event is never missing, and may come twice.
    """

    def __init__(self, runtime: BrokerRuntime, topics: Callable[[], TopicDirectory]) -> None:
        self._runtime = runtime
        self._topics = topics
        self._lock = Lock()  # taken before any lock of a topic or of the directory

    def tell(self) -> None:
        """Tell what is expected. What cannot be told now is said in the log, and told when the
        folder is opened next."""
        catalogue = self._runtime.catalogue
        if not catalogue.state.change_events:
            return
        with self._lock:
            told: dict[str, int] = {}
            try:
                for name, count in dict(catalogue.state.change_events).items():
                    self._tell_one(TopicName.of(name))
                    told[name] = count

                def operations(state: CatalogueState) -> list[dict[str, Any]]:
                    # What was changed once more meanwhile is expected still.
                    now = state.change_events
                    done = [name for name, count in told.items() if now.get(name) == count]
                    return [changes.forget_change_events(done)]

                catalogue.commit(operations)
            except (errors.PulsarException, OSError) as error:
                import logging

                logging.getLogger("pulsarx").warning(
                    "changes of topic policies are in force, and are told in %s when the folder is "
                    "opened next: %s", CHANGE_EVENTS, errors.detail_of(error),
                )  # fmt: skip

    def _tell_one(self, name: TopicName) -> None:
        state = self._runtime.catalogue.state
        if name.namespace_name not in state.namespaces:
            return  # deleted, and its topics with it
        events = TopicName.of(f"persistent://{name.namespace_name}/{CHANGE_EVENTS}")
        count = self._topics().ensure_system_topic(events, CHANGE_EVENTS_PARTITIONS)
        if count:
            index = partition_hash(int(HashingScheme.JavaStringHash), name.full) % count
            events = events.partition(index)
        record = state.topics.get(name.full)
        payload = None
        if record is not None and record.policies:
            payload = json.dumps(record.policies, sort_keys=True).encode()
        publish(self._topics().existing(events).require_kept("publish"), payload, name.full)


def publish(topic: Topic, payload: bytes | None, key: str | None = None) -> None:
    """Publish one message, as durable on return as the broker's durability says. None: null."""
    runtime = topic.runtime
    completions = CompletionQueue(None, lambda error: error)
    failures: list[Exception] = []

    def told(error: Exception | None, _: object) -> None:
        if error is not None:
            failures.append(error)

    entry = encode_entry(
        payload or b"",
        producer_name=PRODUCER_NAME,
        sequence_id=0,
        publish_time_ms=runtime.clock.now_ms(),
        key=key,
        null_value=payload is None,
    )
    try:
        intake = EntryIntake(
            LedgerPublisher(
                topic.name,
                topic.tail,
                completions,
                runtime.durability_code,
                stamp_clock=runtime.stamp_clock,
            ),
            decompress,
            compress,
            max(len(entry), runtime.options.max_message_size),
            runtime.decompressed_size_max,
        )
        intake.publish(entry, told)
        intake.flush()
        completions.wait()
    finally:
        completions.close()
    if failures:
        raise failures[0]


def check_health(runtime: BrokerRuntime, topics: TopicDirectory) -> None:
    """Publish a message and read it again. Raises what fails; Timeout: it did not come."""
    topics.ensure_system_topic(HEALTHCHECK, 0)
    topic = topics.existing(HEALTHCHECK).require_kept("check the health")
    token = runtime.randomness.token(20).encode()
    core = topic.reader_cursor(None).attach(topic.ledger.end_position())
    try:
        publish(topic, token)
        while messages := core.receive_many(100, HEALTHCHECK_PATIENCE_MS):
            if any(message.data() == token for message in messages):
                return
    finally:
        core.shut()
    raise errors.Timeout(detail=f"healthcheck: what was published to {HEALTHCHECK} did not come")
