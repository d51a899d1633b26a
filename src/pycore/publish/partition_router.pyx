# cython: language_level=3
"""Body of partition_router.pxd."""

from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyCallable_Check

from pulsarx import errors
from pulsarx._pycore.publish.partition_hash cimport partition_hash_of
from pulsarx._pycore.publish.producer_core cimport ProducerCore, refuse_callback


cdef class PartitionRouter:
    """Chooses among the producers of the partitions. Any thread may call."""

    def __init__(self, object topic, object options, bint stays, object router, Py_ssize_t turn):
        """options: a ProducerOptions. router: None, or called with a message's fields and the
        number of partitions. turn: of the partitions, whose it is first."""
        self.topic = topic
        self.producers = [None] * topic.partition_count
        self.hashing_scheme = int(options.hashing_scheme)
        self.batching = options.batching_enabled
        self.stays = stays
        self.router = router
        self.turn = turn

    def send(self, content, properties=None, partition_key=None, ordering_key=None,
             sequence_id=None, replication_clusters=None, disable_replication=False,
             event_timestamp=None, deliver_at=None, deliver_after=None, *, transaction=None):
        cdef ProducerCore producer = self.route(
            content, properties, partition_key, ordering_key, event_timestamp)
        return producer.send(content, properties, partition_key, ordering_key, sequence_id,
                             replication_clusters, disable_replication, event_timestamp,
                             deliver_at, deliver_after, transaction=transaction)

    def send_async_described(self, content, callback, properties=None, partition_key=None,
                             ordering_key=None, sequence_id=None, replication_clusters=None,
                             disable_replication=False, event_timestamp=None, deliver_at=None,
                             deliver_after=None, *, transaction=None) -> None:
        """send_async with whatever arguments; send_async itself is in send_routed."""
        cdef ProducerCore producer
        if callback is not None and not PyCallable_Check(callback):
            refuse_callback(callback)
        if callback is not None and not self.is_open:
            self.tell_closed(callback)
            return
        producer = self.route(content, properties, partition_key, ordering_key, event_timestamp)
        if producer.plain_sends and type(content) is bytes and properties is None and (
                ordering_key is None and sequence_id is None and replication_clusters is None
                and disable_replication is False and event_timestamp is None
                and deliver_at is None and deliver_after is None and transaction is None):
            if callback is None:
                producer.send_untold(content, partition_key)
            else:
                producer.send_told(content, callback, partition_key)
            return
        producer.send_async_described(
            content, callback, properties, partition_key, ordering_key, sequence_id,
            replication_clusters, disable_replication, event_timestamp, deliver_at, deliver_after,
            transaction=transaction)

    cdef int tell_closed(self, object callback) except -1:
        cdef ProducerCore producer
        try:
            self.require_open()
        except errors.AlreadyClosed as error:
            producer = next(each for each in self.producers if each is not None)
            producer.tell(callback, error)
        return 0

    cdef ProducerCore route(self, object content, object properties, object key,
                            object ordering_key, object event_timestamp):
        cdef Py_ssize_t index
        cdef ProducerCore current
        if not self.is_open:
            self.require_open()
        if self.router is not None:
            return self.at(self.router(content, properties, key, ordering_key, event_timestamp))
        # What is no text is refused by whichever partition it comes to.
        if key is not None and isinstance(key, str) and len(<str>key) != 0:
            return self.at(self.partition_of(key, self.topic.partition_count))
        current = self.current
        if current is not None and (
                self.stays or (self.batching and current.entry_count == self.current_entries)):
            return current
        return self.take_turn()

    cdef Py_ssize_t partition_of(self, object key, Py_ssize_t count) except -1:
        # A key of bytes is a subclass of str: its text is hashed.
        cdef str plain = <str>key if type(key) is str else str(key)
        return <Py_ssize_t>partition_hash_of(self.hashing_scheme, plain) % count

    def split(self, list contents not None, keys not None, Py_ssize_t run_size) -> list:
        """(partition, numbers, contents, keys) of each partition that takes some of the messages.

        Those without a key go round in runs of run_size.
        """
        cdef Py_ssize_t number
        cdef Py_ssize_t index
        cdef Py_ssize_t left = 0
        cdef Py_ssize_t run = 0
        cdef Py_ssize_t count = self.topic.partition_count
        cdef list parts = [None] * count
        cdef list found = []
        cdef tuple part
        for number in range(len(contents)):
            key = keys[number]
            if key is not None and isinstance(key, str) and len(<str>key) != 0:
                index = self.partition_of(key, count)
            else:
                if left == 0:
                    run = self.next_turn()
                    left = run_size
                left -= 1
                index = run
            if index >= len(parts):              # the topic grows
                parts.extend([None] * (index + 1 - len(parts)))
            if parts[index] is None:
                part = (index, [], [], [])
                parts[index] = part
                found.append(part)
            else:
                part = <tuple>parts[index]
            (<list>part[1]).append(number)
            (<list>part[2]).append(contents[number])
            (<list>part[3]).append(key)
        return found

    def join(self, list found not None, numbers not None, list made not None) -> None:
        """Put the ids of the messages of these numbers to their places."""
        cdef Py_ssize_t at = 0
        cdef Py_ssize_t number
        for number in numbers:
            found[number] = made[at]
            at += 1

    cdef ProducerCore at(self, Py_ssize_t index):
        """The producer of a partition."""
        if index < len(self.producers):
            found = <object>PyList_GET_ITEM(self.producers, index)
            if found is not None:
                return <ProducerCore>found
        return self.producer_of(index)

    cdef ProducerCore take_turn(self):
        """Go on to the next partition."""
        cdef ProducerCore current = self.at(self.next_turn())
        self.current_entries = current.entry_count
        self.current = current
        return current

    def next_turn(self) -> int:
        """The partition whose turn it is for a message, or a run of them, without a key."""
        cdef Py_ssize_t turn = self.turn
        if not self.stays:
            self.turn = (turn + 1) % <Py_ssize_t>self.topic.partition_count
        return turn

    # Decided by the subclass:

    def require_open(self) -> None:
        """AlreadyClosed or ForkedError, unless it may be used."""
        raise NotImplementedError

    def producer_of(self, index):
        """The producer of a partition, made when it is not there yet."""
        raise NotImplementedError
