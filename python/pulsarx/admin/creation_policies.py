"""The policies about automatic creation and types of subscriptions: what both groups of
`client.admin` have."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pulsarx.admin.channel import Channel


class CreationPolicies:
    """Base of the groups. A topic's policy wins over its namespace's, that over BrokerOptions. A
    change takes effect with the next call of a client, and is durable on return."""

    _channel: Channel
    _LEVEL: str  # what the verbs call the level: namespace or topic

    def set_auto_subscription_creation(self, target: str, allowed: bool) -> None:
        """Whether a consumer creates the durable subscription that it names; else it gets
        SubscriptionNotFound."""
        self._set_creation_policy(target, "auto_subscription_creation", allowed)

    def get_auto_subscription_creation(self, target: str) -> bool | None:
        """What is set at this level; None: nothing."""
        found: bool | None = self._get_creation_policy(target, "auto_subscription_creation")
        return found

    def remove_auto_subscription_creation(self, target: str) -> None:
        self._set_creation_policy(target, "auto_subscription_creation", None)

    def set_subscription_types_enabled(self, target: str, types: Iterable[str]) -> None:
        """Set which of Exclusive, Failover, Shared and Key_Shared consumers may use; with another
        type `subscribe` raises NotAllowedError. Attached consumers stay."""
        if isinstance(types, str):
            raise ValueError("types is a str; give a list of names")
        self._set_creation_policy(target, "subscription_types_enabled", list(types))

    def get_subscription_types_enabled(self, target: str) -> list[str] | None:
        """What is set at this level; None: nothing."""
        found: list[str] | None = self._get_creation_policy(target, "subscription_types_enabled")
        return found

    def remove_subscription_types_enabled(self, target: str) -> None:
        self._set_creation_policy(target, "subscription_types_enabled", None)

    def _set_creation_policy(self, target: str, name: str, value: object) -> None:
        arguments = {self._LEVEL: target, "policy": {name: value}}
        self._channel.perform(f"{self._LEVEL}s.set_policy", arguments)

    def _get_creation_policy(self, target: str, name: str) -> Any:
        arguments = {self._LEVEL: target, "name": name}
        return self._channel.perform(f"{self._LEVEL}s.get_policy", arguments)
