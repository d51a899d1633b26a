# cython: language_level=3
"""Body of producer_arrow.pxd."""

from libc.stdint cimport int64_t
from libc.string cimport memset

from pulsarx._pycore.arrow_column cimport ROW_OK
from pulsarx._pycore.arrow_import cimport ArrowImport, EncodeLimits, arrow_rows_encode
from pulsarx._pycore.message_id cimport message_id_new
from pulsarx._pycore.mutex cimport mutex_lock, mutex_unlock
from pulsarx._pycore.producer_bulk cimport ProducerBulk
from pulsarx._pycore.producer_store cimport DURABILITY_SYNC, PRODUCER_OPEN


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
                self.send_rows(source, &sent, writers)
        except Exception as error:
            error.add_note(f"{sent.count} rows were published")
            raise
        finally:
            source.close()
            if sent.count and self.durability == DURABILITY_SYNC:
                self.wait_durable(writers[0], sent.entry_id)
        if sent.count == 0:
            return None
        if sent.batch_size == 1:
            return message_id_new(<int64_t>sent.ledger_id, <int64_t>sent.entry_id, -1, -1, 0)
        return message_id_new(<int64_t>sent.ledger_id, <int64_t>sent.entry_id, -1,
                              <int>sent.batch_size - 1, <int>sent.batch_size)

    cdef int send_rows(self, ArrowImport source, SentRows* sent, list writers) except -1:
        """Store all rows of the current record batch, in as many batches as it takes.

        writers: becomes [the writer of the ledger that has the last row].
        """
        cdef EncodeLimits limits
        cdef int status = ROW_OK
        limits.batch_messages = self.batch_messages_max
        limits.batch_bytes = self.batch_bytes_max
        limits.message_size = self.message_size_max
        mutex_lock(&self.mutex)
        self.caller_waits = True
        try:
            if self.state != PRODUCER_OPEN:
                self.check_open()
            self.close_batch()
            while source.rows.at < source.rows.length:
                self.batch_publish_ms = self.clock.now_ms()
                with nogil:
                    status = arrow_rows_encode(
                        &source.rows, &limits, &self.batch, &self.next_sequence_id)
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
