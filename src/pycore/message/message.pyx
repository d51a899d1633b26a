# cython: language_level=3
"""Body of message.pxd: the accessors of the official client's Message."""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsarx._core.byte_reader cimport ByteReader, byte_reader_start
from pulsarx._core.message_metadata cimport MessageMetadata, message_metadata_decode
from pulsarx._core.single_metadata cimport (
    METADATA_EVENT_TIME, METADATA_KEY_BASE64, METADATA_NULL_VALUE, METADATA_ORDERING_KEY,
    METADATA_PARTITION_KEY,
    METADATA_SCHEMA_VERSION,
    PropertyView, SingleMetadata, property_next, single_metadata_decode,
)
from pulsarx._core.status cimport STATUS_END, STATUS_OK
from pulsarx._pycore.message.entry_view cimport (
    DECODING_BYTES, DECODING_PAYLOAD, DECODING_UNKNOWN, DECODING_VERSION, ENTRY_PLAIN,
    ENTRY_UNREADABLE, Decoding, EntryContext, entry_first_index,
)
from pulsarx._pycore.ledger.ledger_file cimport LedgerFile
from pulsarx._pycore.message.chunked_message cimport ChunkedMessage
from pulsarx._pycore.message.message_id cimport (
    MessageId, message_id_chunked, message_id_new,
)
from pulsarx._pycore.ground.control_plane cimport control_plane
from pulsarx._pycore.ground.raise_status cimport raise_status
from pulsarx._pycore.ground.unmade cimport refuse_new

cdef enum PropertyField:
    FIELD_IN_BATCH = 1
    FIELD_IN_ENTRY = 4

cdef enum:
    SHOWN_MAX = 60           # bytes of the payload in a repr


@cython.final
@cython.no_gc
@cython.freelist(1024)
cdef class Message:
    """A message as a consumer or reader received it. Any thread may read it; it never changes.

    It stays valid when the consumer is closed or the ledger is trimmed: it pins the mapping it
    points into.
    """

    def __init__(self):
        raise TypeError("a Message is received from a consumer or a reader")

    def data(self) -> bytes:
        """Return the payload, copied out of the ledger at each call; `b""` for a message without a
        value."""
        if self.entry.chunked is not None:
            return self.entry.plain      # put together already, for this message alone
        return PyBytes_FromStringAndSize(<const char*>self.c_payload, self.payload_size)

    @staticmethod
    def payloads(messages) -> list:
        """Return the payloads of messages that were received together, in one pass: a third of the
        time of a `data` each. Not in the official client.

        Args:
            messages: As receive_many, batch_receive or read_many return them.

        Returns:
            A payload a message, in their order, copied.

        Example:
            messages = consumer.receive_many(1000, timeout_millis=1000)
            lines = pulsarx.Message.payloads(messages)
        """
        cdef list given = messages if type(messages) is list else list(messages)
        cdef list found = []
        cdef Message message
        cdef object each
        for each in given:
            if type(each) is Message:
                message = <Message>each
                if message.entry.chunked is None:
                    found.append(PyBytes_FromStringAndSize(<const char*>message.c_payload,
                                                           message.payload_size))
                    continue
            found.append(each.data())
        return found

    @staticmethod
    def ids(messages) -> list:
        """Return the places of messages that were received together, in one pass. Not in the
        official client.

        Args:
            messages: As of payloads.

        Returns:
            A message id a message, in their order.
        """
        cdef object each
        return [message_id_of(<Message>each) if type(each) is Message else each.message_id()
                for each in messages]

    @staticmethod
    def keys(messages) -> list:
        """Return the keys of messages that were received together, in one pass. Not in the official
        client.

        Args:
            messages: As of payloads.

        Returns:
            A key a message, `""` where it has none, in their order.
        """
        return [each.partition_key() for each in messages]

    def size(self) -> int:
        """Return the bytes of the payload, without copying it."""
        return self.payload_size

    def length(self) -> int:
        """Return the bytes of the payload, like size; the name that `_pulsar` has."""
        return self.payload_size

    def value(self):
        """Return the payload decoded by the schema the consumer was made with, once. A message
        without a value has None, with BytesSchema b"", with StringSchema "". What the schema cannot
        decode raises at each call.

        Raises:
            ValueError: The schema cannot decode the payload; other schemas may raise others.
        """
        if self.flags & METADATA_NULL_VALUE:
            return getattr(self.entry.context.schema, "value_of_none", None)
        return decoded_value(self)

    @property
    def _message(self):
        """The native message, as programs take it out of the official client's."""
        return self

    def has_null_value(self) -> bool:
        """Tell whether it was sent without a value (`send(None)`), which is not the same as an
        empty one."""
        return self.flags & METADATA_NULL_VALUE != 0

    def properties(self) -> dict:
        """Return the properties, a new dict of str to str at each call."""
        cdef ByteReader reader
        cdef PropertyView view
        cdef int status
        cdef dict found = {}
        cdef uint32_t field = FIELD_IN_ENTRY if self.batch_index < 0 else FIELD_IN_BATCH
        if self.batch_index < 0:
            byte_reader_start(&reader, self.entry.c_encoded_metadata,
                              self.entry.encoded_metadata_size)
        else:
            byte_reader_start(&reader, self.c_payload - self.encoded_metadata_size,
                              self.encoded_metadata_size)
        while True:
            status = property_next(&reader, field, &view)
            if status == STATUS_END:
                return found
            if status != STATUS_OK:
                raise_status(status, 0, f"read the properties of {self.message_id()}")
            found[text(view.key, view.key_size)] = text(view.value, view.value_size)

    def partition_key(self) -> str:
        """Return the key, `""` when it has none."""
        cdef SingleMetadata single
        message_metadata(self, &single)
        if single.flags & METADATA_PARTITION_KEY == 0:
            return ""
        return text(single.partition_key, single.partition_key_size)

    def has_key(self) -> bool:
        """Tell whether it was sent with a key."""
        cdef SingleMetadata single
        message_metadata(self, &single)
        return single.flags & METADATA_PARTITION_KEY != 0

    def has_base64_encoded_key(self) -> bool:
        """Tell whether partition_key is the base64 text of a key that is bytes."""
        cdef SingleMetadata single
        message_metadata(self, &single)
        return single.flags & METADATA_KEY_BASE64 != 0

    def key_bytes(self) -> bytes:
        """Return the key as bytes, `b""` when it has none."""
        key = self.partition_key().encode("utf-8", "surrogateescape")
        if not self.has_base64_encoded_key():
            return key
        import base64

        try:
            return base64.b64decode(key + b"=" * (-len(key) % 4), validate=True)
        except ValueError:               # another client's, which calls itself base64 and is not
            return key

    def ordering_key(self) -> str:
        """Return the ordering key, `""` when it has none."""
        cdef SingleMetadata single
        message_metadata(self, &single)
        if single.flags & METADATA_ORDERING_KEY == 0:
            return ""
        return text(single.ordering_key, single.ordering_key_size)

    def event_timestamp(self) -> int:
        """Return the event time in milliseconds since 1970, 0 when none was given."""
        cdef SingleMetadata single
        message_metadata(self, &single)
        return single.event_time_ms if single.flags & METADATA_EVENT_TIME else 0

    def publish_timestamp(self) -> int:
        """Return when its batch was begun by the producer, in milliseconds since 1970."""
        return self.entry.publish_time_ms

    def deliver_at(self) -> int:
        """Return when it was to be delivered at the earliest, in milliseconds since 1970; 0 when
        no delay was given. Not in the official client."""
        cdef MessageMetadata metadata
        entry_metadata(self, &metadata)
        return metadata.deliver_at_ms

    def broker_publish_timestamp(self) -> int:
        """Return when the broker stored it, in milliseconds since 1970; 0 where it was stored while
        the option `broker_entry_metadata_interceptors` had no
        `AppendBrokerTimestampMetadataInterceptor`."""
        if type(self.entry.pin) is not LedgerFile:
            return 0
        return (<LedgerFile>self.entry.pin).c_broker_time(self.entry.c_entry)

    def index(self) -> int:
        """Return its number among all messages that its topic or partition ever had, from 0; -1 on
        a non-persistent topic.

        It stays the same when messages in front are trimmed, compacted or offloaded. A message in
        chunks counts as many as it has chunks, and its index is that of the last one.
        """
        cdef int64_t first = entry_first_index(self.entry)
        if first < 0:
            return -1
        return first + message_ordinal(self) + message_extent(self) - 1

    def message_id(self) -> MessageId:
        """Return the place where it is stored: ledger, entry, batch index."""
        return message_id_of(self)

    def topic_name(self) -> str:
        """Return the full name of the topic it came from."""
        return self.entry.context.topic_name

    def redelivery_count(self) -> int:
        """Return the number of times it was handed out before because a consumer asked for it
        again. It survives restarts and kills."""
        return self.flags >> 16

    def schema_version(self) -> str:
        """Return the version of the schema it was written with: eight bytes, big-endian, as
        characters; `""` when it was written without one."""
        return schema_version_of(self).decode("latin-1")

    def int_schema_version(self) -> int:
        """Return the version of the schema as a number; -1 when it was written without one. The
        name of `_pulsar`."""
        cdef bytes version = schema_version_of(self)
        return int.from_bytes(version, "big") if version else -1

    def producer_name(self) -> str:
        """Return the name of the producer that sent it."""
        cdef MessageMetadata metadata
        entry_metadata(self, &metadata)
        return text(metadata.producer_name, metadata.producer_name_size)

    def sequence_id(self) -> int:
        """Return the producer's sequence id of this message."""
        cdef MessageMetadata metadata
        cdef SingleMetadata single
        if self.batch_index < 0:
            entry_metadata(self, &metadata)
            return metadata.sequence_id
        message_metadata(self, &single)
        return single.sequence_id

    def encryption_context(self):
        """Return how its producer encrypted it; None: not at all."""
        if self.entry.encryption == ENTRY_PLAIN:
            return None
        from pulsarx._pycore.message.encryption_context import EncryptionContext

        return EncryptionContext(
            self.entry.c_encoded_metadata[:self.entry.encoded_metadata_size],
            self.entry.encryption == ENTRY_UNREADABLE)

    @classmethod
    def __class_getitem__(cls, _):
        """Message[str] is Message: the type of values is for type checkers."""
        return cls

    def _repr_html_(self) -> str:
        """Show the message in a notebook; of its value the first bytes."""
        control_plane.load("html")
        from html import escape

        data = "None" if self.flags & METADATA_NULL_VALUE else repr(beginning_of(self))
        more = "..." if self.payload_size > SHOWN_MAX else ""
        facts = (
            ("topic", self.topic_name()),
            ("message id", self.message_id()),
            ("key", self.partition_key() if self.has_key() else "-"),
            ("publish time", shown_time(self.publish_timestamp())),
            ("event time", shown_time(self.event_timestamp())),
            ("properties", self.properties() or "-"),
            ("producer", self.producer_name()),
            ("sequence id", self.sequence_id()),
            ("redelivery count", self.redelivery_count()),
            ("size", f"{self.payload_size:,}"),
            ("data", data + more),
        )
        rows = "".join([f"<tr><th>{name}</th><td>{escape(str(value))}</td></tr>"
                        for name, value in facts])
        return f"<p>Message</p><table><tbody>{rows}</tbody></table>"

    def __repr__(self) -> str:
        data = "None" if self.flags & METADATA_NULL_VALUE else repr(beginning_of(self))
        more = "..." if self.payload_size > SHOWN_MAX else ""
        return (f"Message(id={self.message_id()}, topic={self.topic_name()!r}, "
                f"key={self.partition_key()!r}, size={self.payload_size}, data={data}{more})")


cdef str shown_time(uint64_t time_ms):
    """A time for people, by the calendar that begins its years in March; what lies beyond the year
    9999 is a number."""
    cdef uint64_t seconds = time_ms // 1000
    cdef uint64_t days = seconds // 86400 + 719468       # since the first of March of the year 0
    cdef uint64_t era = days // 146097                   # 400 years
    cdef uint64_t day = days % 146097
    cdef uint64_t year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    cdef uint64_t month
    if time_ms == 0:
        return "-"
    if seconds > 253402300799:
        return f"{time_ms} ms"
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153                         # 0 is March
    day -= (153 * month + 2) // 5
    year += era * 400 + (month >= 10)
    month = month - 9 if month >= 10 else month + 3
    return (f"{year}-{month:02}-{day + 1:02} {seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:"
            f"{seconds % 60:02}.{time_ms % 1000:03}Z")


cdef bytes beginning_of(Message self):
    """The first bytes of the payload, for people; what a schema makes of it may raise."""
    if self.entry.chunked is not None:
        return self.entry.plain[:SHOWN_MAX]
    return PyBytes_FromStringAndSize(
        <const char*>self.c_payload, min(self.payload_size, <uint32_t>SHOWN_MAX))


cdef object message_id_of(Message self):
    cdef ChunkedMessage chunked = self.entry.chunked
    cdef MessageId made
    if chunked is not None:
        made = message_id_chunked(
            <int64_t>self.entry.ledger_id, <int64_t>self.entry.entry_id,
            self.entry.context.partition, <int64_t>chunked.chunks[0].ledger_id,
            <int64_t>chunked.chunks[0].entry_id)
    else:
        made = message_id_new(<long long>self.entry.ledger_id, <long long>self.entry.entry_id,
                              self.entry.context.partition, self.batch_index,
                              self.entry.message_count if self.batch_index >= 0 else 0)
    made.c_has_topic = True
    return made


cdef str text(const uint8_t* data, uint32_t size):
    # Keys and properties of other clients may be any bytes; what is not UTF-8 must not make a
    # message unreadable.
    return PyUnicode_DecodeUTF8(<const char*>data, size, "surrogateescape")


cdef int entry_metadata(Message self, MessageMetadata* metadata) except -1:
    cdef int status = message_metadata_decode(
        self.entry.c_encoded_metadata, self.entry.encoded_metadata_size, metadata)
    if status != STATUS_OK:
        raise_status(status, 0, f"read the metadata of {self.message_id()}")
    return 0


cdef int message_metadata(Message self, SingleMetadata* single) except -1:
    """Key, ordering key and event time, wherever they stand: in the batch's header or in the
    entry's metadata."""
    cdef MessageMetadata metadata
    cdef int status
    if self.batch_index >= 0:
        status = single_metadata_decode(
            self.c_payload - self.encoded_metadata_size, self.encoded_metadata_size, single)
        if status != STATUS_OK:
            raise_status(status, 0, f"read the metadata of {self.message_id()}")
        return 0
    entry_metadata(self, &metadata)
    memset(single, 0, sizeof(SingleMetadata))
    single.flags = metadata.flags
    single.partition_key = metadata.partition_key
    single.partition_key_size = metadata.partition_key_size
    single.ordering_key = metadata.ordering_key
    single.ordering_key_size = metadata.ordering_key_size
    single.event_time_ms = metadata.event_time_ms
    single.sequence_id = metadata.sequence_id
    return 0


cdef object decoded_value(Message self):
    """Return the value of a message that has one, for value()."""
    cdef EntryContext context = self.entry.context
    cdef Decoding decoding = context.decoding
    cdef uint64_t key
    if decoding == DECODING_UNKNOWN:
        decoding = context.decoding_of_schema()
    if decoding == DECODING_BYTES:
        return self.data()
    # A delivery of its own has a value of its own: the one before may have been changed.
    key = <uint64_t>(self.flags >> REDELIVERY_SHIFT) << 32 | <uint32_t>self.batch_index
    if self.entry.decoded is None:
        self.entry.decoded = {}
    found = self.entry.decoded.get(key)
    if found is not None:
        return found
    if decoding == DECODING_PAYLOAD:
        found = context.schema.decode(self.data())
    elif decoding == DECODING_VERSION:
        found = context.decoder_of(schema_version_of(self))(self.data())
    else:
        found = context.schema.decode_message(self)
    self.entry.decoded[key] = found
    return found


cdef bytes schema_version_of(Message self):
    cdef MessageMetadata metadata
    entry_metadata(self, &metadata)
    if metadata.flags & METADATA_SCHEMA_VERSION == 0:
        return b""
    return metadata.schema_version[:metadata.schema_version_size]


refuse_new(Message)
