"""`pulsarx top`: topics by backlog and rates, looked at again and again."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.cli.command import command, folder_argument
from pulsarx.cli.declared import Choice, Fraction, option
from pulsarx.cli.listing import all_namespaces, listed, topic_stats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pulsarx.admin import Admin
    from pulsarx.cli.folder import Folder

    Row = dict[str, Any]

_RATES = ("msg_rate_in", "msg_throughput_in", "msg_rate_out")
_HEADS = {  # of fields, on a terminal
    "topic": "topic",
    "msg_backlog": "backlog",
    "msg_rate_in": "in/s",
    "msg_throughput_in": "bytes/s",
    "msg_rate_out": "out/s",
    "storage_size": "size",
    "subscriptions": "subs",
}
_SORTED_BY = {
    "backlog": "msg_backlog",
    "in": "msg_rate_in",
    "out": "msg_rate_out",
    "size": "storage_size",
    "name": "topic",
}


@command("pulsarx top --sort in")
@folder_argument
@option("-n", "--namespace", help="Topics of this namespace alone.")
@option(
    "-s",
    "--sort",
    type=Choice(list(_SORTED_BY)),
    default="backlog",
    show_default=True,
    help="The figure to sort by, largest first.",
)
@option(
    "-i",
    "--interval",
    type=Fraction(min=0.1),
    default=2.0,
    show_default=True,
    help="Seconds between two looks.",
)
@option("--once", is_flag=True, help="Look for one interval, and tell what there was in it.")
def top(folder: Folder, namespace: str | None, sort: str, interval: float, once: bool) -> None:
    """Show the topics with the largest backlogs or rates, until Ctrl-C.

    The files are read, beside the owner too. Rates are those between two looks: messages and
    bytes published per second, and messages acknowledged per second, on all subscriptions. On a
    URL they are those of the broker, which counts the messages that it dispatched.
    """
    from pulsarx._pycore.ground.locks import Event

    pause = Event()
    if folder.is_http:
        admin = folder.admin()
        with folder.output.live(_HEADS, once) as show:
            while True:
                show(_sorted(list(_told(admin, namespace)), sort))
                if once:
                    return
                pause.wait(interval)
    with folder.read_only() as client, folder.output.live(_HEADS, once) as show:
        before: dict[str, _Look] = {}
        if once:  # a rate is of the time between two looks
            before = _looks(client.admin, namespace)
            pause.wait(interval)
        while True:
            looks = _looks(client.admin, namespace)
            show(_sorted([each.row(before.get(name)) for name, each in looks.items()], sort))
            if once:
                return
            before = looks
            pause.wait(interval)


def _sorted(rows: list[Row], by: str) -> list[Row]:
    name = _SORTED_BY[by]
    if name == "topic":
        return sorted(rows, key=lambda row: row["topic"])
    return sorted(rows, key=lambda row: (-(row[name] or 0), row["topic"]))


def _told(admin: Admin, namespace: str | None) -> Iterator[Row]:
    """A row for each topic, as the admin REST API tells its figures."""
    namespaces = all_namespaces(admin, False) if namespace is None else [namespace]
    for each in listed(admin, namespaces, False):
        try:
            stats = topic_stats(admin, **each)
        except errors.TopicNotFound:
            continue  # it was deleted just now
        yield {
            **each,
            "msg_backlog": sum(one["msg_backlog"] for one in stats["subscriptions"].values()),
            **{name: round(stats[name], 1) for name in _RATES},
            "storage_size": stats["storage_size"],
            "subscriptions": len(stats["subscriptions"]),
        }


def _looks(admin: Admin, namespace: str | None) -> dict[str, _Look]:
    """Each topic as it is now, by name; without those that keep no messages."""
    found = {}
    namespaces = all_namespaces(admin, False) if namespace is None else [namespace]
    for each in listed(admin, namespaces, False):
        try:
            found[each["topic"]] = _Look(each, topic_stats(admin, **each))
        except (errors.TopicNotFound, errors.OperationNotSupported):
            pass  # it was deleted just now, or keeps nothing
    return found


class _Look:
    """The figures of a topic at one moment. A value."""

    def __init__(self, topic: Row, stats: dict[str, Any]) -> None:
        from pulsarx.clock import monotonic_us

        parts = list(stats["partitions"].values()) if topic["partitions"] else [stats]
        self._now_us = monotonic_us()
        self._topic = topic
        self._ledgers = {
            each["ledger_id"]: (each["messages"], each["size"])
            for part in parts
            for each in part["ledgers"]
        }
        self._backlogs = {
            name: each["msg_backlog"] for name, each in stats["subscriptions"].items()
        }
        self._storage_size = stats["storage_size"]

    def row(self, before: _Look | None) -> Row:
        rates = dict.fromkeys(_RATES) if before is None else self._rates(before)
        return {
            **self._topic,
            "msg_backlog": sum(self._backlogs.values()),
            **rates,
            "storage_size": self._storage_size,
            "subscriptions": len(self._backlogs),
        }

    def _rates(self, before: _Look) -> dict[str, Any]:
        """Compute the rates since an earlier look. Ledgers that were removed meanwhile took nothing
        in."""
        messages = size = 0
        for ledger_id, (count, end) in self._ledgers.items():
            count_before, end_before = before._ledgers.get(ledger_id, (0, 0))
            messages += max(count - count_before, 0)
            size += max(end - end_before, 0)
        acknowledged = sum(
            max(before._backlogs[name] + messages - backlog, 0)
            for name, backlog in self._backlogs.items()
            if name in before._backlogs
        )
        seconds = max(self._now_us - before._now_us, 1) / 1e6
        counts = (messages, size, acknowledged)
        return {name: round(count / seconds, 1) for name, count in zip(_RATES, counts)}
