"""The named subscription of a stream: holds retention, follows what the stream has committed."""

from __future__ import annotations

import os

from pulsarx import errors
from pulsarx.broker.requests.owner_request import ask_owner
from pulsarx.broker.scan.offsets import parse_offsets
from pulsarx.spark.stream_offsets import only_offsets
from pulsarx.topic_name import check_subscription_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.scan.offsets import Offsets
    from pulsarx.spark.options import Options


def hold_topics(options: Options, topics: list[str], held: set[str], position: str) -> Offsets:
    """Make the subscription on topics that are new to the stream, at its position. Where one exists
    it stays where it is, and the answer says where. held: the topics looked at before."""
    fresh = [topic for topic in topics if topic not in held]
    if not fresh:
        return {}
    arguments = {"topics": fresh, "name": options.subscription, "position": position}
    found = ask_owner(options.root, "subscriptions.create", arguments)["found"]
    held.update(fresh)
    return {topic: (int(at[0]), int(at[1])) for topic, at in found.items()}


def move_subscription(root: str, name: str, offsets: Offsets) -> tuple[list[str], list[str]]:
    """Move the subscription forward to these offsets, never back; the topics where it moved, and
    those that are gone or have lost it.

    NotAllowedError: consumers are attached to it.
    """
    positions = {topic: list(position) for topic, position in offsets.items() if position[0]}
    if not positions:
        return [], []
    arguments = {"name": name, "positions": positions}
    found = ask_owner(root, "subscriptions.move", arguments)
    return found["moved"], found["gone"]


def sync_subscription(
    checkpoint: str | os.PathLike[str], root: str | os.PathLike[str], subscription: str
) -> list[str]:
    """Move a subscription to the end of the last batch that a stopped query has committed.

    Spark tells a source of a commit only with the next batch, so behind a query that has stopped
    its subscription trails by one.

    Args:
        checkpoint: The query's folder, reachable from here.
        root: The data directory.
        subscription: Its name.

    Returns:
        The topics (partitions) where it moved.

    Raises:
        FileNotFoundError: No checkpoint is there.
        FolderError: There is no such folder.
        ValueError: subscription is no name of one.

    Durability:
        The new positions are on the device when it returns.
    """
    check_subscription_name(subscription)
    folder = os.fspath(checkpoint).removeprefix("file:").removeprefix("//")
    numbers = [int(each) for each in os.listdir(f"{folder}/commits") if each.isdigit()]
    if not numbers:
        return []
    with open(f"{folder}/offsets/{max(numbers)}", encoding="utf-8") as file:
        lines = file.read().splitlines()
    moved: list[str] = []
    for line in lines[2:]:  # a version and the batch's settings come first
        try:
            given = parse_offsets(only_offsets(line))
        except (ValueError, errors.InvalidTopicName):
            continue  # of another source
        offsets: Offsets = {name: each for name, each in given.items() if isinstance(each, tuple)}
        moved += move_subscription(os.path.realpath(os.fspath(root)), subscription, offsets)[0]
    return moved
