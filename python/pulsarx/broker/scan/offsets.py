"""Offsets, the places at which reading stands in topics, as text that is equal when the place is.

The offset of a topic (of each partition) says how far it was read, as [ledger id, n]: the next
message is the one behind the first n messages of that ledger. It names the ledger of the message
before it, never a later one, so that one place has one form; [0, 0] is the very beginning. n counts
messages and not entries, so it may stand inside a batch.

    {"persistent://public/default/t-partition-0":[12,5120],"persistent://...-1":[0,0]}

Sorted, without blanks. People may also write "earliest", "latest", a message id as text
("12:40:0:7": that message is the next one), or [12, 0] for the beginning of a ledger; a plan turns
these into the one form.
"""

from __future__ import annotations

from pulsarx.errors import shown
from pulsarx.options.argument_check import INT64_MAX
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Position = tuple[int, int]
    Offsets = dict[str, Position]  # the one form
    GivenOffsets = Mapping[str, Position | str]

BEGINNING: Position = (0, 0)
EARLIEST = "earliest"
LATEST = "latest"


def parse_offsets(text: str) -> dict[str, Position | str]:
    """Offsets by the full name of the topic. ValueError: no such text; it says what is wrong."""
    import json

    try:
        document = json.loads(text)
    except ValueError as error:
        raise ValueError(f"offsets are JSON, not {text[:80]!r}: {error}") from None
    if not isinstance(document, dict):
        raise ValueError(f'offsets are JSON as {{"topic": [ledger id, n]}}, not {text[:80]!r}')
    found = {str(TopicName.of(name)): _position(name, each) for name, each in document.items()}
    if len(found) < len(document):
        raise ValueError(f"offsets name a topic twice, in short and in full: {text[:200]!r}")
    return found


def _position(name: str, given: object) -> Position | str:
    if isinstance(given, str):
        if given in (EARLIEST, LATEST) or _is_message_id(given):
            return given
    elif isinstance(given, list) and len(given) == 2 and all(type(one) is int for one in given):
        ledger_id, count = given
        if ledger_id >= 0 and count >= 0 and (ledger_id or not count):
            return ledger_id, count
    raise ValueError(
        f"offset {shown(given)} of {name}: it must be [ledger id, messages], "
        f'"{EARLIEST}", "{LATEST}", or a message id as "ledger:entry:partition:batch index"'
    )


def _is_message_id(text: str) -> bool:
    from pulsarx._pycore.message.message_id import MessageId

    try:
        # Which stands for the end.
        return bool(0 <= MessageId.from_text(text).ledger_id() < INT64_MAX)
    except ValueError:
        return False


def format_offsets(offsets: Mapping[str, Position]) -> str:
    """The one text for these offsets."""
    import json

    ordered = {name: list(offsets[name]) for name in sorted(offsets)}
    return json.dumps(ordered, separators=(",", ":"))
