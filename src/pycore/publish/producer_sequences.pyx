# cython: language_level=3
"""Body of producer_sequences.pxd, and reading the sequence ids that a topic holds."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx import errors
from pulsarx._core.batch_decode cimport BatchMessage, batch_decode_next
from pulsarx._core.message_metadata cimport EntryParts, entry_decode
from pulsarx._core.single_metadata cimport (
    METADATA_BATCH, METADATA_ENCRYPTED, SingleMetadata, single_metadata_decode,
)
from pulsarx._core.entry_frame cimport ENTRY_TRANSACTION, EntryFrame, entry_frame_span
from pulsarx._core.ledger_read cimport LedgerRead, ledger_read_frame
from pulsarx._core.limits cimport ENTRY_FRAME_SIZE
from pulsarx._core.status cimport STATUS_END, STATUS_OK
from pulsarx._pycore.ground.clock_core cimport ClockCore, Timer
from pulsarx._pycore.ground.job_queue cimport JobQueue
from pulsarx._pycore.ledger.ledger_file cimport LedgerFile
from pulsarx._pycore.ledger.ledger_reader cimport (
    READ_DAMAGE, READ_ENTRY, READ_NOTHING, LedgerReader,
)
from pulsarx._pycore.ledger.ledger_recovery cimport entry_transaction
from pulsarx._pycore.ledger.ledger_tail cimport LedgerSpan, LedgerTail
from pulsarx._pycore.ledger.ledger_writer cimport LedgerWriter


# So many ids are known apart of each name. What belongs together are batches of one flush, which
# has fewer messages: a client has a thousand on its way, unless it is told otherwise.
SEEN_MAX = 1 << 16


cdef class EntryCounter:
    """See the pxd."""

    def __init__(self, ClockCore clock not None, JobQueue jobs not None, due, many, entries_max,
                 interval_ms) -> None:
        self.clock = clock
        self.jobs = jobs
        self.due = due
        self.many = many
        self.entries_max = entries_max
        self.interval_ms = interval_ms

    cdef int count(self, int64_t now_ms) except -1:
        self.entries += 1
        if self.timer is None:
            self.timer = self.clock.arm(self.clock.now() + self.interval_ms, self.time_is_over)
        if self.entries % self.entries_max == 0 and not self.posted:
            self.posted = True
            self.jobs.put(self.many)
        return 0

    def time_is_over(self) -> None:
        """Called by the clock."""
        self.jobs.put(self.due)

    def start(self) -> None:
        """Count anew."""
        self.entries = 0
        self.posted = False
        self.stop()

    def skip(self) -> None:
        """The job was not done; it is due again after as many entries."""
        self.posted = False

    def stop(self) -> None:
        timer, self.timer = self.timer, None
        if timer is not None:
            (<Timer>timer).cancel()


cdef class ProducerSequences:
    """See the pxd."""

    def __init__(self, EntryCounter counter not None, int64_t complete=-1, seen=None,
                 int64_t last_ms=0) -> None:
        """Takes the arguments that a snapshot has kept."""
        self.counter = counter
        self.complete = complete
        self.seen = set(seen) if seen else None
        self.stored = max(self.seen) if self.seen else complete
        self.stored = max(self.stored, complete)
        self.pushed = self.stored
        self.last_ms = last_ms

    def row(self) -> list:
        """Return what a snapshot keeps, without what is of open transactions; in the form of the
        arguments, without the counter."""
        cdef ProducerSequences kept = self if self.settled is None else self.settled
        cdef set seen = kept.seen
        return [kept.complete, sorted(seen) if seen else [], self.last_ms]

    cdef ProducerSequences copy(self):
        cdef ProducerSequences made = ProducerSequences(
            self.counter, self.complete, self.seen, self.last_ms)
        made.stored = self.stored
        return made

    cdef int note_stored(self, int64_t last, list ids, bint more_follow, int64_t now_ms,
                         object transaction) except -1:
        if transaction is None:
            self.note_read(last, ids, more_follow, now_ms)
        else:
            self.note_within(transaction, last, ids, more_follow, now_ms)
        return self.counter.count(now_ms)

    cdef int note_read(self, int64_t last, list ids, bint more_follow, int64_t now_ms) except -1:
        if self.settled is not None:
            self.settled.note(last, ids, more_follow, now_ms)
        return self.note(last, ids, more_follow, now_ms)

    cdef int note_within(self, object transaction, int64_t last, list ids, bint more_follow,
                         int64_t now_ms) except -1:
        if self.settled is None:
            self.settled = self.copy()
            self.notes = []
        elif self.notes and self.seen is None and self.settled.seen is None and not more_follow:
            newest = self.notes[len(self.notes) - 1]
            if newest[0] is transaction and newest[1] <= last and not newest[3]:
                self.notes.pop()         # this one says as much
        self.notes.append((transaction, last, ids, more_follow, now_ms))
        return self.note(last, ids, more_follow, now_ms)

    cdef int note(self, int64_t last, list ids, bint more_follow, int64_t now_ms) except -1:
        self.last_ms = max(self.last_ms, now_ms)
        if more_follow:
            if last > self.complete:
                self.note_seen(ids)
        elif last >= self.stored:
            self.complete = last
            self.seen = None
        elif self.seen is not None:
            self.seen.update(ids if ids is not None else (last,))
        self.stored = max(self.stored, last)
        return 0

    cdef int note_seen(self, list ids) except -1:
        cdef set seen = set() if self.seen is None else self.seen
        seen.update([each for each in ids if each > self.complete])
        while self.complete + 1 in seen:
            self.complete += 1
            seen.remove(self.complete)
        if len(seen) > SEEN_MAX:
            ascending = sorted(seen)
            self.complete = ascending[SEEN_MAX // 2]
            seen = set(ascending[SEEN_MAX // 2 + 1:])
        self.seen = seen or None
        return 0

    cdef bint is_stored(self, int64_t sequence_id) except -1:
        if sequence_id > self.stored:
            return False
        return self.seen is None or sequence_id <= self.complete or sequence_id in self.seen

    cdef int require_decided(self, int64_t sequence_id, object transaction) except -1:
        cdef ProducerSequences known
        if self.settled is None or self.settled.is_stored(sequence_id):
            return 0
        known = self.settled.copy()
        other = None
        for one, last, ids, more_follow, now_ms in self.notes:
            if one is transaction:
                known.note(last, ids, more_follow, now_ms)
            elif other is None and last >= sequence_id:
                other = one
        if other is None or known.is_stored(sequence_id):
            return 0
        raise errors.TransactionConflict(
            detail=f"send a message with sequence id {sequence_id}: transaction {other} is open, "
            "which has stored it, or one behind it; send it again when that has ended")

    def end_transaction(self, transaction, bint committed) -> None:
        """See leave; no producer has it."""
        self.leave(transaction, committed)

    cdef int leave(self, object transaction, bint committed) except -1:
        cdef ProducerSequences settled = self.settled
        cdef int64_t stored = self.stored
        cdef list mine
        cdef list others
        if settled is None:
            return 0
        mine = [each for each in self.notes if each[0] is transaction]
        others = [each for each in self.notes if each[0] is not transaction]
        if not mine:
            return 0
        if committed:
            for _, last, ids, more_follow, now_ms in mine:
                settled.note(last, ids, more_follow, now_ms)
        else:
            self.complete = settled.complete
            self.stored = settled.stored
            self.seen = None if settled.seen is None else set(settled.seen)
            for _, last, ids, more_follow, now_ms in others:
                self.note(last, ids, more_follow, now_ms)
            if self.pushed == stored:
                self.pushed = self.stored
        self.notes = others
        if not others:
            self.settled = self.notes = None
        return 0

    cdef int fall_back(self) noexcept:
        if self.failed:
            self.failed = False
            self.pushed = self.stored
        return 0

    cdef int begin(self, int64_t pushed) except -1:
        """A producer uses it from now on; pushed: that it has taken already."""
        self.failed = False
        self.pushed = max(self.stored, pushed)
        return 0


def read_sequences(LedgerTail tail not None, str topic_name not None, ledger_id, message,
                   dict known not None, EntryCounter counter not None, decompress,
                   limit) -> tuple:
    """Read the entries from a position on and note their sequence ids in known, by the name of
    their producer. decompress: (kind, data, uncompressed size, limit) -> bytes.

    What could not be read may have held any id between those around it, and so may what was lost in
    front of a ledger that recovery sealed: the end of the one before, or a whole one. So of the ids
    behind it only those that are there count as stored: a message that is sent again because it was
    never confirmed may be the one that is missing.

    How many entries were read, and what could not be.
    """
    cdef LedgerReader reader = LedgerReader(tail, topic_name)
    cdef ProducerSequences found
    cdef EntryParts parts
    cdef int step
    cdef uint64_t count = 0
    cdef uint64_t last_id = 0
    cdef bint lacks = False
    damage = []
    cdef dict chunks = {}                # of a name: sequence id and number of the next chunk
    reader.find(ledger_id, message)
    if reader.span is not None:
        last_id = reader.span.ledger_id
    while True:
        step = reader.next_entry()
        if step == READ_NOTHING:
            return count, damage
        if step == READ_DAMAGE:
            damage.append(reader.damage_text("what it held is not known to the deduplication"))
            lacks = True
            continue
        count += 1
        if reader.span.ledger_id != last_id:
            last_id = reader.span.ledger_id
            lacks = lacks or is_recovered(reader.span)
        if entry_decode(reader.c_entry, reader.c_frame.entry_size, False, &parts) != STATUS_OK:
            damage.append(f"entry {reader.c_frame.entry_id} cannot be taken apart")
            continue
        name = (<bytes>parts.metadata.producer_name[:parts.metadata.producer_name_size]).decode(
            "utf-8", "surrogateescape")
        found = known.get(name)
        if found is None:
            found = known[name] = ProducerSequences(counter)
        if parts.metadata.chunk_count > 1 and not is_whole(chunks, name, &parts) and lacks:
            continue
        note_entry(found, &parts, reader.c_frame.publish_time_ms, lacks, decompress, limit)


cdef bint is_recovered(LedgerSpan span) except -1:
    """Whether its owner died before it was sealed."""
    if span.writer is not None:
        return False
    try:
        return span.file.summary().recovered
    except errors.CorruptDataError:
        return True                      # its footer is damaged


cdef bint is_whole(dict chunks, str name, EntryParts* parts) except -1:
    """Whether all chunks of the message up to this one were read."""
    cdef object sequence_id = parts.metadata.sequence_id
    cdef object chunk_id = parts.metadata.chunk_id
    if chunk_id and chunks.get(name) != (sequence_id, chunk_id):
        return False
    chunks[name] = (sequence_id, chunk_id + 1)
    return True


def read_held(LedgerWriter writer not None, offset, LedgerTail tail not None,
              dict transactions not None, dict known not None, EntryCounter counter not None,
              decompress, limit) -> list[tuple]:
    """Like read_sequences, of what readers do not see of a ledger yet, from an offset on.
    transactions: those that go on, by number. The (name, transaction) of what is of those."""
    cdef LedgerFile file = writer.map()
    cdef LedgerRead read = file.c_read
    cdef EntryFrame frame
    cdef EntryParts parts
    cdef ProducerSequences found
    cdef uint64_t at = offset
    cdef uint64_t end = writer.end
    cdef uint64_t number = 0
    cdef uint64_t size
    cdef dict senders = {}
    while at < end and ledger_read_frame(&read, at, end, &frame) == STATUS_OK:
        size = entry_frame_span(frame.entry_size)
        transaction = None
        if frame.flags & ENTRY_TRANSACTION:
            if entry_transaction(read.base + at, &frame, &number):
                transaction = transactions.get(number)
            if transaction is None and tail.hides(writer.ledger_id, frame.first_message):
                at += size
                continue
        if entry_decode(read.base + at + ENTRY_FRAME_SIZE, frame.entry_size, False,
                        &parts) == STATUS_OK:
            name = (<bytes>parts.metadata.producer_name[:parts.metadata.producer_name_size]).decode(
                "utf-8", "surrogateescape")
            found = known.get(name)
            if found is None:
                found = known[name] = ProducerSequences(counter)
            if transaction is not None:
                senders[name, transaction] = True
            note_entry(found, &parts, frame.publish_time_ms, False, decompress, limit, transaction)
        at += size
    return list(senders)


cdef int note_found(ProducerSequences known, object transaction, int64_t last, list ids,
                    bint more_follow, int64_t publish_ms) except -1:
    if transaction is None:
        return known.note_read(last, ids, more_follow, publish_ms)
    return known.note_within(transaction, last, ids, more_follow, publish_ms)


cdef int note_entry(ProducerSequences known, EntryParts* parts, int64_t publish_ms, bint lacks,
                    decompress, uint32_t limit, object transaction=None) except -1:
    """batch_encode says how entries that belong together are marked. lacks: there may be messages
    of lower ids that are not stored. transaction: an open one that it is of."""
    cdef int64_t sequence_id = <int64_t>parts.metadata.sequence_id
    cdef int64_t highest = <int64_t>parts.metadata.highest_sequence_id
    cdef list ids
    if parts.metadata.flags & METADATA_BATCH == 0:
        if parts.metadata.chunk_count > 1 and (
                parts.metadata.chunk_id + 1 < parts.metadata.chunk_count):
            return 0                     # the message is stored with its last chunk
        return note_found(known, transaction, sequence_id, [sequence_id], lacks or highest != 0,
                          publish_ms)
    if highest != 0:
        if lacks or known.seen is not None and highest < known.stored:
            return note_found(known, transaction, highest, batch_sequence_ids(
                parts, decompress, limit) or [sequence_id, highest], lacks, publish_ms)
        return note_found(known, transaction, max(highest, sequence_id), None, False, publish_ms)
    ids = batch_sequence_ids(parts, decompress, limit)
    if not ids:
        # Encrypted: of those before it nothing is known, so that none is taken for a duplicate.
        return note_found(known, transaction, sequence_id, [sequence_id],
                          lacks or parts.metadata.flags & METADATA_ENCRYPTED != 0, publish_ms)
    return note_found(known, transaction, max(ids), ids, lacks or is_of_many(ids), publish_ms)


cdef bint is_of_many(list ids) except -1:
    # Clients in C++ never tell it, and of batches by key the next one has ids in between. Where all
    # messages have one id, it stands for all in front of it.
    return len(ids) == 1 or ids[0] != ids[len(ids) - 1]


cdef list batch_sequence_ids(EntryParts* parts, decompress, uint32_t limit):
    """The sequence ids of the messages of a batch, in order; empty when it cannot be read, or is
    encrypted."""
    cdef BatchMessage each
    cdef SingleMetadata metadata
    cdef bytes plain
    cdef const uint8_t* payload = parts.payload
    cdef uint32_t size = parts.payload_size
    cdef uint32_t at = 0
    cdef list ids = []
    if parts.metadata.flags & METADATA_ENCRYPTED:
        return ids
    if parts.metadata.compression:
        try:
            plain = decompress(parts.metadata.compression, payload[:size],
                               parts.metadata.uncompressed_size, limit)
        except errors.PulsarException:
            return ids
        payload = <const uint8_t*>PyBytes_AS_STRING(plain)
        size = <uint32_t>PyBytes_GET_SIZE(plain)
    while batch_decode_next(payload, size, &at, &each) == STATUS_OK:
        if single_metadata_decode(each.encoded_metadata, each.encoded_metadata_size,
                                  &metadata) != STATUS_OK:
            break
        ids.append(<int64_t>metadata.sequence_id)
    return ids
