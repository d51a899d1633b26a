"""The policy about compaction: what both groups of `client.admin` have."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.admin.channel import Channel


class CompactionPolicies:
    """Base of the groups. A topic's policy wins over its namespace's, that over BrokerOptions. A
    change is durable on return."""

    _channel: Channel
    _LEVEL: str  # what the verbs call the level: namespace or topic

    def set_compaction_threshold(self, target: str, threshold: int) -> None:
        """Compact a topic when that many bytes were published since the last compaction; checked
        every 60 seconds while the topic is open. 0: only when trigger_compaction is called."""
        if not isinstance(threshold, int) or isinstance(threshold, bool):
            raise ValueError(f"threshold must be an int, not {type(threshold).__name__}")
        self._set_compaction_threshold(target, threshold)

    def get_compaction_threshold(self, target: str) -> int | None:
        """What is set at this level; None: nothing."""
        arguments = {self._LEVEL: target, "name": "compaction_threshold"}
        found: int | None = self._channel.perform(f"{self._LEVEL}s.get_policy", arguments)
        return found

    def remove_compaction_threshold(self, target: str) -> None:
        """The level above holds again."""
        self._set_compaction_threshold(target, None)

    def _set_compaction_threshold(self, target: str, threshold: int | None) -> None:
        arguments = {self._LEVEL: target, "policy": {"compaction_threshold": threshold}}
        self._channel.perform(f"{self._LEVEL}s.set_policy", arguments)
