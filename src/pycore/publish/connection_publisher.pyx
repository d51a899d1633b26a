# cython: language_level=3
"""Body of connection_publisher.pxd."""

import weakref
from collections import deque

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport UINT64_MAX, int64_t, uint8_t, uint32_t, uint64_t

from pulsarx import errors
from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.message_metadata cimport EntryParts, entry_decode
from pulsarx._core.single_metadata cimport METADATA_BATCH
from pulsarx._core.status cimport STATUS_OK
from pulsarx._pycore.ground.clock_core cimport ClockCore, Timer
from pulsarx._pycore.ground.locks cimport Condition
from pulsarx._pycore.ground.mutex cimport mutex_lock, mutex_try_lock, mutex_unlock
from pulsarx._pycore.ground.owner_link cimport (
    LINK_GIVEN_UP, LINK_SENT_AT, LINK_SEQUENCE_NOTED, OwnerLink,
)
from pulsarx._pycore.ground.raise_status cimport raise_status
from pulsarx._pycore.ground.weak_reference cimport referent
from pulsarx._pycore.ledger.open_transactions cimport TransactionCore
from pulsarx._pycore.publish.completion_queue cimport (
    DUPLICATE_INDEX, LONE_INDEX, CompletionQueue, callback_count,
)
from pulsarx._pycore.publish.entry_publisher cimport EntryPublisher, Receipt


cdef enum:
    SAID_FOR_MS = 100                    # how long the broker may take a time of sends for


cdef class SentEntry:
    """See the pxd."""


cdef class SendsDue:
    """The callback of a clock for when a send may have timed out. Keeps no publisher alive."""
    cdef object publisher                # weak reference

    def __call__(self) -> None:
        cdef object found = referent(self.publisher)
        if found is not None:
            # Not in the clock's thread, which everybody waits for.
            (<ConnectionPublisher>found).completions.timeouts.put(
                (<ConnectionPublisher>found).expire_pending)


cdef list callbacks_of(SentEntry sent):
    """Return the callbacks of an entry that is stored, with the places that its messages have
    there."""
    cdef list found = []
    cdef Py_ssize_t at
    cdef int place
    if sent.receipt.kept is None:
        return sent.callbacks
    for at in range(0, len(sent.callbacks), 2):
        place = sent.receipt.place_in_stored(sent.callbacks[at])
        if place < 0:
            place = DUPLICATE_INDEX
        elif sent.receipt.message_count == 1:
            place = LONE_INDEX
        found += (place, sent.callbacks[at + 1])
    return found


cdef bint is_rest_of(bytes entry, SentEntry sent) except -1:
    """Whether a stored entry is what was left of a batch without its duplicates."""
    cdef EntryParts parts
    cdef uint32_t size = <uint32_t>len(entry)
    if not sent.compared or sent.message_count == 1 or entry_decode(
            <const uint8_t*>PyBytes_AS_STRING(entry), size, False, &parts) != STATUS_OK:
        return False
    return (parts.metadata.message_count < sent.message_count
            and sent.last_sequence_id == <int64_t>max(parts.metadata.sequence_id,
                                                      parts.metadata.highest_sequence_id))


cdef class ConnectionPublisher(EntryPublisher):
    """Sends the entries of one producer over a connection. Any thread may call; the mutex orders
    them. The thread that reads the connection calls confirmed, failed and lost."""

    def __init__(self, CompletionQueue completions not None, int partition, encode not None,
                 ClockCore clock=None, int64_t send_timeout_ms=0, str what="",
                 int64_t leave_ms=0, unserved=None) -> None:
        """Entries go out over the link of `resume`, as encode(number, sequence id, messages, entry)
        makes them. send_timeout_ms: how long on the clock an entry
        may be pending; 0 and less: for ever. what: the topic. leave_ms: as send_timeout_ms, where
        that is none, once the producer closes. unserved(within): what is said of an owner that has
        not answered in that time; called without the mutex."""
        self.encode = encode
        self.completions = completions
        self.partition = partition
        self.confirms_later = True
        self.places_later = True
        self.pending = deque()
        self.refused = {}
        self.answered = Condition()
        self.clock = clock
        self.times.timeout_ms = send_timeout_ms if clock is not None and send_timeout_ms > 0 else 0
        self.times.leave_ms = leave_ms if clock is not None else 0
        self.what = what
        self.unserved = unserved
        self.stored.highest = self.stored.before = -1

    cdef int publish(self, EntryFrame* frame, uint8_t* entry, Receipt receipt, list callbacks,
                     bint awaited) except -1:
        cdef EntryParts parts
        cdef SentEntry sent
        cdef bytes command = None
        cdef int status = entry_decode(entry, frame.entry_size, False, &parts)
        if self.checks:
            self.check(frame)
        if self.ended is not None:
            raise errors.again(self.ended)
        if self.transaction is not None and self.transaction.is_ended:
            raise errors.InvalidTxnStatusError(
                detail=f"send to {self.what}: transaction {self.transaction} has ended")
        if status != STATUS_OK:
            raise_status(status, 0, f"send an entry of {frame.entry_size} bytes")
        sent = SentEntry.__new__(SentEntry)
        sent.sequence_id = parts.metadata.sequence_id
        sent.last_sequence_id = <int64_t>max(parts.metadata.sequence_id,
                                             parts.metadata.highest_sequence_id)
        sent.receipt = receipt
        sent.message_count = frame.message_count
        sent.callbacks = callbacks
        sent.awaited = awaited
        sent.compared = self.stored.compares
        sent.joined = self.stored.joins
        sent.is_part = parts.metadata.chunk_id + 1 < parts.metadata.chunk_count
        sent.continues = parts.metadata.chunk_count > 1 and parts.metadata.chunk_id > 0
        sent.entry = PyBytes_FromStringAndSize(<const char*>entry, frame.entry_size)
        sent.transaction = self.transaction
        if self.times.timeout_ms:
            sent.expires_ms = self.clock.monotonic() + self.times.timeout_ms
            if sent.continues and self.pending:
                # A message is given up as a whole: the rest of one would be confirmed without it.
                sent.expires_ms = (<SentEntry>self.pending[len(self.pending) - 1]).expires_ms
        if self.link is not None:
            # First: what is pending is sent.
            command = self.command_of(sent)
        self.pending.append(sent)
        # See batch_encode; also that of one message of id 0.
        self.stored.joins = (parts.metadata.flags & METADATA_BATCH != 0
                      and parts.metadata.highest_sequence_id == 0)
        if command is not None:
            if sent.expires_ms:
                self.say_sent_at(sent.expires_ms - self.times.timeout_ms)
            # Native up to the socket, so that no signal comes between the two steps.
            sent.was_sent = True
            self.link_count += 1
            self.link.write(command)
        self.sent_count += 1
        self.pending_count += frame.message_count
        if self.times.timeout_ms and self.timer is None:
            self.arm_timeout()
        return 0

    cdef bytes command_of(self, SentEntry sent):
        if sent.transaction is None:
            return self.encode(self.number, sent.sequence_id, sent.message_count, sent.entry)
        return self.encode(self.number, sent.sequence_id, sent.message_count, sent.entry,
                           (<object>sent.transaction).number)

    cdef int join(self, TransactionCore transaction) except -1:
        if transaction is not None:
            if self.transacts_in is None:
                return EntryPublisher.join(self, transaction)
            transaction.require_taking()
            transaction.require_of(self.transacts_in)
        self.transaction = transaction
        return 0

    cdef int refuse_void(self) except -1:
        """Refuse the oldest ones, as far as their transactions have ended; mutex held."""
        cdef SentEntry sent
        while self.pending and (<SentEntry>self.pending[0]).is_void:
            sent = self.take_oldest()
            self.refuse(sent, errors.InvalidTxnStatusError(
                detail=f"send to {self.what}: transaction {sent.transaction} ended with the owner "
                "of the folder, before this message was known to be stored; nobody will see it"))
        return 0

    cdef SentEntry take_oldest(self):
        """Take the oldest entry that is not answered; mutex held."""
        cdef SentEntry sent = self.pending.popleft()
        if not sent.joined:
            self.stored.before = self.stored.highest
        if not sent.given_up:
            self.answered_count += 1
            self.pending_count -= sent.message_count
            self.release(sent.receipt)
            self.made_room()
        return sent

    cdef int tell(self) except -1:
        """Wake those who wait for an answer. Mutex not held."""
        self.answered.take()
        try:
            self.answered.notify_all()
        finally:
            self.answered.give()
        return 0

    def check_oldest(self, uint64_t sequence_id) -> None:
        """ConnectError: it is not what an answer comes for next."""
        if not self.pending or (<SentEntry>self.pending[0]).sequence_id != sequence_id:
            raise errors.ConnectError(
                detail=f"the broker answered entry {sequence_id}, which is not the oldest that was "
                "sent")

    def is_busy(self) -> bool:
        """Whether a thread has its mutex, be it this one."""
        if not mutex_try_lock(&self.mutex):
            return True
        mutex_unlock(&self.mutex)
        return False

    def confirmed(self, uint64_t sequence_id, uint64_t ledger_id, uint64_t entry_id,
                  list kept=None) -> None:
        """The broker stored the oldest entry that was sent. kept: the places of those of its
        messages that were new, where the others were left out."""
        mutex_lock(&self.mutex)
        try:
            self.check_oldest(sequence_id)
            self.confirm(self.take_oldest(), ledger_id, entry_id, kept)
            self.refuse_void()
        finally:
            mutex_unlock(&self.mutex)
        self.tell()

    cdef int confirm(self, SentEntry sent, uint64_t ledger_id, uint64_t entry_id,
                     list kept) except -1:
        """An entry is stored, or was before. Mutex held."""
        try:
            return self.confirm_once(sent, ledger_id, entry_id, kept)
        except MemoryError:
            # Once more: it is pending no longer, so nobody else tells it.
            return self.confirm_once(sent, ledger_id, entry_id, kept)

    cdef int confirm_once(self, SentEntry sent, uint64_t ledger_id, uint64_t entry_id,
                          list kept) except -1:
        cdef uint32_t message_count = sent.message_count
        if ledger_id != UINT64_MAX:
            self.last = (ledger_id, entry_id)
        if not sent.continues:
            self.broken = None
        elif self.broken is not None:
            return self.refuse(sent, self.broken)
        if not sent.is_part:
            self.stored.highest = max(self.stored.highest, sent.last_sequence_id)
            if ledger_id != UINT64_MAX:
                if kept is None:
                    self.published_sequence_id = sent.last_sequence_id
                else:                        # those that were left out may be the last ones
                    self.published_sequence_id = max(self.published_sequence_id,
                                                     sent.last_sequence_id)
        if sent.given_up:
            return 0
        sent.receipt.ledger_id = ledger_id
        sent.receipt.entry_id = entry_id
        if kept is not None:
            sent.receipt.kept = {place: at for at, place in enumerate(kept)}
            sent.receipt.left_out = message_count - <uint32_t>len(kept)
            message_count = <uint32_t>len(kept)
        sent.receipt.message_count = message_count
        if ledger_id == UINT64_MAX:
            sent.receipt.is_duplicate = True
            message_count = 0
        if sent.callbacks:
            self.completions.post(callbacks_of(sent), ledger_id, entry_id, message_count, None,
                                  self.partition)
        return 0

    def failed(self, uint64_t sequence_id, error) -> None:
        """The broker refused the oldest entry that was sent."""
        mutex_lock(&self.mutex)
        try:
            self.check_oldest(sequence_id)
            self.expire()                # which may be why
            self.refuse(self.take_oldest(), error)
            self.refuse_void()
        finally:
            mutex_unlock(&self.mutex)
        self.tell()

    def lost(self, error) -> None:
        """The producer has no connection any more, and gets none: nothing that is not answered
        ever will be."""
        mutex_lock(&self.mutex)
        try:
            self.link = None
            self.ended = error
            while self.pending:
                self.refuse(self.take_oldest(), error)
        finally:
            mutex_unlock(&self.mutex)
        self.tell()

    cdef int refuse(self, SentEntry sent, error) except -1:
        """Tell those who wait for an entry that it is not published; of a message in chunks with
        the last one, for the reason of the first that was not. Mutex held."""
        if sent.continues and self.broken is not None:
            error = self.broken
        if sent.transaction is not None:
            sent.transaction.fail(error)
        if not sent.given_up and not sent.is_part:
            try:
                self.refuse_once(sent, error)
            except MemoryError:
                self.refuse_once(sent, error)        # see confirm
        # Behind it: where it fails again, confirm shall still find the message broken.
        self.broken = error if sent.is_part else None
        return 0

    cdef int refuse_once(self, SentEntry sent, error) except -1:
        if sent.callbacks:
            self.completions.post(sent.callbacks, 0, 0, 0, error, self.partition)
        if sent.awaited:
            self.refused[sent.receipt] = error
        if sent.message_count > callback_count(sent.callbacks) + (1 if sent.awaited else 0):
            self.failure = error
        return 0

    # From one connection to the next --------------------------------------------------------------

    @property
    def last_confirmed(self):
        """(ledger id, entry id) of the entry that was confirmed last; None: none was."""
        return self.last

    @property
    def is_pending(self) -> bool:
        """Whether something was sent that is not answered."""
        return len(self.pending) > 0

    def pause(self) -> None:
        """The connection has ended: what is sent is kept."""
        mutex_lock(&self.mutex)
        self.link = self.held_by = None
        mutex_unlock(&self.mutex)

    def hold(self, str reason not None, bint refused) -> None:
        """The broker takes nothing for now, and says why, in words that go on with how long: what
        is sent is kept. refused: it has
        refused what it has not answered, so that nothing of that is stored."""
        cdef SentEntry sent
        mutex_lock(&self.mutex)
        self.link = None
        self.held_by = reason
        if refused:
            for sent in self.pending:
                sent.was_sent = False
        mutex_unlock(&self.mutex)

    cdef Py_ssize_t place_in_pending(self, bytes entry) except -2:
        """Find an entry that is stored among the pending ones, whole or without its duplicates; -1:
        it is not there."""
        cdef SentEntry sent
        cdef Py_ssize_t at
        for at, sent in enumerate(self.pending):
            if sent.entry == entry:
                return at
        for at, sent in enumerate(self.pending):
            if is_rest_of(entry, sent):
                return at
        return -1

    cdef int refuse_oldest(self, error) except -1:
        """Later ones are stored: a duplicate succeeds, any other was refused. Mutex held."""
        cdef SentEntry sent = self.take_oldest()
        if sent.compared and sent.last_sequence_id <= self.stored.before:
            return self.confirm(sent, UINT64_MAX, UINT64_MAX, None)
        self.refuse(sent, error or errors.ConnectError(
            detail=f"send to {self.what}: the owner of the folder stored later messages of the "
            f"producer and not this one, and has gone before it said why"))
        return 0

    cdef int compare_from_here(self) except -1:
        self.stored.compares = True
        if self.link is not None:        # else `resume` tells the next broker
            self.link.tell(LINK_SEQUENCE_NOTED, self.number, 0, 0, 0, 0)
        return 0

    def begin_comparing(self) -> None:
        """The broker tells duplicates of what is sent from here on."""
        mutex_lock(&self.mutex)
        try:
            self.compare_from_here()
        finally:
            mutex_unlock(&self.mutex)

    def resume(self, OwnerLink link, uint64_t number, list stored not None, unknown=None,
               bint compares=False, bint all_are_new=False, int64_t known=-1) -> None:
        """Go on over the next connection, as its producer of this number. link: None: there is
        none that would take anything.

        stored: (entry, ledger id, entry id) of what the producer has stored behind what was
        confirmed last, in order: those entries are confirmed, and what was sent behind them is sent
        again, but for what has timed out. An entry in front of them was refused, which could not be
        answered, or was a duplicate. unknown: an error, where it cannot be told any more what is
        stored: what went out and is not found fails with it, and without a link the rest. known:
        an id that the last broker knew of the producer's name. compares: the broker tells
        duplicates, but of what was sent before its producer heard of that; all_are_new: of nothing
        that was sent, for another one used the name meanwhile.
        """
        cdef SentEntry sent
        cdef bint is_told = not compares
        cdef Py_ssize_t at = 0
        cdef Py_ssize_t found
        mutex_lock(&self.mutex)
        try:
            self.stored.highest = max(self.stored.highest, known)
            for entry, ledger_id, entry_id in stored:
                found = self.place_in_pending(entry)
                if found < 0:
                    continue             # of another producer that had the name meanwhile
                for at in range(found):
                    self.refuse_oldest(unknown)
                sent = self.take_oldest()
                # Of what was left of a batch it is not known whose the places are.
                self.confirm(sent, ledger_id if sent.entry == entry else UINT64_MAX, entry_id, None)
            if unknown is not None:
                while self.pending and (link is None or (<SentEntry>self.pending[0]).was_sent):
                    self.refuse(self.take_oldest(), unknown)
            self.expire()                # what waits for another thread to say so, too
            while self.pending and (<SentEntry>self.pending[0]).given_up:
                self.take_oldest()       # its user was told, and may have sent it again
            while self.broken is not None and self.pending and (
                    (<SentEntry>self.pending[0]).continues):
                self.refuse(self.take_oldest(), self.broken)
            self.link = link
            self.held_by = None
            self.number = number
            self.stored.compares = compares
            for sent in self.pending:
                sent.is_void = sent.transaction is not None and sent.transaction.is_ended
            self.refuse_void()
            self.link_count = 0
            self.times.said_ms = 0
            if self.times.timeout_ms and link is not None:
                # First: by this one it knows the clock.
                self.say_sent_at(self.clock.monotonic())
            for sent in self.pending:
                # Those that are not compared are the first: an id that was told is never forgotten.
                sent.compared = sent.compared and compares and not all_are_new
                if sent.compared and not is_told:
                    is_told = True
                    self.compare_from_here()
                if link is not None and not sent.is_void:
                    if sent.expires_ms:
                        self.say_sent_at(sent.expires_ms - self.times.timeout_ms)
                    sent.was_sent = True
                    self.link_count += 1
                    link.write(self.command_of(sent))
            if not is_told:
                self.compare_from_here()
        finally:
            mutex_unlock(&self.mutex)
        self.tell()

    # Timeouts -------------------------------------------------------------------------------------

    cdef int arm_timeout(self) except -1:
        """For the oldest that is not given up; mutex held."""
        cdef SentEntry sent
        cdef SendsDue due
        for sent in self.pending:
            if not sent.given_up:
                due = SendsDue.__new__(SendsDue)
                due.publisher = weakref.ref(self)
                self.timer = self.clock.arm_monotonic(sent.expires_ms, due)
                return 0
        return 0

    def expire_pending(self) -> None:
        """Give up what has timed out; a job. It stays known, as its answer may come yet."""
        cdef SentEntry sent
        cdef uint64_t waits = 0              # entries from the first that is not given up on
        cdef str silent = None
        if self.unserved is not None:
            silent = self.unserved(self.within())
        mutex_lock(&self.mutex)
        try:
            self.timer = None
            self.expire(silent)
            self.arm_timeout()
            if self.link is not None:
                for sent in reversed(self.pending):
                    if sent.given_up:
                        break
                    waits += not sent.is_void
                # What still waits there, for a publish rate, is not to be stored later.
                self.link.tell(LINK_GIVEN_UP, self.number, self.link_count - waits, 0, 0, 0)
        finally:
            mutex_unlock(&self.mutex)
        self.tell()

    cdef int expire(self, str silent=None) except -1:
        """Tell those who wait for what has timed out; mutex held. silent: who has not answered,
        where that is known."""
        cdef SentEntry sent
        cdef int64_t now_ms
        cdef uint32_t told
        if self.times.timeout_ms == 0:
            return 0
        now_ms = self.clock.monotonic()
        for sent in self.pending:
            if sent.given_up:
                continue
            if sent.expires_ms > now_ms:
                break
            # First what there may be no memory for: it is tried again. One of a message in chunks
            # is told with its last one.
            told = callback_count(sent.callbacks) + (1 if sent.awaited else 0)
            if sent.awaited and not sent.is_part:
                self.refused[sent.receipt] = self.timeout(sent, silent)
            if sent.message_count > told and not sent.is_part:
                self.failure = self.timeout(sent, silent)
            if sent.callbacks and not sent.is_part:
                self.completions.post_timeout(sent.callbacks, self.timeout(sent, silent),
                                              self.partition)
            sent.given_up = True
            if sent.transaction is not None:
                sent.transaction.fail(self.timeout(sent, silent))
            self.answered_count += 1
            self.pending_count -= sent.message_count
            self.release(sent.receipt)
            self.made_room()
        return 0

    cdef int say_sent_at(self, int64_t sent_ms) except -1:
        """Tell the broker when what comes next was sent, unless it knows that nearly: what waits
        there for a publish rate is not to be stored when its time is over, and LINK_GIVEN_UP is
        behind it. Mutex held."""
        if sent_ms < self.times.said_ms or sent_ms - self.times.said_ms >= SAID_FOR_MS:
            self.times.said_ms = sent_ms
            self.link.tell(LINK_SENT_AT, self.number, <uint64_t>sent_ms,
                           <uint64_t>(self.times.timeout_ms + SAID_FOR_MS), 0, 0)
        return 0

    cdef str within(self):
        if self.times.is_leaving:
            return f"{self.times.timeout_ms} ms, while the producer was being closed"
        return f"send_timeout_millis {self.times.timeout_ms}"

    cdef object timeout(self, SentEntry sent, str silent):
        known = "nothing was stored"
        if sent.was_sent:
            known = ("the message may be stored all the same, so sending it again may store it "
                     "twice where the topic has no deduplication")
        if self.held_by is not None and not self.times.is_leaving:
            return errors.Timeout(
                detail=f"{self.held_by} for {self.times.timeout_ms} ms, which "
                f"is send_timeout_millis; {known}")
        if silent is None:
            silent = f"the owner of the folder has not answered within {self.within()}"
        return errors.Timeout(detail=f"send to {self.what}: {silent}; {known}")

    def begin_leaving(self) -> None:
        """The owner may be stopped: whoever closes waits for it as long as for anything else."""
        cdef SentEntry sent
        cdef int64_t expires_ms
        mutex_lock(&self.mutex)
        try:
            if self.times.timeout_ms == 0 and self.times.leave_ms > 0:
                self.times.timeout_ms = self.times.leave_ms
                self.times.is_leaving = True
                expires_ms = self.clock.monotonic() + self.times.leave_ms
                for sent in self.pending:
                    sent.expires_ms = expires_ms
                self.times.said_ms = 0             # it is another time now
                if self.timer is None:
                    self.arm_timeout()
        finally:
            mutex_unlock(&self.mutex)

    def cancel_timeout(self) -> None:
        """The producer is closed."""
        timer, self.timer = self.timer, None
        if timer is not None:
            (<Timer>timer).cancel()

    # Waiting --------------------------------------------------------------------------------------

    cdef int wait_until(self, uint64_t count) except -1:
        """Return when so many entries are answered. Mutex not held."""
        self.answered.take()
        try:
            while self.answered_count < count:
                self.answered.wait()
        finally:
            self.answered.give()
        return 0

    cdef int wait(self, Receipt receipt) except -1:
        self.answered.take()
        try:
            while receipt.message_count == 0 and receipt not in self.refused:
                self.answered.wait()
        finally:
            self.answered.give()
        if receipt.message_count == 0:
            raise self.refused.pop(receipt)
        return 0

    cdef int place(self, list receipts) except -1:
        cdef Receipt receipt
        self.wait_until(self.sent_count)
        failure = None
        for receipt in receipts:
            failure = failure or self.refused.pop(receipt, None)
        if failure is not None:
            raise failure
        return 0

    cdef int wait_for_oldest(self) except -1:
        cdef uint64_t count = self.answered_count + 1
        if self.answered_count == self.sent_count:
            return 0
        # The answer takes the mutex.
        mutex_unlock(&self.mutex)
        try:
            self.wait_until(count)
        finally:
            mutex_lock(&self.mutex)
        return 0

    cdef object confirm_within(self, TransactionCore transaction):
        cdef uint64_t count = self.sent_count
        self.answered.take()
        try:
            while self.answered_count < count and not transaction.is_ended:
                self.answered.wait()
        finally:
            self.answered.give()
        return None                      # the transaction was told of its own

    cdef int look_again(self) except -1:
        return self.tell()

    cdef int settle(self) except -1:
        return 0                         # the answers come by themselves

    cdef object flush(self):
        self.wait_until(self.sent_count)
        mutex_lock(&self.mutex)
        failure, self.failure = self.failure, None
        mutex_unlock(&self.mutex)
        return failure
