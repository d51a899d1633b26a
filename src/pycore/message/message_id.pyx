# cython: embedsignature=True
"""The place of a message, its order, its bytes and its texts.

The bytes are Pulsar's MessageIdData:
    field  name                     written when     read
        1  ledger_id     varint     always           required
        2  entry_id      varint     always           required
        3  partition     varint     not -1           absent: -1
        4  batch_index   varint     not -1           absent: -1
        5  ack_set       repeated   never            skipped
        6  batch_size    varint     not 0            absent: 0
        7  first chunk   message    in chunks        absent: the message is one entry
A message in chunks is at its last chunk; the first one's id is the same message without a field 7.
Java also writes batch_size 0, and -1 in full; both are read.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.number cimport PyNumber_Index
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from pulsarx import errors
from pulsarx._core.byte_reader cimport (
    ByteReader, byte_reader_block, byte_reader_left, byte_reader_start, byte_reader_take,
    byte_reader_varint,
)
from pulsarx._core.byte_writer cimport (
    ByteWriter, byte_writer_block, byte_writer_start, byte_writer_varint,
)
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_OK

cdef enum:
    # six fields of one tag byte and at most ten bytes, and as many of a first chunk
    SERIALIZED_SIZE_MAX = 160
    TAG_LEDGER_ID = 0x08
    TAG_ENTRY_ID = 0x10
    TAG_PARTITION = 0x18
    TAG_BATCH_INDEX = 0x20
    TAG_BATCH_SIZE = 0x30
    TAG_FIRST_CHUNK = 0x3A
    WIRE_VARINT = 0
    WIRE_FIXED64 = 1
    WIRE_BLOCK = 2
    WIRE_FIXED32 = 5
    HAS_LEDGER_ID = 1
    HAS_ENTRY_ID = 2

cdef struct Fields:
    int64_t ledger_id
    int64_t entry_id
    int32_t partition
    int32_t batch_index
    int32_t batch_size
    int64_t first_ledger_id
    int64_t first_entry_id
    bint is_chunked


@cython.final
@cython.no_gc
# As many as a batch has messages: send_many returns the ids of one, and most are dropped at once.
@cython.freelist(1024)
cdef class MessageId:
    """Position of one message in a topic. Any thread may use it; it never changes.

    Ordered by ledger, entry, partition, batch index; the size of the batch is no part of it.
    Differs from the official client where that is broken: hashable, picklable, equal to no other
    type, and `<` agrees with `==`.
    """

    earliest = message_id_new(-1, -1, -1, -1, 0)
    latest = message_id_new(0x7FFFFFFFFFFFFFFF, 0x7FFFFFFFFFFFFFFF, -1, -1, 0)

    def __init__(self, partition=-1, ledger_id=-1, entry_id=-1, batch_index=-1):
        """Make an id of its numbers. `earliest` and `latest` are there already.

        Args:
            partition: The index of the partition; -1: the topic has none.
            ledger_id: The id of the ledger.
            entry_id: The number of the entry in its ledger.
            batch_index: The index in the batch; -1: the message did not travel in one.

        Raises:
            TypeError: An argument is no int.
            OverflowError: One does not fit into 64 bits, or 32 for the partition and the index.
        """
        # Converting alone would take a float and cut it.
        self.c_ledger_id = PyNumber_Index(ledger_id)
        self.c_entry_id = PyNumber_Index(entry_id)
        self.c_partition = PyNumber_Index(partition)
        self.c_batch_index = PyNumber_Index(batch_index)
        self.c_batch_size = 0
        self.c_is_chunked = False
        self.c_has_topic = False

    def ledger_id(self):
        """Return the id of the ledger."""
        return self.c_ledger_id

    def entry_id(self):
        """Return the number of the entry in its ledger, from 0."""
        return self.c_entry_id

    def partition(self):
        """Return the index of the partition; -1 when the topic is not partitioned."""
        return self.c_partition

    def batch_index(self):
        """Return the index in the batch; -1 when the message did not travel in one."""
        return self.c_batch_index

    def batch_size(self):
        """Return the number of messages that the batch had; 0 when that is not known."""
        return self.c_batch_size

    def first_chunk_message_id(self):
        """Return the id of the first chunk of a message that was published in chunks, else None.
        Its own id is that of the last one."""
        if not self.c_is_chunked:
            return None
        first = message_id_new(self.c_first_ledger_id, self.c_first_entry_id, self.c_partition,
                               -1, 0)
        first.c_has_topic = self.c_has_topic
        return first

    def serialize(self):
        """Return bytes to store and to `deserialize` later, as Pulsar's Python client writes
        them."""
        cdef uint8_t room[SERIALIZED_SIZE_MAX]
        cdef uint8_t inner_room[SERIALIZED_SIZE_MAX]
        cdef ByteWriter writer
        cdef ByteWriter inner
        byte_writer_start(&writer, room, SERIALIZED_SIZE_MAX)
        _write_field(&writer, TAG_LEDGER_ID, self.c_ledger_id)
        _write_field(&writer, TAG_ENTRY_ID, self.c_entry_id)
        if self.c_partition != -1:
            _write_field(&writer, TAG_PARTITION, self.c_partition)
        if self.c_batch_index != -1:
            _write_field(&writer, TAG_BATCH_INDEX, self.c_batch_index)
        if self.c_batch_size != 0:
            _write_field(&writer, TAG_BATCH_SIZE, self.c_batch_size)
        if self.c_is_chunked:
            byte_writer_start(&inner, inner_room, SERIALIZED_SIZE_MAX)
            _write_field(&inner, TAG_LEDGER_ID, self.c_first_ledger_id)
            _write_field(&inner, TAG_ENTRY_ID, self.c_first_entry_id)
            if self.c_partition != -1:
                _write_field(&inner, TAG_PARTITION, self.c_partition)
            byte_writer_varint(&writer, TAG_FIRST_CHUNK)
            byte_writer_block(&writer, inner_room, <uint32_t>(inner.at - inner_room))
        return PyBytes_FromStringAndSize(<char*>room, writer.at - room)

    @staticmethod
    def deserialize(message_id_bytes, topic=None):
        """Return the id that was serialized here, by the official client or by Java.

        Args:
            message_id_bytes: The bytes that serialize returned.
            topic: The topic of the message. A consumer of several topics acknowledges no id without
                it.

        Raises:
            ValueError: They are no serialized id.
            TypeError: An argument is of the wrong type.
        """
        cdef Fields fields
        cdef MessageId made
        if not isinstance(message_id_bytes, bytes):
            kind = type(message_id_bytes).__name__
            raise TypeError(f"message_id_bytes must be bytes, not {kind}")
        if topic is not None and not isinstance(topic, str):
            raise TypeError(f"topic must be str or None, not {type(topic).__name__}")
        if _read_fields(<uint8_t*>PyBytes_AS_STRING(message_id_bytes),
                        PyBytes_GET_SIZE(message_id_bytes), &fields, 0) != STATUS_OK:
            raise ValueError(f"not a serialized message id: {message_id_bytes[:40]!r}")
        if fields.is_chunked:
            made = message_id_chunked(fields.ledger_id, fields.entry_id, fields.partition,
                                      fields.first_ledger_id, fields.first_entry_id)
        else:
            made = message_id_new(fields.ledger_id, fields.entry_id, fields.partition,
                                  fields.batch_index, fields.batch_size)
        made.c_has_topic = topic is not None
        return made

    @classmethod
    def wrap(cls, msg_id):
        """Return the id itself: native and wrapped ids are one type here.

        Args:
            msg_id: A MessageId.

        Raises:
            TypeError: It is none.
        """
        if not isinstance(msg_id, MessageId):
            raise TypeError(f"msg_id must be a MessageId, not {type(msg_id).__name__}")
        return msg_id

    @property
    def _msg_id(self):
        """The native id, as programs take it out of the official client's."""
        return self

    def topic_name(self, name):
        """Refuse: an id does not change. `_pulsar` has this to give an id its topic.

        Args:
            name: The name of a topic.

        Raises:
            OperationNotSupported: Always; `deserialize` takes a topic.
        """
        from pulsarx import errors

        raise errors.OperationNotSupported(
            detail="MessageId.topic_name: an id does not change; MessageId.deserialize takes a "
            "topic"
        )

    @classmethod
    def from_text(cls, text, topic=None):
        """Return the id in `ledger:entry:partition[:batch index]` or
        `(ledger,entry,partition,batch)`; of a message in chunks `first;last`, both in the former.

        Args:
            text: As to_text or str write it.
            topic: The topic of the message. A consumer of several topics acknowledges no id without
                it.

        Raises:
            ValueError: The text is no id.
            TypeError: An argument is of the wrong type.
        """
        cdef MessageId made
        if not isinstance(text, str):
            raise TypeError(f"text must be str, not {type(text).__name__}")
        if topic is not None and not isinstance(topic, str):
            raise TypeError(f"topic must be str or None, not {type(topic).__name__}")
        made = _id_of_text(cls, text)
        made.c_has_topic = topic is not None
        return made

    @classmethod
    def from_row(cls, row):
        """Return the id in a row of received columns, whatever library holds it.

        Args:
            row: A value of the column message_id (a dict, or an Arrow scalar), or a row that has
                this column, also as `__message_id__`, or those of its four numbers, as `to_numpy`
                and `to_pandas` give them.

        Raises:
            ValueError: It has none.
        """
        cdef MessageId made
        found = row.as_py() if hasattr(row, "as_py") else row
        for name in ("message_id", "__message_id__"):
            if _has_column(found, name):
                found = found[name]
                found = found.as_py() if hasattr(found, "as_py") else found
                break
        numbers = []
        for name in ("ledger_id", "entry_id", "partition", "batch_index"):
            if not _has_column(found, name):
                raise ValueError(f"no message id, it has no {name}: {found!r:.200}")
            try:
                numbers.append(PyNumber_Index(found[name]))
            except TypeError:
                raise ValueError(
                    f"not a message id, its {name} is {found[name]!r:.100}: {found!r:.200}"
                ) from None
        try:
            made = message_id_new(numbers[0], numbers[1], numbers[2], numbers[3], 0)
        except OverflowError:
            raise ValueError(f"not a message id, a number is too large: {found!r:.200}") from None
        made.c_has_topic = True                      # it was received
        return made

    def to_text(self):
        """Return `ledger:entry:partition`, and `:batch index` where there is one, as Java writes
        it; of a message in chunks those of the first and the last one: `first;last`."""
        text = f"{self.c_ledger_id}:{self.c_entry_id}:{self.c_partition}"
        if self.c_is_chunked:
            return f"{self.first_chunk_message_id().to_text()};{text}"
        return text if self.c_batch_index < 0 else f"{text}:{self.c_batch_index}"

    def __str__(self):
        return f"({self.c_ledger_id},{self.c_entry_id},{self.c_partition},{self.c_batch_index})"

    def __repr__(self):
        return self.__str__()

    def __hash__(self):
        # The odd constants spread neighbouring ids; -1 is not allowed as a hash.
        cdef uint64_t mixed = <uint64_t>self.c_ledger_id * <uint64_t>0x9E3779B97F4A7C15
        mixed = (mixed ^ <uint64_t>self.c_entry_id) * <uint64_t>0xBF58476D1CE4E5B9
        mixed = (mixed ^ <uint32_t>self.c_partition) * <uint64_t>0x94D049BB133111EB
        mixed = (mixed ^ <uint32_t>self.c_batch_index) * <uint64_t>0x9E3779B97F4A7C15
        mixed ^= mixed >> 32
        return <Py_hash_t>(mixed >> 1)

    def __eq__(self, other):
        if not isinstance(other, MessageId):
            return NotImplemented
        return _compare(self, <MessageId>other) == 0

    def __ne__(self, other):
        if not isinstance(other, MessageId):
            return NotImplemented
        return _compare(self, <MessageId>other) != 0

    def __lt__(self, other):
        if not isinstance(other, MessageId):
            return NotImplemented
        return _compare(self, <MessageId>other) < 0

    def __le__(self, other):
        if not isinstance(other, MessageId):
            return NotImplemented
        return _compare(self, <MessageId>other) <= 0

    def __gt__(self, other):
        if not isinstance(other, MessageId):
            return NotImplemented
        return _compare(self, <MessageId>other) > 0

    def __ge__(self, other):
        if not isinstance(other, MessageId):
            return NotImplemented
        return _compare(self, <MessageId>other) >= 0

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        known = (True,) if self.c_has_topic else ()
        if self.c_is_chunked:
            return _message_id_restore_chunked, (
                self.c_ledger_id, self.c_entry_id, self.c_partition, self.c_first_ledger_id,
                self.c_first_entry_id, *known)
        return _message_id_restore, (self.c_ledger_id, self.c_entry_id, self.c_partition,
                                     self.c_batch_index, self.c_batch_size, *known)


cdef MessageId message_id_new(int64_t ledger_id, int64_t entry_id, int32_t partition,
                              int32_t batch_index, int32_t batch_size):
    cdef MessageId made = MessageId.__new__(MessageId)
    made.c_ledger_id = ledger_id
    made.c_entry_id = entry_id
    made.c_partition = partition
    made.c_batch_index = batch_index
    made.c_batch_size = batch_size
    made.c_is_chunked = False
    made.c_has_topic = False
    return made


cdef MessageId message_id_chunked(int64_t ledger_id, int64_t entry_id, int32_t partition,
                                  int64_t first_ledger_id, int64_t first_entry_id):
    cdef MessageId made = message_id_new(ledger_id, entry_id, partition, -1, 0)
    made.c_is_chunked = True
    made.c_first_ledger_id = first_ledger_id
    made.c_first_entry_id = first_entry_id
    return made


def message_id_with_first_chunk(MessageId last not None, MessageId first not None):
    """The id of a message in chunks: that of its last one, holding that of its first one."""
    return message_id_chunked(last.c_ledger_id, last.c_entry_id, last.c_partition,
                              first.c_ledger_id, first.c_entry_id)


def message_id_in_batch(int64_t ledger_id, int64_t entry_id, int32_t batch_index,
                        int32_t batch_size, int32_t partition=-1):
    """The id of a message of a batch; batch index -1 and size 0: of an entry of its own."""
    return message_id_new(ledger_id, entry_id, partition, batch_index, batch_size)


def _message_id_restore(int64_t ledger_id, int64_t entry_id, int32_t partition,
                        int32_t batch_index, int32_t batch_size, bint has_topic=False):
    """Make the id that was pickled; called by pickle. Its name and arguments are part of what is
    pickled."""
    made = message_id_new(ledger_id, entry_id, partition, batch_index, batch_size)
    made.c_has_topic = has_topic
    return made


def _message_id_restore_chunked(int64_t ledger_id, int64_t entry_id, int32_t partition,
                                int64_t first_ledger_id, int64_t first_entry_id,
                                bint has_topic=False):
    """Make the id of a message in chunks that was pickled; called by pickle. Its name and arguments
    are part of what is pickled."""
    made = message_id_chunked(ledger_id, entry_id, partition, first_ledger_id, first_entry_id)
    made.c_has_topic = has_topic
    return made


cdef MessageId _id_of_text(cls, str text):
    first_text, separator, last_text = text.partition(";")
    if separator:
        first = _id_of_chunk(cls, first_text, text)
        last = _id_of_chunk(cls, last_text, text)
        if (<MessageId>first).c_partition != (<MessageId>last).c_partition:
            raise ValueError(
                f"not a message id, its chunks are of two partitions: {errors.shown(text)}")
        return message_id_chunked(
            (<MessageId>last).c_ledger_id, (<MessageId>last).c_entry_id,
            (<MessageId>last).c_partition, (<MessageId>first).c_ledger_id,
            (<MessageId>first).c_entry_id)
    bracketed = text.startswith("(") and text.endswith(")")
    parts = text[1:len(text) - 1].split(",") if bracketed else text.split(":")
    if len(parts) != 4 and (bracketed or len(parts) != 3):
        raise ValueError(f"not a message id: {errors.shown(text)}")
    if not all(_is_decimal(part) for part in parts):
        raise ValueError(f"not a message id: {errors.shown(text)}")
    numbers = [int(part) for part in parts]
    try:
        return message_id_new(numbers[0], numbers[1], numbers[2],
                              numbers[3] if len(numbers) == 4 else -1, 0)
    except OverflowError:
        raise ValueError(
            f"not a message id, a number is too large: {errors.shown(text)}") from None


cdef bint _has_column(object row, str name) except -1:
    return hasattr(row, "keys") and name in row.keys()


cdef object _id_of_chunk(cls, str part, str text):
    if ";" in part or part.startswith("(") or part.count(":") != 2:
        raise ValueError(f"not a message id: {errors.shown(text)}")
    return cls.from_text(part)


cdef inline int _compare(MessageId left, MessageId right) noexcept:
    if left.c_ledger_id != right.c_ledger_id:
        return -1 if left.c_ledger_id < right.c_ledger_id else 1
    if left.c_entry_id != right.c_entry_id:
        return -1 if left.c_entry_id < right.c_entry_id else 1
    if left.c_partition != right.c_partition:
        return -1 if left.c_partition < right.c_partition else 1
    if left.c_batch_index != right.c_batch_index:
        return -1 if left.c_batch_index < right.c_batch_index else 1
    return 0


cdef bint _is_decimal(str part):
    digits = part[1:] if part[:1] == "-" else part
    return digits.isascii() and digits.isdigit()


cdef inline void _write_field(ByteWriter* writer, int tag, int64_t value) noexcept nogil:
    byte_writer_varint(writer, <uint64_t>tag)
    byte_writer_varint(writer, <uint64_t>value)


cdef int _read_fields(const uint8_t* data, size_t size, Fields* fields,
                      int depth) noexcept nogil:
    """Fields may come in any order and more than once: the last one counts, as in protobuf. depth:
    1 inside the id of a first chunk, which has none itself."""
    cdef ByteReader reader
    cdef uint64_t tag = 0
    cdef uint64_t value = 0
    cdef Fields first
    cdef const uint8_t* block
    cdef uint32_t block_size = 0
    cdef int status
    cdef int seen = 0
    fields.is_chunked = False
    fields.ledger_id = -1
    fields.entry_id = -1
    fields.partition = -1
    fields.batch_index = -1
    fields.batch_size = 0
    byte_reader_start(&reader, data, size)
    while byte_reader_left(&reader) > 0:
        status = byte_reader_varint(&reader, &tag)
        if status != STATUS_OK:
            return status
        if tag == TAG_FIRST_CHUNK and depth == 0:
            status = byte_reader_block(&reader, &block, &block_size)
            if status == STATUS_OK:
                status = _read_fields(block, block_size, &first, 1)
            if status != STATUS_OK:
                return status
            fields.is_chunked = True
            fields.first_ledger_id = first.ledger_id
            fields.first_entry_id = first.entry_id
            continue
        if tag & 7 != WIRE_VARINT:
            status = _skip_field(&reader, tag)
            if status != STATUS_OK:
                return status
            continue
        status = byte_reader_varint(&reader, &value)
        if status != STATUS_OK:
            return status
        if tag == TAG_LEDGER_ID:
            fields.ledger_id = <int64_t>value
            seen |= HAS_LEDGER_ID
        elif tag == TAG_ENTRY_ID:
            fields.entry_id = <int64_t>value
            seen |= HAS_ENTRY_ID
        elif tag == TAG_PARTITION:
            fields.partition = <int32_t>value
        elif tag == TAG_BATCH_INDEX:
            fields.batch_index = <int32_t>value
        elif tag == TAG_BATCH_SIZE:
            fields.batch_size = <int32_t>value
        elif tag >> 3 == 0:
            return STATUS_CORRUPT
    return STATUS_OK if seen == HAS_LEDGER_ID | HAS_ENTRY_ID else STATUS_CORRUPT


cdef int _skip_field(ByteReader* reader, uint64_t tag) noexcept nogil:
    cdef const uint8_t* skipped
    cdef uint32_t size = 0
    if tag >> 3 == 0:
        return STATUS_CORRUPT
    if tag & 7 == WIRE_BLOCK:
        return byte_reader_block(reader, &skipped, &size)
    if tag & 7 == WIRE_FIXED64:
        return byte_reader_take(reader, 8, &skipped)
    if tag & 7 == WIRE_FIXED32:
        return byte_reader_take(reader, 4, &skipped)
    return STATUS_CORRUPT
