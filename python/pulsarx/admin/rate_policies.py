"""The policies about how fast messages are published and dispatched, and how often consumers
subscribe: what both groups of `client.admin` have."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.admin.channel import Channel


class RatePolicies:
    """Base of the groups. A topic's policy wins over its namespace's, that over BrokerOptions; each
    partition of a topic has the whole rate. A change takes effect at once, for open producers and
    consumers too, and is durable on return. A get_ call returns what is set at this level; None:
    nothing. Topics whose own name begins with two underscores have none of these policies.

    As long as a period has permits left, an entry (a message, or a batch) passes as a whole; what
    it takes in excess is subtracted from the periods that follow. Permits that a period does not
    use are lost."""

    _channel: Channel
    _LEVEL: str  # what the verbs call the level: namespace or topic

    # Dispatch -------------------------------------------------------------------------------------

    def set_dispatch_rate(
        self,
        target: str,
        msgs: int = -1,
        bytes: int = -1,
        period_seconds: int = 1,
        relative_to_publish_rate: bool = False,
    ) -> None:
        """How many messages and bytes each topic dispatches in a period, to all subscriptions and
        readers together, redeliveries included; consumers wait for the next one. 0, -1: without
        limit.

        relative_to_publish_rate: the publish rate of the topic, averaged over the last minute, is
        added.
        """
        value = _dispatch(msgs, bytes, period_seconds, relative_to_publish_rate)
        self._set_rate(target, "dispatch_rate", value)

    def get_dispatch_rate(self, target: str) -> dict[str, Any] | None:
        """{"msgs", "bytes", "period_seconds", "relative_to_publish_rate"}."""
        return self._get_rate(target, "dispatch_rate")

    def remove_dispatch_rate(self, target: str) -> None:
        self._set_rate(target, "dispatch_rate", None)

    def set_subscription_dispatch_rate(
        self,
        target: str,
        msgs: int = -1,
        bytes: int = -1,
        period_seconds: int = 1,
        relative_to_publish_rate: bool = False,
    ) -> None:
        """Like set_dispatch_rate, for each subscription and each reader. The rate of the topic
        applies as well."""
        value = _dispatch(msgs, bytes, period_seconds, relative_to_publish_rate)
        self._set_rate(target, "subscription_dispatch_rate", value)

    def get_subscription_dispatch_rate(self, target: str) -> dict[str, Any] | None:
        """Return the rate in the form of get_dispatch_rate."""
        return self._get_rate(target, "subscription_dispatch_rate")

    def remove_subscription_dispatch_rate(self, target: str) -> None:
        self._set_rate(target, "subscription_dispatch_rate", None)

    # Publishing -----------------------------------------------------------------------------------

    def set_publish_rate(self, target: str, msgs: int = -1, bytes: int = -1) -> None:
        """How many messages and bytes all producers of a topic publish in a second. Above it
        sending waits, send_async too, until send_timeout_millis are over. 0, -1: without limit.

        Dead and retry letters, and what a callback of send_async sends, do not wait; they are
        counted, and others wait for them. It applies to non-persistent topics too.
        """
        value = {"msgs": _integer("msgs", msgs), "bytes": _integer("bytes", bytes)}
        self._set_rate(target, "publish_rate", value)

    def get_publish_rate(self, target: str) -> dict[str, Any] | None:
        """{"msgs", "bytes"}."""
        return self._get_rate(target, "publish_rate")

    def remove_publish_rate(self, target: str) -> None:
        self._set_rate(target, "publish_rate", None)

    # Subscribing ----------------------------------------------------------------------------------

    def set_subscribe_rate(self, target: str, per_consumer: int = 0, period: int = 30) -> None:
        """Set how often consumers of one name may subscribe to a topic in that many seconds: one
        time more raises NotAllowedError. 0: without limit. Readers are not counted."""
        value = {
            "per_consumer": _integer("per_consumer", per_consumer),
            "period_seconds": _integer("period", period),
        }
        self._set_rate(target, "subscribe_rate", value)

    def get_subscribe_rate(self, target: str) -> dict[str, Any] | None:
        """{"per_consumer", "period_seconds"}."""
        return self._get_rate(target, "subscribe_rate")

    def remove_subscribe_rate(self, target: str) -> None:
        self._set_rate(target, "subscribe_rate", None)

    def _set_rate(self, target: str, name: str, value: object) -> None:
        arguments = {self._LEVEL: target, "policy": {name: value}}
        self._channel.perform(f"{self._LEVEL}s.set_policy", arguments)

    def _get_rate(self, target: str, name: str) -> dict[str, Any] | None:
        arguments = {self._LEVEL: target, "name": name}
        found: dict[str, Any] | None = self._channel.perform(
            f"{self._LEVEL}s.get_policy", arguments
        )
        return found


def _dispatch(msgs: int, size: int, period_seconds: int, relative: bool) -> dict[str, Any]:
    if not isinstance(relative, bool):
        raise ValueError(f"relative_to_publish_rate must be a bool, not {type(relative).__name__}")
    return {
        "msgs": _integer("msgs", msgs),
        "bytes": _integer("bytes", size),
        "period_seconds": _integer("period_seconds", period_seconds),
        "relative_to_publish_rate": relative,
    }


def _integer(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name} must be an int, not {type(value).__name__}")
    return value
