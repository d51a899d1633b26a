"""Facts about permissions: what is granted, shown and taken back, and what outlives what."""

from __future__ import annotations

from pathlib import Path

import pytest

import pulsarx
from pulsarx import errors

NAMESPACE = "public/default"


def test_grants_are_shown_and_replace_each_other(client: pulsarx.Client) -> None:
    namespaces, topics = client.admin.namespaces, client.admin.topics
    assert namespaces.get_permissions(NAMESPACE) == {}
    namespaces.grant_permission_on_namespace(NAMESPACE, "alice", ["produce", "consume", "produce"])
    namespaces.grant_permission_on_namespace(NAMESPACE, "bob", ["consume"])
    topics.grant_permission("t", "bob", ["produce"])
    namespaces.grant_permission_on_namespace(NAMESPACE, "alice", ["produce"])
    assert namespaces.get_permissions(NAMESPACE) == {"alice": ["produce"], "bob": ["consume"]}
    assert topics.get_permissions("t") == {"alice": ["produce"], "bob": ["consume", "produce"]}
    assert topics.get_permissions("u") == namespaces.get_permissions(NAMESPACE)


def test_what_is_taken_back_is_gone(client: pulsarx.Client) -> None:
    namespaces, topics = client.admin.namespaces, client.admin.topics
    namespaces.grant_permission_on_namespace(NAMESPACE, "alice", ["produce"])
    topics.grant_permission("t", "alice", ["consume"])
    namespaces.revoke_permissions_on_namespace(NAMESPACE, "alice")
    namespaces.revoke_permissions_on_namespace(NAMESPACE, "nobody")
    assert topics.get_permissions("t") == {"alice": ["consume"]}
    topics.revoke_permissions("t", "alice")
    assert topics.get_permissions("t") == {}
    with pytest.raises(errors.NotAllowedError, match="alice"):
        topics.revoke_permissions("t", "alice")
    assert namespaces.get_policies(NAMESPACE) == {}  # nothing empty is left


def test_partitions_have_what_their_topic_has(client: pulsarx.Client) -> None:
    topics = client.admin.topics
    topics.grant_permission("t", "alice", ["produce"])
    topics.grant_permission("t-partition-1", "bob", ["consume"])
    assert topics.get_permissions("t-partition-1") == {"alice": ["produce"], "bob": ["consume"]}
    assert topics.get_permissions("t-partition-0") == {"alice": ["produce"]}


def test_a_topic_takes_its_permissions_with_it(client: pulsarx.Client) -> None:
    """Who makes a topic of the same name again would have let the old one's users in."""
    topics = client.admin.topics
    topics.create_non_partitioned_topic("t")
    topics.create_partitioned_topic("p", 2)
    client.admin.namespaces.grant_permission_on_namespace(NAMESPACE, "alice", ["consume"])
    for each in ("t", "p", "p-partition-0", "kept"):
        topics.grant_permission(each, "bob", ["produce"])
    topics.delete("t")
    topics.delete_partitioned_topic("p")
    for each in ("t", "p", "p-partition-0"):
        assert topics.get_permissions(each) == {"alice": ["consume"]}
    assert topics.get_permissions("kept") == {"alice": ["consume"], "bob": ["produce"]}


def test_a_namespace_takes_its_permissions_with_it(client: pulsarx.Client) -> None:
    namespaces, topics = client.admin.namespaces, client.admin.topics
    client.admin.tenants.create_tenant("acme")
    namespaces.create_namespace("acme/a")
    topics.create_non_partitioned_topic("acme/a/t")
    topics.grant_permission("acme/a/t", "bob", ["produce"])
    namespaces.delete_namespace("acme/a", force=True)
    for ask in (
        lambda: namespaces.get_permissions("acme/a"),
        lambda: topics.get_permissions("acme/a/t"),
    ):
        with pytest.raises(errors.TopicNotFound):
            ask()
    namespaces.create_namespace("acme/a")
    assert topics.get_permissions("acme/a/t") == {}


def test_permissions_outlive_the_process(tmp_path: Path) -> None:
    with pulsarx.Client(str(tmp_path)) as client:
        client.admin.topics.grant_permission("t", "alice", ["produce"])
    with pulsarx.Client(str(tmp_path), read_only=True) as client:
        assert client.admin.topics.get_permissions("t") == {"alice": ["produce"]}
        with pytest.raises(errors.OperationNotSupported):
            client.admin.topics.revoke_permissions("t", "alice")


@pytest.mark.parametrize(
    ("role", "actions", "kind"),
    [
        ("", ["produce"], ValueError),
        (" ", ["produce"], ValueError),
        ("a\nb", ["produce"], ValueError),
        ("a" * 1025, ["produce"], ValueError),
        ("a", [], ValueError),
        ("a", "produce", ValueError),
        ("a", ["Produce"], ValueError),
        ("a", [1], ValueError),
        ("a", [["produce"]], ValueError),
        ("a", ["produce", "functions"], errors.OperationNotSupported),
    ],
)
def test_what_cannot_be_granted_is_refused(
    client: pulsarx.Client, role: str, actions: list[str], kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        client.admin.namespaces.grant_permission_on_namespace(NAMESPACE, role, actions)
    with pytest.raises(kind):
        client.admin.topics.grant_permission("t", role, actions)
    assert client.admin.topics.get_permissions("t") == {}
