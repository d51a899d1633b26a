"""The backlog quotas, two policies that are told apart by a type: the calls about them that
namespaces and topics of `client.admin` share."""

from __future__ import annotations

from pulsarx.admin.policy_group import PolicyGroup, whole
from pulsarx.broker.policies.quota_types import QUOTA_TYPES, quota_name
from pulsarx.errors import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Made here: a call runs no Python of the broker in its own thread.
_NAMES = {each: quota_name(each) for each in QUOTA_TYPES}


class BacklogQuotas(PolicyGroup):
    """Base of the groups. Quotas are policies as those of `policy_methods`."""

    def set_backlog_quota(
        self,
        target: str,
        limit_size: int = -1,
        limit_time: int = -1,
        policy: str = "producer_request_hold",
        type: str = "destination_storage",
    ) -> None:
        """Limit the backlog of each topic: that of its slowest durable subscription.

        Args:
            target: The namespace, or the topic.
            limit_size: Bytes, of type `destination_storage`; -1: not given.
            limit_time: Seconds that the oldest message is old, of type `message_age`; -1: not
                given.
            policy: `producer_request_hold`: sending waits until there is room, or
                send_timeout_millis are over; `producer_exception`: producers are shut; with these
                no producer can be created. `consumer_backlog_eviction`: the oldest messages are
                acknowledged.
            type: `destination_storage` or `message_age`; a topic may have one of each.

        Raises:
            ValueError: There is no such type or policy, or the limit of the type is not given.
            NotAllowedError: limit_size is not less than what retention keeps.
            TopicNotFound: There is no such namespace, or topic.
            OperationNotSupported: The topic is non-persistent.

        Durability:
            It is on the device when this returns, and takes effect at once.
        """
        value = {
            "limit_size": whole("limit_size", limit_size),
            "limit_time": whole("limit_time", limit_time),
            "policy": policy,
        }
        self._set_policy(target, _quota(type), value)

    def get_backlog_quotas(self, target: str) -> dict[str, dict[str, Any]]:
        """Return {"limit_size", "limit_time", "policy"} by type, as far as they are set here; sizes
        in bytes, times in seconds.

        Args:
            target: The namespace, or the topic.

        Raises:
            TopicNotFound: There is no such namespace, or topic.
        """
        found = {each: self._get_policy(target, name) for each, name in _NAMES.items()}
        return {each: value for each, value in found.items() if value is not None}

    def get_backlog_quota(
        self, target: str, type: str = "destination_storage"
    ) -> dict[str, Any] | None:
        """Return the quota of one type as get_backlog_quotas does; None: it is not set here.

        Args:
            target: The namespace, or the topic.
            type: `destination_storage` or `message_age`.

        Raises:
            ValueError: There is no such type.
            TopicNotFound: There is no such namespace, or topic.
        """
        found: dict[str, Any] | None = self._get_policy(target, _quota(type))
        return found

    def remove_backlog_quota(self, target: str, type: str = "destination_storage") -> None:
        """Take back the quota that was set here: the level above applies again.

        Args:
            target: The namespace, or the topic.
            type: `destination_storage` or `message_age`.

        Raises:
            ValueError: There is no such type.
            TopicNotFound: There is no such namespace, or topic.

        Durability:
            It is on the device when this returns, and takes effect at once.
        """
        self._remove_policy(target, _quota(type))


def _quota(type: str) -> str:
    if type not in QUOTA_TYPES:
        raise ValueError(f"type must be {' or '.join(QUOTA_TYPES)}, not {shown(type)}")
    return _NAMES[type]
