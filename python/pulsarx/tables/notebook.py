"""Tables of HTML that a notebook shows of clients, topics and subscriptions. Everything is
escaped."""

from __future__ import annotations

from html import escape

from pulsarx import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

TOPICS = 50  # that are shown; each is opened for its figures
_TOPIC_HEAD = ("topic", "messages", "bytes", "producers", "subscriptions")
_SUBSCRIPTION_HEAD = ("topic", "subscription", "type", "backlog", "consumers")


def facts_html(title: str, facts: dict[str, object]) -> str:
    """A table of names and values."""
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{_text(value)}</td></tr>" for name, value in facts.items()
    )
    return f"<p>{escape(title)}</p><table><tbody>{rows}</tbody></table>"


def topics_html(topics: Any, tenants: Any, namespaces: Any) -> str:
    """The topics of a folder with their subscriptions; the administrations of the three."""
    names = [
        topic
        for tenant in tenants.get_tenants()
        for namespace in namespaces.get_namespaces(tenant)
        for topic in topics.get_list(namespace)
    ]
    rows: list[tuple[object, ...]] = []
    subscriptions: list[tuple[object, ...]] = []
    for name in names[:TOPICS]:
        try:
            stats = topics.stats(name)
        except errors.Interrupted:
            raise
        except errors.PulsarException as error:  # deleted meanwhile, or not readable
            rows.append((name, str(error), "", "", ""))
            continue
        publishers = stats["publishers"]
        found = stats["subscriptions"]
        rows.append(
            (
                name,
                stats["messages"],
                stats["storage_size"],
                None if publishers is None else len(publishers),
                len(found),
            )
        )
        for subscription, figures in found.items():
            consumers = figures.get("consumers")
            subscriptions.append(
                (
                    name,
                    subscription,
                    figures.get("type"),
                    figures.get("msg_backlog"),
                    None if consumers is None else len(consumers),
                )
            )
    shown = f", {TOPICS} shown" if len(names) > TOPICS else ""
    return (
        f"<p>{len(names)} topics{shown}</p>"
        + _table(_TOPIC_HEAD, rows)
        + _table(_SUBSCRIPTION_HEAD, subscriptions)
    )


def _table(head: Iterable[str], rows: list[tuple[object, ...]]) -> str:
    if not rows:
        return ""
    titles = "".join(f"<th>{escape(each)}</th>" for each in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{_text(value)}</td>" for value in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _text(value: object) -> str:
    """A count that only the owner of the folder knows is a dash."""
    if value is None:
        return "-"
    return escape(f"{value:,}" if type(value) is int else str(value))
