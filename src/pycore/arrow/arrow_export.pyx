# cython: language_level=3
"""Body of arrow_export.pxd.

  column        type                                                  null
  message_id    struct<ledger_id: int64, entry_id: int64,
                       partition: int32, batch_index: int32>          never
  key           string                                                without a key
  value         binary                                                without a value
  publish_time  timestamp[ms, UTC]                                    never
  event_time    timestamp[ms, UTC]                                    without one
  properties    map<string, string>                                   never; empty
"""

cimport cython
from libc.errno cimport ENOMEM
from libc.stdint cimport int64_t, uint8_t

from pulsarx import errors
from pulsarx._pycore.arrow.arrow_block cimport (
    AckRun, ArrowBlock, TextColumn, arrow_block_hold, arrow_block_release,
)
from pulsarx._pycore.arrow.arrow_schema cimport ARROW_NULLABLE, ArrowArray, ArrowSchema
from pulsarx._pycore.arrow.arrow_struct cimport *
from pulsarx._pycore.ground.control_plane cimport control_plane
from pulsarx._pycore.ground.unmade cimport refuse_new

cdef enum:
    COLUMN_COUNT = 6
    SHOWN_ROWS = 20              # in a notebook
    SHOWN_BYTES = 80

COLUMN_NAMES = ("message_id", "key", "value", "publish_time", "event_time", "properties")


cdef int make_message_id_schema(ArrowSchema* self) noexcept nogil:
    if arrow_make_schema(self, b"+s", b"message_id", 0, 4) != 0:
        return ENOMEM
    if (arrow_make_schema(self.children[0], b"l", b"ledger_id", 0, 0) != 0
            or arrow_make_schema(self.children[1], b"l", b"entry_id", 0, 0) != 0
            or arrow_make_schema(self.children[2], b"i", b"partition", 0, 0) != 0
            or arrow_make_schema(self.children[3], b"i", b"batch_index", 0, 0) != 0):
        return ENOMEM
    return 0


cdef int make_messages_schema(void* block, ArrowSchema* self) noexcept nogil:
    if arrow_make_schema(self, b"+s", b"", 0, COLUMN_COUNT) != 0:
        return ENOMEM
    if (make_message_id_schema(self.children[0]) != 0
            or arrow_make_schema(self.children[1], b"u", b"key", ARROW_NULLABLE, 0) != 0
            or arrow_make_schema(self.children[2], b"z", b"value", ARROW_NULLABLE, 0) != 0
            or arrow_make_schema(self.children[3], b"tsm:UTC", b"publish_time", 0, 0) != 0
            or arrow_make_schema(self.children[4], b"tsm:UTC", b"event_time", ARROW_NULLABLE,
                                 0) != 0
            or arrow_make_properties_schema(self.children[5], b"properties", 0, 0) != 0):
        self.release(self)
        return ENOMEM
    return 0


cdef void hold_block(void* block) noexcept nogil:
    arrow_block_hold(<ArrowBlock*>block)


cdef void release_block(void* block) noexcept nogil:
    arrow_block_release(<ArrowBlock*>block)


cdef ArrowColumns columns_of(ArrowBlock* block) noexcept nogil:
    cdef ArrowColumns columns
    columns.it = block
    columns.hold = hold_block
    columns.release = release_block
    columns.make_schema = make_messages_schema
    columns.make_array = make_messages
    columns.zeros = block.zeros
    return columns


cdef int make_message_ids(ArrowArray* self, const ArrowColumns* columns,
                          ArrowBlock* block) noexcept nogil:
    cdef int64_t rows = block.row_count
    if arrow_make_array(self, columns, rows, 1, 4) != 0:
        return ENOMEM
    if (arrow_make_fixed(self.children[0], columns, rows, block.ledger_ids) != 0
            or arrow_make_fixed(self.children[1], columns, rows, block.entry_ids) != 0
            or arrow_make_fixed(self.children[2], columns, rows, block.partitions) != 0
            or arrow_make_fixed(self.children[3], columns, rows, block.batch_indexes) != 0):
        return ENOMEM
    return 0


cdef int make_columns(ArrowArray* self, const ArrowColumns* columns,
                      ArrowBlock* block) noexcept nogil:
    cdef int64_t rows = block.row_count
    if (make_message_ids(self.children[0], columns, block) != 0
            or arrow_make_text(self.children[1], columns, rows, block.key.offsets,
                               block.key.data) != 0
            or arrow_make_text(self.children[2], columns, rows, block.value_offsets,
                               block.value_data) != 0
            or arrow_make_fixed(self.children[3], columns, rows, block.publish_times) != 0
            or arrow_make_fixed(self.children[4], columns, rows, block.event_times) != 0
            or arrow_make_properties(self.children[5], columns, rows, block.property_offsets,
                                     &block.property_key, &block.property_value) != 0):
        return ENOMEM
    arrow_set_nulls(self.children[1], columns, block.key_validity, rows - block.key.count)
    if block.value_nulls:
        arrow_set_nulls(self.children[2], columns, block.value_validity, block.value_nulls)
    arrow_set_nulls(self.children[4], columns, block.event_validity, rows - block.event_count)
    return 0


cdef int make_messages(void* it, ArrowArray* self) noexcept nogil:
    cdef ArrowBlock* block = <ArrowBlock*>it
    cdef ArrowColumns columns = columns_of(block)
    if arrow_make_array(self, &columns, block.row_count, 1, COLUMN_COUNT) != 0:
        return ENOMEM
    if make_columns(self, &columns, block) != 0:
        self.release(self)
        return ENOMEM
    return 0


cdef object numbers(object numpy, const void* data, int64_t rows, str dtype):
    """A copy of a column of fixed size."""
    made = numpy.empty(rows, dtype)
    if rows:
        made.view(numpy.uint8)[:] = numpy.frombuffer((<const char*>data)[:made.nbytes], numpy.uint8)
    return made


cdef inline bint is_set(const uint8_t* bits, int64_t row) noexcept:
    return bits[row >> 3] >> (row & 7) & 1


cdef str text_of(const TextColumn* column, int64_t at):
    return (column.data + column.offsets[at])[
        :column.offsets[at + 1] - column.offsets[at]].decode("utf-8", "replace")


cdef dict properties_of(const ArrowBlock* block, int64_t row):
    cdef dict found = {}
    cdef int64_t at
    if block.property_offsets != NULL:
        for at in range(block.property_offsets[row], block.property_offsets[row + 1]):
            found[text_of(&block.property_key, at)] = text_of(&block.property_value, at)
    return found


@cython.final
cdef class ArrowMessages:
    """Received messages as columns: what `receive_arrow` and `read_arrow` return.

    Everything that knows the Arrow PyCapsule interface takes it without a copy: `pyarrow.table(m)`,
    `pyarrow.record_batch(m)`, `polars.DataFrame(m)`, DuckDB. Columns: message_id (ledger_id,
    entry_id, partition, batch_index), key, value, publish_time, event_time, properties; in strings
    what is not UTF-8 is U+FFFD. `consumer.acknowledge_many(m)` acknowledges all of it. It never
    changes, any thread may use it, and it outlives consumer and client.
    """

    def __init__(self):
        raise TypeError("ArrowMessages are received from a consumer or a reader")

    def __dealloc__(self):
        arrow_block_release(self.c_block)

    def __len__(self) -> int:
        return self.c_block.row_count

    @property
    def column_names(self) -> tuple:
        """Names of the columns, in order."""
        return COLUMN_NAMES

    def __arrow_c_schema__(self):
        """The types of the columns, as a capsule."""
        cdef ArrowColumns columns = columns_of(self.c_block)
        return arrow_export_schema(&columns)

    def __arrow_c_array__(self, requested_schema=None):
        """(schema, struct array) as capsules. requested_schema is not followed: cast afterwards."""
        cdef ArrowColumns columns = columns_of(self.c_block)
        return arrow_export_array(&columns)

    def __arrow_c_stream__(self, requested_schema=None):
        """A stream of one record batch, as a capsule. requested_schema is not followed."""
        cdef ArrowColumns columns = columns_of(self.c_block)
        return arrow_export_stream(&columns)

    def to_numpy(self) -> dict:
        """Return the columns as NumPy arrays, by name: ledger_id, entry_id, partition, batch_index,
        key and value (of objects: str, bytes, or None), publish_time and event_time
        (datetime64[ms], NaT for none), properties (of dicts). All are copies.

        Raises:
            ImportError: numpy is missing.
        """
        numpy = needed("numpy", "numpy", "to_numpy")
        cdef ArrowBlock* block = self.c_block
        cdef int64_t rows = block.row_count
        cdef dict found = {}
        cdef int64_t row
        found["ledger_id"] = numbers(numpy, block.ledger_ids, rows, "i8")
        found["entry_id"] = numbers(numpy, block.entry_ids, rows, "i8")
        found["partition"] = numbers(numpy, block.partitions, rows, "i4")
        found["batch_index"] = numbers(numpy, block.batch_indexes, rows, "i4")
        keys = found["key"] = numpy.empty(rows, object)
        values = found["value"] = numpy.empty(rows, object)
        found["publish_time"] = numbers(numpy, block.publish_times, rows, "M8[ms]")
        times = found["event_time"] = numpy.full(rows, "NaT", "M8[ms]")
        properties = found["properties"] = numpy.empty(rows, object)
        if block.event_times != NULL:
            given = numbers(numpy, block.event_times, rows, "M8[ms]")
        for row in range(rows):
            if block.key_validity != NULL and is_set(block.key_validity, row):
                keys[row] = text_of(&block.key, row)
            if block.value_validity == NULL or is_set(block.value_validity, row):
                values[row] = (block.value_data + block.value_offsets[row])[
                    :block.value_offsets[row + 1] - block.value_offsets[row]]
            if block.event_times != NULL and is_set(block.event_validity, row):
                times[row] = given[row]
            properties[row] = properties_of(block, row)
        return found

    def to_arrow(self):
        """Return a `pyarrow.Table` of the columns, which are not copied.

        Raises:
            ImportError: pyarrow is missing.
        """
        return needed("pyarrow", "arrow", "to_arrow").table(self)

    def to_pandas(self):
        """Return a `pandas.DataFrame`; a message id is a dict of its numbers.

        Raises:
            ImportError: pandas or pyarrow is missing.
        """
        needed("pandas", "pandas", "to_pandas")
        return needed("pyarrow", "pandas", "to_pandas").table(self).to_pandas()

    def to_polars(self):
        """Return a `polars.DataFrame`.

        Raises:
            ImportError: polars is missing.
        """
        return needed("polars", "polars", "to_polars").DataFrame(self)

    def _repr_html_(self) -> str:
        """Show the first rows in a notebook."""
        control_plane.load("html")
        from html import escape

        cdef ArrowBlock* block = self.c_block
        cdef int64_t row
        cdef list rows = []
        for row in range(min(block.row_count, <int64_t>SHOWN_ROWS)):
            cells = shown_row(block, row)
            rows.append("<tr>" + "".join([f"<td>{escape(each)}</td>" for each in cells]) + "</tr>")
        head = "".join([f"<th>{escape(each)}</th>" for each in COLUMN_NAMES])
        return (f"<p>{escape(self.topic_name)}: {block.row_count} messages, {len(rows)} shown</p>"
                f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>")

    def runs(self, topic) -> list:
        """Return (ledger id, first ordinal, count) of all messages; for acknowledge_many.

        Args:
            topic: The LedgerTail of the consumer.

        Raises:
            NotAllowedError: They came from another one.
        """
        cdef int64_t at
        cdef AckRun* run
        cdef list found = []
        if topic is not self.topic:
            raise errors.NotAllowedError(
                detail=f"acknowledge {self!r}: it is not of the same topic")
        for at in range(self.c_block.run_count):
            run = self.c_block.runs + at
            found.append((run.ledger_id, run.first, run.count))
        return found

    def __repr__(self) -> str:
        return f"ArrowMessages(topic={self.topic_name!r}, rows={len(self)})"


cdef object needed(str name, str extra, str caller):
    """A module of a package that may be missing."""
    control_plane.load("pulsarx.ground.extras")
    from pulsarx.ground.extras import optional_module

    return optional_module(name, extra, caller)


cdef list shown_row(const ArrowBlock* block, int64_t row):
    """The texts of the columns of a row, for people."""
    cdef int64_t size = block.value_offsets[row + 1] - block.value_offsets[row]
    cdef bytes value = (block.value_data + block.value_offsets[row])[
        :min(size, <int64_t>SHOWN_BYTES)]
    shown = repr(value) + ("..." if size > SHOWN_BYTES else "")
    if block.value_validity != NULL and not is_set(block.value_validity, row):
        shown = ""
    key = ""
    if block.key_validity != NULL and is_set(block.key_validity, row):
        key = text_of(&block.key, row)
    event_time = ""
    if block.event_times != NULL and is_set(block.event_validity, row):
        event_time = shown_time(block.event_times[row])
    properties = properties_of(block, row)
    return [
        f"({block.ledger_ids[row]},{block.entry_ids[row]},{block.partitions[row]},"
        f"{block.batch_indexes[row]})",
        shortened(key), shown, shown_time(block.publish_times[row]), event_time,
        shortened(str(properties)) if properties else "",
    ]


cdef str shortened(str text):
    return text if len(text) <= SHOWN_BYTES else text[:SHOWN_BYTES] + "..."


cdef str shown_time(int64_t time_ms):
    """In UTC."""
    # Days since the first of March of the year 0, so that leap days end a year. No date of Python
    # reaches as far as what other clients may have written.
    cdef int64_t days, era, day, year, month
    if time_ms < 0:
        return str(time_ms)
    days = time_ms // 86_400_000 + 719_468
    era = days // 146_097                # of 400 years
    day = days % 146_097
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153         # 0 is March
    day -= (153 * month + 2) // 5
    year += 400 * era + month // 10
    month = month + 3 if month < 10 else month - 9
    return (f"{year:04}-{month:02}-{day + 1:02} {time_ms // 3_600_000 % 24:02}:"
            f"{time_ms // 60_000 % 60:02}:{time_ms // 1000 % 60:02}.{time_ms % 1000:03}")


cdef ArrowMessages arrow_messages_new(ArrowBlock* block, object topic, str topic_name,
                                      bytes schema_version=None):
    cdef ArrowMessages messages
    try:
        messages = ArrowMessages.__new__(ArrowMessages)
    except BaseException:
        arrow_block_release(block)
        raise
    messages.c_block = block
    messages.topic = topic
    messages.topic_name = topic_name
    messages.schema_version = schema_version
    return messages


refuse_new(ArrowMessages)
