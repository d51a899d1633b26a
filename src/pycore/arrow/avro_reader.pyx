# cython: language_level=3
"""Decodes Avro values into Arrow columns, by programs that were made of their schemas. For
`tables/avro_columns`, which makes the programs and knows Arrow's types.

A program is a tree of nodes, of which number 0 is the record itself. A node of column -1 reads, and
checks, what nobody wants to have.

operation   number            flag                      children            texts
INT LONG    -                 -                         -                   -
FIXED       bytes             -                         -                   -
ENUM        -                 -                         -                   a symbol each; None:
                                                                            is refused
ARRAY MAP   -                 sizes of blocks may stand the item            -
RECORD      -                 -                         the fields          -
OPTIONAL    index of the null the null is refused       the other branch    -
DATE        -                 -                         -                   -
TIME        its unit in that  stored as long            -                   -
            of the column
TIMESTAMP   -                 in microseconds, not      -                   -
                              milliseconds
DECIMAL     precision         -                         FIXED, or none:     -
                                                        of any size
CONSTANT    of a number;      there is a number         -                   of bytes and doubles
            else 1: a null,
            0: an empty list
NULL        -                 -                         -                   -

A value is taken only if every reader of Avro would take it, and as the same: overlong numbers, keys
that come twice, dates beyond the years 1 to 9999 and the like are refused, and are for the caller
to read in another way.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, qsort
from libc.string cimport memcmp, memcpy, memset

from pulsarx._core.byte_reader cimport ByteReader, byte_reader_start, byte_reader_take
from pulsarx._core.status cimport (
    STATUS_CORRUPT, STATUS_NO_MEMORY, STATUS_OK, STATUS_TRUNCATED,
)
from pulsarx._pycore.arrow.arrow_text cimport text_is_valid
from pulsarx._pycore.arrow.column_builder cimport (
    BUILD_BYTES as C_BYTES, BUILD_DOUBLE as C_DOUBLE, BUILD_INT32 as C_INT32,
    BUILD_INT64 as C_INT64, BUILD_LIST as C_LIST, BUILD_STRUCT as C_STRUCT, ColumnBuilder,
    builder_boolean, builder_bytes, builder_decimal, builder_double, builder_end_list,
    builder_end_struct, builder_float, builder_integer, builder_null,
)
from pulsarx._pycore.arrow.column_reader cimport ColumnReader, numbers_of
from pulsarx._pycore.arrow.column_reader import (
    BUILD_BOOLEAN, BUILD_BYTES, BUILD_DECIMAL, BUILD_DOUBLE, BUILD_FLOAT, BUILD_INT32, BUILD_INT64,
    BUILD_LIST, BUILD_STRUCT,
)

cdef enum Operation:
    OP_BOOLEAN = 0
    OP_INT = 1
    OP_LONG = 2
    OP_FLOAT = 3
    OP_DOUBLE = 4
    OP_BYTES = 5
    OP_STRING = 6
    OP_FIXED = 7
    OP_ENUM = 8
    OP_ARRAY = 9
    OP_MAP = 10
    OP_RECORD = 11
    OP_OPTIONAL = 12
    OP_NULL = 13
    OP_DATE = 14
    OP_TIME = 15
    OP_TIMESTAMP = 16
    OP_DECIMAL = 17
    OP_CONSTANT = 18
    OPERATIONS = 19

NODE_BOOLEAN, NODE_INT, NODE_LONG, NODE_FLOAT, NODE_DOUBLE = range(5)
NODE_BYTES, NODE_STRING, NODE_FIXED, NODE_ENUM, NODE_ARRAY, NODE_MAP = range(5, 11)
NODE_RECORD, NODE_OPTIONAL, NODE_NULL, NODE_DATE, NODE_TIME = range(11, 16)
NODE_TIMESTAMP, NODE_DECIMAL, NODE_CONSTANT = range(16, 19)

cdef enum:
    DATE_FIRST = -719162                 # 1 January of the year 1
    DATE_LAST = 2932896                  # 31 December 9999
    NO_PROGRAM = 255
    FEW_KEYS = 16                        # are compared with one another
    DECIMAL_BYTES = 16
    PRECISION_MAX = 38

cdef int64_t DAY_MS = 86_400_000
cdef int64_t DAY_US = 86_400_000_000
# The years 1 to 9999.
cdef int64_t TIME_FIRST_MS = -62_135_596_800_000
cdef int64_t TIME_LAST_MS = 253_402_300_799_999

cdef extern from *:
    """
    /* The absolute value of 128 bits, and ten to the power of a precision. */
    typedef unsigned __int128 AvroWide;
    static int avro_decimal_fits(const uint8_t *low_first, int64_t precision) {
        AvroWide value, bound = 1;
        __builtin_memcpy(&value, low_first, 16);
        if (value >> 127) value = -value;
        while (precision-- > 0) bound *= 10;
        return value < bound;
    }
    """
    bint avro_decimal_fits(const uint8_t* low_first, int64_t precision) noexcept nogil

cdef struct Text:
    const uint8_t* data                  # NULL: none
    int64_t size

cdef struct Node:
    int operation
    int32_t column
    int64_t number
    bint flag
    int32_t* children                    # numbers of nodes, all behind this one
    int child_count
    Text* texts
    int text_count

cdef struct Program:
    Node* nodes
    int node_count

cdef struct Reading:
    ByteReader bytes
    ColumnBuilder* columns
    const Node* nodes


cdef int take_long(Reading* self, int64_t* value) noexcept nogil:
    """A zigzag number. STATUS_CORRUPT: it is not of 64 bits."""
    cdef const uint8_t* at = self.bytes.at
    cdef const uint8_t* end = self.bytes.end
    cdef uint64_t result
    cdef unsigned int shift = 7
    if at == end:
        return STATUS_TRUNCATED
    result = at[0] & 0x7F
    while at[0] >= 0x80:
        at += 1
        if at == end:
            return STATUS_TRUNCATED
        if shift == 63 and at[0] > 1:
            return STATUS_CORRUPT
        result |= <uint64_t>(at[0] & 0x7F) << shift
        shift += 7
    self.bytes.at = at + 1
    value[0] = <int64_t>(result >> 1) ^ -<int64_t>(result & 1)
    return STATUS_OK


cdef int take_int(Reading* self, int64_t* value) noexcept nogil:
    cdef int status = take_long(self, value)
    if status == STATUS_OK and value[0] != <int32_t>value[0]:
        return STATUS_CORRUPT
    return status


cdef int take_bytes(Reading* self, const uint8_t** data, int64_t* size) noexcept nogil:
    cdef int status = take_long(self, size)
    if status != STATUS_OK:
        return status
    if size[0] < 0:
        return STATUS_CORRUPT
    return byte_reader_take(&self.bytes, <size_t>size[0], data)


cdef int take_text(Reading* self, const uint8_t** data, int64_t* size) noexcept nogil:
    cdef uint8_t high = 0
    cdef int64_t at
    cdef int status = take_bytes(self, data, size)
    if status != STATUS_OK:
        return status
    if size[0] >= 16:
        return STATUS_OK if text_is_valid(data[0], <uint32_t>size[0]) else STATUS_CORRUPT
    for at in range(size[0]):
        high |= data[0][at]
    if high & 0x80 and not text_is_valid(data[0], <uint32_t>size[0]):
        return STATUS_CORRUPT
    return STATUS_OK


cdef int read_node(Reading* self, int32_t number) noexcept nogil:
    """Append one value. Any other status: what was appended is for the caller to cut."""
    cdef const Node* node = &self.nodes[number]
    cdef int operation = node.operation
    cdef ColumnBuilder* column = NULL
    cdef const uint8_t* data = NULL
    cdef int64_t value = 0
    cdef int status
    cdef int child
    if node.column >= 0:
        column = &self.columns[node.column]
    if operation == OP_OPTIONAL:
        status = take_long(self, &value)
        if status != STATUS_OK:
            return status
        if value == node.number:
            if node.flag:
                return STATUS_CORRUPT
            return STATUS_OK if column == NULL else builder_null(self.columns, node.column)
        if value != 1 - node.number:
            return STATUS_CORRUPT
        return read_node(self, node.children[0])
    if operation == OP_STRING or operation == OP_BYTES:
        if operation == OP_STRING:
            status = take_text(self, &data, &value)
        else:
            status = take_bytes(self, &data, &value)
        if status != STATUS_OK or column == NULL:
            return status
        return builder_bytes(column, data, value)
    if operation == OP_INT or operation == OP_LONG:
        status = take_int(self, &value) if operation == OP_INT else take_long(self, &value)
        if status != STATUS_OK or column == NULL:
            return status
        return builder_integer(column, value)
    if operation == OP_RECORD:
        for child in range(node.child_count):
            status = read_node(self, node.children[child])
            if status != STATUS_OK:
                return status
        return STATUS_OK if column == NULL else builder_end_struct(column)
    if operation == OP_ARRAY or operation == OP_MAP:
        return read_items(self, node, operation == OP_MAP)
    if operation == OP_BOOLEAN or operation == OP_FLOAT or operation == OP_DOUBLE:
        return read_fixed_size(self, node, column)
    if operation == OP_CONSTANT:
        return read_constant(self, node, column)
    return read_other(self, node, column)


cdef int read_fixed_size(Reading* self, const Node* node, ColumnBuilder* column) noexcept nogil:
    cdef const uint8_t* data = NULL
    cdef float small = 0
    cdef double large = 0
    cdef size_t size = 1
    cdef int status
    if node.operation == OP_FLOAT:
        size = 4
    elif node.operation == OP_DOUBLE:
        size = 8
    status = byte_reader_take(&self.bytes, size, &data)
    if status != STATUS_OK:
        return status
    if node.operation == OP_BOOLEAN:
        if data[0] > 1:
            return STATUS_CORRUPT
        return STATUS_OK if column == NULL else builder_boolean(column, data[0])
    if column == NULL:
        return STATUS_OK
    if node.operation == OP_DOUBLE:
        memcpy(&large, data, 8)
        return builder_double(column, large)
    memcpy(&small, data, 4)
    if column.kind == C_DOUBLE:
        return builder_double(column, small)
    return builder_float(column, small)


cdef int read_other(Reading* self, const Node* node, ColumnBuilder* column) noexcept nogil:
    cdef const uint8_t* data = NULL
    cdef int64_t value = 0
    cdef int status
    if node.operation == OP_NULL:
        return STATUS_OK
    if node.operation == OP_FIXED:
        status = byte_reader_take(&self.bytes, <size_t>node.number, &data)
        if status != STATUS_OK or column == NULL:
            return status
        return builder_bytes(column, data, node.number)
    if node.operation == OP_DECIMAL:
        return read_decimal(self, node, column)
    if node.operation == OP_ENUM or node.operation == OP_DATE or (
            node.operation == OP_TIME and not node.flag):
        status = take_int(self, &value)
    else:
        status = take_long(self, &value)
    if status != STATUS_OK:
        return status
    if node.operation == OP_ENUM:
        if not 0 <= value < node.text_count or node.texts[value].data == NULL:
            return STATUS_CORRUPT
        if column == NULL:
            return STATUS_OK
        return builder_bytes(column, node.texts[value].data, node.texts[value].size)
    if node.operation == OP_DATE:
        if not DATE_FIRST <= value <= DATE_LAST:
            return STATUS_CORRUPT
    elif node.operation == OP_TIME:
        # In micro- or milliseconds of the day.
        if not 0 <= value < (DAY_US if node.flag else DAY_MS):
            return STATUS_CORRUPT
        value *= node.number
    elif node.flag:                      # microseconds
        if not TIME_FIRST_MS * 1000 <= value <= TIME_LAST_MS * 1000 + 999:
            return STATUS_CORRUPT
    else:
        if not TIME_FIRST_MS <= value <= TIME_LAST_MS:
            return STATUS_CORRUPT
        value *= 1000
    return STATUS_OK if column == NULL else builder_integer(column, value)


cdef int read_decimal(Reading* self, const Node* node, ColumnBuilder* column) noexcept nogil:
    cdef const uint8_t* data = NULL
    cdef uint8_t[DECIMAL_BYTES] low_first
    cdef int64_t size = 0
    cdef int64_t at
    cdef int status
    if node.child_count:
        size = self.nodes[node.children[0]].number
        status = byte_reader_take(&self.bytes, <size_t>size, &data)
    else:
        status = take_bytes(self, &data, &size)
    if status != STATUS_OK:
        return status
    if not 1 <= size <= DECIMAL_BYTES:
        return STATUS_CORRUPT
    memset(low_first, 0xFF if data[0] & 0x80 else 0, DECIMAL_BYTES)
    for at in range(size):
        low_first[size - 1 - at] = data[at]
    if not avro_decimal_fits(low_first, node.number):
        return STATUS_CORRUPT
    return STATUS_OK if column == NULL else builder_decimal(column, low_first)


cdef int read_constant(Reading* self, const Node* node, ColumnBuilder* column) noexcept nogil:
    cdef double value = 0
    if column.kind == C_LIST and not node.number:
        return builder_end_list(self.columns, node.column)
    if column.kind == C_BYTES and node.text_count:
        return builder_bytes(column, node.texts[0].data, node.texts[0].size)
    if column.kind == C_DOUBLE and node.text_count:
        memcpy(&value, node.texts[0].data, 8)
        return builder_double(column, value)
    if (column.kind == C_INT32 or column.kind == C_INT64) and node.flag:
        return builder_integer(column, node.number)
    if column.kind == OP_BOOLEAN and node.flag:
        return builder_boolean(column, node.number != 0)
    return builder_null(self.columns, node.column)


# Arrays and maps ----------------------------------------------------------------------------------


cdef int read_items(Reading* self, const Node* node, bint is_map) noexcept nogil:
    cdef ColumnBuilder* entries = NULL
    cdef ColumnBuilder* keys = NULL
    cdef const uint8_t* data = NULL
    cdef int64_t count = 0
    cdef int64_t size = 0
    cdef int64_t keys_before = 0
    cdef int status
    if node.column >= 0 and is_map:
        entries = &self.columns[self.columns[node.column].children[0]]
        keys = &self.columns[entries.children[0]]
        keys_before = keys.length
    while True:
        status = take_long(self, &count)
        if status != STATUS_OK:
            return status
        if count == 0:
            break
        if count < 0:
            if not node.flag or count < -0x7FFFFFFF:
                return STATUS_CORRUPT
            count = -count
            status = take_long(self, &size)  # of the block in bytes: for those who pass over it
            if status != STATUS_OK:
                return status
        # Each item takes a byte at least, so that the end of the bytes ends a count that is none.
        while count:
            count -= 1
            if is_map:
                status = take_text(self, &data, &size)
                if status == STATUS_OK and keys != NULL:
                    status = builder_bytes(keys, data, size)
                if status != STATUS_OK:
                    return status
            status = read_node(self, node.children[0])
            if status != STATUS_OK:
                return status
            if entries != NULL:
                status = builder_end_struct(entries)
                if status != STATUS_OK:
                    return status
    if node.column < 0:
        return STATUS_OK
    if keys != NULL and keys.length - keys_before > 1:
        status = check_keys(keys, keys_before)
        if status != STATUS_OK:
            return status
    return builder_end_list(self.columns, node.column)


cdef int check_keys(const ColumnBuilder* keys, int64_t first) noexcept nogil:
    """STATUS_CORRUPT: a key comes twice, or, of many keys, may do so."""
    cdef const int32_t* ends = <const int32_t*>keys.values
    cdef int64_t count = keys.length - first
    cdef int64_t one
    cdef int64_t other
    cdef int32_t size
    cdef uint64_t* hashes
    cdef int status = STATUS_OK
    if count <= FEW_KEYS:
        for one in range(first + 1, keys.length):
            size = ends[one + 1] - ends[one]
            for other in range(first, one):
                if size == ends[other + 1] - ends[other] and memcmp(
                        keys.data + ends[one], keys.data + ends[other], <size_t>size) == 0:
                    return STATUS_CORRUPT
        return STATUS_OK
    hashes = <uint64_t*>malloc(<size_t>count * sizeof(uint64_t))
    if hashes == NULL:
        return STATUS_NO_MEMORY
    for one in range(count):
        hashes[one] = hash_of(keys.data + ends[first + one],
                              ends[first + one + 1] - ends[first + one])
    qsort(hashes, <size_t>count, sizeof(uint64_t), compare)
    for one in range(1, count):
        if hashes[one] == hashes[one - 1]:
            status = STATUS_CORRUPT
            break
    free(hashes)
    return status


cdef uint64_t hash_of(const uint8_t* data, int64_t size) noexcept nogil:
    cdef uint64_t found = <uint64_t>1469598103934665603
    cdef int64_t at
    for at in range(size):
        found = (found ^ data[at]) * <uint64_t>1099511628211
    return found


cdef int compare(const void* left, const void* right) noexcept nogil:
    cdef uint64_t one = (<const uint64_t*>left)[0]
    cdef uint64_t other = (<const uint64_t*>right)[0]
    return (one > other) - (one < other)


# For Python ---------------------------------------------------------------------------------------


cdef class AvroReader(ColumnReader):
    """Reads rows of Avro into columns."""
    cdef Program[NO_PROGRAM] programs
    cdef int program_count
    cdef list kept                       # texts of programs
    cdef const uint8_t* numbers          # while it reads: of the program of each row
    cdef int program                     # of all rows, without numbers

    def __init__(self, list columns not None, tuple tops not None) -> None:
        """columns: (kind, numbers of its children); tops: those that have a value for each row."""
        ColumnReader.__init__(self, columns, tops)
        self.kept = []

    def __dealloc__(self) -> None:
        cdef int at
        for at in range(self.program_count):
            free_program(&self.programs[at])

    def add_program(self, list nodes not None) -> int:
        """The number of a program, for read. OverflowError: there are too many."""
        cdef Program made
        cdef int at
        if self.program_count == NO_PROGRAM:
            raise OverflowError(f"{NO_PROGRAM} programs are there")
        made.node_count = len(nodes)
        made.nodes = <Node*>calloc(<size_t>len(nodes) + 1, sizeof(Node))
        if made.nodes == NULL:
            raise MemoryError("nodes")
        try:
            for at in range(made.node_count):
                self.fill_node(&made.nodes[at], at, made.node_count, nodes[at])
        except BaseException:
            free_program(&made)
            raise
        self.programs[self.program_count] = made
        self.program_count += 1
        return self.program_count - 1

    cdef int fill_node(self, Node* node, int at, int count, tuple described) except -1:
        cdef int place
        cdef bytes text
        operation, column, number, flag, children, texts = described
        if not 0 <= operation < OPERATIONS or not -1 <= column < self.column_count:
            raise ValueError(f"node {at} is operation {operation} into column {column}")
        self.check_kind(operation, column, at)
        node.operation = operation
        node.column = column
        node.number = number
        node.flag = flag
        node.children = numbers_of(children, at + 1, count)
        node.child_count = len(children)
        if node.child_count != 1 and operation in (OP_ARRAY, OP_MAP, OP_OPTIONAL):
            raise ValueError(f"node {at} has {node.child_count} children, not one")
        if operation == OP_DECIMAL and not 1 <= number <= PRECISION_MAX:
            raise ValueError(f"node {at} has a precision of {number}")
        if operation == OP_FIXED and number < 0:
            raise ValueError(f"node {at} has a size of {number}")
        if operation == OP_CONSTANT and column < 0:
            raise ValueError(f"node {at} has a value for no column")
        if texts:
            node.texts = <Text*>calloc(<size_t>len(texts), sizeof(Text))
            if node.texts == NULL:
                raise MemoryError("texts")
            node.text_count = len(texts)
            self.kept.append(texts)
            for place in range(node.text_count):
                if texts[place] is not None:
                    text = texts[place]
                    node.texts[place].data = <const uint8_t*>PyBytes_AS_STRING(text)
                    node.texts[place].size = len(text)
        return 0

    cdef int check_kind(self, int operation, int column, int at) except -1:
        """Check that a column holds what an operation appends."""
        cdef int kind
        if column < 0 or operation in (OP_OPTIONAL, OP_CONSTANT):
            return 0
        kind = self.columns[column].kind
        if kind not in _KINDS[operation]:
            raise ValueError(f"node {at} is operation {operation} into a column of kind {kind}")
        if operation == OP_MAP:
            entries = self.columns[column].children[0]
            if self.columns[entries].kind != C_STRUCT or self.columns[entries].child_count != 2 or (
                    self.columns[self.columns[entries].children[0]].kind != C_BYTES):
                raise ValueError(f"node {at} is a map into a column that is none")
        return 0

    def read(self, offsets, data, validity, int64_t first, int64_t count, programs) -> tuple:
        """Like ColumnReader.read_column.

        programs: the number of each row's as a byte, 255 to refuse it; or that of all.
        """
        if isinstance(programs, bytes):
            if len(programs) != count or max(
                    [each for each in set(programs) if each != NO_PROGRAM],
                    default=-1) >= self.program_count:
                raise ValueError(f"{len(programs)} numbers of programs for {count} rows")
            self.numbers = <const uint8_t*>PyBytes_AS_STRING(programs)
        else:
            if not 0 <= programs < self.program_count:
                raise ValueError(f"there is no program {programs}")
            self.program = programs
        try:
            return self.read_column(offsets, data, validity, first, count)
        finally:
            self.numbers = NULL

    cdef int read_row(self, int64_t row, const uint8_t* data, size_t size) noexcept nogil:
        cdef Reading reading
        cdef int program = self.program if self.numbers == NULL else self.numbers[row]
        cdef int status
        if program == NO_PROGRAM:
            return STATUS_CORRUPT
        reading.columns = self.columns
        reading.nodes = self.programs[program].nodes
        byte_reader_start(&reading.bytes, data, size)
        status = read_node(&reading, 0)
        if status == STATUS_OK and reading.bytes.at != reading.bytes.end:
            return STATUS_CORRUPT
        return status


_KINDS = {
    NODE_BOOLEAN: (BUILD_BOOLEAN,), NODE_INT: (BUILD_INT32, BUILD_INT64, BUILD_DOUBLE),
    NODE_LONG: (BUILD_INT64, BUILD_DOUBLE), NODE_FLOAT: (BUILD_FLOAT, BUILD_DOUBLE),
    NODE_DOUBLE: (BUILD_DOUBLE,), NODE_BYTES: (BUILD_BYTES,), NODE_STRING: (BUILD_BYTES,),
    NODE_FIXED: (BUILD_BYTES,), NODE_ENUM: (BUILD_BYTES,), NODE_ARRAY: (BUILD_LIST,),
    NODE_MAP: (BUILD_LIST,), NODE_RECORD: (BUILD_STRUCT,), NODE_NULL: (),
    NODE_DATE: (BUILD_INT32,), NODE_TIME: (BUILD_INT64,), NODE_TIMESTAMP: (BUILD_INT64,),
    NODE_DECIMAL: (BUILD_DECIMAL,),
}


cdef void free_program(Program* program) noexcept:
    cdef int at
    for at in range(program.node_count):
        free(program.nodes[at].children)
        free(program.nodes[at].texts)
    free(program.nodes)
