# cython: language_level=3
"""Columns in buffers of Python objects, such as NumPy arrays, as an Arrow struct array. For
`send_columns`, whose caller keeps the buffers until all is sent."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer, Py_buffer
from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport int64_t
from libc.string cimport memset

from pulsarx._pycore.arrow.arrow_schema cimport ARROW_NULLABLE, ArrowArray, ArrowSchema

cdef enum:
    COLUMNS_MAX = 3
    BUFFERS_MAX = 3


cdef void schema_end(ArrowSchema* self) noexcept nogil:
    self.release = NULL


cdef void array_end(ArrowArray* self) noexcept nogil:
    self.release = NULL


cdef class BorrowedTable:
    """One record batch. Valid while this object lives; what it hands out owns nothing."""
    cdef ArrowSchema schema
    cdef ArrowArray array
    cdef ArrowSchema[COLUMNS_MAX] schemas
    cdef ArrowArray[COLUMNS_MAX] arrays
    cdef ArrowSchema* schema_children[COLUMNS_MAX]
    cdef ArrowArray* array_children[COLUMNS_MAX]
    cdef const void* top_buffers[1]
    cdef const void* buffers[COLUMNS_MAX][BUFFERS_MAX]
    cdef Py_buffer[COLUMNS_MAX * BUFFERS_MAX] held
    cdef int held_count
    cdef list kept                       # names and formats, as bytes

    def __init__(self, int64_t length, list columns not None) -> None:
        """columns: (name, format, null count, buffers), each buffer contiguous or None."""
        cdef int at
        cdef int number
        cdef bytes name
        cdef bytes format
        if len(columns) > COLUMNS_MAX or self.kept is not None:
            raise ValueError(f"{len(columns)} columns; at most {COLUMNS_MAX}, and once")
        self.kept = []
        for at, (title, type_name, null_count, buffers) in enumerate(columns):
            name, format = title.encode(), type_name.encode()
            self.kept += (name, format)
            for number, each in enumerate(buffers):
                self.buffers[at][number] = self.hold(each)
            memset(&self.schemas[at], 0, sizeof(ArrowSchema))
            self.schemas[at].format = format
            self.schemas[at].name = name
            self.schemas[at].flags = ARROW_NULLABLE
            self.schemas[at].release = schema_end
            self.schema_children[at] = &self.schemas[at]
            memset(&self.arrays[at], 0, sizeof(ArrowArray))
            self.arrays[at].length = length
            self.arrays[at].null_count = null_count
            self.arrays[at].n_buffers = len(buffers)
            self.arrays[at].buffers = &self.buffers[at][0]
            self.arrays[at].release = array_end
            self.array_children[at] = &self.arrays[at]
        self.schema.format = b"+s"
        self.schema.name = b""
        self.schema.n_children = len(columns)
        self.schema.children = &self.schema_children[0]
        self.schema.release = schema_end
        self.array.length = length
        self.array.n_buffers = 1
        self.array.buffers = &self.top_buffers[0]
        self.array.n_children = len(columns)
        self.array.children = &self.array_children[0]
        self.array.release = array_end

    cdef const void* hold(self, object buffer) except? NULL:
        cdef Py_buffer* view = &self.held[self.held_count]
        if buffer is None:
            return NULL
        PyObject_GetBuffer(buffer, view, PyBUF_SIMPLE)
        self.held_count += 1
        return view.buf

    def __dealloc__(self) -> None:
        cdef int at
        for at in range(self.held_count):
            PyBuffer_Release(&self.held[at])

    def __arrow_c_array__(self, requested_schema=None) -> tuple:
        """(schema, struct array) as capsules, to be used while this object lives; once."""
        return (PyCapsule_New(&self.schema, "arrow_schema", NULL),
                PyCapsule_New(&self.array, "arrow_array", NULL))
