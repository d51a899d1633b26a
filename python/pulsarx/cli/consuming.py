"""`pulsarx consume` and `pulsarx replay-dlq`: they receive and acknowledge."""

from __future__ import annotations

from collections import Counter

from pulsarx import errors
from pulsarx.cli.command import FAILED, command, subscription_option, topic_argument
from pulsarx.cli.declared import Choice, Exit, Whole, option
from pulsarx.cli.listing import topic_stats
from pulsarx.cli.reading import Damage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.cli.folder import Folder
    from pulsarx.cli.output import Output
    from pulsarx.consumer import Consumer

_AT_ONCE = 500  # messages that are printed before they are acknowledged
_LETTERS_AT_ONCE = 200  # that a server replays in a request
_LOOK_MS = 1000  # how often the backlog is looked at while nothing new comes
_TYPES = ("Exclusive", "Shared", "Failover", "Key_Shared")
_POSITIONS = ("Latest", "Earliest")


@command("pulsarx consume orders -s billing -p Earliest -n 0")
@topic_argument
@option(
    "-s",
    "--subscription-name",
    "--subscription",
    "subscription",
    required=True,
    metavar="NAME",
    help="Name of the subscription.",
)
@option(
    "-t",
    "--subscription-type",
    "kind",
    api="consumer_type",
    type=Choice(_TYPES),
    default=_TYPES[0],
    show_default=True,
    help="Its type.",
)
@option(
    "-p",
    "--subscription-position",
    "--initial-position",
    "position",
    api="initial_position",
    type=Choice(_POSITIONS),
    default=_POSITIONS[0],
    show_default=True,
    help="Where it begins, if it is new.",
)
@option(
    "-n",
    "--num-messages",
    "count",
    type=Whole(min=0),
    default=1,
    show_default=True,
    help="How many; 0: without end.",
)
def consume(
    folder: Folder, topic: str, subscription: str, kind: str, position: str, count: int
) -> None:
    """Receive messages and acknowledge them when they are printed.

    Like pulsar-client consume. Without an owner, the command owns the folder while it receives, and
    releases it while it waits for messages, so that other processes can publish them.
    """
    from pulsarx.enumerations import ConsumerType, InitialPosition

    chosen = {
        "consumer_type": getattr(ConsumerType, kind.replace("_", "")),
        "initial_position": getattr(InitialPosition, position),
    }
    output, damage = folder.output, Damage(folder.output)
    if folder.is_cluster:
        _consume_of_cluster(folder, topic, subscription, chosen, count)
        return
    done, begun, told = 0, False, False
    with output.progress("Receiving", count or None) as advance:
        while True:
            try:
                with folder.owned("consume") as client:
                    begun = True
                    consumer = client.subscribe(topic, subscription, **chosen)
                    while found := _received(
                        output, damage, consumer, count - done if count else 0
                    ):
                        done += found
                        advance(found)
                        if done == count:
                            damage.check()
                            return
            except errors.FolderOwnedError as error:
                if not begun:
                    raise
                if not told:
                    who = "another process" if error.pid is None else f"process {error.pid}"
                    output.note(f"{folder.path} is owned by {who} now; waiting for its end")
                told = True
            _wait_for_messages(folder, topic, subscription)


def _consume_of_cluster(
    folder: Folder, topic: str, subscription: str, chosen: dict[str, Any], count: int
) -> None:
    output, done = folder.output, 0
    damage = Damage(output)
    with (
        output.progress("Receiving", count or None) as advance,
        folder.connected("consume") as client,
    ):
        consumer = client.subscribe(topic, subscription, **chosen)
        while not count or done < count:
            left = count - done if count else 0
            found = _received(output, damage, consumer, left, _LOOK_MS)
            done += found
            advance(found)
        damage.check()


def _received(
    output: Output, damage: Damage, consumer: Consumer, count: int, wait_ms: int = 0
) -> int:
    """Return how many messages came, printed and then acknowledged; at most count, unless that is
    0."""
    found = damage.take(consumer.receive, min(count, _AT_ONCE) if count else _AT_ONCE, wait_ms)
    for message in found:
        output.message(message)
    output.flush()
    consumer.acknowledge_many(found)
    return len(found)


def _wait_for_messages(folder: Folder, topic: str, subscription: str) -> None:
    """Wait until a message is published, or one may be due that was delayed."""
    from pulsarx.message_id import MessageId

    with folder.read_only() as client:
        reader = client.create_reader(topic, MessageId.latest)
        while not reader.read_many(1, _LOOK_MS):
            known = topic_stats(client.admin, topic)["subscriptions"]
            if subscription not in known or known[subscription]["msg_backlog"]:
                return


@command("pulsarx replay-dlq orders -s billing")
@topic_argument
@subscription_option
@option("-n", "--count", type=Whole(min=1), help="How many at most; else all.")
@option("--dlq", metavar="TOPIC", help="The dead letter topic; else TOPIC-NAME-DLQ.")
def replay_dlq(
    folder: Folder, topic: str, subscription: str, count: int | None, dlq: str | None
) -> None:
    """Publish the dead letters of a subscription to the topic they came from again.

    All subscriptions of that topic get them. Each letter is replayed once, whenever this is called:
    the subscription "replay-dlq" of the dead letter topic records it. A letter that was published
    when the process was killed may be published again by the next call. The letters stay in the
    dead letter topic until its other subscriptions have acknowledged them. At an http:// URL the
    server does it, which has to be `pulsarx serve`.
    """
    from pulsarx.letters.replay import Replay, dead_letters_of, letter_consumer

    if folder.is_http:
        _replay_there(folder, topic, subscription, count, dlq)
        return
    letter_topic = dlq or dead_letters_of(topic, subscription)
    done: dict[str, int] = {}
    damage = Damage(folder.output)
    with folder.owned("replay-dlq") as client:
        waiting = topic_stats(client.admin, letter_topic)["messages"]
        consumer = letter_consumer(client, letter_topic)
        replay = Replay(client)
        total = waiting if count is None else count
        try:
            with folder.output.progress("Replaying", total) as advance:
                while count is None or sum(done.values()) < count:
                    found = damage.take(consumer.receive, 1, 0)
                    if not found:
                        break
                    target = replay.publish(found[0], topic)
                    consumer.acknowledge(found[0])
                    done[target] = done.get(target, 0) + 1
                    advance(1)
        except errors.PulsarException:
            if done:
                _show_replayed(folder, done)  # before the letter that could not be
            raise
    _show_replayed(folder, done)
    damage.check()


def _replay_there(
    folder: Folder, topic: str, subscription: str, count: int | None, dlq: str | None
) -> None:
    """Have the server at an http:// URL do it, a piece at a time."""
    channel, done, is_damaged = folder.channel(), Counter[str](), False
    named = {} if dlq is None else {"dlq": dlq}
    with folder.output.progress("Replaying", count) as advance:
        while count is None or done.total() < count:
            left = _LETTERS_AT_ONCE if count is None else count - done.total()
            wanted = min(left, _LETTERS_AT_ONCE)
            found = channel.replay_letters(topic, subscription, count=wanted, **named)
            done.update(found["replayed"])
            advance(sum(found["replayed"].values()))
            for each in found["damage"]:
                is_damaged = True
                folder.output.note(each)
            if not found["more"]:
                break
    _show_replayed(folder, done)
    if is_damaged:
        raise Exit(FAILED)


def _show_replayed(folder: Folder, done: dict[str, int]) -> None:
    rows = [{"topic": each, "messages": number} for each, number in done.items()]
    folder.output.rows(("topic", "messages"), rows)
