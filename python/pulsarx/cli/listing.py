"""`pulsarx ls` and `pulsarx stats`: which topics there are, and what they hold."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.cli.command import command
from pulsarx.cli.declared import argument, option
from pulsarx.topic_name import SYSTEM_TENANT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from pulsarx.admin import Admin
    from pulsarx.cli.folder import Folder
    from pulsarx.cli.output import Output

_FIGURES = ("messages", "storage_size", "backlog_size")
_OF_SUBSCRIPTION = ("type", "consumers", "msg_backlog", "backlog_size", "unacked_messages")


def listed(admin: Admin, namespaces: Iterable[str], system: bool) -> Iterator[dict[str, Any]]:
    """A row for each topic; a partitioned one is one row, with the number of its partitions."""
    for namespace in namespaces:
        partitioned = dict.fromkeys(admin.topics.get_partitioned_topic_list(namespace), 0)
        alone = []
        for name in admin.topics.get_list(namespace, include_system_topic=system):
            whole = name.rpartition("-partition-")[0]
            if whole in partitioned:
                partitioned[whole] += 1
            else:
                alone.append(name)
        for topic in sorted([*alone, *partitioned]):
            yield {"topic": topic, "partitions": partitioned.get(topic, 0)}


def all_namespaces(admin: Admin, system: bool) -> list[str]:
    return [
        namespace
        for tenant in admin.tenants.get_tenants()
        if system or tenant != SYSTEM_TENANT
        for namespace in admin.namespaces.get_namespaces(tenant)
    ]


@command("pulsarx ls public/default", watched=True)
@argument("namespace", required=False)
@option("-a", "--all", "system", is_flag=True, help="Also topics of the system.")
def ls(folder: Folder, namespace: str | None, system: bool) -> None:
    """List the topics of a namespace, or of all namespaces.

    A partitioned topic is one line. Topics of the system are left out, unless --all asks for them.
    """
    admin = folder.admin()
    namespaces = all_namespaces(admin, system) if namespace is None else [namespace]
    folder.output.rows(("topic", "partitions"), listed(admin, namespaces, system))


@command("pulsarx stats orders", watched=True)
@argument("topic", required=False)
def stats(folder: Folder, topic: str | None) -> None:
    """Show the figures of a topic and of its subscriptions; without one, a line for each topic.

    Sizes are in bytes in JSON and CSV. Figures that only the owner of the folder knows, as the
    permits of consumers, are missing (-, null) where there is none.
    """
    admin = folder.admin()
    if topic is not None:
        show_stats(folder.output, topic_stats(admin, topic))
        return
    from contextlib import ExitStack

    topics = list(listed(admin, all_namespaces(admin, False), False))
    rows = []
    with folder.output.progress("Reading", len(topics)) as advance, ExitStack() as stack:
        kept = admin if folder.is_http else stack.enter_context(folder.read_only()).admin
        for each in topics:
            # The owner alone knows those whose messages are not kept.
            is_kept = each["topic"].startswith("persistent:")
            rows.append({**each, **_figures(kept if is_kept else admin, **each)})
            advance(1)
    folder.output.rows(("topic", "partitions", *_FIGURES, "subscriptions"), rows)


def _figures(admin: Admin, topic: str, partitions: int) -> dict[str, Any]:
    try:
        found = topic_stats(admin, topic, partitions)
    except errors.OperationNotSupported:  # it keeps no messages, and there is no owner
        return dict.fromkeys((*_FIGURES, "subscriptions"))
    return {
        **{name: found[name] for name in _FIGURES},
        "subscriptions": len(found["subscriptions"]),
    }


def topic_stats(admin: Admin, topic: str, partitions: int | None = None) -> dict[str, Any]:
    """Return the statistics of a topic with or without partitions, as admin.topics has them."""
    if partitions is None:
        partitions = admin.topics.get_partitioned_topic_metadata(topic)["partitions"]
    return admin.topics.partitioned_stats(topic) if partitions else admin.topics.stats(topic)


def show_stats(output: Output, found: dict[str, Any]) -> None:
    """One JSON object; on a terminal the figures, and a table each of what there are several of."""
    if not output.is_table:
        output.record(found)
        return
    plain = {
        name: value
        for name, value in found.items()
        if name not in ("subscriptions", "ledgers", "partitions", "publishers")
    }
    if plain.get("compaction", {}).get("horizon") == [-1, -1]:
        del plain["compaction"]  # it never was
    output.record(plain)
    if found.get("publishers"):
        output.heading("Producers")
        output.rows(("producer_name", "last_sequence_id"), found["publishers"])
    if found["subscriptions"]:
        output.heading("Subscriptions")
        rows = [
            {**each, "subscription": name, "consumers": _count(each.get("consumers"))}
            for name, each in found["subscriptions"].items()
        ]
        output.rows(("subscription", *_of_subscriptions(rows)), rows)
    if found.get("partitions"):
        output.heading("Partitions")
        output.rows(("topic", *_FIGURES), found["partitions"].values())
    elif found.get("ledgers"):
        output.heading("Ledgers")
        output.rows(("ledger_id", "state", "entries", "messages", "size"), found["ledgers"])


def _count(consumers: Any) -> Any:
    return len(consumers) if isinstance(consumers, (list, dict)) else consumers


def _of_subscriptions(rows: list[dict[str, Any]]) -> list[str]:
    return [name for name in _OF_SUBSCRIPTION if any(name in row for row in rows)]
