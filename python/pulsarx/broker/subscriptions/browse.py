"""Reads messages of a topic page by page, and leaves them as they are: for people who look."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.encryption import AS_STORED
from pulsarx.message_id import MessageId
from pulsarx.schema import BytesSchema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx._pycore.message.message import Message
    from pulsarx.broker.faces import TopicView
    from pulsarx.broker.ledgers.ledger_list import Position

    Described = dict[str, Any]

# Of one page, whichever comes first: what is looked through, and what is answered.
EXAMINED_MAX = 20_000  # messages
EXAMINED_SIZE_MAX = 32 << 20  # bytes
_ANSWER_SIZE_MAX = 4 << 20
_WINDOW_MIN = 500  # messages that are looked through at once, from the end
_WINDOW_MAX = 4000
_CHUNKS = 64  # messages that are read once more, where chunks lie between those of others
_DATA_SHOWN = 4 << 10  # bytes of a payload, where there are others in the page


def browse(
    topic: TopicView,
    start: Position,
    count: int,
    *,
    text: str = "",
    is_acknowledged: Callable[[int, int], bool] | None = None,
) -> Described:
    """Up to count messages from start on; an encrypted batch is one, as only who has its key knows
    where its messages are, and so is what is damaged.

    text: messages that have it in their payload, keys, properties or the name of their producer,
    upper and lower case of ASCII alike; of an encrypted one not the payload. is_acknowledged: of a
    ledger id and an ordinal; those it knows are left out.
    next: the position behind the page; None: there are no more. behind: the same, where there are
    no more as well. examined: how many it looked at.
    """
    page = _Page(topic, count, text, is_acknowledged)
    following = _read(topic, page, start, None)
    return {
        "messages": page.found,
        "next": None if following is None else list(following),
        "behind": list(page.behind or start),
        "examined": page.examined,
    }


def _read(
    topic: TopicView, page: _Page, start: Position, until: Position | None
) -> Position | None:
    """Fill a page from a position on, with messages in front of another one; the position behind
    them, None: there are no more."""
    cursor = topic.reader_cursor(BytesSchema(), decryption=AS_STORED)
    reader = cursor.attach(start)
    following: Position | None = start
    try:
        while not page.is_full:
            if until is not None and page.behind is not None and page.behind >= until:
                return None
            try:
                message = reader.take_now()
            except errors.CorruptDataError as error:
                page.add_damage(errors.detail_of(error))
                continue
            if message is None:
                return None
            if not page.add(message, until):
                return None
            following = page.behind
    finally:
        reader.shut()
    return following


def browse_back(
    topic: TopicView,
    before: Position,
    count: int,
    *,
    lowest: Position,
    text: str = "",
    is_acknowledged: Callable[[int, int], bool] | None = None,
) -> Described:
    """Browse backwards, the newest message first: up to count messages in front of a position, none
    below the lowest. next: the position in front of which the page behind it is."""
    found: list[Described] = []
    end, examined, size = before, 0, 0
    window = _window_size(topic, max(count, _WINDOW_MIN if text else 0))
    while (
        end > lowest and len(found) < count and examined < EXAMINED_MAX and size < EXAMINED_SIZE_MAX
    ):
        begin = max(topic.ledger.position_before(end, window), lowest)
        page = _window(topic, begin, end, text, is_acknowledged)
        if topic.ledger.holds_chunks() and begin > lowest and page.first != begin:
            # It may begin behind the first chunk of a message, which was passed over then.
            begin = max(_first_chunk_before(topic, page, begin), lowest)
            page = _window(topic, begin, end, text, is_acknowledged)
        part, left = page.found, count - len(found)
        examined, size = examined + page.examined, size + page.read_size
        found += reversed(part[-left:])
        # What did not fit is the begin of the next page.
        end = (_place_of(part[-left:]) if len(part) > left else None) or begin
        window = min(2 * window, _window_size(topic, _WINDOW_MAX)) if text else window
    return {
        "messages": found,
        "next": list(end) if end > lowest else None,
        "behind": list(before),
        "examined": examined,
    }


def _window_size(topic: TopicView, most: int) -> int:
    """How many messages are read before their bytes are counted: all that a page may read at most,
    if they are as large as most."""
    ledger = topic.ledger
    stored = sum(ledger.size_of(each) for each in ledger.ledgers())
    return max(1, min(most, EXAMINED_SIZE_MAX * ledger.message_count() // max(stored, 1)))


def _window(
    topic: TopicView,
    begin: Position,
    end: Position,
    text: str,
    is_acknowledged: Callable[[int, int], bool] | None,
) -> _Page:
    """All that is found between two positions."""
    page = _Page(topic, None, text, is_acknowledged)
    place: Position | None = begin
    while place is not None and place < end:
        page.begin()
        place = _read(topic, page, place, end)
    return page


def _first_chunk_before(topic: TopicView, page: _Page, begin: Position) -> Position:
    """The position of the first chunk of the message whose last chunk is in front of the first
    message of a page."""
    ledger, first = topic.ledger, None
    if page.first_id is not None and page.first_id.entry_id() > 0:
        place, entry_id = page.first_id.ledger_id(), page.first_id.entry_id()
        first = ledger.first_chunk_of(MessageId(page.first_id.partition(), place, entry_id - 1))
    if first is None:  # or it is in another ledger, or chunks of others lie between
        return ledger.position_before(begin, _CHUNKS)
    return min(ledger.position_of(first, True), begin)


def _place_of(messages: list[Described]) -> Position | None:
    """The place of the first message that has one: what is damaged has none."""
    places = [each["place"] for each in messages if "place" in each]
    return (places[0][0], places[0][1]) if places else None


class _Page:
    """The messages found for a page so far. One thread."""

    def __init__(
        self,
        topic: TopicView,
        count: int | None,
        text: str,
        is_acknowledged: Callable[[int, int], bool] | None,
    ) -> None:
        """count: None, for what is read bit by bit."""
        self._topic = topic
        self._count = count
        self._wanted = text.encode("utf-8", "surrogatepass").lower()
        self._is_acknowledged = is_acknowledged
        self._data_max = _ANSWER_SIZE_MAX if count == 1 else _DATA_SHOWN
        self._size = 0  # of the answer
        self._examined_size = 0
        self._ends_with_damage = False  # it has no position to go on from
        self.found: list[Described] = []
        self.examined = 0
        self.first: Position | None = None  # that was read,
        self.first_id: MessageId | None = None  # and its id
        self.behind: Position | None = None  # of what was read last
        self.read_size = 0  # bytes

    def begin(self) -> None:
        """Go on with as much as a page may read."""
        self._size = self._examined_size = 0

    @property
    def is_full(self) -> bool:
        return not self._ends_with_damage and (
            (self._count is not None and len(self.found) >= self._count)
            or self._size >= _ANSWER_SIZE_MAX
            or (self._count is not None and self.examined >= EXAMINED_MAX)
            or self._examined_size >= EXAMINED_SIZE_MAX
        )

    def add_damage(self, text: str) -> None:
        self._ends_with_damage = True
        self.found.append({"damage": text})

    def add(self, message: Message, until: Position | None) -> bool:
        """False: it is none of those in front of a position."""
        self._ends_with_damage = False
        ledger_id, first, extent = self._topic.ledger.locate(message.message_id())
        if until is not None and (ledger_id, first) >= until:
            return False
        if self.first is None:
            self.first = (ledger_id, first)
            self.first_id = message.message_id().first_chunk_message_id() or message.message_id()
        self.behind = (ledger_id, first + extent)
        ordinals = range(first, first + extent)
        self.examined += extent
        data = message.data()
        self._examined_size += len(data)
        self.read_size += len(data)
        known = self._is_acknowledged
        left = [each for each in ordinals if known is None or not known(ledger_id, each)]
        encryption = message.encryption_context()
        if left and self._has_text(message, b"" if encryption is not None else data):
            self._take(message, data, encryption, (ledger_id, first), len(ordinals))
        return True

    def _has_text(self, message: Message, data: bytes) -> bool:
        if not self._wanted or self._wanted in data.lower():
            return True
        texts = [message.partition_key(), message.ordering_key(), message.producer_name()]
        texts += [f"{name}={value}" for name, value in message.properties().items()]
        return any(self._wanted in each.encode("utf-8", "surrogatepass").lower() for each in texts)

    def _take(
        self, message: Message, data: bytes, encryption: Any, place: Position, extent: int
    ) -> None:
        from base64 import b64encode

        shown = b"" if encryption is not None else data[: self._data_max]
        null = message.has_null_value()
        properties = message.properties()
        found: Described = {
            "message_id": message.message_id().to_text(),
            "place": list(place),
            "data": None if null else b64encode(shown).decode(),
            "size": len(data),
            "properties": properties,
            "partition_key": message.partition_key(),
            "ordering_key": message.ordering_key(),
            "publish_timestamp": message.publish_timestamp(),
            "event_timestamp": message.event_timestamp(),
            "producer_name": message.producer_name(),
            "schema_version": message.int_schema_version(),
        }
        if encryption is not None:
            found |= {
                "encrypted": sorted(each.key for each in encryption.keys()),  # noqa: SIM118
                "messages": extent,
            }
        self._size += len(shown) + sum(len(key) + len(one) for key, one in properties.items())
        self.found.append(found)
