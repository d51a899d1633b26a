# cython: language_level=3
"""Publishing tables: `send_arrow` of a producer, and of the producers of all partitions.

Imported by the first call.
"""

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.batch_encode cimport BatchEncode
from pulsarx._pycore.arrow.arrow_column cimport ROW_NULL, ROW_OK, column_take
from pulsarx._pycore.arrow.arrow_import cimport (
    ArrowImport, ArrowRows, EncodeLimits, arrow_rows_encode,
)
from pulsarx._pycore.ground.mutex cimport mutex_lock, mutex_unlock
from pulsarx._pycore.publish.admission cimport PRODUCER_HELD, PRODUCER_OPEN
from pulsarx._pycore.publish.entry_publisher cimport Receipt
from pulsarx._pycore.publish.open_batch cimport OpenBatch
from pulsarx._pycore.publish.producer_core cimport ProducerCore


def send_rows_of(ProducerCore producer not None, data, value, key, properties, event_time):
    """Producer.send_arrow."""
    cdef ArrowImport source
    cdef SentRows sent = SentRows.__new__(SentRows)
    producer.admission.require_open()
    source = ArrowImport(data, value, key, event_time, properties)
    try:
        while source.advance():
            send_rows(producer, source, sent, NULL)
    except Exception as error:
        error.add_note(f"{sent.count} rows were published")
        raise
    finally:
        source.close()
        wait_for(producer, sent)
    if sent.last is None:
        return None
    return producer.id_of(sent.last, last_stored(sent.last))


cdef class SentRows:
    """Rows of one producer that are published."""
    cdef int64_t count
    cdef Receipt last                    # of the entry with the last of them
    cdef list receipts                   # where those are filled in later; else None


cdef int wait_for(ProducerCore producer, SentRows sent) except -1:
    """Return when all are confirmed, and the receipts say where."""
    if sent.last is None or not producer.publisher.confirms_later:
        return 0
    if sent.receipts is not None:
        producer.publisher.place(sent.receipts)
    producer.publisher.wait(sent.last)
    if sent.receipts is not None:
        sent.last = last_new(sent.receipts)
    return 0


cdef Receipt last_new(list receipts):
    """Return the receipt of the last entry of which something is stored; None: all were
    duplicates."""
    cdef Receipt receipt
    for receipt in reversed(receipts):
        if not receipt.is_duplicate:
            return receipt
    return None


cdef uint32_t last_stored(Receipt receipt) except? 0:
    """The place in the entry of the last message of it that is stored."""
    return receipt.message_count - 1 if receipt.kept is None else <uint32_t>max(receipt.kept)


cdef int send_rows(ProducerCore producer, ArrowImport source, SentRows sent,
                   const int32_t* partitions) except -1:
    """Publish all rows of the current record batch, in as many batches as it takes.

    partitions: of each row, when only those of the producer's are to be published; NULL: all are.
    """
    cdef OpenBatch batch = producer.open
    cdef EncodeLimits limits
    cdef Receipt receipt
    cdef uint32_t count
    cdef int status = ROW_OK
    limits.batch_messages = producer.batch_messages_max
    limits.batch_bytes = producer.batch_bytes_max
    limits.message_size = producer.envelope.message_size_max
    limits.refuse_null = False
    producer.wait_for_queued()
    mutex_lock(&producer.publisher.mutex)
    try:
        if producer.nested is not None:
            producer.send_nested()
        if producer.admission.state != PRODUCER_OPEN:
            producer.admission.check_open(NULL)
        producer.close_open(True)
        if producer.publisher.transaction is not None:
            producer.join(None)
        while source.rows.at < source.rows.length:
            if producer.admission.state == PRODUCER_HELD:
                producer.wait_between()
            batch.publish_ms = producer.clock.now()
            if producer.numbers.sequences is not None and (
                    not skip_duplicates(producer, &source.rows, partitions)):
                break
            with nogil:
                if partitions == NULL:
                    status = arrow_rows_encode(
                        &source.rows, &limits, &batch.batch, &producer.numbers.next_sequence_id)
                else:
                    status = rows_encode(&source.rows, &limits, &batch.batch,
                                         &producer.numbers.next_sequence_id, partitions,
                                         producer.publisher.partition)
            if producer.numbers.sequences is not None:
                producer.numbers.sequences.pushed = <int64_t>producer.numbers.next_sequence_id - 1
            if batch.batch.message_count:
                receipt = Receipt.__new__(Receipt)
                batch.receipt = receipt
                count = batch.batch.message_count
                try:
                    producer.close(batch, True)
                except BaseException:
                    batch.clear()            # not published: the caller is told how many were
                    raise
                sent.count += count
                sent.last = receipt
                if producer.publisher.places_later:
                    if sent.receipts is None:
                        sent.receipts = []
                    sent.receipts.append(receipt)
            if status != ROW_OK:
                source.raise_row(status)
    finally:
        mutex_unlock(&producer.publisher.mutex)
    return 0


cdef bint skip_duplicates(ProducerCore producer, ArrowRows* rows,
                          const int32_t* partitions) except -1:
    """Pass over rows whose sequence ids are known; False: none is left. LedgerPoisonedError: it is
    not known whether they are stored."""
    producer.numbers.lift_own_ids()
    while rows.at < rows.length:
        if partitions == NULL or partitions[rows.at] == producer.publisher.partition:
            if not producer.is_duplicate(producer.numbers.next_sequence_id, True):
                return True
            producer.publisher.require_sound()
            producer.numbers.next_sequence_id += 1
        rows.at += 1
    return False


cdef int rows_encode(ArrowRows* rows, const EncodeLimits* limits, BatchEncode* batch,
                     uint64_t* sequence_id, const int32_t* partitions,
                     int32_t partition) noexcept nogil:
    """arrow_rows_encode of the rows of one partition."""
    cdef int64_t length = rows.length
    cdef int64_t at = rows.at
    cdef int status = ROW_OK
    while at < length:
        if partitions[at] == partition:
            rows.at = at
            rows.length = at + 1
            status = arrow_rows_encode(rows, limits, batch, sequence_id)
            if status != ROW_OK or rows.at == at:
                break                    # refused, or the batch is full
        at += 1
    rows.at = at
    rows.length = length
    return status


cdef int choose_partitions(ArrowImport source, object choose, int64_t run_rows,
                           int32_t* partitions) except -1:
    """Ask for the partition of each row with a key, and of each run of rows without one."""
    cdef ArrowRows* rows = &source.rows
    cdef const uint8_t* data = NULL
    cdef int64_t size = 0
    cdef int64_t left = 0
    cdef int64_t at
    cdef int32_t run = 0
    cdef int status
    for at in range(rows.length):
        size = 0
        if rows.key.kind:
            rows.at = at
            status = column_take(&rows.key, at, &data, &size)
            if status == ROW_NULL:
                size = 0
            elif status != ROW_OK:
                source.raise_row(status)
        if size:
            partitions[at] = choose(data[:size].decode("utf-8", "surrogateescape"))
            continue
        if left == 0:
            run = choose(None)
            left = run_rows
        left -= 1
        partitions[at] = run
    rows.at = 0
    return 0


def send_arrow_routed(list producers not None, choose, int64_t run_rows, data, value, key,
                      properties, event_time):
    """send_arrow over the producers of all partitions, by their index.

    choose: (key or None) -> partition; asked once for run_rows rows without a key.
    """
    cdef ArrowImport source = ArrowImport(data, value, key, event_time, properties)
    cdef ProducerCore producer
    cdef SentRows sent
    cdef int32_t* partitions = NULL
    cdef int32_t* grown
    cdef list each_sent = [SentRows.__new__(SentRows) for _ in producers]
    cdef ProducerCore last_producer = None
    cdef SentRows last = None
    try:
        while source.advance():
            grown = <int32_t*>PyMem_Realloc(partitions, source.rows.length * sizeof(int32_t))
            if grown == NULL:
                raise MemoryError(f"the partitions of {source.rows.length} rows")
            partitions = grown
            choose_partitions(source, choose, run_rows, partitions)
            for producer, sent in zip(producers, each_sent):
                source.rows.at = 0
                send_rows(producer, source, sent, partitions)
                if partitions[source.rows.length - 1] == producer.publisher.partition:
                    last_producer, last = producer, sent
    except Exception as error:
        count = sum([sent.count for sent in each_sent])
        error.add_note(f"{count} rows were published")
        raise
    finally:
        PyMem_Free(partitions)
        source.close()
        for producer, sent in zip(producers, each_sent):
            wait_for(producer, sent)
    if last is None or last.last is None:
        return None
    return last_producer.id_of(last.last, last_stored(last.last))
