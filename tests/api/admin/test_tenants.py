"""Facts about tenants and namespaces: creating, looking, deleting; names of any kind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from child_process import ChildProcess
from topic_reading import OpenClient, whole_topic

import pulsarx
from pulsarx import errors
from pulsarx.admin import Admin


def test_a_tenant_is_created_with_what_is_known_of_it(open_client: OpenClient) -> None:
    tenants = open_client().admin.tenants
    tenants.create_tenant("acme", admin_roles=["b", "a", "a"], allowed_clusters=["standalone"])
    assert tenants.get_tenants() == ["acme", "public", "pulsar"]
    info = {"admin_roles": ["a", "b"], "allowed_clusters": ["standalone"]}
    assert tenants.get_tenant_info("acme") == info
    tenants.update_tenant("acme", admin_roles=["c"])
    assert tenants.get_tenant_info("acme") == {"admin_roles": ["c"], "allowed_clusters": []}


def test_a_tenant_outlives_its_owner(open_client: OpenClient) -> None:
    with open_client() as client:
        client.admin.tenants.create_tenant("acme", ["a"])
        client.admin.tenants.update_tenant("acme", ["b"])
        client.admin.tenants.create_tenant("gone")
        client.admin.tenants.delete_tenant("gone")
    tenants = open_client().admin.tenants
    assert tenants.get_tenants() == ["acme", "public", "pulsar"]
    assert tenants.get_tenant_info("acme")["admin_roles"] == ["b"]


def test_a_tenant_is_created_once(open_client: OpenClient) -> None:
    tenants = open_client().admin.tenants
    tenants.create_tenant("acme")
    with pytest.raises(errors.NotAllowedError, match="exists already"):
        tenants.create_tenant("acme")


def test_the_tenant_of_system_topics_is_reserved(open_client: OpenClient) -> None:
    with pytest.raises(errors.NotAllowedError, match="system"):
        open_client().admin.tenants.create_tenant("pulsar")


@pytest.mark.parametrize("name", ["a/b", "a b", "..", "é", "a\n", "x" * 40_000])
def test_a_name_that_is_none_is_refused(open_client: OpenClient, name: str) -> None:
    admin = open_client().admin
    with pytest.raises((errors.InvalidTopicName, ValueError)):
        admin.tenants.create_tenant(name)
    with pytest.raises((errors.InvalidTopicName, ValueError)):
        admin.namespaces.create_namespace(f"public/{name}")
    assert admin.tenants.get_tenants() == ["public", "pulsar"]
    assert admin.namespaces.get_namespaces() == ["public/default"]


@pytest.mark.parametrize("name", ["public", "a/b/c", "/x", "x/"])
def test_a_namespace_has_two_parts(open_client: OpenClient, name: str) -> None:
    with pytest.raises(errors.InvalidTopicName):
        open_client().admin.namespaces.create_namespace(name)


def test_what_is_not_there_is_told(open_client: OpenClient) -> None:
    admin = open_client().admin
    for call in (
        lambda: admin.tenants.get_tenant_info("none"),
        lambda: admin.tenants.update_tenant("none"),
        lambda: admin.tenants.delete_tenant("none"),
        lambda: admin.namespaces.get_namespaces("none"),
        lambda: admin.namespaces.create_namespace("none/ns"),
        lambda: admin.namespaces.delete_namespace("public/none"),
        lambda: admin.namespaces.get_topics("public/none"),
        lambda: admin.namespaces.get_policies("public/none"),
    ):
        with pytest.raises(errors.TopicNotFound):
            call()


def test_a_namespace_holds_topics(open_client: OpenClient) -> None:
    client = open_client()
    client.admin.tenants.create_tenant("acme")
    client.admin.namespaces.create_namespace("acme/orders")
    client.create_producer("acme/orders/new").send(b"1")
    client.admin.topics.create_partitioned_topic("acme/orders/parts", 2)
    assert client.admin.namespaces.get_topics("acme/orders") == [
        "persistent://acme/orders/new",
        "persistent://acme/orders/parts-partition-0",
        "persistent://acme/orders/parts-partition-1",
    ]
    assert client.admin.namespaces.get_topics("public/default") == []
    assert client.admin.namespaces.get_namespaces("acme") == ["acme/orders"]


def test_a_tenant_whose_name_begins_alike_is_another_one(open_client: OpenClient) -> None:
    client = open_client()
    client.admin.tenants.create_tenant("a")
    client.admin.tenants.create_tenant("ab")
    client.admin.namespaces.create_namespace("ab/n")
    client.admin.namespaces.create_namespace("ab/nn")
    client.create_producer("ab/nn/t").close()
    assert client.admin.namespaces.get_namespaces("a") == []
    client.admin.tenants.delete_tenant("a")
    client.admin.namespaces.delete_namespace("ab/n")
    assert client.admin.namespaces.get_topics("ab/nn") == ["persistent://ab/nn/t"]


def test_a_tenant_with_namespaces_stays(open_client: OpenClient) -> None:
    admin = open_client().admin
    admin.tenants.create_tenant("acme")
    admin.namespaces.create_namespace("acme/orders")
    with pytest.raises(errors.NotAllowedError, match="1 namespaces"):
        admin.tenants.delete_tenant("acme")
    admin.namespaces.delete_namespace("acme/orders")
    admin.tenants.delete_tenant("acme")
    assert admin.tenants.get_tenants() == ["public", "pulsar"]


def test_a_namespace_with_topics_stays(open_client: OpenClient) -> None:
    client = open_client()
    client.create_producer("t").close()
    with pytest.raises(errors.NotAllowedError, match="1 topics"):
        client.admin.namespaces.delete_namespace("public/default")
    assert client.admin.namespaces.get_topics("public/default") == ["persistent://public/default/t"]


def test_a_tenant_is_deleted_by_force_with_everything_in_it(open_client: OpenClient) -> None:
    client = open_client()
    client.admin.tenants.create_tenant("acme")
    for namespace in ("acme/a", "acme/b"):
        client.admin.namespaces.create_namespace(namespace)
        client.create_producer(f"{namespace}/t").send(b"1")
    client.create_producer("stays").send(b"1")
    client.admin.tenants.delete_tenant("acme", force=True)
    assert client.admin.tenants.get_tenants() == ["public", "pulsar"]
    for ask in (client.admin.topics.get_list, client.admin.topics.get_partitioned_topic_list):
        with pytest.raises(errors.TopicNotFound, match="no namespace acme/a"):
            ask("acme/a")
    with pytest.raises(errors.TopicNotFound, match="no namespace"):
        client.create_producer("acme/a/t")
    assert whole_topic(client, "stays") == [b"1"]


def test_a_namespace_that_is_created_again_begins_without_policies(
    open_client: OpenClient,
) -> None:
    namespaces = open_client().admin.namespaces
    namespaces.create_namespace("public/x")
    namespaces.set_retention("public/x", 5, 5)
    assert namespaces.get_policies("public/x") == {"retention": {"time_minutes": 5, "size_mb": 5}}
    namespaces.delete_namespace("public/x")
    namespaces.create_namespace("public/x")
    assert namespaces.get_policies("public/x") == {}
    assert namespaces.get_retention("public/x") is None


def test_a_read_only_client_reads_and_changes_nothing(
    open_client: OpenClient, folder: Path
) -> None:
    owner = open_client()
    owner.admin.tenants.create_tenant("acme")
    program = """
import sys, pulsarx
from pulsarx import errors
with pulsarx.Client(sys.argv[1], read_only=True) as client:
    admin = client.admin
    print(admin.tenants.get_tenants(), admin.tenants.get_tenant_info("acme"))
    print(admin.namespaces.get_namespaces(), admin.namespaces.get_topics("public/default"))
    for call in (
        lambda: admin.tenants.create_tenant("x"), lambda: admin.tenants.delete_tenant("acme"),
        lambda: admin.namespaces.create_namespace("acme/x"), lambda: admin.topics.delete("t"),
    ):
        try:
            call()
        except errors.OperationNotSupported:
            print("refused")
"""
    with ChildProcess(program, folder) as child:
        assert child.end() == [
            "['acme', 'public', 'pulsar'] {'admin_roles': [], 'allowed_clusters': []}",
            "['public/default'] []",
            *["refused"] * 4,
        ]


def test_another_process_administers_through_the_owner(
    open_client: OpenClient, folder: Path
) -> None:
    owner = open_client()
    program = """
import sys
from pulsarx.admin import Admin
admin = Admin.at(sys.argv[1])
admin.tenants.create_tenant("acme", ["a"])
admin.namespaces.create_namespace("acme/orders")
"""
    with ChildProcess(program, folder) as child:
        child.end()
    assert owner.admin.tenants.get_tenant_info("acme")["admin_roles"] == ["a"]
    owner.create_producer("acme/orders/t").send(b"1")
    owner.close()
    Admin.at(folder).tenants.delete_tenant("acme", force=True)
    assert open_client().admin.tenants.get_tenants() == ["public", "pulsar"]


ODD_NAMES = [
    "..", ".", "a.b", "*", "a\\b", "con", "CON", "Con", "a:b|c?<>", "é", "e\u0301", "😀",
    "%2F", "-partition-", "x" * 3000, "ledgers", "PULSARX", "-rf", "~", "$HOME", "a\u202eb",
]  # fmt: skip


def test_any_name_a_user_may_choose_has_files_of_its_own(
    open_client: OpenClient, folder: Path
) -> None:
    """No name becomes the name of a file: neither odd characters nor length nor case matter."""
    with open_client() as client:
        for number, name in enumerate(ODD_NAMES):
            with client.create_producer(f"public/default/{name}") as producer:
                producer.send(b"%d" % number)
            client.subscribe(f"public/default/{name}", name).close()
    client = open_client()
    for number, name in enumerate(ODD_NAMES):
        assert whole_topic(client, f"public/default/{name}") == [b"%d" % number]
        assert client.admin.topics.get_subscriptions(f"public/default/{name}") == [name]
    found = {each.name for each in folder.rglob("*") if each.is_file()}
    assert all(each.isascii() and len(each) < 40 for each in found)
    for name in ODD_NAMES:
        client.admin.topics.delete(f"public/default/{name}", force=True)
    assert client.admin.topics.get_list() == []


@pytest.mark.standard
def test_tenants_come_and_go_beside_topics(open_client: OpenClient) -> None:
    """A namespace is deleted while topics are created in it: each is there with its namespace, or
    neither is."""
    import threading

    client = open_client()
    client.admin.tenants.create_tenant("acme")
    failures: list[BaseException] = []
    ended = threading.Event()

    def publish() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            try:
                client.create_producer(f"acme/n/t{number}").send(b"1")
            except (errors.TopicNotFound, errors.AlreadyClosed):
                pass
            except BaseException as error:
                failures.append(error)
                return

    threads = [threading.Thread(target=publish) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(8):
        client.admin.namespaces.create_namespace("acme/n")
        client.admin.namespaces.delete_namespace("acme/n", force=True)
        with pytest.raises(errors.TopicNotFound):
            client.admin.topics.get_list("acme/n")
    ended.set()
    for thread in threads:
        thread.join()
    assert not failures
    assert isinstance(client, pulsarx.Client)


def test_a_namespace_is_deleted_while_topics_are_created_elsewhere(
    open_client: OpenClient,
) -> None:
    """The names of all topics were walked while others were added to them: RuntimeError."""
    from pulsarx.testing import inspect

    client = open_client()
    client.admin.namespaces.create_namespace("public/gone")
    client.create_producer("public/gone/t").close()
    created: list[str] = []

    class Name(str):
        """The name of a topic that is looked at while another one is created."""

        def partition(self, separator: str) -> tuple[str, str, str]:
            if not created:
                created.append("meanwhile")
                client.create_producer("meanwhile").close()
            return super().partition(separator)

    topics = inspect(client).catalogue.state.topics
    for name in list(topics):
        topics[Name(name)] = topics.pop(name)
    client.admin.namespaces.delete_namespace("public/gone", force=True)
    assert created
    assert client.admin.topics.get_list() == ["persistent://public/default/meanwhile"]


@pytest.mark.parametrize("topic", ["acme/shop/orders", "non-persistent://acme/shop/orders"])
def test_a_namespace_that_is_missing_is_told_with_what_makes_it(
    open_client: OpenClient, topic: str
) -> None:
    client = open_client()
    said = "there is no namespace acme/shop; create it before: .*--namespace acme/shop"
    for call in (
        lambda: client.create_producer(topic),
        lambda: client.subscribe(topic, "s"),
        lambda: client.create_reader(topic, pulsarx.MessageId.earliest),
    ):
        with pytest.raises(errors.TopicNotFound) as raised:
            call()
        assert re.search(said, str(raised.value.detail))
