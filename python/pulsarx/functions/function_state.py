"""The state of a function: counters and values, in a compacted topic of the folder.

A message is a key's new value: `+` and a counter in decimal, or `=` and the bytes of a value; one
without a value removes the key. All of it is in memory; a change is applied there at once and
published; `flush` waits until it is durable. With EFFECTIVELY_ONCE changes are messages of a
transaction, and applied when that is committed. The topic is compacted before its first change:
from then on nothing is trimmed that is not in the compacted ledger.
"""

from __future__ import annotations

from contextlib import contextmanager

from pulsarx import errors
from pulsarx._pycore.ground.locks import Event, Lock
from pulsarx.enumerations import ProducerAccessMode
from pulsarx.functions.pending_sends import PendingSends, sentence_of
from pulsarx.functions.state_changes import applied, checked_amount, checked_value, counter_of
from pulsarx.message_id import MessageId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pulsarx.client import Client
    from pulsarx.functions.state_changes import Changes, Value

COMPACTED_EVERY_BYTES = 1024 * 1024
NOT_COMPACTED = (-1, -1)
_FIRST_KEY = "\0"  # of the message that is there before the first change
_COUNTER, _VALUE = b"+", b"="  # never empty: that would remove a key when the topic is compacted


class StateNotStored(errors.BrokerPersistenceError):
    """A change of a function's state is not durable: what the function remembers may not last."""

    _detail_in_text = True


class FunctionState:
    """The state of one function, shared by its instances. Any thread may call."""

    def __init__(self, client: Client, topic: str) -> None:
        """Reads the topic, which is made when it is missing. ProducerFenced: another runner has
        the state of this function."""
        self._topic = topic
        self._lock = Lock()  # of what follows, and the order of changes
        self._values: dict[str, int | bytes] = {}
        # What a transaction is about to make of some, which may be committed already.
        self._ending: dict[str, Value] = {}
        self._sends = PendingSends()
        try:
            client.admin.topics.create_non_partitioned_topic(topic)
        except errors.NotAllowedError:
            pass  # it is there
        self.producer: Any = client.create_producer(
            topic,
            access_mode=ProducerAccessMode.Exclusive,
            block_if_queue_full=True,
            send_timeout_millis=0,
        )
        try:
            self._wait_for_transactions(client)
            self._compact_first(client)
            self._load(client)
        except BaseException:
            self.producer.close()
            raise

    def _wait_for_transactions(self, client: Client) -> None:
        """Wait until what a runner before left open has ended. No other one begins."""
        pause = Event()
        while client.admin.topics.stats(self._topic)["ongoing_txn_count"]:
            pause.wait(0.005)

    def _compact_first(self, client: Client) -> None:
        """Policies that let ledgers be trimmed come last: a kill before leaves what it must."""
        topics = client.admin.topics
        if topics.stats(self._topic)["compaction"]["horizon"] == NOT_COMPACTED:
            self.producer.send(_VALUE, partition_key=_FIRST_KEY)
            topics.trigger_compaction(self._topic)
            pause = Event()
            while (status := topics.compaction_status(self._topic))["status"] == "RUNNING":
                pause.wait(0.005)
            if status["status"] != "SUCCESS":
                raise StateNotStored(detail=f"compact {self._topic}: {status['last_error']}")
        if topics.get_retention(self._topic) is None:
            mode = "delete_when_no_subscriptions"
            topics.set_inactive_topic_policies(self._topic, mode, 60, enabled=False)
            topics.set_message_ttl(self._topic, 0)
            topics.set_compaction_threshold(self._topic, COMPACTED_EVERY_BYTES)
            topics.set_retention(self._topic, 0, 0)

    def _load(self, client: Client) -> None:
        reader = client.create_reader(self._topic, MessageId.earliest, is_read_compacted=True)
        with reader:
            while reader.has_message_available():
                message = reader.read_next()
                key, data = message.partition_key(), message.data()
                if message.has_null_value():
                    self._values.pop(key, None)
                elif data[:1] == _COUNTER:
                    self._values[key] = int(data[1:])
                else:
                    self._values[key] = data[1:]
        self._values.pop(_FIRST_KEY, None)

    def increment(self, key: str, amount: int) -> None:
        checked_amount(amount)
        with self._lock:
            self._change(key, counter_of(key, self._values.get(key)) + amount)

    def put(self, key: str, value: bytes | str) -> None:
        data = checked_value(value)
        with self._lock:
            self._change(key, data)

    def remove(self, key: str) -> None:
        with self._lock:
            self._change(key, None)

    def counter(self, key: str) -> int | None:
        """None: no such key, or a value."""
        return counter_in(self._shown(key))

    def value(self, key: str) -> bytes | None:
        """None: no such key. For a counter: its decimal text."""
        return bytes_of(self._shown(key))

    def _shown(self, key: str) -> Value:
        ending = self._ending
        return ending[key] if key in ending else self._values.get(key)

    def _change(self, key: str, value: Value) -> None:
        check_key(key)
        self._apply(key, value)
        self._sends.begin()
        try:
            self.producer.send_async(_message_of(value), self._sends.end, partition_key=key)
        except BaseException as error:
            self._sends.fail(error)
            raise

    def _apply(self, key: str, value: Value) -> None:
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value

    # In a transaction -----------------------------------------------------------------------------

    def committed(self, key: str) -> Value:
        """None: no such key."""
        return self._values.get(key)

    @contextmanager
    def changing(self, changes: Changes) -> Iterator[None]:
        """Have nobody else change it, for a transaction that sends `messages`. ValueError: as of
        counter_of."""
        with self._lock:
            self._ending = {
                key: applied(key, self._values.get(key), change) for key, change in changes.items()
            }
            try:
                yield
            finally:
                self._ending = {}

    def messages(self) -> list[tuple[str, bytes | None]]:
        """Keys and what is published of them, of the changes within."""
        return [(key, _message_of(value)) for key, value in self._ending.items()]

    def keep(self) -> None:
        """The changes within are committed."""
        for key, value in self._ending.items():
            self._apply(key, value)

    # Its end --------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Wait until all changes are durable. StateNotStored: one is not, and will not be."""
        cause = None
        if not self._sends.is_idle:
            try:
                self.producer.flush()
            except errors.PulsarException as error:
                cause = error
        failure = cause or self._sends.wait()
        if failure is not None:
            told = failure if cause is None else sentence_of(cause)
            raise StateNotStored(detail=f"publish to {self._topic}: {told}") from cause

    def close(self) -> None:
        self.producer.close()


def check_key(key: str) -> None:
    """ValueError: it is no key of a state."""
    if type(key) is not str or not key or key == _FIRST_KEY:
        raise ValueError(f"the key of a state is a text that is not empty, not {key!r}")


def counter_in(value: Value) -> int | None:
    return value if isinstance(value, int) else None


def bytes_of(value: Value) -> bytes | None:
    return str(value).encode() if isinstance(value, int) else value


def _message_of(value: Value) -> bytes | None:
    if isinstance(value, int):
        return _COUNTER + b"%d" % value
    return value if value is None else _VALUE + value
