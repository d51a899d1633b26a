# cython: language_level=3
"""Body of transaction_steps.pxd; and what the broker's subscription calls."""

from libc.stdint cimport uint64_t

from pulsarx import errors
from pulsarx._core.cursor_record cimport CURSOR_RUN_MAX
from pulsarx._core.cursor_state cimport LedgerAcks, cursor_state_find
from pulsarx._core.message_runs cimport (
    MessageRuns, message_runs_append, message_runs_free, message_runs_init, message_runs_union,
)
from pulsarx._core.status cimport (
    STATUS_DUPLICATE, STATUS_FOLD, STATUS_OK, STATUS_OUT_OF_RANGE,
)
from pulsarx._pycore.cursor.ack_tracker cimport AckTracker
from pulsarx._pycore.dispatch.entry_sink cimport Dispatcher
from pulsarx._pycore.dispatch.subscription_core cimport SubscriptionCore
from pulsarx._pycore.dispatch.transacted_acks cimport TransactedAcks, TransactionAcks
from pulsarx._pycore.ground.mutex cimport mutex_lock, mutex_unlock
from pulsarx._pycore.ledger.open_transactions cimport TransactionCore
from pulsarx._pycore.ground.raise_status cimport raise_status


# Acknowledging ------------------------------------------------------------------------------------

cdef TransactionAcks transaction_join(SubscriptionCore core, object transaction):
    cdef TransactionAcks acks
    mutex_lock(&core.mutex)
    try:
        if core.transacted is None:
            core.transacted = TransactedAcks()
        acks = core.transacted.join(transaction)
    finally:
        mutex_unlock(&core.mutex)
    if acks.is_enlisted:
        return acks
    # Kept before it is enlisted: an end that comes in between finds it, and seals it.
    try:
        owner = None
        if core.losses is not None and core.losses.owner is not None:
            owner = core.losses.owner()
        if owner is None:
            raise errors.AlreadyClosed(detail="acknowledge in a transaction: the subscription is "
                                              "closed")
        transaction.enlist(owner)
        acks.is_enlisted = True
    finally:
        if not acks.is_enlisted:
            mutex_lock(&core.mutex)
            if acks.count == 0 and acks.through_ledger == 0 and not acks.is_enlisted:
                forget(core, acks)
            mutex_unlock(&core.mutex)
    return acks


cdef int forget(SubscriptionCore core, TransactionAcks acks) noexcept:
    """Mutex held."""
    if core.transacted is not None:
        core.transacted.forget(acks)
        if not core.transacted.by_id:
            core.transacted = None       # nothing is asked of it any more
    return 0


cdef int transaction_add(SubscriptionCore core, Dispatcher dispatcher, TransactionAcks acks,
                         list runs) except -1:
    cdef tuple collision = None
    cdef uint64_t ledger_id
    cdef uint64_t first
    cdef uint64_t count
    mutex_lock(&core.mutex)
    try:
        check_open(core, dispatcher, acks)
        for ledger_id, first, count in runs:
            check_place(core, dispatcher, ledger_id, first, first + count)
        collision = core.transacted.add(acks, core.tracker, runs)
        if collision is None:
            for ledger_id, first, count in runs:
                dispatcher.set_aside(ledger_id, first, count)
    finally:
        mutex_unlock(&core.mutex)
    return 0 if collision is None else collide(dispatcher, acks, collision)


cdef int transaction_add_through(SubscriptionCore core, Dispatcher dispatcher,
                                 TransactionAcks acks, uint64_t ledger_id,
                                 uint64_t end) except -1:
    cdef tuple collision = None
    mutex_lock(&core.mutex)
    try:
        check_open(core, dispatcher, acks)
        check_place(core, dispatcher, ledger_id, end, end)
        collision = core.transacted.add_through(acks, core.tracker, ledger_id, end)
        if collision is None:
            dispatcher.set_aside_through(ledger_id, end)
    finally:
        mutex_unlock(&core.mutex)
    return 0 if collision is None else collide(dispatcher, acks, collision)


cdef int check_open(SubscriptionCore core, Dispatcher dispatcher, TransactionAcks acks) except -1:
    if core.tracker.c_closed:
        raise errors.AlreadyClosed(detail=f"subscription of {dispatcher.topic_name}")
    if acks.is_sealed or core.transacted is None or (
            core.transacted.find(acks.transaction) is not acks):
        raise errors.InvalidTxnStatusError(
            detail=f"acknowledge on {dispatcher.topic_name} in a transaction whose commit or abort "
            "has begun; acknowledge in a new one")
    return 0


cdef int check_place(SubscriptionCore core, Dispatcher dispatcher, uint64_t ledger_id,
                     uint64_t first, uint64_t end) except -1:
    """The tracker has the ledger, or had it, and it has these messages."""
    cdef LedgerAcks* acks = NULL
    if ledger_id < core.tracker.c_state.acknowledged_below:
        return 0
    acks = cursor_state_find(&core.tracker.c_state, ledger_id)
    if acks == NULL or end > acks.message_count:
        raise_status(STATUS_OUT_OF_RANGE, 0, f"acknowledge message {first} of ledger {ledger_id} "
                                             f"of {dispatcher.topic_name} in a transaction")
    return 0


cdef int collide(Dispatcher dispatcher, TransactionAcks acks, tuple collision) except -1:
    """No mutex held: names of transactions are code of others."""
    ledger_id, message, other = collision
    if other is None:
        why = "it is acknowledged already"
    elif other is acks.transaction:
        why = "it is acknowledged in this transaction already"
    else:
        why = f"it is acknowledged in transaction {other}, which has not ended"
    error = errors.TransactionConflict(
        detail=f"acknowledge message {message} of ledger {ledger_id} of {dispatcher.topic_name} in "
        f"transaction {acks.transaction}: {why}; nothing of this call was acknowledged")
    if isinstance(acks.transaction, TransactionCore):
        (<TransactionCore>acks.transaction).fail(error)
    raise error


# What the broker's subscription calls -------------------------------------------------------------

def open_transaction(SubscriptionCore core not None) -> object:
    """A transaction that has acknowledgements pending here; None: none has. Takes the mutex."""
    cdef TransactedAcks transacted
    mutex_lock(&core.mutex)
    try:
        transacted = core.transacted
        if transacted is None:
            return None
        return next((each.transaction for each in transacted.by_id.values()), None)
    finally:
        mutex_unlock(&core.mutex)


def transaction_acks(SubscriptionCore core not None, object transaction not None) -> dict:
    """The acknowledgements of a transaction as plain data: "individual", a list of [ledger id,
    first ordinal, count], and "cumulative", [ledger id, ordinal of the first message that is not],
    or None. From now on the transaction adds none here: its end has begun. Takes the mutex."""
    cdef TransactionAcks acks
    cdef MessageRuns runs
    cdef size_t at
    cdef list individual = []
    cumulative = None
    message_runs_init(&runs)
    mutex_lock(&core.mutex)
    try:
        acks = core.transacted.find(transaction) if core.transacted is not None else None
        if acks is not None:
            core.transacted.runs_of(acks, core.tracker, &runs)
            for at in range(runs.count):
                individual.append([runs.runs[at].ledger_id, runs.runs[at].first,
                                   runs.runs[at].end - runs.runs[at].first])
            if core.transacted.has_through(acks, core.tracker):
                cumulative = [acks.through_ledger, acks.through_end]
            acks.is_sealed = True
    finally:
        mutex_unlock(&core.mutex)
        message_runs_free(&runs)
    return {"individual": individual, "cumulative": cumulative}


def commit_transaction(SubscriptionCore core not None, object transaction not None) -> bool:
    """Acknowledge what a transaction did, in one step; False: it did nothing, or the subscription
    is closed. What it raises leaves the rest pending: call it again. Takes the mutex."""
    cdef TransactionAcks acks
    cdef Dispatcher dispatcher
    cdef MessageRuns runs
    cdef bint is_applied = False
    message_runs_init(&runs)
    mutex_lock(&core.mutex)
    try:
        acks = core.transacted.find(transaction) if core.transacted is not None else None
        if acks is None:
            return False
        acks.is_sealed = True
        dispatcher = core.dispatcher
        if dispatcher is not None and not core.tracker.c_closed:
            core.transacted.runs_of(acks, core.tracker, &runs)
            if core.transacted.has_through(acks, core.tracker):
                acknowledge_through(core, dispatcher, acks.through_ledger, acks.through_end)
            acknowledge_runs(core, dispatcher, &runs)
            is_applied = True
        forget(core, acks)
    finally:
        mutex_unlock(&core.mutex)
        message_runs_free(&runs)
    if is_applied:
        dispatcher.settle()
    return is_applied


def abort_transaction(SubscriptionCore core not None, object transaction not None) -> bool:
    """Have the messages delivered again that a transaction acknowledged; False: it acknowledged
    none, or the subscription is closed. What it raises leaves the rest pending: call it again.
    Takes the mutex."""
    cdef TransactionAcks acks
    cdef Dispatcher dispatcher = None
    cdef MessageRuns runs
    message_runs_init(&runs)
    mutex_lock(&core.mutex)
    try:
        acks = core.transacted.find(transaction) if core.transacted is not None else None
        if acks is None:
            return False
        acks.is_sealed = True
        if core.dispatcher is not None and not core.tracker.c_closed:
            dispatcher = core.dispatcher
            pending_runs(core, dispatcher, acks, &runs)
            dispatcher.come_back(acks, &runs)
        forget(core, acks)
    finally:
        mutex_unlock(&core.mutex)
        message_runs_free(&runs)
        if dispatcher is not None:
            dispatcher.settle()
    return dispatcher is not None


def reopen_transaction(SubscriptionCore core not None, object transaction not None) -> None:
    """Nothing came of the end of a transaction: it may acknowledge more. Takes the mutex."""
    cdef TransactionAcks acks
    mutex_lock(&core.mutex)
    try:
        acks = core.transacted.find(transaction) if core.transacted is not None else None
        if acks is not None:
            acks.is_sealed = False
    finally:
        mutex_unlock(&core.mutex)


def apply_acks(SubscriptionCore core not None, dict data not None) -> None:
    """Acknowledge what transaction_acks answered once, whether it is acknowledged or not. Takes the
    mutex."""
    cdef Dispatcher dispatcher
    cdef MessageRuns runs
    cdef uint64_t ledger_id
    cdef uint64_t first
    cdef uint64_t count
    message_runs_init(&runs)
    mutex_lock(&core.mutex)
    try:
        dispatcher = core.dispatcher
        if dispatcher is None or core.tracker.c_closed:
            return
        for ledger_id, first, count in sorted(data["individual"]):
            if message_runs_append(&runs, ledger_id, first, first + count) != STATUS_OK:
                raise MemoryError("acknowledge as a transaction did: out of memory")
        if data["cumulative"] is not None:
            acknowledge_through(core, dispatcher, data["cumulative"][0], data["cumulative"][1])
        acknowledge_runs(core, dispatcher, &runs)
    finally:
        mutex_unlock(&core.mutex)
        message_runs_free(&runs)
    dispatcher.settle()


def take_up_acks(SubscriptionCore core not None, object transaction not None,
                 list individual not None, list cumulative) -> None:
    """Have acknowledgements pending in a transaction that goes on, as transaction_acks answers
    them, before anything is delivered. What is acknowledged since is left out. Takes the mutex."""
    cdef TransactionAcks acks = transaction_join(core, transaction)
    cdef AckTracker tracker = core.tracker
    cdef uint64_t ledger_id
    cdef uint64_t first
    cdef uint64_t count
    cdef uint64_t message
    cdef tuple collision = None
    mutex_lock(&core.mutex)
    try:
        if cumulative is not None:
            core.transacted.add_through(acks, tracker, cumulative[0], cumulative[1])
        for ledger_id, first, count in individual:
            for message in range(first, first + count):
                if collision is None and not tracker.is_acknowledged(ledger_id, message):
                    collision = core.transacted.add(acks, tracker, [(ledger_id, message, 1)])
    finally:
        mutex_unlock(&core.mutex)
    if collision is not None:
        raise errors.TransactionConflict(
            detail=f"take up transaction {transaction}: message {collision[1]} of ledger "
            f"{collision[0]} is acknowledged in another one, too")


def transaction_through(SubscriptionCore core not None, object transaction not None) -> object:
    """[ledger id, message] up to which a transaction acknowledges here, that one not; None: it has
    no cumulative acknowledgement. Takes the mutex."""
    cdef TransactionAcks acks
    mutex_lock(&core.mutex)
    try:
        acks = core.transacted.find(transaction) if core.transacted is not None else None
        if acks is None or not core.transacted.has_through(acks, core.tracker):
            return None
        return [acks.through_ledger, acks.through_end]
    finally:
        mutex_unlock(&core.mutex)


# With the mutex held ------------------------------------------------------------------------------

cdef int pending_runs(SubscriptionCore core, Dispatcher dispatcher, TransactionAcks acks,
                      MessageRuns* runs) except -1:
    """List what is pending in a transaction, one by one or not; to an empty set."""
    cdef TransactedAcks transacted = core.transacted
    cdef AckTracker tracker = core.tracker
    cdef MessageRuns single
    cdef MessageRuns before
    cdef uint64_t ledger_id
    cdef uint64_t at
    cdef uint64_t end
    cdef LedgerAcks* ledger
    cdef int status = STATUS_OK
    message_runs_init(&single)
    message_runs_init(&before)
    try:
        transacted.runs_of(acks, tracker, &single)
        if transacted.has_through(acks, tracker):
            for ledger_id in tracker.ledger_ids:
                if ledger_id > acks.through_ledger:
                    break
                ledger = cursor_state_find(&tracker.c_state, ledger_id)
                end = acks.through_end
                if ledger_id < acks.through_ledger:
                    end = ledger.message_count if ledger.sealed else (
                        dispatcher.tail.messages_in(ledger_id))
                at = 0
                while status == STATUS_OK:
                    at = tracker.next_unacknowledged(ledger_id, at, end)
                    if at >= end:
                        break
                    status = message_runs_append(&before, ledger_id, at, at + 1)
                    at += 1
        if status != STATUS_OK or message_runs_union(&single, &before, runs) != STATUS_OK:
            raise MemoryError("deliver the messages of a transaction again: out of memory")
    finally:
        message_runs_free(&single)
        message_runs_free(&before)
    return 0


cdef int acknowledge_runs(SubscriptionCore core, Dispatcher dispatcher,
                          const MessageRuns* runs) except -1:
    cdef uint64_t ledger_id
    cdef uint64_t first
    cdef uint64_t end
    cdef uint64_t count
    cdef uint64_t newly
    cdef size_t at
    cdef int status
    for at in range(runs.count):
        ledger_id = runs.runs[at].ledger_id
        first = runs.runs[at].first
        end = end_of(core, dispatcher, ledger_id, runs.runs[at].end)
        while first < end:
            count = min(end - first, <uint64_t>CURSOR_RUN_MAX)
            status = core.tracker.acknowledge(ledger_id, first, count, &newly)
            if status == STATUS_FOLD:
                core.tracker.fold()
                continue
            if status != STATUS_DUPLICATE:
                raise_status(status, 0, f"acknowledge message {first} of ledger {ledger_id} of "
                                        f"{dispatcher.topic_name}, as a transaction did")
            dispatcher.acknowledged(ledger_id, first, count)
            if core.chunks is not None:
                dispatcher.chunks_acknowledged(ledger_id, first, count)
            first += count
    return 0


cdef int acknowledge_through(SubscriptionCore core, Dispatcher dispatcher, uint64_t ledger_id,
                             uint64_t end) except -1:
    cdef list spared = None
    end = end_of(core, dispatcher, ledger_id, end)
    if end == 0:
        return 0
    dispatcher.look_for_chunks(ledger_id, end)
    if core.chunks is not None:
        spared = core.chunks.spared(ledger_id, end)
    if spared:
        return dispatcher.acknowledge_sparing(ledger_id, end, spared)
    if not core.tracker.acknowledge_messages_through(ledger_id, end):
        return 0
    if core.chunks is not None:
        core.chunks.acknowledged_through(ledger_id, end)
    return dispatcher.acknowledged_through(ledger_id, end)


cdef uint64_t end_of(SubscriptionCore core, Dispatcher dispatcher, uint64_t ledger_id,
                     uint64_t end) except? 0:
    """The end of messages of a ledger, as far as it has them; 0: it is gone."""
    cdef LedgerAcks* ledger = cursor_state_find(&core.tracker.c_state, ledger_id)
    if ledger == NULL:
        return 0
    return min(end, ledger.message_count)
