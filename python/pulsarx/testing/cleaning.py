"""Empties a broker that several tests share."""

from __future__ import annotations

from pulsarx import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx.admin import Admin
    from pulsarx.client import Client


def clean(client: Client, *namespaces: str) -> None:
    """Empty namespaces: delete the topics that nobody uses, with their subscriptions. A topic that
    has a producer, consumer or reader stays with those, and loses its messages and the
    subscriptions without a consumer. Namespaces stay, and so do their policies.

    Args:
        client: A client of the broker.
        *namespaces: Their names, `tenant/namespace`; none: all.
    """
    admin = client.admin
    for namespace in namespaces or _all_namespaces(admin):
        parted = admin.topics.get_partitioned_topic_list(namespace)
        for name in parted:
            _delete_or_empty(admin, name, admin.topics.delete_partitioned_topic)
        for name in admin.topics.get_list(namespace):
            if not any(name.startswith(f"{each}-partition-") for each in parted):
                _delete_or_empty(admin, name, admin.topics.delete)


def _all_namespaces(admin: Admin) -> list[str]:
    return [
        namespace
        for tenant in admin.tenants.get_tenants()
        for namespace in admin.namespaces.get_namespaces(tenant)
    ]


def _delete_or_empty(admin: Admin, topic: str, delete: Callable[[str], object]) -> None:
    try:
        delete(topic)
    except errors.TopicNotFound:
        pass  # an inactive one went meanwhile
    except errors.NotAllowedError:
        if topic.startswith("persistent://"):
            admin.topics.truncate(topic)
        for name in admin.topics.get_subscriptions(topic):
            try:
                admin.topics.delete_subscription(topic, name)
            except (errors.NotAllowedError, errors.SubscriptionNotFound):
                pass  # it has consumers
