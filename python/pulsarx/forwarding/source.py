"""The source of one topic or partition: a durable subscription, which nobody else may use."""

from __future__ import annotations

from collections import deque

from pulsarx import errors
from pulsarx._pycore.publish.outgoing_message import BytesKey
from pulsarx.cluster import official
from pulsarx.cluster.handle import native_of
from pulsarx.enumerations import ConsumerCryptoFailureAction, InitialPosition
from pulsarx.forwarding.positions import IN_CLUSTER, IN_FOLDER
from pulsarx.results import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.client import Client

_BYTES_MAX = 4 << 20  # that are taken at once from a cluster
# And from a folder, where each message is copied, or decompressed: so many by one call, but one
# where messages are large.
_FOLDER_BYTES_MAX, _FEW, _LARGE_BYTES = 1 << 20, 16, 1 << 16
_OPTIONS: dict[str, Any] = {
    "initial_position": InitialPosition.Earliest,
    "crypto_failure_action": ConsumerCryptoFailureAction.CONSUME,
}


class FolderSource:
    """A subscription of a folder. One thread; wake is called in any."""

    def __init__(
        self, client: Client, topic: str, subscription: str, wake: Callable[[], object]
    ) -> None:
        """wake: called when messages may have come, and with mutexes held."""
        self._consumer: Any = client.subscribe(topic, subscription, **_OPTIONS)
        self._wake = wake
        self._few = 1
        self._failure: Exception | None = None  # behind what was taken
        self._consumer.watch(wake)

    def take(self, count: int) -> list[Any]:
        """Return what is there, as far as it fits into memory."""
        found: list[Any] = []
        size = 0
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        while len(found) < count and size < _FOLDER_BYTES_MAX:
            try:
                some = self._consumer.receive_many(min(self._few, count - len(found)), 0)
            except errors.PulsarException as error:
                if not found:
                    raise
                self._failure = error
                break
            if not some:
                break
            sizes = [each.length() for each in some]
            self._few = 1 if max(sizes) > _LARGE_BYTES else _FEW
            size += sum(sizes)
            found += some
        return found

    @staticmethod
    def sequence_of(message: Any) -> int:
        return IN_FOLDER.sequence_of(message.message_id())

    @staticmethod
    def deliver_at(message: Any) -> int:
        return int(message.deliver_at())

    @staticmethod
    def key_of(message: Any) -> str | None:
        """None: it has none. BytesKey: it is bytes."""
        key: str = message.partition_key()
        if not key:
            return "" if message.has_key() else None
        return BytesKey(key) if message.has_base64_encoded_key() else key

    def acknowledge(self, message: Any) -> None:
        self._consumer.acknowledge_cumulative(message)

    def close(self) -> None:
        self._consumer.unwatch(self._wake)
        self._consumer.close()


class ClusterSource:
    """A subscription of a cluster: messages are those of the official client. One thread."""

    def __init__(
        self, client: Client, topic: str, subscription: str, wake: Callable[[], object]
    ) -> None:
        self._where = topic
        self._wake = wake
        self._arrived: deque[tuple[Any, Any]] = deque()
        self._is_asked = False
        self._consumer: Any = client.subscribe(topic, subscription, **_OPTIONS)
        self._native: Any = native_of(self._consumer)

    def take(self, count: int) -> list[Any]:
        """Return what is there. Where that is nothing, wake is called with the next message."""
        found: list[Any] = []
        if self._is_asked:
            if not self._arrived:
                return found
            self._is_asked = False
            result, message = self._arrived.popleft()
            if official.result_of(result) != Result.Ok:
                raise official.error_of_result(result, f"receive from {self._where}")
            found.append(message)
        try:
            size = 0
            while len(found) < count and size < _BYTES_MAX:
                message = official.call(self._where, self._native.receive, 0)
                size += message.length()
                found.append(message)
        except errors.Timeout:
            pass
        if not found:
            self._is_asked = True
            official.call(self._where, self._native.receive_async, self._take_one)
        return found

    def _take_one(self, result: Any, message: Any) -> None:
        """Called in a thread of the official client."""
        self._arrived.append((result, message))
        self._wake()

    @staticmethod
    def sequence_of(message: Any) -> int:
        return IN_CLUSTER.sequence_of(message.message_id())

    @staticmethod
    def deliver_at(message: Any) -> int:
        """0: the official client does not tell."""
        return 0

    @staticmethod
    def key_of(message: Any) -> str | None:
        """None: it has none. Whether it is bytes the official client does not tell."""
        return message.partition_key() or None

    def acknowledge(self, message: Any) -> None:
        official.call(self._where, self._native.acknowledge_cumulative, message)

    def close(self) -> None:
        self._consumer.close()
