"""`client.admin.namespaces`: policies that hold for all topics of a namespace."""

from __future__ import annotations

from pulsarx.admin.schema_policies import SchemaPolicies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.admin.channel import Channel


class Namespaces(SchemaPolicies):
    """Any thread may call. TopicNotFound: there is no such namespace."""

    _LEVEL = "namespace"

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def get_namespaces(self, tenant: str = "public") -> list[str]:
        """Names of the namespaces of a tenant, as `tenant/namespace`."""
        found: list[str] = self._channel.perform("namespaces.get_namespaces", {"tenant": tenant})
        return found

    def set_retention(self, namespace: str, time_minutes: int, size_mb: int) -> None:
        """Keep acknowledged messages: for time_minutes, up to size_mb MiB a topic, whichever is
        reached first.

        -1: without limit; 0 in either: not at all. Whole ledgers are removed, never parts. Durable
        on return.
        """
        for name, value in (("time_minutes", time_minutes), ("size_mb", size_mb)):
            if not isinstance(value, int) or isinstance(value, bool):
                raise ValueError(f"{name} must be an int, not {type(value).__name__}")
        arguments = {"namespace": namespace, "time_minutes": time_minutes, "size_mb": size_mb}
        self._channel.perform("namespaces.set_retention", arguments)

    def get_retention(self, namespace: str) -> tuple[int, int]:
        """(time_minutes, size_mb) in force."""
        arguments = {"namespace": namespace}
        time_minutes, size_mb = self._channel.perform("namespaces.get_retention", arguments)
        return time_minutes, size_mb

    def set_deduplication(self, namespace: str, enabled: bool) -> None:
        """Whether the topics of a namespace tell messages that are sent again, by their sequence
        ids, and do not store them again. Open producers heed it at once. Durable on return."""
        if not isinstance(enabled, bool):
            raise ValueError(f"enabled must be a bool, not {type(enabled).__name__}")
        arguments = {"namespace": namespace, "enabled": enabled}
        self._channel.perform("namespaces.set_deduplication", arguments)

    def get_deduplication(self, namespace: str) -> bool | None:
        """What was set here; None: nothing was."""
        found: bool | None = self._channel.perform(
            "namespaces.get_deduplication", {"namespace": namespace}
        )
        return found

    def remove_deduplication(self, namespace: str) -> None:
        """Take back what was set here. Durable on return."""
        self._channel.perform("namespaces.remove_deduplication", {"namespace": namespace})
