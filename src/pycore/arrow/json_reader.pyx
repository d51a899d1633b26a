# cython: language_level=3
"""Decodes JSON objects into Arrow columns of the fields that are wanted. For `tables/json_columns`,
which knows Arrow's types.

All of an object is checked, what is passed over too. A value is taken only if every reader of JSON
would take it, and as the same: fields that come twice, names with escapes, characters that are
none, `1.0` for an integer, numbers that are too large and the like are refused, and are for the
caller to read in another way.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

from cpython.bytes cimport PyBytes_AS_STRING

from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_OK, STATUS_TRUNCATED
from pulsarx._pycore.arrow.arrow_text cimport text_is_valid
from pulsarx._pycore.arrow.column_builder cimport (
    BUILD_BOOLEAN, BUILD_BYTES, BUILD_DECIMAL, BUILD_DOUBLE, BUILD_FLOAT, BUILD_INT32, BUILD_INT64,
    BUILD_LIST, BUILD_STRUCT, ColumnBuilder, builder_boolean, builder_bytes, builder_double,
    builder_end_list, builder_end_struct, builder_end_value, builder_grow, builder_integer,
    builder_null, builder_reserve_data,
)
from pulsarx._pycore.arrow.column_reader cimport ColumnReader

cdef extern from *:
    """
    #include <locale.h>
    #include <stdlib.h>
    #if defined(__APPLE__)
    #include <xlocale.h>
    #endif
    /* Of a number as JSON has it, whatever the locale of the process. */
    static double json_strtod(const char *text) {
        static locale_t plain = (locale_t)0;
        if (plain == (locale_t)0) plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
        return strtod_l(text, NULL, plain);
    }
    """
    double json_strtod(const char* text) noexcept nogil

cdef enum:
    DEPTH_MAX = 64
    DIGITS_MAX = 18              # of a number: they fit into 64 bits
    NUMBER_SIZE_MAX = 40
    NAME_SIZE_MAX = 16000        # some readers take no longer ones
    EXPONENT_MAX = 300
    EXACT_POWER_MAX = 22         # of ten, in a double
    QUOTE = 0x22
    PLUS = 0x2B
    COMMA = 0x2C
    MINUS = 0x2D
    POINT = 0x2E
    ZERO = 0x30
    NINE = 0x39
    COLON = 0x3A
    BRACKET = 0x5B
    BACKSLASH = 0x5C
    BRACKET_END = 0x5D
    LETTER_F = 0x66
    LETTER_N = 0x6E
    LETTER_T = 0x74
    LETTER_U = 0x75
    BRACE = 0x7B
    BRACE_END = 0x7D

cdef int64_t EXACT_MAX = 9007199254740992            # 2^53
cdef double[23] POWERS
POWERS[:] = [10.0 ** each for each in range(23)]
# Bytes that end a run of plain characters in a string.
cdef uint8_t[256] ENDS_RUN
for _byte in range(256):
    ENDS_RUN[_byte] = _byte < 0x20 or _byte in (QUOTE, BACKSLASH)
cdef uint8_t[256] IS_SPACE
for _byte in range(256):
    IS_SPACE[_byte] = _byte in b" \t\r\n"

cdef struct Name:
    const uint8_t* data
    int64_t size

cdef struct Scan:
    const uint8_t* at
    const uint8_t* end
    ColumnBuilder* columns
    const Name* names

cdef struct Number:
    const uint8_t* text
    int64_t size
    bint is_negative
    bint is_integer
    uint64_t digits
    int exponent


cdef inline void skip_space(Scan* self) noexcept nogil:
    while self.at < self.end and IS_SPACE[self.at[0]]:
        self.at += 1


cdef inline int take_byte(Scan* self, uint8_t wanted) noexcept nogil:
    """The next one but spaces."""
    skip_space(self)
    if self.at == self.end or self.at[0] != wanted:
        return STATUS_CORRUPT
    self.at += 1
    return STATUS_OK


cdef inline int hex_value(uint8_t digit) noexcept nogil:
    if ZERO <= digit <= NINE:
        return digit - ZERO
    digit |= 0x20
    if 0x61 <= digit <= LETTER_F:
        return digit - 0x61 + 10
    return -1


cdef int take_unit(Scan* self, uint32_t* unit) noexcept nogil:
    """The four digits behind an escape of u."""
    cdef int at
    cdef int digit
    if self.end - self.at < 4:
        return STATUS_TRUNCATED
    unit[0] = 0
    for at in range(4):
        digit = hex_value(self.at[at])
        if digit < 0:
            return STATUS_CORRUPT
        unit[0] = unit[0] << 4 | <uint32_t>digit
    self.at += 4
    return STATUS_OK


cdef int take_escape(Scan* self, uint32_t* character) noexcept nogil:
    """Decode an escape sequence; at is behind its backslash. STATUS_CORRUPT: half a surrogate, or a
    zero, too."""
    cdef uint8_t kind
    cdef uint32_t low = 0
    if self.at == self.end:
        return STATUS_TRUNCATED
    kind = self.at[0]
    self.at += 1
    if kind == QUOTE or kind == BACKSLASH or kind == 0x2F:
        character[0] = kind
    elif kind == 0x62:
        character[0] = 0x08
    elif kind == LETTER_F:
        character[0] = 0x0C
    elif kind == LETTER_N:
        character[0] = 0x0A
    elif kind == 0x72:
        character[0] = 0x0D
    elif kind == LETTER_T:
        character[0] = 0x09
    elif kind == LETTER_U:
        if take_unit(self, character) != STATUS_OK or character[0] == 0:
            return STATUS_CORRUPT
        if 0xD800 <= character[0] <= 0xDFFF:
            if character[0] >= 0xDC00 or self.end - self.at < 2 or self.at[0] != BACKSLASH or (
                    self.at[1] != LETTER_U):
                return STATUS_CORRUPT
            self.at += 2
            if take_unit(self, &low) != STATUS_OK or not 0xDC00 <= low <= 0xDFFF:
                return STATUS_CORRUPT
            character[0] = 0x10000 + ((character[0] - 0xD800) << 10) + (low - 0xDC00)
    else:
        return STATUS_CORRUPT
    return STATUS_OK


cdef int take_string(Scan* self, const uint8_t** data, int64_t* size,
                     bint* is_escaped) noexcept nogil:
    """Take the text between the quotes; at is behind the first one, and comes behind the second."""
    cdef const uint8_t* at = self.at
    cdef const uint8_t* end = self.end
    cdef uint32_t character = 0
    is_escaped[0] = False
    data[0] = at
    while True:
        while at < end and not ENDS_RUN[at[0]]:
            at += 1
        if at == end:
            return STATUS_TRUNCATED
        if at[0] == QUOTE:
            break
        if at[0] != BACKSLASH:
            return STATUS_CORRUPT                    # a control character
        is_escaped[0] = True
        self.at = at + 1
        if take_escape(self, &character) != STATUS_OK:
            return STATUS_CORRUPT
        at = self.at
    size[0] = at - data[0]
    self.at = at + 1
    return STATUS_OK


cdef int append_unescaped(ColumnBuilder* column, const uint8_t* data,
                          int64_t size) noexcept nogil:
    """data: the inside of a string that was taken. No escape is shorter than what it stands for."""
    cdef Scan text
    cdef uint32_t character = 0
    cdef uint8_t* out
    cdef int status = builder_grow(column)
    if status == STATUS_OK and column.data_size + size > column.data_capacity:
        status = builder_reserve_data(column, column.data_size + size)
    if status != STATUS_OK:
        return status
    out = column.data + column.data_size
    text.at = data
    text.end = data + size
    while text.at < text.end:
        if text.at[0] != BACKSLASH:
            out[0] = text.at[0]
            out += 1
            text.at += 1
            continue
        text.at += 1
        status = take_escape(&text, &character)
        if status != STATUS_OK:
            return status
        if character < 0x80:
            out[0] = <uint8_t>character
            out += 1
            continue
        if character < 0x800:
            out[0] = <uint8_t>(0xC0 | character >> 6)
            out += 1
        else:
            if character < 0x10000:
                out[0] = <uint8_t>(0xE0 | character >> 12)
                out += 1
            else:
                out[0] = <uint8_t>(0xF0 | character >> 18)
                out[1] = <uint8_t>(0x80 | (character >> 12 & 0x3F))
                out += 2
            out[0] = <uint8_t>(0x80 | (character >> 6 & 0x3F))
            out += 1
        out[0] = <uint8_t>(0x80 | (character & 0x3F))
        out += 1
    column.data_size = out - column.data
    (<int32_t*>column.values)[column.length + 1] = <int32_t>column.data_size
    builder_end_value(column)
    return STATUS_OK


cdef inline bint is_digit(const Scan* self) noexcept nogil:
    return self.at < self.end and ZERO <= self.at[0] <= NINE


cdef int take_number(Scan* self, Number* number) noexcept nogil:
    """STATUS_CORRUPT: it is none, or has more digits or a larger exponent than is sure to be read
    alike by all."""
    cdef int count = 0
    cdef int power = 0
    cdef bint is_small
    number.text = self.at
    number.digits = 0
    number.exponent = 0
    number.is_integer = True
    number.is_negative = self.at[0] == MINUS
    if number.is_negative:
        self.at += 1
    if not is_digit(self):
        return STATUS_CORRUPT
    if self.at[0] == ZERO:
        self.at += 1
        if is_digit(self):
            return STATUS_CORRUPT
    while is_digit(self):
        number.digits = number.digits * 10 + (self.at[0] - ZERO)
        self.at += 1
        count += 1
        if count > DIGITS_MAX:
            return STATUS_CORRUPT
    if self.at < self.end and self.at[0] == POINT:
        number.is_integer = False
        self.at += 1
        if not is_digit(self):
            return STATUS_CORRUPT
        while is_digit(self):
            number.digits = number.digits * 10 + (self.at[0] - ZERO)
            number.exponent -= 1
            self.at += 1
            count += 1
            if count > DIGITS_MAX:
                return STATUS_CORRUPT
    if self.at < self.end and self.at[0] | 0x20 == 0x65:
        number.is_integer = False
        self.at += 1
        is_small = self.at < self.end and self.at[0] == MINUS
        if self.at < self.end and (is_small or self.at[0] == PLUS):
            self.at += 1
        if not is_digit(self):
            return STATUS_CORRUPT
        while is_digit(self):
            power = power * 10 + (self.at[0] - ZERO)
            self.at += 1
            if power > EXPONENT_MAX - DIGITS_MAX:
                return STATUS_CORRUPT
        number.exponent += -power if is_small else power
    number.size = self.at - number.text
    return STATUS_OK


cdef int append_number(Scan* self, ColumnBuilder* column) noexcept nogil:
    cdef Number number
    cdef char[NUMBER_SIZE_MAX + 1] text
    cdef double value
    cdef int64_t whole
    cdef int status = take_number(self, &number)
    if status != STATUS_OK:
        return status
    if column.kind == BUILD_INT32 or column.kind == BUILD_INT64:
        whole = -<int64_t>number.digits if number.is_negative else <int64_t>number.digits
        if not number.is_integer or (column.kind == BUILD_INT32 and whole != <int32_t>whole):
            return STATUS_CORRUPT
        return builder_integer(column, whole)
    if column.kind != BUILD_DOUBLE:
        return STATUS_CORRUPT
    if number.digits <= <uint64_t>EXACT_MAX and (
            -EXACT_POWER_MAX <= number.exponent <= EXACT_POWER_MAX):
        # Both are exact in a double, so that one operation rounds once.
        value = <double>number.digits
        if number.is_integer and number.digits == 0:
            return builder_double(column, 0.0)       # an integer has no zero below zero
        if number.exponent < 0:
            value /= POWERS[-number.exponent]
        else:
            value *= POWERS[number.exponent]
        return builder_double(column, -value if number.is_negative else value)
    if number.size > NUMBER_SIZE_MAX:
        return STATUS_CORRUPT
    memcpy(text, number.text, <size_t>number.size)
    text[number.size] = 0
    return builder_double(column, json_strtod(text))


cdef int take_literal(Scan* self, const char* text, int64_t size) noexcept nogil:
    if self.end - self.at < size or memcmp(self.at, text, <size_t>size) != 0:
        return STATUS_CORRUPT
    self.at += size
    return STATUS_OK


cdef int pass_over(Scan* self, int depth) noexcept nogil:
    """Check a value that nobody wants."""
    cdef const uint8_t* data = NULL
    cdef int64_t size = 0
    cdef bint is_escaped = False
    cdef Number number
    cdef uint8_t first
    skip_space(self)
    if self.at == self.end:
        return STATUS_TRUNCATED
    first = self.at[0]
    if first == QUOTE:
        self.at += 1
        return take_string(self, &data, &size, &is_escaped)
    if first == LETTER_T:
        return take_literal(self, b"true", 4)
    if first == LETTER_F:
        return take_literal(self, b"false", 5)
    if first == LETTER_N:
        return take_literal(self, b"null", 4)
    if first == BRACE or first == BRACKET:
        return pass_over_nested(self, first == BRACE, depth)
    return take_number(self, &number)


cdef int pass_over_nested(Scan* self, bint is_object, int depth) noexcept nogil:
    cdef const uint8_t* data = NULL
    cdef int64_t size = 0
    cdef bint is_escaped = False
    cdef uint8_t last = BRACE_END if is_object else BRACKET_END
    cdef uint8_t first
    cdef int status
    if depth >= DEPTH_MAX:
        return STATUS_CORRUPT
    self.at += 1
    skip_space(self)
    if self.at < self.end and self.at[0] == last:
        self.at += 1
        return STATUS_OK
    while True:
        if is_object:
            status = take_byte(self, QUOTE)
            if status == STATUS_OK:
                status = take_string(self, &data, &size, &is_escaped)
            if status == STATUS_OK:
                status = take_byte(self, COLON)
            if status == STATUS_OK and size > NAME_SIZE_MAX:
                status = STATUS_CORRUPT
            if status != STATUS_OK:
                return status
        status = pass_over(self, depth + 1)
        if status != STATUS_OK:
            return status
        skip_space(self)
        if self.at == self.end:
            return STATUS_TRUNCATED
        first = self.at[0]
        self.at += 1
        if first == last:
            return STATUS_OK
        if first != COMMA:
            return STATUS_CORRUPT


cdef int read_value(Scan* self, int32_t number, int depth) noexcept nogil:
    """Append one value to a column. Any other status: what was appended is for the caller to
    cut."""
    cdef ColumnBuilder* column = &self.columns[number]
    cdef const uint8_t* data = NULL
    cdef int64_t size = 0
    cdef bint is_escaped = False
    cdef uint8_t first
    cdef int status
    skip_space(self)
    if self.at == self.end:
        return STATUS_TRUNCATED
    first = self.at[0]
    if first == LETTER_N:
        status = take_literal(self, b"null", 4)
        return status if status != STATUS_OK else builder_null(self.columns, number)
    if column.kind == BUILD_BYTES:
        status = take_byte(self, QUOTE)
        if status == STATUS_OK:
            status = take_string(self, &data, &size, &is_escaped)
        if status != STATUS_OK:
            return status
        if is_escaped:
            return append_unescaped(column, data, size)
        return builder_bytes(column, data, size)
    if column.kind == BUILD_BOOLEAN:
        status = take_literal(self, b"true", 4)
        if status == STATUS_OK:
            return builder_boolean(column, True)
        status = take_literal(self, b"false", 5)
        return status if status != STATUS_OK else builder_boolean(column, False)
    if column.kind == BUILD_STRUCT:
        if first != BRACE or depth >= DEPTH_MAX:
            return STATUS_CORRUPT
        status = read_object(self, column.children, column.child_count, column.length, depth + 1)
        return status if status != STATUS_OK else builder_end_struct(column)
    if column.kind == BUILD_LIST:
        if first != BRACKET or depth >= DEPTH_MAX:
            return STATUS_CORRUPT
        return read_list(self, number, depth + 1)
    return append_number(self, column)


cdef int read_list(Scan* self, int32_t number, int depth) noexcept nogil:
    cdef int32_t child = self.columns[number].children[0]
    cdef uint8_t first
    cdef int status
    self.at += 1
    skip_space(self)
    if self.at < self.end and self.at[0] == BRACKET_END:
        self.at += 1
        return builder_end_list(self.columns, number)
    while True:
        status = read_value(self, child, depth)
        if status != STATUS_OK:
            return status
        skip_space(self)
        if self.at == self.end:
            return STATUS_TRUNCATED
        first = self.at[0]
        self.at += 1
        if first == BRACKET_END:
            return builder_end_list(self.columns, number)
        if first != COMMA:
            return STATUS_CORRUPT


cdef int read_object(Scan* self, const int32_t* children, int count, int64_t row,
                     int depth) noexcept nogil:
    """Append a value to each of some columns, which have row of them; null for those that are not
    there. at is at the brace."""
    cdef const uint8_t* data = NULL
    cdef int64_t size = 0
    cdef bint is_escaped = False
    cdef uint8_t first
    cdef int expected = 0        # objects of one kind usually have their fields in one order
    cdef int turn
    cdef int found
    cdef int status
    self.at += 1
    skip_space(self)
    if self.at < self.end and self.at[0] == BRACE_END:
        self.at += 1
    else:
        while True:
            status = take_byte(self, QUOTE)
            if status == STATUS_OK:
                status = take_string(self, &data, &size, &is_escaped)
            if status == STATUS_OK:
                status = take_byte(self, COLON)
            if status != STATUS_OK:
                return status
            if is_escaped or size > NAME_SIZE_MAX:
                return STATUS_CORRUPT
            found = -1
            for turn in range(count):
                if self.names[children[expected]].size == size and memcmp(
                        self.names[children[expected]].data, data, <size_t>size) == 0:
                    found = children[expected]
                    break
                expected = expected + 1 if expected + 1 < count else 0
            if found < 0:
                status = pass_over(self, depth)
            elif self.columns[found].length != row:
                return STATUS_CORRUPT                # it comes twice
            else:
                status = read_value(self, found, depth)
                expected = expected + 1 if expected + 1 < count else 0
            if status != STATUS_OK:
                return status
            skip_space(self)
            if self.at == self.end:
                return STATUS_TRUNCATED
            first = self.at[0]
            self.at += 1
            if first == BRACE_END:
                break
            if first != COMMA:
                return STATUS_CORRUPT
    for turn in range(count):
        if self.columns[children[turn]].length == row:
            status = builder_null(self.columns, children[turn])
            if status != STATUS_OK:
                return status
    return STATUS_OK


cdef class JsonReader(ColumnReader):
    """Reads rows of JSON objects into columns."""
    cdef Name* names
    cdef list kept

    def __init__(self, list columns not None, tuple tops not None, list names not None) -> None:
        """names: of each column as a field, in UTF-8; None: of items of a list."""
        cdef int at
        cdef bytes name
        ColumnReader.__init__(self, columns, tops)
        if len(names) != self.column_count:
            raise ValueError(f"{len(names)} names for {self.column_count} columns")
        self.names = <Name*>calloc(<size_t>len(names) + 1, sizeof(Name))
        if self.names == NULL:
            raise MemoryError("names")
        self.kept = names
        for at in range(self.column_count):
            if self.columns[at].kind in (BUILD_DECIMAL, BUILD_FLOAT):
                raise ValueError(f"column {at} is of kind {self.columns[at].kind}")
            name = names[at] or b""
            self.names[at].data = <const uint8_t*>PyBytes_AS_STRING(name)
            self.names[at].size = len(name)

    def __dealloc__(self) -> None:
        free(self.names)

    def read(self, offsets, data, validity, int64_t first, int64_t count) -> tuple:
        """Like ColumnReader.read_column."""
        return self.read_column(offsets, data, validity, first, count)

    cdef int read_row(self, int64_t row, const uint8_t* data, size_t size) noexcept nogil:
        cdef Scan scan
        cdef int status
        if size > <size_t>0x7FFFFFFF or not text_is_valid(data, <uint32_t>size):
            return STATUS_CORRUPT
        scan.at = data
        scan.end = data + size
        scan.columns = self.columns
        scan.names = self.names
        skip_space(&scan)
        if scan.at == scan.end or scan.at[0] != BRACE:
            return STATUS_CORRUPT
        status = read_object(&scan, self.top_numbers, self.top_count, row, 0)
        if status != STATUS_OK:
            return status
        skip_space(&scan)
        return STATUS_OK if scan.at == scan.end else STATUS_CORRUPT
