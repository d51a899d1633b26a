"""The groups of the command line, in pulsar-admin's grammar."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from pathlib import Path

import click
import pytest
from command_line import invoke, rows

import pulsarx
from pulsarx.cli.commands import COMMANDS
from pulsarx.cli.root import root
from pulsarx.clock import wall_ms

ORDERS = "persistent://public/default/orders"
DEAD = "persistent://public/default/orders-billing-DLQ"


def all_commands() -> list[list[str]]:
    context = click.Context(root)
    found = []
    for name, (place, _) in COMMANDS.items():
        if ":" not in place:
            continue
        command = root.get_command(context, name)
        assert command is not None
        below = command.list_commands(context) if isinstance(command, click.Group) else []
        found += [[name], *([name, each] for each in below)]
    return found


@pytest.mark.parametrize("path", all_commands(), ids=" ".join)
def test_help_says_what_a_command_does_and_gives_an_example_that_is_understood(
    path: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    shown = invoke("nowhere", *path, "--help")
    assert shown.exit_code == 0
    assert "--url" in shown.stdout
    command: click.Command = root
    for name in path:
        found = command.get_command(click.Context(command), name)  # type: ignore[attr-defined]
        assert found is not None
        command = found
    if isinstance(command, click.Group):
        return
    assert command.help
    [example] = re.findall(r"Example:\n +pulsarx (.*)\n", shown.stdout)
    monkeypatch.chdir(tmp_path)
    Path("order.json").write_text('{"type": "STRING", "schema": ""}')
    understood = invoke("missing", *shlex.split(example.partition(" > ")[0]))
    if path == ["init"]:
        assert json.loads(understood.stdout)["made"] is True
    elif path in (["salvage"], ["forward"], ["fetch"]):  # they name their folder
        assert "events does not exist" in understood.stderr
    elif path == ["sql"]:
        needed = importlib.util.find_spec("duckdb")
        assert ("missing does not exist" if needed else "pulsarx[sql]") in understood.stderr
    else:
        assert "missing does not exist" in understood.stderr


def test_topics_are_made_listed_and_deleted(folder: Path):
    rows(invoke(folder, "topics", "create", "t"))
    rows(invoke(folder, "topics", "create-partitioned-topic", "p", "-p", "2"))
    assert invoke(folder, "topics", "create", "t").exit_code == 1
    prefix = "persistent://public/default"
    assert [each["topic"] for each in rows(invoke(folder, "topics", "list", "public/default"))] == [
        ORDERS,
        DEAD,
        f"{prefix}/p-partition-0",
        f"{prefix}/p-partition-1",
        f"{prefix}/t",
    ]
    assert rows(invoke(folder, "ls", "public/default"))[2] == {
        "topic": f"{prefix}/p",
        "partitions": 2,
    }
    assert not rows(invoke(folder, "topics", "list", "-td", "non_persistent"))
    found = rows(invoke(folder, "topics", "list-partitioned-topics"))
    assert found == [{"topic": f"{prefix}/p"}]
    rows(invoke(folder, "topics", "update-partitioned-topic", "p", "-p", "3"))
    found = rows(invoke(folder, "topics", "get-partitioned-topic-metadata", "p"))
    assert found == [{"partitions": 3}]
    rows(invoke(folder, "topics", "delete-partitioned-topic", "p"))
    rows(invoke(folder, "topics", "delete", "t"))
    assert [each["topic"] for each in rows(invoke(folder, "ls"))] == [ORDERS, DEAD]


def test_a_partition_is_named_where_one_is_meant(folder: Path):
    rows(invoke(folder, "topics", "create-partitioned-topic", "p", "-p", "2"))
    rows(invoke(folder, "subscriptions", "create", "p", "-s", "s"))
    rows(invoke(folder, "produce", "p", "-m", "a,b,c,d", "-db"))
    assert invoke(folder, "peek", "p", "-s", "s").exit_code == 1
    assert len(rows(invoke(folder, "peek", "p-partition-1", "-s", "s", "-n", "9"))) == 2
    [found] = rows(invoke(folder, "stats", "p"))
    assert (found["messages"], len(found["partitions"])) == (4, 2)
    [found] = rows(invoke(folder, "topics", "partitioned-stats", "p"))
    assert "partitions" not in found
    [found] = rows(invoke(folder, "topics", "partitioned-stats", "p", "--per-partition"))
    assert len(found["partitions"]) == 2
    listed = {each["topic"]: each for each in rows(invoke(folder, "stats"))}
    assert listed["persistent://public/default/p"]["messages"] == 4
    assert listed[ORDERS]["subscriptions"] == 1


def test_topics_that_keep_no_messages_are_listed(folder: Path):
    np = "non-persistent://public/default/np"
    rows(invoke(folder, "topics", "create-partitioned-topic", np, "-p", "2"))
    assert {"topic": np, "partitions": 2} in rows(invoke(folder, "ls"))
    [found] = [each for each in rows(invoke(folder, "stats")) if each["topic"] == np]
    assert (found["partitions"], found["messages"]) == (2, None)
    assert invoke(folder, "stats", np).exit_code == 1
    with pulsarx.Client(folder) as client:
        client.subscribe(np, "s")
        [found] = [each for each in rows(invoke(folder, "stats")) if each["topic"] == np]
        assert (found["messages"], found["subscriptions"]) == (0, 1)


def test_names_in_errors_move_no_cursor(folder: Path):
    result = invoke(folder, "peek", "orders", "-s", "a\x1b[2J\nb")
    assert result.exit_code == 1
    assert "a\\x1b[2J\\nb" in result.stderr
    assert "\x1b" not in result.stderr


def test_subscriptions_are_made_listed_and_deleted(folder: Path):
    rows(invoke(folder, "subscriptions", "create", "orders", "-s", "a", "-m", "earliest"))
    rows(invoke(folder, "topics", "create-subscription", "orders", "-s", "b"))
    found = rows(invoke(folder, "subscriptions", "list", "orders"))
    assert [each["subscription"] for each in found] == ["a", "b", "billing"]
    assert rows(invoke(folder, "topics", "peek-messages", "orders", "-s", "a"))
    assert not rows(invoke(folder, "subscriptions", "peek", "orders", "-s", "b"))
    rows(invoke(folder, "topics", "unsubscribe", "orders", "-s", "a"))
    rows(invoke(folder, "subscriptions", "delete", "orders", "-s", "b"))
    assert invoke(folder, "peek", "orders", "-s", "a").exit_code == 1
    rows(invoke(folder, "topics", "expire-messages", "orders", "-s", "billing", "-t", "1h"))
    assert rows(invoke(folder, "peek", "orders", "-s", "billing"))


def test_delayed_messages_are_listed_and_cancelled(folder: Path):
    rows(invoke(folder, "subscriptions", "create", "orders", "-s", "audit"))
    due = wall_ms() + 3_600_000
    with pulsarx.Client(folder) as client, client.create_producer("orders") as producer:
        ids = [producer.send(b"late", deliver_at=due).to_text() for _ in range(3)]
    delayed = ("subscriptions", "delayed", "orders", "-s", "audit")
    listed = [{"message_id": each, "deliver_at": due} for each in ids]
    assert rows(invoke(folder, *delayed)) == listed
    assert rows(invoke(folder, *delayed, "-n", "1", "-b", ids[0])) == listed[1:2]
    cancel = ("subscriptions", "cancel", "orders", "-m")
    assert rows(invoke(folder, *cancel, ids[0], "-s", "audit")) == [{"subscription": "audit"}]
    both = [{"subscription": "audit"}, {"subscription": "billing"}]
    assert rows(invoke(folder, *cancel, ids[1])) == both
    assert rows(invoke(folder, *delayed)) == listed[2:]
    again = invoke(folder, *cancel, ids[1])
    assert again.exit_code == 1
    assert "for audit it is acknowledged already" in again.stderr


def test_messages_are_found_by_index_and_id(folder: Path):
    [found] = rows(invoke(folder, "topics", "get-message-id-by-index", "orders", "-i", "3"))
    place = found["message_id"]
    [message] = rows(invoke(folder, "topics", "get-message-by-id", "orders", "-m", place))
    assert (message["message_id"], message["data"]) == (place, "order 3")
    gone = invoke(folder, "topics", "get-message-by-id", "orders", "-m", "999:0")
    assert (gone.exit_code, "has no message 999:0" in gone.stderr) == (1, True)
    gone = invoke(folder, "topics", "get-message-id-by-index", "orders", "-i", "5")
    assert (gone.exit_code, "indexes from 0 to 4" in gone.stderr) == (1, True)


def test_a_terminated_topic_takes_no_more(folder: Path):
    [last] = rows(invoke(folder, "topics", "last-message-id", "orders"))
    assert rows(invoke(folder, "topics", "terminate", "orders")) == [last]
    result = invoke(folder, "produce", "orders", "-m", "more")
    assert result.exit_code == 1
    assert "TopicTerminated" in result.stderr


def test_compaction_on_a_free_folder_is_done_when_the_command_ends(folder: Path):
    """It used to be given up with the request."""
    for each in ("a", "b"):
        rows(invoke(folder, "produce", "orders", "-m", each, "-k", "key-0"))
    rows(invoke(folder, "topics", "compact", "orders"))
    [found] = rows(invoke(folder, "topics", "compaction-status", "orders"))
    assert found == {"status": "SUCCESS", "last_error": ""}
    [found] = rows(invoke(folder, "topics", "stats", "orders"))
    assert found["compaction"]["compacted_messages"] == 5


@pytest.mark.parametrize("level", ["namespaces", "topics"])
@pytest.mark.parametrize(
    "policy,options,name,value",
    [
        ("retention", "-t 2d -s 10M", "retention", {"time_minutes": 2880, "size_mb": 10}),
        ("retention", "-t -1 -s -1", "retention", {"time_minutes": -1, "size_mb": -1}),
        ("message-ttl", "-ttl 3h", "message_ttl", 10800),
        ("message-ttl", "--messageTTL 90", "message_ttl", 90),
        ("deduplication", "-e", "deduplication", True),
        ("deduplication", "--disable", "deduplication", False),
        ("compaction-threshold", "-t 100M", "compaction_threshold", 100 << 20),
        ("max-consumers-per-subscription", "-c 5", "max_consumers_per_subscription", 5),
        ("max-subscriptions-per-topic", "-m 0", "max_subscriptions_per_topic", 0),
        ("publish-rate", "-m 1000 -b 1M", "publish_rate", {"msgs": 1000, "bytes": 1 << 20}),
        (
            "dispatch-rate",
            "-md 10 -dt 5 -rp",
            "dispatch_rate",
            {"msgs": 10, "bytes": -1, "period_seconds": 5, "relative_to_publish_rate": True},
        ),
        (
            "subscription-dispatch-rate",
            "--byte-dispatch-rate 1M",
            "subscription_dispatch_rate",
            {"msgs": -1, "bytes": 1 << 20, "period_seconds": 1, "relative_to_publish_rate": False},
        ),
        (
            "subscribe-rate",
            "-sr 3 -st 60",
            "subscribe_rate",
            {"per_consumer": 3, "period_seconds": 60},
        ),
        (
            "delayed-delivery",
            "--enable -t 2s -md 1h",
            "delayed_delivery",
            {"active": True, "tick_time_millis": 2000, "max_delivery_delay_in_millis": 3_600_000},
        ),
        (
            "inactive-topic-policies",
            "-e -t 1h -m delete_when_no_subscriptions",
            "inactive_topic_policies",
            {"mode": "delete_when_no_subscriptions", "seconds": 3600, "enabled": True},
        ),
        ("subscription-expiration-time", "-t 60", "subscription_expiration_time", 60),
        (
            "subscription-types-enabled",
            "-t shared,Key_Shared",
            "subscription_types_enabled",
            ["Shared", "Key_Shared"],
        ),
        ("auto-subscription-creation", "-d", "auto_subscription_creation", False),
        ("schema-compatibility-strategy", "-c full", "schema_compatibility_strategy", "FULL"),
        ("schema-validation-enforce", "-e", "schema_validation_enforce", True),
        ("is-allow-auto-update-schema", "-d", "is_allow_auto_update_schema", False),
        (
            "backlog-quota",
            "-l 1G -p producer_exception",
            "backlog_quota",
            {
                "destination_storage": {
                    "limit_size": 1 << 30,
                    "limit_time": -1,
                    "policy": "producer_exception",
                }
            },
        ),
    ],
)
def test_policies_are_set_shown_and_removed(
    folder: Path, level: str, policy: str, options: str, name: str, value: object
):
    target = "orders" if level == "topics" else "public/default"
    getting = "get-backlog-quotas" if policy == "backlog-quota" else f"get-{policy}"
    [before] = rows(invoke(folder, level, getting, target))
    rows(invoke(folder, level, f"set-{policy}", target, *options.split()))
    assert rows(invoke(folder, level, getting, target)) == [{name: value}]
    if level == "namespaces":
        [found] = rows(invoke(folder, "namespaces", "policies", target))
        assert found
    rows(invoke(folder, level, f"remove-{policy}", target))
    assert rows(invoke(folder, level, getting, target)) == [before]


def test_a_namespace_says_how_topics_are_created(folder: Path):
    set_it = "set-auto-topic-creation public/default --enable -t partitioned -n 4"
    rows(invoke(folder, "namespaces", *set_it.split()))
    [found] = rows(invoke(folder, "namespaces", "get-auto-topic-creation", "public/default"))
    assert found["auto_topic_creation"] == {"allowed": True, "type": "partitioned", "partitions": 4}
    rows(invoke(folder, "namespaces", "remove-auto-topic-creation", "public/default"))
    [found] = rows(invoke(folder, "namespaces", "get-auto-topic-creation", "public/default"))
    assert found == {"auto_topic_creation": None}


def test_a_quota_of_an_age_is_removed_by_its_type(folder: Path):
    set_it = "set-backlog-quota orders -t message_age -lt 1h -p consumer_backlog_eviction"
    rows(invoke(folder, "topics", *set_it.split()))
    rows(invoke(folder, "topics", "remove-backlog-quota", "orders"))
    [found] = rows(invoke(folder, "topics", "get-backlog-quotas", "orders"))
    assert found["backlog_quota"]["message_age"]["limit_time"] == 3600
    rows(invoke(folder, "topics", "remove-backlog-quota", "orders", "-t", "message_age"))
    assert rows(invoke(folder, "topics", "get-backlog-quotas", "orders")) == [{"backlog_quota": {}}]


@pytest.mark.parametrize(
    "line",
    [
        "namespaces set-retention public/default -t 90 -s 10M",  # not whole minutes
        "namespaces set-retention public/default -t 1h -s 4097",  # not whole MiB
        "namespaces set-retention public/default -t 1h",
        "topics set-message-ttl orders -ttl 3x",
        "topics set-message-ttl orders -ttl ٣",
        "topics set-deduplication orders -e -d",
        "topics set-delayed-delivery orders",
        "topics set-inactive-topic-policies orders -e -d -t 1h -m delete_when_no_subscriptions",
        "topics set-subscription-types-enabled orders -t Shared,Other",
        "topics set-schema-compatibility-strategy orders -c SOMETIMES",
        "topics set-deduplication orders",
        "topics create-partitioned-topic p -p 0",
        "topics create a/b",
    ],
)
def test_values_that_make_no_sense_are_usage_errors(folder: Path, line: str):
    assert invoke(folder, *line.split()).exit_code == 2


def test_namespaces_and_tenants(folder: Path):
    rows(invoke(folder, "tenants", "create", "acme", "-r", "alice, bob", "-c", "east"))
    rows(invoke(folder, "tenants", "update", "acme", "-r", "carol"))
    expected = {"admin_roles": ["carol"], "allowed_clusters": ["east"]}
    assert rows(invoke(folder, "tenants", "get", "acme")) == [expected]
    rows(invoke(folder, "namespaces", "create", "acme/one"))
    found = rows(invoke(folder, "namespaces", "list", "acme"))
    assert found == [{"namespace": "acme/one"}]
    rows(invoke(folder, "topics", "create", "acme/one/t"))
    found = rows(invoke(folder, "namespaces", "topics", "acme/one"))
    assert found == [{"topic": "persistent://acme/one/t"}]
    assert {"topic": "persistent://acme/one/t", "partitions": 0} in rows(invoke(folder, "ls"))
    assert invoke(folder, "namespaces", "delete", "acme/one").exit_code == 1
    rows(invoke(folder, "namespaces", "delete", "acme/one", "--force"))
    rows(invoke(folder, "tenants", "delete", "acme"))
    assert rows(invoke(folder, "tenants", "list")) == [{"tenant": "public"}, {"tenant": "pulsar"}]


def test_schemas_are_uploaded_shown_and_deleted(folder: Path, tmp_path: Path):
    file = tmp_path / "schema.json"
    definition = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}
    file.write_text(json.dumps({"type": "AVRO", "schema": json.dumps(definition)}))
    assert rows(invoke(folder, "schemas", "upload", "orders", "-f", str(file))) == [{"version": 0}]
    [found] = rows(invoke(folder, "schemas", "get", "orders"))
    assert (found["version"], found["type"]) == (0, "AVRO")
    assert json.loads(found["schema"]) == definition
    assert rows(invoke(folder, "schemas", "get", "orders", "-a")) == [found]
    assert rows(invoke(folder, "schemas", "get", "orders", "-v", "0")) == [found]
    assert invoke(folder, "schemas", "get", "orders", "-v", "1").exit_code == 1
    assert invoke(folder, "schemas", "get", "orders", "-v", "0", "-a").exit_code == 2
    other = json.dumps({"type": "STRING", "schema": ""})
    [told] = rows(invoke(folder, "schemas", "compatibility", "orders", "-f", "-", stdin=other))
    assert told["compatibility"] is False
    assert invoke(folder, "schemas", "upload", "orders", "-f", "-", stdin="[]").exit_code == 2
    rows(invoke(folder, "schemas", "delete", "orders"))
    assert invoke(folder, "schemas", "get", "orders").exit_code == 1


def test_permissions_of_subscriptions_are_granted_shown_and_taken_back(folder: Path):
    def of_namespace(verb: str, *arguments: str) -> list[dict]:
        return rows(invoke(folder, "namespaces", verb, "public/default", *arguments))

    of_namespace("grant-subscription-permission", "-s", "billing", "-rs", "alice, bob")
    assert of_namespace("subscription-permission") == [
        {"subscription": "billing", "roles": ["alice", "bob"]}
    ]
    of_namespace("revoke-subscription-permission", "--subscription=billing", "--role=bob")
    assert of_namespace("subscription-permission") == [
        {"subscription": "billing", "roles": ["alice"]}
    ]
    of_namespace("set-subscription-auth-mode", "-m", "Prefix")
    assert of_namespace("get-subscription-auth-mode") == [{"subscription_auth_mode": "Prefix"}]
    wrong = ("revoke-subscription-permission", "public/default", "-s", "billing", "-r", "bob")
    assert invoke(folder, "namespaces", *wrong).exit_code == 1


def test_permissions_are_granted_shown_and_taken_back(folder: Path):
    for group, target in (("namespaces", "public/default"), ("topics", "orders")):
        rows(
            invoke(folder, group, "grant-permission", target, "-r", group, "-a", "produce, consume")
        )
    rows(
        invoke(
            folder,
            "namespaces",
            "grant-permission",
            "public/default",
            "--role=x",
            "--actions=produce",
        )
    )
    found = rows(invoke(folder, "topics", "permissions", "orders"))
    assert {each["role"]: each["actions"] for each in found} == {
        "namespaces": ["consume", "produce"],
        "topics": ["consume", "produce"],
        "x": ["produce"],
    }
    rows(invoke(folder, "namespaces", "revoke-permission", "public/default", "-r", "namespaces"))
    rows(invoke(folder, "topics", "revoke-permission", "orders", "-r", "topics"))
    found = rows(invoke(folder, "namespaces", "permissions", "public/default"))
    assert found == [{"role": "x", "actions": ["produce"]}]
    assert (
        invoke(folder, "topics", "grant-permission", "orders", "-r", "x", "-a", "fly").exit_code
        != 0
    )


def test_the_selector_of_a_subscription_is_one_of_its_properties(folder: Path):
    selector = "jms.selector=price > 10 AND region IN ('EU', 'US')"
    orders = ("orders", "-s", "chosen")
    rows(invoke(folder, "subscriptions", "create", *orders, "-p", selector, "-p", "colour=red"))
    assert rows(invoke(folder, "subscriptions", "get-properties", *orders)) == [
        {"property": "colour", "value": "red"},
        {"property": "jms.selector", "value": "price > 10 AND region IN ('EU', 'US')"},
    ]
    wrong = invoke(folder, "subscriptions", "update-properties", *orders, "-p", "jms.selector=a >")
    assert wrong.exit_code != 0
    assert "column 4: expected a name, a literal or (, found the end" in wrong.stderr
    assert invoke(folder, "subscriptions", "update-properties", *orders).exit_code == 2
    assert invoke(folder, "subscriptions", "update-properties", *orders, "-p", "x").exit_code == 2
    rows(invoke(folder, "subscriptions", "update-properties", *orders, "--clear"))
    assert not rows(invoke(folder, "subscriptions", "get-properties", *orders))
