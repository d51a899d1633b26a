"""The types of backlog quotas. Those who declare or carry policies need no more of them."""

from __future__ import annotations

DESTINATION_STORAGE, MESSAGE_AGE = "destination_storage", "message_age"
# The field of a quota that each needs.
QUOTA_LIMITS = {DESTINATION_STORAGE: "limit_size", MESSAGE_AGE: "limit_time"}
QUOTA_TYPES = tuple(QUOTA_LIMITS)


def quota_name(kind: str) -> str:
    """The name of the policy that holds the quota of a type."""
    return f"backlog_quota_{kind}"
