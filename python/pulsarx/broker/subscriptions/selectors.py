"""The selector of a subscription: kept as one of its properties, as clients of JMS give it."""

from __future__ import annotations

import logging

from pulsarx import errors
from pulsarx._pycore.message.message_filter import SELECTOR_PROPERTY, MessageFilter

_log = logging.getLogger("pulsarx")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsarx.broker.subscriptions.subscribe_request import SubscribeRequest


def selector_of(properties: Mapping[str, str] | None) -> str:
    """The selector among properties of a subscription; empty: there is none."""
    found = (properties or {}).get(SELECTOR_PROPERTY, "")
    return found if found.strip() else ""


def filter_of(properties: Mapping[str, str] | None) -> MessageFilter | None:
    """The filter that properties of a subscription ask for; None: none. InvalidConfiguration: the
    selector is wrong."""
    selector = selector_of(properties)
    return MessageFilter(selector, SELECTOR_PROPERTY) if selector else None


def check_agrees(topic: str, properties: Mapping[str, str], request: SubscribeRequest) -> None:
    """NotAllowedError: the request wants another selector than the subscription has, which all its
    consumers share."""
    name = request.subscription_name
    wanted = selector_of(request.subscription_properties)
    if not wanted:
        return
    kept = selector_of(properties)
    if wanted == kept:
        return
    if request.takes_any_selector:
        _log.warning(
            "a consumer of subscription %s of %s gave the selector %.300r; the subscription keeps "
            "its own: %.300r",
            name,
            topic,
            wanted,
            kept,
        )
        return
    has = f"the selector {kept!r:.300}" if kept else "properties without a selector"
    raise errors.NotAllowedError(
        detail=f"subscribe to {topic} with the selector {wanted!r:.300}: subscription {name} has "
        f"{has}; change it by client.admin.topics.update_subscription_properties, or give the same "
        "one or none"
    )
