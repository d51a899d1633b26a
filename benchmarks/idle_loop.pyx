# cython: language_level=3
"""The loop of idle_broker.py: sockets, frames, and the commands that come by the thousand (SEND,
FLOW, ACK). All others are answered by the caller, in Python.

One thread, which waits in poll. It ends when its standard input is closed.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memmove
from posix.unistd cimport close as close_file

cdef extern from "<poll.h>" nogil:
    cdef struct pollfd:
        int fd
        short events
        short revents
    int poll(pollfd* files, unsigned long count, int timeout)
    short POLLIN
    short POLLOUT

cdef extern from "<sys/socket.h>" nogil:
    int accept(int file, void* address, void* size)
    ssize_t recv(int file, void* data, size_t size, int flags)
    ssize_t send(int file, const void* data, size_t size, int flags)
    int MSG_DONTWAIT
    int MSG_NOSIGNAL

cdef enum:
    CONNECTIONS_MAX = 64
    TOPICS_MAX = 256
    CLIENTS_MAX = 256            # producers, or consumers, of one connection
    READ_SIZE = 1 << 20
    SEND = 6
    SEND_RECEIPT = 7
    MESSAGE = 9
    ACK = 10
    FLOW = 11
    LEDGER = 1

cdef struct Buffer:
    uint8_t* data                # owned
    size_t begin
    size_t end
    size_t capacity

cdef struct Topic:
    uint8_t* entry               # owned: the largest that was sent
    size_t size
    int64_t messages             # in it

cdef struct Consumer:
    int topic                    # -1: there is none
    int64_t permits
    uint64_t entry_id            # each has one of its own: clients drop what they acknowledged

cdef struct Connection:
    int file                     # -1: free
    Buffer came
    Buffer leaving
    uint64_t entry_id
    int[CLIENTS_MAX] producers   # the topics of their numbers
    Consumer[CLIENTS_MAX] consumers


cdef int reserve(Buffer* self, size_t size) except -1:
    cdef size_t capacity
    cdef void* grown
    if self.begin and self.begin == self.end:
        self.begin = self.end = 0
    if self.capacity - self.end >= size:
        return 0
    if self.begin:
        memmove(self.data, self.data + self.begin, self.end - self.begin)
        self.end -= self.begin
        self.begin = 0
    if self.capacity - self.end >= size:
        return 0
    capacity = max(2 * self.capacity, self.end + size)
    grown = realloc(self.data, capacity)
    if grown == NULL:
        raise MemoryError(f"{capacity} bytes of a connection")
    self.data = <uint8_t*>grown
    self.capacity = capacity
    return 0


cdef inline uint32_t number_at(const uint8_t* at) noexcept:
    return <uint32_t>at[0] << 24 | <uint32_t>at[1] << 16 | <uint32_t>at[2] << 8 | at[3]


cdef inline void put_number(uint8_t* at, uint32_t value) noexcept:
    at[0] = <uint8_t>(value >> 24)
    at[1] = <uint8_t>(value >> 16)
    at[2] = <uint8_t>(value >> 8)
    at[3] = <uint8_t>value


cdef inline uint8_t* put_varint(uint8_t* at, uint64_t value) noexcept:
    while value >= 128:
        at[0] = <uint8_t>(value | 128)
        value >>= 7
        at += 1
    at[0] = <uint8_t>value
    return at + 1


cdef inline const uint8_t* take_varint(const uint8_t* at, const uint8_t* end,
                                       uint64_t* value) noexcept:
    cdef int shift = 0
    value[0] = 0
    while at < end and shift < 64:
        value[0] |= <uint64_t>(at[0] & 127) << shift
        if at[0] < 128:
            return at + 1
        at += 1
        shift += 7
    return at


cdef const uint8_t* take_field(const uint8_t* at, const uint8_t* end, uint64_t* field,
                               uint64_t* value, const uint8_t** block) noexcept:
    """The next field of a message; of a block, value is its size. NULL: it is none."""
    at = take_varint(at, end, field)
    at = take_varint(at, end, value)
    block[0] = at
    if field[0] & 7 == 2:
        if value[0] > <uint64_t>(end - at):
            return NULL
        at += value[0]
    elif field[0] & 7 != 0:
        return NULL
    field[0] >>= 3
    return at


cdef class Loop:
    """Answers what comes over one listening socket."""

    cdef Connection* connections     # owned
    cdef Topic[TOPICS_MAX] topics    # their entries owned
    cdef object answer

    def __cinit__(self):
        cdef int at
        self.connections = <Connection*>calloc(CONNECTIONS_MAX, sizeof(Connection))
        if self.connections == NULL:
            raise MemoryError("connections")
        for at in range(CONNECTIONS_MAX):
            self.connections[at].file = -1

    def __init__(self, object answer not None):
        """answer: called with (number of the connection, command) of any other command; the bytes
        to send, or b"" for none."""
        self.answer = answer

    def __dealloc__(self):
        cdef int at
        for at in range(CONNECTIONS_MAX):
            free(self.connections[at].came.data)
            free(self.connections[at].leaving.data)
        for at in range(TOPICS_MAX):
            free(self.topics[at].entry)
        free(self.connections)

    def add_producer(self, int connection, int producer_id, int topic) -> None:
        if not (0 <= producer_id < CLIENTS_MAX and 0 <= topic < TOPICS_MAX):
            raise ValueError(f"producer {producer_id} of topic {topic}")
        self.connections[connection].producers[producer_id] = topic

    def add_consumer(self, int connection, int consumer_id, int topic) -> None:
        """topic: -1 removes it."""
        cdef Consumer* consumer
        if not (0 <= consumer_id < CLIENTS_MAX and topic < TOPICS_MAX):
            raise ValueError(f"consumer {consumer_id} of topic {topic}")
        consumer = &self.connections[connection].consumers[consumer_id]
        consumer.topic = topic
        consumer.permits = 0
        consumer.entry_id = 0

    def run(self, int listening) -> None:
        """Return when standard input is closed."""
        cdef pollfd[CONNECTIONS_MAX + 2] files
        cdef int[CONNECTIONS_MAX + 2] numbers
        cdef Connection* connection
        cdef int count
        cdef int at
        cdef int found
        while True:
            files[0].fd = 0
            files[1].fd = listening
            files[0].events = files[1].events = POLLIN
            count = 2
            for at in range(CONNECTIONS_MAX):
                connection = &self.connections[at]
                if connection.file < 0:
                    continue
                files[count].fd = connection.file
                files[count].events = POLLIN
                if connection.leaving.begin < connection.leaving.end:
                    files[count].events |= POLLOUT
                numbers[count] = at
                count += 1
            with nogil:
                found = poll(files, count, -1)
            if found < 0:
                if errno == EINTR:
                    continue
                raise OSError(errno, "poll")
            if files[0].revents:
                return
            if files[1].revents:
                self.welcome(accept(listening, NULL, NULL))
            for at in range(2, count):
                if files[at].revents and not self.serve(numbers[at]):
                    self.forget(numbers[at])

    cdef int welcome(self, int file) except -1:
        cdef int at
        cdef int number
        for at in range(CONNECTIONS_MAX):
            if self.connections[at].file < 0:
                self.connections[at].file = file
                for number in range(CLIENTS_MAX):
                    self.connections[at].producers[number] = -1
                    self.connections[at].consumers[number].topic = -1
                return 0
        close_file(file)
        return 0

    cdef int forget(self, int number) except -1:
        cdef Connection* connection = &self.connections[number]
        cdef int at
        close_file(connection.file)
        connection.file = -1
        connection.came.begin = connection.came.end = 0
        connection.leaving.begin = connection.leaving.end = 0
        for at in range(CLIENTS_MAX):
            connection.consumers[at].topic = -1
        return 0

    cdef bint serve(self, int number) except -1:
        """Read what came, do it, and send what there is; False: the connection has ended."""
        cdef Connection* connection = &self.connections[number]
        cdef ssize_t size
        reserve(&connection.came, READ_SIZE)
        size = recv(connection.file, connection.came.data + connection.came.end,
                    connection.came.capacity - connection.came.end, MSG_DONTWAIT)
        if size > 0:
            connection.came.end += size
            self.understand(number)
        elif size == 0 or errno != EAGAIN:
            return False
        while connection.leaving.begin < connection.leaving.end:
            size = send(connection.file, connection.leaving.data + connection.leaving.begin,
                        connection.leaving.end - connection.leaving.begin,
                        MSG_DONTWAIT | MSG_NOSIGNAL)
            if size < 0:
                return errno == EAGAIN
            connection.leaving.begin += size
        return True

    cdef int understand(self, int number) except -1:
        cdef Connection* connection = &self.connections[number]
        cdef const uint8_t* at
        cdef size_t size
        cdef size_t command_size
        while connection.came.end - connection.came.begin >= 8:
            at = connection.came.data + connection.came.begin
            size = 4 + <size_t>number_at(at)
            if connection.came.end - connection.came.begin < size:
                break
            command_size = number_at(at + 4)
            if size < 8 or command_size > size - 8:
                raise ValueError("a frame smaller than its command")
            self.do(number, at + 8, command_size, at + 8 + command_size, size - 8 - command_size)
            connection.came.begin += size
        return 0

    cdef int do(self, int number, const uint8_t* command, size_t size, const uint8_t* entry,
                size_t entry_size) except -1:
        cdef Connection* connection = &self.connections[number]
        cdef const uint8_t* end = command + size
        cdef const uint8_t* at = command
        cdef const uint8_t* block = NULL
        cdef const uint8_t* body = NULL
        cdef uint64_t[4] values
        cdef uint64_t kind = 0
        cdef uint64_t field = 0
        cdef uint64_t value = 0
        cdef uint64_t body_size = 0
        cdef bytes answer
        while at < end:
            at = take_field(at, end, &field, &value, &block)
            if at == NULL:
                raise ValueError("a malformed command")
            if field == 1:
                kind = value
            elif field == kind:
                body = block
                body_size = value
        if kind == ACK:
            return 0
        if kind != SEND and kind != FLOW:
            answer = self.answer(number, PyBytes_FromStringAndSize(<const char*>command, size))
            reserve(&connection.leaving, PyBytes_GET_SIZE(answer))
            memcpy(connection.leaving.data + connection.leaving.end, PyBytes_AS_STRING(answer),
                   PyBytes_GET_SIZE(answer))
            connection.leaving.end += PyBytes_GET_SIZE(answer)
            return 0
        values[1] = values[2] = 0
        values[3] = 1                # messages of a SEND
        end = body + body_size
        while body < end:
            body = take_field(body, end, &field, &value, &block)
            if body == NULL:
                raise ValueError("a malformed SEND or FLOW")
            if field <= 3:
                values[field] = value
        if values[1] >= CLIENTS_MAX:
            raise ValueError(f"producer or consumer {values[1]}")
        if kind == SEND:
            self.put(connection, SEND_RECEIPT, values[1], values[2], connection.entry_id, NULL, 0)
            connection.entry_id += 1
            return self.publish(connection.producers[values[1]], entry, entry_size, values[3])
        connection.consumers[values[1]].permits += values[2]
        return self.dispatch(connection, values[1])

    cdef int publish(self, int topic, const uint8_t* entry, size_t size,
                     uint64_t messages) except -1:
        """Keep an entry that is the largest of its topic, for its consumers."""
        cdef Topic* kept
        cdef void* grown
        cdef int at
        cdef int number
        if topic < 0:
            raise ValueError("a SEND of no producer")
        kept = &self.topics[topic]
        if size <= kept.size:
            return 0
        grown = realloc(kept.entry, size)
        if grown == NULL:
            raise MemoryError(f"an entry of {size} bytes")
        kept.entry = <uint8_t*>grown
        memcpy(grown, entry, size)
        kept.size = size
        kept.messages = messages
        for at in range(CONNECTIONS_MAX):
            for number in range(CLIENTS_MAX):
                if self.connections[at].file >= 0 and (
                        self.connections[at].consumers[number].topic == topic):
                    self.dispatch(&self.connections[at], number)
        return 0

    cdef int dispatch(self, Connection* connection, uint64_t consumer_id) except -1:
        """Give a consumer the entry of its topic as often as it has permits."""
        cdef Consumer* consumer = &connection.consumers[consumer_id]
        cdef Topic* topic
        if consumer.topic < 0:
            return 0
        topic = &self.topics[consumer.topic]
        while topic.size and consumer.permits > 0:
            self.put(connection, MESSAGE, consumer_id, 0, consumer.entry_id, topic.entry,
                     topic.size)
            consumer.entry_id += 1
            consumer.permits -= topic.messages
        return 0

    cdef int put(self, Connection* connection, uint8_t kind, uint64_t number, uint64_t sequence_id,
                 uint64_t entry_id, const uint8_t* entry, size_t entry_size) except -1:
        """Write a SEND_RECEIPT, or a MESSAGE with its entry."""
        cdef uint8_t[32] place
        cdef uint8_t[64] body
        cdef uint8_t* at = place
        cdef uint8_t* out
        cdef size_t place_size
        cdef size_t body_size
        at[0] = 1 << 3
        at = put_varint(at + 1, LEDGER)
        at[0] = 2 << 3
        at = put_varint(at + 1, entry_id)
        place_size = at - place
        at = body
        at[0] = 1 << 3
        at = put_varint(at + 1, number)
        if kind == SEND_RECEIPT:
            at[0] = 2 << 3
            at = put_varint(at + 1, sequence_id)
        at[0] = (3 if kind == SEND_RECEIPT else 2) << 3 | 2
        at[1] = <uint8_t>place_size
        memcpy(at + 2, place, place_size)
        body_size = at + 2 + place_size - body
        # A command of less than 128 bytes: its sizes have one each.
        reserve(&connection.leaving, 12 + body_size + entry_size)
        out = connection.leaving.data + connection.leaving.end
        put_number(out, <uint32_t>(8 + body_size + entry_size))
        put_number(out + 4, <uint32_t>(4 + body_size))
        out[8] = 1 << 3
        out[9] = kind
        out[10] = kind << 3 | 2
        out[11] = <uint8_t>body_size
        memcpy(out + 12, body, body_size)
        if entry_size:
            memcpy(out + 12 + body_size, entry, entry_size)
        connection.leaving.end += 12 + body_size + entry_size
        return 0
