"""A folder remembers which one the other side of each forwarded topic is.

It is the state of a compacted topic of the folder, under the name of the forwarder and the topic.
"""

from __future__ import annotations

import json

from pulsarx import errors
from pulsarx._pycore.ground.locks import Lock
from pulsarx.functions.function_state import FunctionState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.client import Client

TOPIC = "persistent://public/default/__forwarding"


class KnownTargets:
    """The memory of one forwarder. Any thread. The topic has one writer at a time: with
    ProducerFenced or ProducerBusy another process looks into it just now."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name
        self._lock = Lock()

    def check(self, topic: str, identity: dict[str, Any], accept: bool) -> bool:
        """Remember the other side. False: nothing was remembered before. NotAllowedError: it is
        another one than before, or messages are missing there; accept: it is what is wanted."""
        with self._lock:
            state = FunctionState(self._client, TOPIC)
            try:
                key = f"{self._name} {topic}"
                kept = state.value(key)
                before = None if kept is None else json.loads(kept)
                if before is not None and not accept:
                    _refuse_fault(topic, before)
                    _refuse_other(topic, before["identity"], identity)
                known = before is not None and _difference(before["identity"], identity) == ""
                if before is not None and known:
                    # What was known and was not asked for this time is still known.
                    identity = {**before["identity"], **identity}
                now = {"identity": identity}
                if now != before:
                    state.put(key, json.dumps(now))
                    state.flush()
                return known
            finally:
                state.close()

    def note_fault(self, topic: str, identity: dict[str, Any], text: str) -> None:
        """Have the topic refused from now on, in other processes too."""
        with self._lock:
            state = FunctionState(self._client, TOPIC)
            try:
                now = {"identity": identity, "fault": text}
                state.put(f"{self._name} {topic}", json.dumps(now))
                state.flush()
            finally:
                state.close()


def _refuse_fault(topic: str, before: dict[str, Any]) -> None:
    if "fault" in before:
        raise errors.NotAllowedError(
            detail=f"{topic}: {before['fault']}. Mend that, and go on with accept_target "
            "(--accept-target)"
        )


def _refuse_other(topic: str, before: dict[str, Any], now: dict[str, Any]) -> None:
    difference = _difference(before, now)
    if difference:
        raise errors.NotAllowedError(
            detail=f"{topic}: the other side is {difference}. What was acknowledged before is not "
            "there. Give another name to forward all of it anew, or accept_target "
            "(--accept-target) to go on here"
        )


def _difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """ "": it is the same, as far as both tell."""
    for what in sorted(set(before) | set(now)):
        if what == "clusters" and not (what in before and what in now):
            continue  # without an admin URL it is not told
        if before.get(what) != now.get(what):
            return (
                f"{what} {now.get(what, '(none)')!r}, and was {what} "
                f"{before.get(what, '(none)')!r} before"
            )
    return ""
