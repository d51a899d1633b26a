# cython: language_level=3
"""Body of chunk_assembler.pxd.

What a chunk does, by what is known of its uuid:

    chunk                                   what happens
    of a message that is whole              it was read before: nothing, or the message comes again
    the next one                            it is added; the last one makes the message whole
    one that is held                        it was read before: nothing
    one that is held, from another place    it is acknowledged
    one in front of those that are held     it was read before: nothing
    0, from another place                   the chunks before are acknowledged, it begins anew
    0, and the one aside is whole           that one comes now, another one begins
    behind a gap, or without a begin        what is there belongs to no message
    acknowledged, the last one              the message is: so are the others
    acknowledged, another one               nothing
What belongs to no message is acknowledged when it is older than the expiry.
"""

from bisect import bisect_left
from collections import deque

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx._core.cursor_record cimport CURSOR_RUN_MAX
from pulsarx._core.message_metadata cimport EntryParts
from pulsarx._pycore.cursor.ack_tracker cimport AckTracker
from pulsarx._pycore.ground.job_queue cimport JobQueue
from pulsarx._pycore.ledger.ledger_reader cimport LedgerReader
from pulsarx._pycore.message.chunked_message cimport (
    Chunk, ChunkedMessage, chunked_message_new,
)

cdef enum:
    ASIDE_MAX = 1000             # messages; with more of them the oldest is given up
    STRAYS_TOGETHER_MS = 1000    # chunks of this time are one run
    STRAYS_MAX = 65536           # runs; with more of them the oldest waits no longer

# Of a reader, as of a consumer that says nothing else.
cdef uint64_t PENDING_MAX = 10

cdef int64_t END_OF_TIME = 0x7FFFFFFFFFFFFFFF


cdef class ChunkAssembler:
    """The chunks of one subscription or reader."""

    def __init__(self, AckTracker tracker, JobQueue jobs, settle) -> None:
        """tracker, jobs: None for a reader. settle: a job, after chunks were acknowledged."""
        self.tracker = tracker
        self.jobs = jobs
        self.settle = settle
        self.limits.pending_max = PENDING_MAX
        self.open = {}
        self.aside = {}
        self.whole = {}
        self.whole_of = {}
        self.ready = []
        self.strays = deque()

    cdef int clear(self) noexcept:
        # In place, which takes no memory.
        self.open.clear()
        self.aside.clear()
        self.whole.clear()
        self.whole_of.clear()
        self.ready.clear()
        self.strays.clear()
        return 0

    # Reading --------------------------------------------------------------------------------------

    cdef ChunkedMessage read(self, LedgerReader reader, const EntryParts* parts, int64_t now_ms):
        cdef uint64_t ledger_id = reader.span.ledger_id
        cdef uint64_t message = reader.c_frame.first_message
        cdef uint32_t chunk_id = parts.metadata.chunk_id
        cdef bytes uuid = parts.metadata.uuid[:parts.metadata.uuid_size]
        cdef ChunkedMessage found = self.known(uuid, chunk_id, ledger_id, message)
        if found is not None:
            return found if chunk_id + 1 == found.chunk_count else None
        found = self.open.get(uuid)
        if found is None:
            found = self.aside.get(uuid)
        if found is not None and found.is_behind(ledger_id, message):
            return None              # of an earlier message; it was read before
        if self.tracker is not None and self.tracker.is_acknowledged(ledger_id, message):
            if found is not None and chunk_id + 1 == found.chunk_count and (
                    found.count == chunk_id):
                self.drop(found)
                self.acknowledge_chunks(found, found.count)
            return None
        if found is None:
            if chunk_id == 0:
                self.begin(uuid, reader, parts, now_ms)
            else:
                self.stray(ledger_id, message, reader.c_frame.publish_time_ms, now_ms)
            return None
        if chunk_id == found.count and parts.metadata.chunk_count == found.chunk_count:
            return self.extend(found, reader, parts, now_ms)
        if found.is_at(chunk_id, ledger_id, message):
            found.touched_ms = now_ms
        elif chunk_id == 0 and found.is_whole():
            del self.aside[uuid]     # its turn is now: the uuid is another message's from here on
            self.ready.append(self.completed(found))
            self.begin(uuid, reader, parts, now_ms)
        elif chunk_id == 0:
            self.drop(found)
            self.acknowledge_chunks(found, found.count)
            self.begin(uuid, reader, parts, now_ms)
        elif chunk_id < found.count:
            self.acknowledge_run(ledger_id, message, 1)
        else:
            self.give_up(found, now_ms)
            self.stray(ledger_id, message, reader.c_frame.publish_time_ms, now_ms)
        return None

    cdef int begin(self, bytes uuid, LedgerReader reader, const EntryParts* parts,
                   int64_t now_ms) except -1:
        cdef ChunkedMessage made = chunked_message_new(
            uuid, parts.metadata.chunk_count, parts.metadata.chunked_size)
        made.add(reader.span.file, reader.span.ledger_id, &reader.c_frame, reader.c_entry, parts)
        made.touched_ms = now_ms
        self.open[uuid] = made
        return self.make_room()

    cdef ChunkedMessage extend(self, ChunkedMessage chunked, LedgerReader reader,
                               const EntryParts* parts, int64_t now_ms):
        chunked.add(reader.span.file, reader.span.ledger_id, &reader.c_frame, reader.c_entry,
                    parts)
        chunked.touched_ms = now_ms
        if not chunked.is_whole():
            return None
        if chunked.uuid in self.aside:
            self.promote()       # it waits for its turn
            return None
        try:
            self.completed(chunked)
        except BaseException:    # the chunk is read once more
            chunked.count -= 1
            chunked.size -= parts.payload_size
            raise
        self.drop(chunked)
        return chunked

    cdef ChunkedMessage completed(self, ChunkedMessage chunked):
        """Nothing is missing of it."""
        if self.tracker is not None:
            self.remember(chunked)
        return chunked

    cdef int make_room(self) except -1:
        """Too many messages are not whole: the oldest is acknowledged, or waits."""
        cdef ChunkedMessage oldest
        if self.limits.pending_max == 0 or <uint64_t>len(self.open) <= self.limits.pending_max:
            return 0
        oldest = next(iter(self.open.values()))
        self.drop(oldest)
        if self.limits.acknowledges_oldest:
            return self.acknowledge_chunks(oldest, oldest.count)
        self.aside[oldest.uuid] = oldest
        if len(self.aside) > ASIDE_MAX:
            oldest = next(iter(self.aside.values()))
            self.give_up(oldest, oldest.touched_ms)
        return 0

    cdef int promote(self) except -1:
        """Messages that waited and are whole may be delivered when there is room."""
        cdef ChunkedMessage each
        if not self.aside or (
                self.limits.pending_max and <uint64_t>len(self.open) >= self.limits.pending_max):
            return 0
        for each in list(self.aside.values()):
            if each.is_whole():
                del self.aside[each.uuid]
                self.ready.append(self.completed(each))
        return 0

    cdef int drop(self, ChunkedMessage chunked) except -1:
        """Remove the message from those that wait for chunks."""
        if self.open.get(chunked.uuid) is chunked:
            del self.open[chunked.uuid]
            self.promote()
        elif self.aside.get(chunked.uuid) is chunked:
            del self.aside[chunked.uuid]
        return 0

    # Whole messages -------------------------------------------------------------------------------

    cdef int remember(self, ChunkedMessage chunked) except -1:
        cdef Chunk* last = &chunked.chunks[chunked.count - 1]
        key = (last.ledger_id, last.message)
        if key not in self.whole:
            same = self.whole_of.setdefault(chunked.uuid, [])
            at = bisect_left(same, key, key=end_of)
            same.insert(at, chunked)
            try:
                self.whole[key] = chunked
            except BaseException:
                del same[at]
                raise
        return 0

    cdef int forget(self, ChunkedMessage chunked) except -1:
        cdef Chunk* last = &chunked.chunks[chunked.count - 1]
        cdef list same = self.whole_of[chunked.uuid]
        key = (last.ledger_id, last.message)
        del self.whole[key]
        del same[bisect_left(same, key, key=end_of)]
        if not same:
            del self.whole_of[chunked.uuid]
        return 0

    cdef ChunkedMessage find(self, uint64_t ledger_id, uint64_t message):
        return self.whole.get((ledger_id, message))

    cdef ChunkedMessage known(self, bytes uuid, uint32_t chunk_id, uint64_t ledger_id,
                              uint64_t message):
        """The whole message of which that chunk lies there."""
        cdef list same = self.whole_of.get(uuid)
        cdef ChunkedMessage each
        if same is None:
            return None
        # One uuid has one message at a time, so they lie behind one another.
        found = bisect_left(same, (ledger_id, message), key=end_of)
        if found == len(same):
            return None
        each = same[found]
        if not each.is_at(chunk_id, ledger_id, message):
            return None
        if self.tracker is None and chunk_id + 1 == each.chunk_count:
            self.forget(each)        # a reader does not come back by itself
        return each

    # Acknowledging --------------------------------------------------------------------------------

    cdef int acknowledged(self, uint64_t ledger_id, uint64_t first, uint64_t count) except -1:
        cdef ChunkedMessage each
        cdef uint64_t at
        if not self.whole:
            return 0
        if count > <uint64_t>len(self.whole):
            keys = [key for key in self.whole
                    if key[0] == ledger_id and first <= key[1] and key[1] - first < count]
        else:
            keys = [(ledger_id, at) for at in range(first, first + count)
                    if (ledger_id, at) in self.whole]
        for key in keys:
            each = self.whole[key]
            self.acknowledge_chunks(each, each.count - 1)
            self.forget(each)
        return 0

    cdef int acknowledged_through(self, uint64_t ledger_id, uint64_t end) except -1:
        cdef ChunkedMessage each
        for key in [key for key in self.whole if key < (ledger_id, end)]:
            each = self.whole[key]
            self.acknowledge_chunks(each, each.count - 1)
            self.forget(each)
        return 0

    cdef list cut(self, uint64_t ledger_id, uint64_t end):
        cdef ChunkedMessage each
        cdef list found = []
        self.acknowledged_through(ledger_id, end)
        for each in list(self.open.values()) + list(self.aside.values()) + list(
                self.whole.values()):
            if (each.chunks[0].ledger_id, each.chunks[0].message) < (ledger_id, end):
                self.acknowledge_chunks(each, each.count)
                if self.whole.get(end_of(each)) is each:
                    found.append(end_of(each))
                    self.forget(each)
                else:
                    self.drop(each)
        return found

    cdef list spared(self, uint64_t ledger_id, uint64_t end):
        cdef ChunkedMessage each
        cdef Chunk* last
        cdef uint32_t number
        cdef list found = []
        for each in list(self.open.values()) + list(self.aside.values()) + list(
                self.whole.values()):
            last = &each.chunks[each.count - 1]
            if each.is_whole() and (last.ledger_id, last.message) < (ledger_id, end):
                continue
            for number in range(each.count):
                at = (each.chunks[number].ledger_id, each.chunks[number].message)
                if at >= (ledger_id, end):
                    break
                found.append(at)
        found.sort()
        return found

    cdef set hidden(self, bint waiting):
        cdef ChunkedMessage each
        cdef StrayChunks run
        cdef uint32_t number
        cdef uint64_t at
        cdef set found = set()
        for each in list(self.open.values()) + list(self.aside.values()) + list(
                self.whole.values()):
            shown = each.is_whole() and not (waiting and self.aside.get(each.uuid) is each)
            for number in range(each.count - (1 if shown else 0)):
                found.add((each.chunks[number].ledger_id, each.chunks[number].message))
        for run in self.strays:
            for at in range(run.first, run.first + run.count):
                found.add((run.ledger_id, at))
        return found

    cdef int acknowledge_chunks(self, ChunkedMessage chunked, uint32_t count) except -1:
        """Acknowledge the first `count` chunks, neighbours at once."""
        cdef uint32_t number = 0
        cdef uint32_t end
        cdef Chunk* first
        while number < count:
            first = &chunked.chunks[number]
            end = number + 1
            while end < count and chunked.chunks[end].ledger_id == first.ledger_id and (
                    chunked.chunks[end].message == first.message + (end - number)):
                end += 1
            self.acknowledge_run(first.ledger_id, first.message, end - number)
            number = end
        return 0

    cdef int acknowledge_run(self, uint64_t ledger_id, uint64_t first, uint64_t count) except -1:
        cdef uint64_t part
        if self.tracker is None:
            return 0
        while count:
            part = min(count, <uint64_t>CURSOR_RUN_MAX)
            self.tracker.acknowledge_messages(ledger_id, first, part)
            first += part
            count -= part
        if self.jobs is not None:
            self.jobs.put(self.settle)
        return 0

    # What never becomes a message -----------------------------------------------------------------

    cdef int give_up(self, ChunkedMessage chunked, int64_t now_ms) except -1:
        """Give up a message that can never become whole."""
        cdef uint32_t number
        self.drop(chunked)
        for number in range(chunked.count):
            self.stray(chunked.chunks[number].ledger_id, chunked.chunks[number].message,
                       chunked.frame.publish_time_ms, now_ms)
        return 0

    cdef int stray(self, uint64_t ledger_id, uint64_t message, int64_t publish_ms,
                   int64_t now_ms) except -1:
        cdef StrayChunks run
        cdef int64_t due_ms
        if self.tracker is None:
            return 0
        due_ms = END_OF_TIME
        if self.limits.expiry_ms:
            due_ms = later(min(publish_ms, now_ms), self.limits.expiry_ms)
        if due_ms <= now_ms:
            return self.acknowledge_run(ledger_id, message, 1)
        if self.strays:
            run = self.strays[len(self.strays) - 1]
            if run.ledger_id == ledger_id and run.first + run.count == message and (
                    due_ms - run.begun_ms <= STRAYS_TOGETHER_MS):
                run.count += 1
                run.due_ms = max(run.due_ms, due_ms)
                return 0
        run = StrayChunks.__new__(StrayChunks)
        run.ledger_id = ledger_id
        run.first = message
        run.count = 1
        run.begun_ms = run.due_ms = due_ms
        self.strays.append(run)
        if len(self.strays) > STRAYS_MAX:
            run = self.strays.popleft()
            if self.limits.expiry_ms:
                return self.acknowledge_run(run.ledger_id, run.first, run.count)
        return 0

    cdef int64_t next_due_ms(self) except? -1:
        cdef ChunkedMessage each
        cdef StrayChunks run
        cdef int64_t due_ms = 0
        cdef int64_t at
        if self.tracker is None or self.limits.expiry_ms == 0:
            return 0
        for each in list(self.open.values()) + list(self.aside.values()):
            if not each.is_whole():
                at = later(each.touched_ms, self.limits.expiry_ms)
                due_ms = at if due_ms == 0 else min(due_ms, at)
        for run in self.strays:
            due_ms = run.due_ms if due_ms == 0 else min(due_ms, run.due_ms)
        return due_ms

    cdef int expire(self, int64_t now_ms, bint all_read) except -1:
        cdef ChunkedMessage each
        cdef StrayChunks run
        if self.limits.expiry_ms == 0:
            return 0
        for each in list(self.open.values()) + list(self.aside.values()):
            if all_read and not each.is_whole() and (
                    later(each.touched_ms, self.limits.expiry_ms) <= now_ms):
                self.acknowledge_chunks(each, each.count)
                self.drop(each)
        for run in list(self.strays):
            if run.due_ms <= now_ms:
                self.acknowledge_run(run.ledger_id, run.first, run.count)
                self.strays.remove(run)
        return 0


def end_of(ChunkedMessage chunked) -> tuple:
    cdef Chunk* last = &chunked.chunks[chunked.count - 1]
    return last.ledger_id, last.message


cdef inline int64_t later(int64_t at_ms, int64_t delay_ms) noexcept:
    return at_ms + delay_ms if at_ms < END_OF_TIME - delay_ms else END_OF_TIME
