"""`pulsarx subscriptions`, and the commands about one subscription that stand at the top."""

from __future__ import annotations

from pulsarx.cli.command import (
    DURATION,
    command,
    force_option,
    message_id_of,
    subscription_option,
    topic_argument,
)
from pulsarx.cli.declared import Group, UsageError, Whole, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.cli.folder import Folder

_COUNT = Whole(min=1)
_PAGE = Whole(min=1, max=1000)
_property_option = option(
    "-p",
    "--property",
    "properties",
    multiple=True,
    metavar="NAME=VALUE",
    help="A property; jms.selector is a condition on what is delivered. Several times.",
)


@command("pulsarx subscriptions list orders", watched=True)
@topic_argument
def list_subscriptions(folder: Folder, topic: str) -> None:
    """List the durable subscriptions of a topic."""
    names = folder.admin().topics.get_subscriptions(topic)
    folder.output.rows(("subscription",), [{"subscription": name} for name in names])


@command("pulsarx subscriptions create orders -s billing -m earliest")
@topic_argument
@subscription_option
@option(
    "-m",
    "--messageId",
    "place",
    default="latest",
    show_default=True,
    help="Where it begins: earliest, latest or ledger:entry.",
)
@_property_option
def create_subscription(
    folder: Folder, topic: str, subscription: str, place: str, properties: tuple[str, ...]
) -> None:
    """Create a durable subscription; on a partitioned topic, one on each partition."""
    folder.admin().topics.create_subscription(
        topic, subscription, message_id_of(place), _properties(properties) or None
    )


@command("pulsarx subscriptions get-properties orders -s billing", watched=True)
@topic_argument
@subscription_option
def get_properties(folder: Folder, topic: str, subscription: str) -> None:
    """Show the properties of a subscription; jms.selector is its selector."""
    found = folder.admin().topics.get_subscription_properties(topic, subscription)
    rows = [{"property": name, "value": value} for name, value in sorted(found.items())]
    folder.output.rows(("property", "value"), rows)


@command("pulsarx subscriptions update-properties orders -s billing -p jms.selector=urgent")
@topic_argument
@subscription_option
@_property_option
@option("-c", "--clear", is_flag=True, help="None: everything is delivered from now on.")
def update_properties(
    folder: Folder, topic: str, subscription: str, properties: tuple[str, ...], clear: bool
) -> None:
    """Give a subscription these properties in the place of all that it has."""
    given = _properties(properties)
    if bool(given) == clear:
        raise UsageError("give either --property or --clear")
    folder.admin().topics.update_subscription_properties(topic, subscription, given)


def _properties(pairs: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"{pair!r}: write name=value", "--property")
        found[name] = value
    return found


@command("pulsarx subscriptions delete orders -s billing")
@topic_argument
@subscription_option
@force_option
def delete_subscription(folder: Folder, topic: str, subscription: str, force: bool) -> None:
    """Delete a subscription without consumers."""
    folder.admin().topics.delete_subscription(topic, subscription, force)


@command("pulsarx peek orders -s billing -n 10", watched=True)
@topic_argument
@subscription_option
@option("-n", "--count", type=_COUNT, default=1, show_default=True, help="How many.")
def peek(folder: Folder, topic: str, subscription: str, count: int) -> None:
    """Show the next messages that a subscription has to acknowledge; they stay as they are.

    For a partitioned topic, give the name of one partition.
    """
    for each in folder.admin().topics.peek_messages(topic, subscription, count):
        folder.output.message(each)


@command("pulsarx subscriptions delayed reminders -s mails", watched=True)
@topic_argument
@subscription_option
@option("-n", "--count", type=_PAGE, default=100, show_default=True, help="How many.")
@option("-b", "--behind", "place", help="Behind this message: ledger:entry.")
def delayed(folder: Folder, topic: str, subscription: str, count: int, place: str | None) -> None:
    """List the messages of a subscription that are not due yet, in the order of the topic.

    For a partitioned topic, give the name of one partition.
    """
    behind = None if place is None else message_id_of(place)
    found = folder.admin().topics.get_delayed_messages(topic, subscription, count, behind)
    rows = [
        {"message_id": each.message_id().to_text(), "deliver_at": each.deliver_at()}
        for each in found
    ]
    folder.output.rows(("message_id", "deliver_at"), rows)


@command("pulsarx subscriptions cancel reminders -s mails -m 12:0")
@topic_argument
@option("-s", "--subscription", help="For this one alone; else for every one of the topic.")
@option("-m", "--messageId", "place", required=True, help="The message: ledger:entry.")
def cancel(folder: Folder, topic: str, subscription: str | None, place: str) -> None:
    """Cancel a delayed message before it is due."""
    names = folder.admin().topics.cancel_message(topic, message_id_of(place), subscription)
    folder.output.rows(("subscription",), [{"subscription": name} for name in names])


@command("pulsarx seek orders -s billing -t 3h")
@topic_argument
@subscription_option
@option(
    "-t",
    "--time",
    "back",
    type=DURATION,
    help="To the first message of the time since then: 90 or 90s, 100m, 3h, 2d, 5w.",
)
@option(
    "-m",
    "--messageId",
    "place",
    help="To this message, delivered again: earliest, latest or ledger:entry.",
)
def seek(
    folder: Folder, topic: str, subscription: str, back: int | None, place: str | None
) -> None:
    """Move a subscription: what is before counts as acknowledged, what follows does not."""
    if (back is None) == (place is None):
        raise UsageError("give either --time or --messageId")
    where: Any
    if place is not None:
        where = message_id_of(place)
    else:
        from pulsarx.clock import SystemClock

        assert back is not None
        if back < 0:
            raise UsageError("a time to go back to is 0 or more")
        where = max(0, SystemClock().now_ms() - back * 1000)
    folder.admin().topics.reset_cursor(topic, subscription, where)


@command("pulsarx skip orders -s billing -n 1")
@topic_argument
@subscription_option
@option("-n", "--count", type=Whole(min=0), required=True, help="How many.")
def skip(folder: Folder, topic: str, subscription: str, count: int) -> None:
    """Acknowledge the next messages of a subscription without receiving them.

    For a partitioned topic, give the name of one partition.
    """
    folder.admin().topics.skip_messages(topic, subscription, count)


@command("pulsarx clear orders -s billing")
@topic_argument
@subscription_option
def clear(folder: Folder, topic: str, subscription: str) -> None:
    """Acknowledge the whole backlog of a subscription."""
    folder.admin().topics.skip_all_messages(topic, subscription)


@command("pulsarx subscriptions expire orders -s billing -t 2d")
@topic_argument
@subscription_option
@option(
    "-t", "--expireTime", "age", type=DURATION, required=True, help="90 or 90s, 100m, 3h, 2d, 5w."
)
def expire(folder: Folder, topic: str, subscription: str, age: int) -> None:
    """Acknowledge messages that were published longer ago."""
    folder.admin().topics.expire_messages(topic, subscription, age)


subscriptions: Group = Group("Administer the subscriptions of topics.")


for _name, _command in {
    "list": list_subscriptions,
    "create": create_subscription,
    "get-properties": get_properties,
    "update-properties": update_properties,
    "delete": delete_subscription,
    "peek": peek,
    "seek": seek,
    "skip": skip,
    "clear": clear,
    "expire": expire,
    "delayed": delayed,
    "cancel": cancel,
}.items():
    subscriptions.add_command(_command, _name)
