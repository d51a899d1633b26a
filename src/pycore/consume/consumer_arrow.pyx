# cython: language_level=3
"""Receives messages as Arrow columns: `receive_arrow` of a consumer. Imported by the first call."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx import errors
from pulsarx._core.batch_decode cimport BatchMessage, batch_decode_next
from pulsarx._core.message_metadata cimport MessageMetadata, message_metadata_decode
from pulsarx._core.single_metadata cimport METADATA_BATCH, METADATA_SCHEMA_VERSION
from pulsarx._core.status cimport STATUS_NO_MEMORY, STATUS_OK, STATUS_TOO_LARGE
from pulsarx._pycore.arrow.arrow_block cimport (
    ArrowBlock, BlockEntry, arrow_block_finish, arrow_block_new, arrow_block_release,
    arrow_block_reserve, arrow_block_take_batch, arrow_block_take_single,
)
from pulsarx._pycore.arrow.arrow_export cimport ArrowMessages, arrow_messages_new
from pulsarx._pycore.consume.consumer_core cimport CONSUMER_OPEN, ConsumerCore
from pulsarx._pycore.message.entry_view cimport (
    ENTRY_UNREADABLE, EntryView, entry_view_key_wanted,
)
from pulsarx._pycore.ground.mutex cimport mutex_lock, mutex_unlock
from pulsarx._pycore.ground.raise_status cimport raise_status
from pulsarx._pycore.dispatch.entry_sink cimport Dispatcher, EntrySink
from pulsarx._pycore.ground.deadline cimport Deadline, deadline_of

cdef enum:
    GIL_KEPT_UP_TO = 4096        # bytes: smaller entries are over before another could take it
    STOP = 1                     # what collect_entry answers when the block is full
    RESERVE_MAX = 67108864       # bytes of values to make room for before they are seen
    BYTES_MAX = 2147483647       # of the values of a block


def receive_arrow_of(ConsumerCore consumer not None, max_messages, timeout_millis,
                     bint of_one_schema=False, int64_t bytes_max=BYTES_MAX) -> ArrowMessages:
    """ConsumerCore.receive_arrow, and receive_arrow_block."""
    cdef int64_t wanted = max_messages
    cdef Collector collector
    cdef ArrowBlock* block
    cdef Deadline deadline = None
    if wanted < 1:
        raise ValueError(f"max_messages is {wanted}; it must be at least 1")
    if consumer.state != CONSUMER_OPEN:
        consumer.check_open()
    collector = Collector.__new__(Collector)
    collector.receiver = consumer.receiver
    collector.dispatcher = consumer.dispatcher
    collector.of_one_schema = of_one_schema
    collector.bytes_max = bytes_max
    block = arrow_block_new()
    if block == NULL:
        raise MemoryError("the columns of messages")
    try:
        while True:
            damage = None
            mutex_lock(&consumer.core.mutex)
            try:
                collector.collect(block, wanted)
            except Exception as error:
                if isinstance(error, errors.CorruptDataError):
                    # What was taken before the damage must not be lost, as in receive_many.
                    damage = error
                elif not block.row_count:
                    raise                # else the next call meets it again
            finally:
                mutex_unlock(&consumer.core.mutex)
                consumer.after()
            if damage is not None:
                consumer.tell(damage, block.row_count != 0)
            if block.row_count:
                break
            if consumer.receiver.key_wanted is not None:
                consumer.fetch_key()
                continue
            if deadline is None:
                deadline = deadline_of(timeout_millis)
            if not consumer.wait(deadline):
                break
        consumer.stop_asking()
        if arrow_block_finish(block, consumer.dispatcher.tail.partition) != STATUS_OK:
            raise MemoryError(f"the columns of {block.row_count} messages")
    except BaseException:
        arrow_block_release(block)
        consumer.stop_asking()           # interrupted, too: else a message would be kept for it
        raise
    return arrow_messages_new(block, consumer.dispatcher.tail, consumer.dispatcher.topic_name,
                              collector.schema_version)


cdef inline int64_t mean_size(EntryView view) noexcept:
    """The bytes of a message of an entry, at least 1."""
    return view.payload_size // max(view.message_count, 1) + 1


cdef class Collector:
    """Takes what one receiver gets into columns. Subscription's mutex held."""
    cdef EntrySink receiver
    cdef Dispatcher dispatcher
    cdef bytes schema_version            # where of_one_schema; None: of no message yet
    cdef bint of_one_schema
    cdef int64_t bytes_max

    cdef int collect(self, ArrowBlock* block, int64_t wanted) except -1:
        """Append what is there, up to wanted rows."""
        cdef EntrySink receiver = self.receiver
        while block.row_count < wanted and block.value_size < self.bytes_max:
            if receiver.view is None or receiver.place.generation != self.dispatcher.generation:
                if not receiver.fill():
                    return 0
            if receiver.view.chunked is not None:
                receiver.key_wanted = entry_view_key_wanted(receiver.view)
                if receiver.key_wanted is not None:
                    return 0
                self.dispatcher.join_chunks(receiver, receiver.view)
                if receiver.key_wanted is not None:
                    return 0
                if receiver.view is None:
                    continue             # it was lost, and that was told before
            if receiver.view.encryption == ENTRY_UNREADABLE:
                raise errors.OperationNotSupported(
                    detail=f"receive columns of {self.dispatcher.topic_name}: entry "
                    f"{receiver.view.entry_id} of ledger {receiver.view.ledger_id} cannot be "
                    "decrypted and is to be delivered as it is stored, which columns cannot say; "
                    "receive() gives it")
            if self.of_one_schema and not self.has_its_schema(block, receiver.view):
                return 0
            if block.row_count == 0:
                self.reserve(block, receiver.view, wanted)
            if self.collect_entry(block, receiver.view, min(
                    wanted - block.row_count, self.rows_left(block, receiver.view))) == STOP:
                return 0
        return 0

    cdef int64_t rows_left(self, ArrowBlock* block, EntryView view) noexcept:
        """How many messages of an entry, by their mean size, the bytes are reached with."""
        return (self.bytes_max - block.value_size) // mean_size(view) + 1

    cdef bint has_its_schema(self, ArrowBlock* block, EntryView view) except -1:
        """Whether an entry is of the version that the block is of."""
        cdef MessageMetadata metadata
        cdef bytes version = b""
        # What cannot be decoded is damage, which collect_entry tells.
        if message_metadata_decode(view.c_encoded_metadata, view.encoded_metadata_size,
                                   &metadata) == STATUS_OK and (
                metadata.flags & METADATA_SCHEMA_VERSION):
            version = metadata.schema_version[:metadata.schema_version_size]
        if block.row_count == 0:
            self.schema_version = version
        return version == self.schema_version

    cdef int reserve(self, ArrowBlock* block, EntryView view, int64_t wanted) except -1:
        """Make room for what is wanted and likely there, to spare the block its growing."""
        cdef int64_t left = 0
        cdef int64_t each = mean_size(view)
        cdef int64_t rows = view.message_count
        cdef int64_t most = min(RESERVE_MAX, self.bytes_max) // each + 1
        left = self.dispatcher.bytes_ahead()
        if left > 0:
            rows += left // each
        if rows > most:
            rows = most
        if rows > wanted:
            rows = wanted
        if arrow_block_reserve(block, rows, rows * each) != STATUS_OK:
            raise MemoryError(f"the columns of {rows} messages")
        return 0

    cdef int collect_entry(self, ArrowBlock* block, EntryView view, int64_t wanted) except -1:
        """Append the rest of the current slice, at most wanted rows of it."""
        cdef EntrySink receiver = self.receiver
        cdef BlockEntry entry
        cdef uint32_t at = receiver.place.at
        cdef uint32_t index = receiver.place.index
        cdef uint32_t until = receiver.place.end
        cdef int status
        entry.payload = view.c_payload
        entry.metadata = view.c_encoded_metadata
        entry.payload_size = view.payload_size
        entry.metadata_size = view.encoded_metadata_size
        entry.flags = view.metadata_flags
        entry.message_count = view.message_count
        entry.ledger_id = view.ledger_id
        entry.entry_id = view.entry_id
        entry.first_message = view.first_message
        entry.publish_time_ms = view.publish_time_ms
        if receiver.place.filtered:
            return self.collect_claimed(block, &entry, wanted)
        if view.metadata_flags & METADATA_BATCH == 0:
            status = arrow_block_take_single(block, &entry)
            index = 1
        else:
            if <int64_t>(until - index) > wanted:
                until = index + <uint32_t>wanted
            if view.payload_size > GIL_KEPT_UP_TO:
                with nogil:
                    status = arrow_block_take_batch(block, &entry, &at, &index, until)
            else:
                status = arrow_block_take_batch(block, &entry, &at, &index, until)
        if status == STATUS_TOO_LARGE and block.row_count:
            # The entry stays the current one; its next message goes into the next block.
            receiver.place.at = at
            receiver.place.index = index if view.metadata_flags & METADATA_BATCH else 0
            return STOP
        if status == STATUS_NO_MEMORY:
            raise_status(status, 0, f"read message {index} of entry {view.entry_id} "
                                    f"of ledger {view.ledger_id}")
        receiver.place.at = at
        receiver.place.index = index
        if status != STATUS_OK:
            return self.pass_message(view, at, index, status)
        if index == receiver.place.end:
            receiver.drop_view()
        return 0

    cdef int pass_message(self, EntryView view, uint32_t at, uint32_t index,
                          int status) except -1:
        """A message, at offset at, does not fit into columns: go behind it and raise. Damage is
        told once; what is behind is read on, if its place can be found."""
        cdef EntrySink receiver = self.receiver
        cdef BatchMessage passed
        cdef bint walked = view.metadata_flags & METADATA_BATCH == 0
        if not walked:
            walked = batch_decode_next(view.c_payload, view.payload_size, &at,
                                       &passed) == STATUS_OK
        else:
            index = 0
        if not walked:
            receiver.drop_view()
            return self.dispatcher.lose_rest(view, index, status)
        receiver.step(at, index)
        if status == STATUS_TOO_LARGE:
            raise_status(status, 0, f"read message {index} of entry {view.entry_id} "
                                    f"of ledger {view.ledger_id}")
        return self.dispatcher.lose_one(view, index, status)

    cdef int collect_claimed(self, ArrowBlock* block, const BlockEntry* entry,
                             int64_t wanted) except -1:
        """Like collect_entry, for a slice whose messages are claimed one by one."""
        cdef EntrySink receiver = self.receiver
        cdef EntryView view = receiver.view
        cdef BatchMessage passed
        cdef uint32_t at
        cdef uint32_t index
        cdef uint32_t here
        cdef bint claimed
        cdef int status
        while receiver.view is not None and wanted > 0:
            receiver.locate_next(&at, &index)
            here = index
            claimed = self.dispatcher.claim(receiver, view, index) >= 0
            if claimed:
                if view.metadata_flags & METADATA_BATCH == 0:
                    status = arrow_block_take_single(block, entry)
                else:
                    status = arrow_block_take_batch(block, entry, &at, &index, index + 1)
                wanted -= 1
                if status == STATUS_TOO_LARGE and block.row_count:
                    self.dispatcher.unclaim(receiver, view, here)
                    if self.dispatcher.shares:
                        receiver.step(at, here)
                    return STOP
            elif view.metadata_flags & METADATA_BATCH:
                status = batch_decode_next(entry.payload, entry.payload_size, &at, &passed)
            else:
                status = STATUS_OK
            if status == STATUS_NO_MEMORY:
                self.dispatcher.unclaim(receiver, view, here)
                raise_status(status, 0, f"read message {here} of entry {view.entry_id} "
                                        f"of ledger {view.ledger_id}")
            if status == STATUS_TOO_LARGE:
                self.dispatcher.pass_over(receiver, view, here)
            if status != STATUS_OK:
                self.pass_message(view, at, here, status)
                continue
            receiver.step(at, here)
        return 0
