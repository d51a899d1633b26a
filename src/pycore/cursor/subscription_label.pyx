"""Encodes and decodes the label of a cursor file. The layout is in the .pxd. Once a generation."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy

from pulsarx._core.cursor_record cimport CURSOR_LABEL_OFFSET, CURSOR_LABEL_SIZE
from pulsarx._core.ledger_name cimport LEDGER_NAME_SIZE_MAX
from pulsarx._core.limits cimport CURSOR_HEADER_SIZE
from pulsarx._pycore.ledger.name_record cimport kept_name

cdef extern from *:
    """
    typedef struct {
        uint32_t flags, topic_size, name_size, type_size;
        int64_t created_ms, initial_ledger_id, initial_message;
    } SubscriptionLabelBytes;
    _Static_assert(sizeof(SubscriptionLabelBytes) == 40, "the label is laid out without padding");
    """
    ctypedef struct SubscriptionLabelBytes:
        uint32_t flags
        uint32_t topic_size
        uint32_t name_size
        uint32_t type_size
        int64_t created_ms
        int64_t initial_ledger_id
        int64_t initial_message

cdef enum:
    LABELLED = 1
    TOPIC_CUT = 2
    NAME_CUT = 4
    NAME_SIZE_MAX = 2400
    TYPE_SIZE_MAX = 100


cdef bytes label_bytes(str topic, object subscription):
    cdef SubscriptionLabelBytes packed
    # As much of the topic's name as its ledgers keep, so that both are of one topic.
    topic_kept, topic_cut = kept_name(topic, LEDGER_NAME_SIZE_MAX)
    name_kept, name_cut = kept_name(subscription.name, NAME_SIZE_MAX)
    type_kept, _ = kept_name(subscription.type, TYPE_SIZE_MAX)
    packed.flags = LABELLED | (TOPIC_CUT if topic_cut else 0) | (NAME_CUT if name_cut else 0)
    packed.topic_size = <uint32_t>len(topic_kept)
    packed.name_size = <uint32_t>len(name_kept)
    packed.type_size = <uint32_t>len(type_kept)
    packed.created_ms = subscription.created_ms
    packed.initial_ledger_id = subscription.initial_ledger_id
    packed.initial_message = subscription.initial_message
    return (<char*>&packed)[:sizeof(packed)] + topic_kept + name_kept + type_kept


class SubscriptionLabel:
    """Whose cursor a file is. A value."""

    __slots__ = ("topic", "name", "type", "created_ms", "initial_ledger_id", "initial_message",
                 "cut")

    def __init__(self, topic: str, name: str, type: str, created_ms: int, initial_ledger_id: int,
                 initial_message: int, cut: bool) -> None:
        self.topic = topic
        self.name = name
        self.type = type
        self.created_ms = created_ms
        self.initial_ledger_id = initial_ledger_id
        self.initial_message = initial_message
        self.cut = cut                       # of one of the names the beginning, and its checksum

    def __repr__(self) -> str:
        return f"SubscriptionLabel({self.topic!r}, {self.name!r})"


def subscription_label_of(data: bytes) -> SubscriptionLabel | None:
    """The label of a cursor file whose header holds; None: it has none."""
    cdef SubscriptionLabelBytes packed
    if PyBytes_GET_SIZE(data) < CURSOR_HEADER_SIZE:
        return None
    memcpy(&packed, PyBytes_AS_STRING(data) + CURSOR_LABEL_OFFSET, sizeof(packed))
    sizes = [packed.topic_size, packed.name_size, packed.type_size]
    if not packed.flags & LABELLED or sum(sizes) > CURSOR_LABEL_SIZE - sizeof(packed):
        return None
    at = CURSOR_LABEL_OFFSET + sizeof(packed)
    texts = []
    for size in sizes:
        try:
            texts.append(data[at:at + size].decode())
        except UnicodeDecodeError:
            return None                      # not what label_bytes writes
        at += size
    return SubscriptionLabel(texts[0], texts[1], texts[2], packed.created_ms,
                             packed.initial_ledger_id, packed.initial_message,
                             bool(packed.flags & (TOPIC_CUT | NAME_CUT)))
