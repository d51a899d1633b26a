"""Makes the structs of the Arrow C data interface, and capsules of them. For arrow_export and
range_batch.

Each array and each schema owns itself and holds a reference to the columns it shows, so that a
child may be moved out of its parent. They are released in any thread, with or without the GIL.
"""

from libc.stdint cimport int64_t

from pulsarx._pycore.arrow_schema cimport ArrowArray, ArrowSchema

cdef struct ArrowColumns:
    void* it                             # columns that do not change any more
    void (*hold)(void* it) noexcept nogil
    void (*release)(void* it) noexcept nogil
    int (*make_schema)(void* it, ArrowSchema* schema) noexcept nogil
    int (*make_array)(void* it, ArrowArray* array) noexcept nogil

cdef int arrow_make_schema(ArrowSchema* self, const char* format, const char* name, int64_t flags,
                           int64_t children) noexcept nogil
"""format, name: constants. Children are for the caller to make. ENOMEM: self.release is NULL."""

cdef int arrow_make_array(ArrowArray* self, const ArrowColumns* columns, int64_t length,
                          int64_t buffers, int64_t children) noexcept nogil
"""Buffers and children are for the caller to fill in. ENOMEM: self.release is NULL."""

cdef object arrow_export_schema(const ArrowColumns* columns)
"""The capsule of __arrow_c_schema__."""

cdef object arrow_export_array(const ArrowColumns* columns)
"""What __arrow_c_array__ answers."""

cdef object arrow_export_stream(const ArrowColumns* columns)
"""The capsule of __arrow_c_stream__: a stream of one record batch."""
