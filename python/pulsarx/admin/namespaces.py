"""`client.admin.namespaces`: policies that hold for all topics of a namespace."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.policies.retention import RetentionPolicy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.broker import Broker
    from pulsarx.broker.read_only_broker import ReadOnlyBroker


class Namespaces:
    """Any thread may call. TopicNotFound: there is no such namespace."""

    def __init__(self, broker: Broker | ReadOnlyBroker, read_only: bool) -> None:
        self._broker = broker
        self._read_only = read_only

    def get_namespaces(self, tenant: str = "public") -> list[str]:
        """Names of the namespaces of a tenant, as `tenant/namespace`."""
        self._broker.check_open()
        return sorted(
            name
            for name in self._broker.catalogue.state.namespaces
            if name.startswith(f"{tenant}/")
        )

    def set_retention(self, namespace: str, time_minutes: int, size_mb: int) -> None:
        """Keep acknowledged messages: for time_minutes, up to size_mb MiB a topic, whichever is
        reached first.

        -1: without limit; 0 in either: not at all. Whole ledgers are removed, never parts. Durable
        on return.
        """
        self._broker.check_open()
        if self._read_only:
            raise errors.OperationNotSupported("set_retention: the client was opened read_only")
        for name, value in (("time_minutes", time_minutes), ("size_mb", size_mb)):
            if not isinstance(value, int) or isinstance(value, bool):
                raise ValueError(f"{name} must be an int, not {type(value).__name__}")
            if value < -1:
                raise ValueError(f"{name} is {value}; it must be -1 (without limit), 0 or more")
        self._broker.set_retention(namespace, RetentionPolicy(time_minutes, size_mb))

    def get_retention(self, namespace: str) -> tuple[int, int]:
        """(time_minutes, size_mb) in force."""
        self._broker.check_open()
        policy, _ = self._broker.retention_in(namespace)
        return policy.time_minutes, policy.size_mb
