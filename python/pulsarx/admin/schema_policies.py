"""The policies about schemas: what `client.admin.namespaces` and `client.admin.topics` share."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.admin.channel import Channel


class SchemaPolicies:
    """Base of the groups. A topic's policy wins over its namespace's, that over BrokerOptions. A
    change takes effect with the next producer or consumer and is durable on return."""

    _channel: Channel
    _LEVEL: str  # what the verbs call the level: namespace or topic

    def set_schema_compatibility_strategy(self, target: str, strategy: str) -> None:
        """Set which schema may follow another: ALWAYS_INCOMPATIBLE, ALWAYS_COMPATIBLE, BACKWARD
        (the new one reads what was written before), FORWARD (the old one reads what is written from
        now on), FULL (both), or one of these three with _TRANSITIVE: for all versions and not the
        last alone. UNDEFINED: the level above applies. ValueError: anything else."""
        self._set_policy(target, "schema_compatibility_strategy", _given(strategy))

    def get_schema_compatibility_strategy(self, target: str) -> str | None:
        """What is set at this level; None: nothing."""
        found: str | None = self._get_policy(target, "schema_compatibility_strategy")
        return found

    def remove_schema_compatibility_strategy(self, target: str) -> None:
        self._set_policy(target, "schema_compatibility_strategy", None)

    def set_schema_validation_enforced(self, target: str, enforced: bool) -> None:
        """True: a producer without a schema is refused where the topic has one."""
        self._set_policy(target, "schema_validation_enforced", _given(enforced))

    def get_schema_validation_enforced(self, target: str) -> bool | None:
        """What is set at this level; None: nothing."""
        found: bool | None = self._get_policy(target, "schema_validation_enforced")
        return found

    def remove_schema_validation_enforced(self, target: str) -> None:
        self._set_policy(target, "schema_validation_enforced", None)

    def set_is_allow_auto_update_schema(self, target: str, allowed: bool) -> None:
        """False: producers and consumers register no schema, not even the first;
        `admin.schemas.create_schema` does."""
        self._set_policy(target, "is_allow_auto_update_schema", _given(allowed))

    def get_is_allow_auto_update_schema(self, target: str) -> bool | None:
        """What is set at this level; None: nothing."""
        found: bool | None = self._get_policy(target, "is_allow_auto_update_schema")
        return found

    def remove_is_allow_auto_update_schema(self, target: str) -> None:
        self._set_policy(target, "is_allow_auto_update_schema", None)

    def _set_policy(self, target: str, name: str, value: object) -> None:
        arguments = {self._LEVEL: target, "policy": {name: value}}
        self._channel.perform(f"{self._LEVEL}s.set_policy", arguments)

    def _get_policy(self, target: str, name: str) -> Any:
        arguments = {self._LEVEL: target, "name": name}
        return self._channel.perform(f"{self._LEVEL}s.get_policy", arguments)


def _given(value: object) -> object:
    if value is None:
        raise ValueError("None is no value of a policy; use the method that removes it")
    return value
