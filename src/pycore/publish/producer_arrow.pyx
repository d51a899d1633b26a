# cython: language_level=3
"""Body of producer_arrow.pxd."""

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from pulsarx._core.batch_encode cimport BatchEncode
from pulsarx._pycore.arrow.arrow_column cimport ROW_NULL, ROW_OK, column_take
from pulsarx._pycore.arrow.arrow_import cimport (
    ArrowImport, ArrowRows, EncodeLimits, arrow_rows_encode,
)
from pulsarx._pycore.message.message_id cimport message_id_new
from pulsarx._pycore.ground.mutex cimport mutex_lock, mutex_unlock
from pulsarx._pycore.publish.producer_bulk cimport ProducerBulk
from pulsarx._pycore.publish.producer_store cimport DURABILITY_SYNC, PRODUCER_OPEN


cdef class ProducerArrow(ProducerBulk):
    """send_arrow. Rows always form batches, batching enabled or not."""

    def send_arrow(self, data, value="value", *, key=None, properties=None, event_time=None):
        """Publish each row of a table in order; returns the MessageId of the last when all are as
        durable as after send, None when there is no row.

        data: anything with __arrow_c_stream__ or __arrow_c_array__ (PyArrow, Polars, DuckDB, ...).
        value, key, properties, event_time: names of columns. value: binary or string as the schema
        would have encoded it, null for a message without a value. key: binary or string, null or
        empty for none. event_time: timestamp, or int64 milliseconds. properties: map of strings.
        Rows of a record batch stay together; other threads may publish between two of them.
        TypeError, ValueError: an unfit column, nothing was published. A bad row, MessageTooBig or a
        full disk leaves published what came before; a note of the error says how many rows.
        """
        cdef ArrowImport source
        cdef SentRows sent
        cdef list writers = []
        if self.state != PRODUCER_OPEN:
            self.check_open()
        source = ArrowImport(data, value, key, event_time, properties)
        memset(&sent, 0, sizeof(sent))
        try:
            while source.advance():
                self.send_rows(source, &sent, writers, NULL)
        except Exception as error:
            error.add_note(f"{sent.count} rows were published")
            raise
        finally:
            source.close()
            if sent.count and self.durability == DURABILITY_SYNC:
                self.wait_durable(writers[0], sent.entry_id)
        return last_id(&sent, self.tail.partition)

    cdef int send_rows(self, ArrowImport source, SentRows* sent, list writers,
                       const int32_t* partitions) except -1:
        """Store all rows of the current record batch, in as many batches as it takes.

        partitions: of each row, when only those of this topic's are to be stored; NULL: all are.

        writers: becomes [the writer of the ledger that has the last row].
        """
        cdef EncodeLimits limits
        cdef int status = ROW_OK
        limits.batch_messages = self.batch_messages_max
        limits.batch_bytes = self.batch_bytes_max
        limits.message_size = self.message_size_max
        limits.refuse_null = False
        mutex_lock(&self.mutex)
        self.caller_waits = True
        try:
            if self.state != PRODUCER_OPEN:
                self.check_open()
            self.close_open()
            while source.rows.at < source.rows.length:
                self.batch_publish_ms = self.clock.now_ms()
                with nogil:
                    if partitions == NULL:
                        status = arrow_rows_encode(
                            &source.rows, &limits, &self.batch, &self.next_sequence_id)
                    else:
                        status = rows_encode(&source.rows, &limits, &self.batch,
                                             &self.next_sequence_id, partitions,
                                             self.tail.partition)
                if self.batch.message_count:
                    sent.batch_size = self.batch.message_count
                    self.close_batch()
                    sent.count += sent.batch_size
                    sent.ledger_id = self.stored_ledger_id
                    sent.entry_id = self.stored_entry_id
                    writers[:] = [self.stored_writer]
                if status != ROW_OK:
                    source.raise_row(status)
        finally:
            self.caller_waits = False
            mutex_unlock(&self.mutex)
        return 0


cdef object last_id(const SentRows* sent, int partition):
    """Id of the last row; None when there was none."""
    if sent.count == 0:
        return None
    if sent.batch_size == 1:
        return message_id_new(<int64_t>sent.ledger_id, <int64_t>sent.entry_id, partition, -1, 0)
    return message_id_new(<int64_t>sent.ledger_id, <int64_t>sent.entry_id, partition,
                          <int>sent.batch_size - 1, <int>sent.batch_size)


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
    cdef ProducerArrow producer
    cdef SentRows sent
    cdef int32_t* partitions = NULL
    cdef int32_t* grown
    cdef int64_t count = 0
    cdef dict waiting = {}               # partition: [writer, entry id]
    cdef list writers
    last = None
    try:
        while source.advance():
            grown = <int32_t*>PyMem_Realloc(partitions, source.rows.length * sizeof(int32_t))
            if grown == NULL:
                raise MemoryError(f"the partitions of {source.rows.length} rows")
            partitions = grown
            choose_partitions(source, choose, run_rows, partitions)
            for producer in producers:
                memset(&sent, 0, sizeof(sent))
                writers = []
                source.rows.at = 0
                try:
                    producer.send_rows(source, &sent, writers, partitions)
                finally:
                    count += sent.count
                    if sent.count:
                        waiting[producer.tail.partition] = (producer, writers[0], sent.entry_id)
                if partitions[source.rows.length - 1] == producer.tail.partition:
                    last = last_id(&sent, producer.tail.partition)
    except Exception as error:
        error.add_note(f"{count} rows were published")
        raise
    finally:
        PyMem_Free(partitions)
        source.close()
        for producer, writer, entry_id in waiting.values():
            if producer.durability == DURABILITY_SYNC:
                producer.wait_durable(writer, entry_id)
    return last
