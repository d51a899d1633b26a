"""A largest matching of what a test expects and the messages there are. For `assertions`."""

from __future__ import annotations

from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def matched(
    places: Sequence[int], count: int, fits: Callable[[int, int], bool]
) -> tuple[dict[int, int], list[int]]:
    """Match as many places as can be with messages 0 to count - 1, each with one of its own.

    places: what is expected; one that comes earlier gives its message up for another one only where
    a later one would have none. fits: whether a message is one that is expected there; it is asked
    once for a pair, and not for more messages than it takes.

    Returns the message of each place, and the places without.
    """
    answers: dict[tuple[int, int], bool] = {}
    holders: dict[int, int] = {}  # places, by the message that they have

    def is_fit(place: int, message: int) -> bool:
        pair = place, message
        if pair not in answers:
            answers[pair] = fits(place, message)
        return answers[pair]

    free = list(range(count))
    missing = []
    for place in places:
        message = next((each for each in free if is_fit(place, each)), None)
        if message is not None:
            holders[message] = place
            free.remove(message)
        else:
            # A matching with more: along a path of messages that are given up for each other.
            path = _augmenting(place, holders, free, is_fit)
            holders.update(path)
            if path:
                free.remove(path[0][0])
            else:
                missing.append(place)
    return {place: message for message, place in holders.items()}, missing


def _augmenting(
    place: int, holders: dict[int, int], free: list[int], is_fit: Callable[[int, int], bool]
) -> list[tuple[int, int]]:
    """Messages and who has each from now on, from a free one to that of the place; empty: there is
    no such path."""
    unseen = [*free, *holders]
    came_from: dict[int, int] = {}  # the place that wants a message
    had: dict[int, int | None] = {place: None}  # the message that a place would give up
    waiting = deque([place])
    while waiting:
        asking = waiting.popleft()
        wanted = [each for each in unseen if is_fit(asking, each)]
        seen = set(wanted)
        unseen = [each for each in unseen if each not in seen]
        for message in wanted:
            came_from[message] = asking
            if message not in holders:
                path, at = [], message
                while True:
                    holder = came_from[at]
                    path.append((at, holder))
                    given = had[holder]
                    if given is None:
                        return path
                    at = given
            had[holders[message]] = message
            waiting.append(holders[message])
    return []
