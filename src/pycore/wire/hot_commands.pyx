# cython: language_level=3
"""The commands of Pulsar's protocol of which there is one an entry, in the form that everybody
sends them. Any other form is for the tables of pulsarx.wire, which say what is wrong with it."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef enum:
    SEND = 6
    SEND_RECEIPT = 7
    MESSAGE = 9
    ACK = 10
    FLOW = 11
    INDIVIDUAL = 0
    VARINT_SIZE_MAX = 10
    PERMITS_MAX = 0x7FFFFFFF     # more are for the tables
    SIZES = 8                    # of a frame and its command
    HEAD_SIZE_MAX = 128          # of a command: less than ten varints with their tags

cdef struct Varints:
    const uint8_t* at
    const uint8_t* end
    bint failed


cdef uint64_t next_varint(Varints* data) noexcept nogil:
    cdef uint64_t value = 0
    cdef uint32_t shift = 0
    cdef uint8_t byte
    while data.at < data.end and shift < 7 * VARINT_SIZE_MAX:
        byte = data.at[0]
        data.at += 1
        value |= <uint64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            return value
        shift += 7
    data.failed = True
    return 0


cdef bint send_parse(const uint8_t* frame, size_t size, SendParts* parts) noexcept nogil:
    cdef Varints data
    cdef uint64_t tag
    cdef uint64_t value
    cdef uint32_t given = 0
    cdef uint32_t command_size
    if size < 4:
        return False
    command_size = size_at(frame)
    if command_size >= size - 4:
        return False
    data.at = frame + 4
    data.end = data.at + command_size
    data.failed = False
    # BaseCommand: type, then the field of that number, to the end.
    if next_varint(&data) != (1 << 3) or next_varint(&data) != SEND:
        return False
    if next_varint(&data) != (SEND << 3 | 2):
        return False
    if next_varint(&data) != <uint64_t>(data.end - data.at):
        return False
    while data.at < data.end and not data.failed:
        tag = next_varint(&data)
        value = next_varint(&data)
        if tag == (1 << 3):
            parts.producer_id = value
            given |= 1
        elif tag == (2 << 3):
            parts.sequence_id = value
            given |= 2
        elif tag != (3 << 3):
            return False
    if data.failed or given != 3:
        return False
    parts.entry = data.end
    parts.entry_size = size - 4 - command_size
    return True


def send_decode(bytes frame not None):
    """(producer id, sequence id, entry) of a SEND; frame: without its total size. None: it is none,
    or has another field than those and the number of messages."""
    cdef SendParts parts
    if not send_parse(<const uint8_t*>PyBytes_AS_STRING(frame), <size_t>PyBytes_GET_SIZE(frame),
                      &parts):
        return None
    return (parts.producer_id, parts.sequence_id,
            PyBytes_FromStringAndSize(<const char*>parts.entry, <Py_ssize_t>parts.entry_size))


cdef bint receipt_parse(const uint8_t* frame, size_t size, ReceiptParts* parts) noexcept nogil:
    cdef Varints data
    cdef const uint8_t* id_end = NULL
    cdef uint64_t numbers[3]                 # producer, sequence, and what is not asked for
    cdef uint64_t place[3]                   # ledger, entry, partition
    cdef uint64_t tag
    cdef uint64_t value
    cdef uint32_t given = 0
    cdef uint32_t given_of_id = 0
    if size < 4 or size_at(frame) != size - 4:
        return False
    data.at = frame + 4
    data.end = frame + size
    data.failed = False
    if next_varint(&data) != (1 << 3) or next_varint(&data) != SEND_RECEIPT:
        return False
    if next_varint(&data) != (SEND_RECEIPT << 3 | 2):
        return False
    if next_varint(&data) != <uint64_t>(data.end - data.at):
        return False
    while data.at < data.end and not data.failed:
        tag = next_varint(&data)
        value = next_varint(&data)
        if tag == (3 << 3 | 2) and id_end == NULL and value <= <uint64_t>(data.end - data.at):
            id_end = data.at + value
            while data.at < id_end and not data.failed:
                tag = next_varint(&data)
                value = next_varint(&data)
                if tag not in (1 << 3, 2 << 3, 3 << 3):
                    return False
                place[(tag >> 3) - 1] = value
                given_of_id |= 1 << <uint32_t>(tag >> 3)
            if data.at != id_end:
                return False
        elif tag in (1 << 3, 2 << 3, 4 << 3):        # the last: highest_sequence_id
            numbers[2 if tag == (4 << 3) else (tag >> 3) - 1] = value
            given |= 1 << <uint32_t>(tag >> 3)
        else:
            return False
    if data.failed or given & 6 != 6 or given_of_id & 6 != 6 or (place[0] | place[1]) >> 63:
        return False
    parts.producer_id = numbers[0]
    parts.sequence_id = numbers[1]
    parts.ledger_id = place[0]
    parts.entry_id = place[1]
    parts.partition = <int32_t>place[2] if given_of_id & 8 else -1
    return True


def receipt_decode(bytes frame not None):
    """(producer id, sequence id, ledger id, entry id, partition) of a SEND_RECEIPT with the id of a
    whole entry, partition -1: none; frame: without its total size. None: it is none, or says more
    than that."""
    cdef ReceiptParts parts
    if not receipt_parse(<const uint8_t*>PyBytes_AS_STRING(frame),
                         <size_t>PyBytes_GET_SIZE(frame), &parts):
        return None
    return (parts.producer_id, parts.sequence_id, parts.ledger_id, parts.entry_id,
            parts.partition)


cdef bint id_parse(Varints* data, uint64_t* ledger_id, uint64_t* entry_id) noexcept nogil:
    """The id of a whole entry, behind its tag."""
    cdef const uint8_t* id_end
    cdef uint64_t tag
    cdef uint64_t value = next_varint(data)
    cdef uint32_t given = 0
    if value > <uint64_t>(data.end - data.at):
        return False
    id_end = data.at + value
    while data.at < id_end and not data.failed:
        tag = next_varint(data)
        value = next_varint(data)
        if tag == (1 << 3):
            ledger_id[0] = value
            given |= 1
        elif tag == (2 << 3):
            entry_id[0] = value
            given |= 2
        elif tag not in (3 << 3, 4 << 3, 6 << 3):    # partition, batch index, batch size
            return False
    return data.at == id_end and given == 3 and not (ledger_id[0] | entry_id[0]) >> 63


cdef bint simple_parse(const uint8_t* frame, size_t size, uint32_t kind,
                       Varints* data) noexcept nogil:
    """Whether a frame is a command of that kind, without an entry, whose fields come next."""
    if size < 4 or size_at(frame) != size - 4:
        return False
    data.at = frame + 4
    data.end = frame + size
    data.failed = False
    if next_varint(data) != (1 << 3) or next_varint(data) != kind:
        return False
    if next_varint(data) != (kind << 3 | 2):
        return False
    return next_varint(data) == <uint64_t>(data.end - data.at)


cdef bint ack_parse(const uint8_t* frame, size_t size, AckParts* parts) noexcept nogil:
    cdef Varints data
    cdef const uint8_t* begin
    cdef uint64_t ledger_id = 0
    cdef uint64_t entry_id = 0
    cdef uint64_t tag
    cdef uint64_t value
    cdef uint32_t given = 0
    if not simple_parse(frame, size, ACK, &data):
        return False
    parts.end = data.end
    parts.at = data.end
    while data.at < data.end and not data.failed:
        begin = data.at
        tag = next_varint(&data)
        if tag == (3 << 3 | 2):
            if parts.at == data.end:
                parts.at = begin
            if not id_parse(&data, &ledger_id, &entry_id):
                return False
            continue
        value = next_varint(&data)
        if tag == (1 << 3):
            parts.consumer_id = value
            given |= 1
        elif tag == (2 << 3) and value == INDIVIDUAL:
            given |= 2
        else:
            return False
    return not data.failed and given == 3


cdef bint ack_next(AckParts* parts, uint64_t* ledger_id, uint64_t* entry_id) noexcept nogil:
    cdef Varints data
    cdef bint found = False
    data.at = parts.at
    data.end = parts.end
    data.failed = False
    while data.at < data.end and not found:
        if next_varint(&data) == (3 << 3 | 2):
            found = id_parse(&data, ledger_id, entry_id)
        else:
            next_varint(&data)               # the consumer or the kind, once more
    parts.at = data.at
    return found


def ack_decode(bytes frame not None):
    """(consumer id, [(ledger id, entry id), ...]) of an ACK of whole entries, one by one, in no
    transaction and without a request; frame: without its total size. None: it is none, or says more
    than that."""
    cdef AckParts parts
    cdef uint64_t ledger_id = 0
    cdef uint64_t entry_id = 0
    cdef list found = []
    if not ack_parse(<const uint8_t*>PyBytes_AS_STRING(frame), <size_t>PyBytes_GET_SIZE(frame),
                     &parts):
        return None
    while ack_next(&parts, &ledger_id, &entry_id):
        found.append((ledger_id, entry_id))
    return parts.consumer_id, found


cdef bint flow_parse(const uint8_t* frame, size_t size, FlowParts* parts) noexcept nogil:
    cdef Varints data
    cdef uint64_t tag
    cdef uint64_t value
    cdef uint32_t given = 0
    if not simple_parse(frame, size, FLOW, &data):
        return False
    while data.at < data.end and not data.failed:
        tag = next_varint(&data)
        value = next_varint(&data)
        if tag == (1 << 3):
            parts.consumer_id = value
            given |= 1
        elif tag == (2 << 3) and value <= PERMITS_MAX:
            parts.permits = <uint32_t>value
            given |= 2
        else:
            return False
    return not data.failed and given == 3


def flow_decode(bytes frame not None):
    """(consumer id, permits) of a FLOW; frame: without its total size. None: it is none."""
    cdef FlowParts parts
    if not flow_parse(<const uint8_t*>PyBytes_AS_STRING(frame), <size_t>PyBytes_GET_SIZE(frame),
                      &parts):
        return None
    return parts.consumer_id, parts.permits


def link_decode(bytes frame not None):
    """(kind, consumer id, its four numbers) of a frame of pulsarx._pycore.ground.owner_link; frame:
    without its total size. None: it is a command of Pulsar's."""
    cdef const uint8_t* begin = <const uint8_t*>PyBytes_AS_STRING(frame)
    cdef uint64_t numbers[5]
    cdef uint32_t number
    if PyBytes_GET_SIZE(frame) != LINK_SIZE or size_at(begin):
        return None
    for number in range(5):
        numbers[number] = number_at(begin + 8 + 8 * number)
    return (size_at(begin + 4), numbers[0], (numbers[1], numbers[2], numbers[3], numbers[4]))


cdef inline uint8_t* put_varint(uint8_t* at, uint64_t value) noexcept nogil:
    while value >= 0x80:
        at[0] = <uint8_t>(value & 0x7F | 0x80)
        at += 1
        value >>= 7
    at[0] = <uint8_t>value
    return at + 1


cdef inline uint8_t* put_field(uint8_t* at, uint32_t number, uint64_t value) noexcept nogil:
    return put_varint(put_varint(at, number << 3), value)


cdef inline void put_size(uint8_t* at, uint32_t value) noexcept nogil:
    at[0] = <uint8_t>(value >> 24)
    at[1] = <uint8_t>(value >> 16)
    at[2] = <uint8_t>(value >> 8)
    at[3] = <uint8_t>value


cdef uint8_t* put_id(uint8_t* at, uint32_t number, int64_t ledger_id, int64_t entry_id,
                     int32_t partition) noexcept nogil:
    """A MessageIdData, as a field."""
    cdef uint8_t inside[4 * VARINT_SIZE_MAX]
    cdef uint8_t* end = put_field(inside, 1, <uint64_t>ledger_id)
    end = put_field(end, 2, <uint64_t>entry_id)
    if partition >= 0:
        end = put_field(end, 3, <uint64_t>partition)
    at = put_varint(put_varint(at, number << 3 | 2), <uint64_t>(end - inside))
    memcpy(at, inside, end - inside)
    return at + (end - inside)


cdef size_t head_put(uint8_t* to, uint32_t kind, const uint8_t* command, size_t command_size,
                     size_t entry_size) noexcept nogil:
    """Sizes and BaseCommand of a frame. Return their size."""
    cdef uint8_t* at = put_field(to + SIZES, 1, kind)
    at = put_varint(put_varint(at, kind << 3 | 2), command_size)
    memcpy(at, command, command_size)
    at += command_size
    put_size(to, <uint32_t>(at - to - 4 + entry_size))
    put_size(to + 4, <uint32_t>(at - to - SIZES))
    return <size_t>(at - to)


cdef bytes framed(uint32_t kind, const uint8_t* command, size_t command_size, bytes entry):
    """A frame: sizes, BaseCommand, entry."""
    cdef uint8_t head[COMMAND_SIZE_MAX]
    cdef Py_ssize_t entry_size = 0 if entry is None else PyBytes_GET_SIZE(entry)
    cdef Py_ssize_t size = <Py_ssize_t>head_put(head, kind, command, command_size, entry_size)
    cdef bytes found = PyBytes_FromStringAndSize(NULL, size + entry_size)
    cdef char* to = PyBytes_AS_STRING(found)
    memcpy(to, head, size)
    if entry_size:
        memcpy(to + size, PyBytes_AS_STRING(entry), entry_size)
    return found


cdef size_t receipt_put(uint8_t* to, uint64_t producer_id, uint64_t sequence_id, int64_t ledger_id,
                        int64_t entry_id, int32_t partition) noexcept nogil:
    cdef uint8_t command[HEAD_SIZE_MAX]
    cdef uint8_t* at = put_field(command, 1, producer_id)
    at = put_field(at, 2, sequence_id)
    at = put_id(at, 3, ledger_id, entry_id, partition)
    return head_put(to, SEND_RECEIPT, command, at - command, 0)


cdef size_t message_put(uint8_t* to, uint64_t consumer_id, int64_t ledger_id, int64_t entry_id,
                        int32_t partition, uint32_t redelivery_count, uint64_t epoch,
                        const uint8_t* entry, uint32_t size) noexcept nogil:
    cdef uint8_t command[HEAD_SIZE_MAX]
    cdef uint8_t* at = put_field(command, 1, consumer_id)
    cdef size_t head
    at = put_id(at, 2, ledger_id, entry_id, partition)
    if redelivery_count:
        at = put_field(at, 3, redelivery_count)
    if epoch:
        at = put_field(at, 5, epoch)
    head = head_put(to, MESSAGE, command, at - command, size)
    memcpy(to + head, entry, size)
    return head + size


def send_encode(uint64_t producer_id, uint64_t sequence_id, uint32_t message_count,
                bytes entry not None, int64_t transaction=-1) -> bytes:
    """The frame of a SEND. transaction: that it belongs to, of coordinator 0; -1: to none."""
    cdef uint8_t command[HEAD_SIZE_MAX]
    cdef uint8_t* at = put_field(command, 1, producer_id)
    at = put_field(at, 2, sequence_id)
    at = put_field(at, 3, message_count)
    if transaction >= 0:
        at = put_field(put_field(at, 4, <uint64_t>transaction), 5, 0)
    return framed(SEND, command, at - command, entry)


def receipt_encode(uint64_t producer_id, uint64_t sequence_id, int64_t ledger_id, int64_t entry_id,
                   int32_t partition) -> bytes:
    """The frame of a SEND_RECEIPT; partition -1: none."""
    cdef uint8_t frame[COMMAND_SIZE_MAX]
    cdef size_t size = receipt_put(frame, producer_id, sequence_id, ledger_id, entry_id, partition)
    return PyBytes_FromStringAndSize(<const char*>frame, <Py_ssize_t>size)


def flow_encode(uint64_t consumer_id, uint32_t permits) -> bytes:
    """The frame of a FLOW."""
    cdef uint8_t command[HEAD_SIZE_MAX]
    cdef uint8_t* at = put_field(put_field(command, 1, consumer_id), 2, permits)
    return framed(FLOW, command, at - command, None)


def message_encode(uint64_t consumer_id, int64_t ledger_id, int64_t entry_id, int32_t partition,
                   uint32_t redelivery_count, uint64_t epoch, bytes entry not None) -> bytes:
    """The frame of a MESSAGE that is a whole entry; partition -1: none."""
    cdef uint32_t size = <uint32_t>PyBytes_GET_SIZE(entry)
    cdef bytes room = PyBytes_FromStringAndSize(NULL, COMMAND_SIZE_MAX + size)
    cdef char* to = PyBytes_AS_STRING(room)
    return room[:message_put(<uint8_t*>to, consumer_id, ledger_id, entry_id, partition,
                             redelivery_count, epoch,
                             <const uint8_t*>PyBytes_AS_STRING(entry), size)]
