# cython: language_level=3
"""A digest of rows that are to be messages, whatever order, batches and tasks they come in.

Each row is hashed by itself, and the digest is the sum: a job that is run again spreads the same
rows over other tasks, in another order.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.crc32c cimport crc32c, crc32c_u64
from pulsarx._pycore.arrow.arrow_column cimport (
    ROW_NULL, ROW_OK, ArrowColumn, column_take, map_take, times_take,
)
from pulsarx._pycore.arrow.arrow_import cimport ArrowImport, ArrowRows

cdef enum:
    ABSENT = 1               # in place of a size: no row has so many bytes with the lowest bit


cdef inline uint64_t mixed(uint64_t value) noexcept nogil:
    """The finalizer of splitmix64: sums of checksums would cancel each other out."""
    value = (value ^ value >> 30) * <uint64_t>0xBF58476D1CE4E5B9
    value = (value ^ value >> 27) * <uint64_t>0x94D049BB133111EB
    return value ^ value >> 31


cdef inline int add_column(const ArrowColumn* column, int64_t row,
                           uint32_t* checksum) noexcept nogil:
    """Its size goes in front, so that neighbours do not run into each other."""
    cdef const uint8_t* data = NULL
    cdef int64_t size = 0
    cdef int status = ROW_NULL
    if column.kind:
        status = column_take(column, row, &data, &size)
    if status == ROW_NULL:
        checksum[0] = crc32c_u64(checksum[0], ABSENT)
        return ROW_OK
    if status == ROW_OK:
        checksum[0] = crc32c_u64(checksum[0], <uint64_t>size << 1)
        checksum[0] = crc32c(checksum[0], data, <size_t>size)
    return status


cdef int digest_rows(ArrowRows* rows, uint32_t seed, uint64_t* total) noexcept nogil:
    cdef uint32_t value
    cdef uint32_t rest
    cdef uint64_t pairs
    cdef uint32_t pair
    cdef int64_t first
    cdef int64_t end
    cdef int64_t time_ms
    cdef int status
    while rows.at < rows.length:
        value = rest = seed
        status = add_column(&rows.value, rows.at, &value)
        if status == ROW_OK:
            status = add_column(&rows.key, rows.at, &rest)
        if status != ROW_OK:
            return status
        time_ms = 0
        status = times_take(&rows.event_time, rows.at, &time_ms)
        if status == ROW_OK:
            rest = crc32c_u64(rest, <uint64_t>time_ms << 1)
        elif status == ROW_NULL:
            rest = crc32c_u64(rest, ABSENT)
        else:
            return status
        status = map_take(&rows.properties, rows.at, &first, &end)
        if status != ROW_OK:
            return status
        pairs = 0
        while first < end:      # Spark's maps have no order either
            pair = 0
            status = add_column(&rows.properties.key, first, &pair)
            if status == ROW_OK:
                status = add_column(&rows.properties.value, first, &pair)
            if status != ROW_OK:
                return status
            pairs += mixed(pair + <uint64_t>1)
            first += 1
        rest = crc32c_u64(rest, pairs)
        total[0] += mixed(<uint64_t>value << 32 | rest)
        rows.at += 1
    return ROW_OK


def rows_digest(data, bytes topic not None, str value not None, key=None, event_time=None,
                properties=None) -> int:
    """The digest of the rows of a table that go to a topic; sums modulo 2^64 are those of tables
    together. Columns as of Producer.send_arrow, and so are errors; 0: no rows."""
    cdef ArrowImport source = ArrowImport(data, value, key, event_time, properties)
    cdef uint32_t seed = crc32c(0, <const uint8_t*>topic, <size_t>len(topic))
    cdef uint64_t total = 0
    cdef int status
    try:
        while source.advance():
            with nogil:
                status = digest_rows(&source.rows, seed, &total)
            if status != ROW_OK:
                source.raise_row(status)
    finally:
        source.close()
    return total
