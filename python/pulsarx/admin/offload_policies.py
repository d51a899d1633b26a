"""The policies about offloading: what both groups of `client.admin` have."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.admin.channel import Channel


class OffloadPolicies:
    """Base of the groups. A topic's policy wins over its namespace's, that over BrokerOptions. A
    change is durable on return. OperationNotSupported: the owner of the folder has no
    `offload_url`."""

    _channel: Channel
    _LEVEL: str  # what the verbs call the level: namespace or topic

    def set_offload_threshold(self, target: str, size: int) -> None:
        """Offload the oldest sealed ledgers of a topic that holds more than size bytes; checked
        every 60 seconds while the topic is open. 0: all of them; -1: only when topics.offload is
        called."""
        self._set_offload("offload_threshold", target, _whole("size", size))

    def get_offload_threshold(self, target: str) -> int | None:
        """What is set at this level; None: nothing."""
        return self._get_offload("offload_threshold", target)

    def remove_offload_threshold(self, target: str) -> None:
        """The level above holds again."""
        self._set_offload("offload_threshold", target, None)

    def set_offload_deletion_lag(self, target: str, lag_ms: int) -> None:
        """Set how long the file of an offloaded ledger stays, in milliseconds."""
        self._set_offload("offload_deletion_lag_ms", target, _whole("lag_ms", lag_ms))

    def get_offload_deletion_lag(self, target: str) -> int | None:
        """What is set at this level; None: nothing."""
        return self._get_offload("offload_deletion_lag_ms", target)

    def remove_offload_deletion_lag(self, target: str) -> None:
        """The level above holds again."""
        self._set_offload("offload_deletion_lag_ms", target, None)

    def _get_offload(self, name: str, target: str) -> int | None:
        arguments = {self._LEVEL: target, "name": name}
        found: int | None = self._channel.perform(f"{self._LEVEL}s.get_policy", arguments)
        return found

    def _set_offload(self, name: str, target: str, value: int | None) -> None:
        arguments = {self._LEVEL: target, "policy": {name: value}}
        self._channel.perform(f"{self._LEVEL}s.set_policy", arguments)


def _whole(name: str, value: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name} must be an int, not {type(value).__name__}")
    return value
