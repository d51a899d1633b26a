"""Body of selector_match.pxd."""

from libc.stdint cimport INT64_MIN, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memset

from pulsarx._core.batch_decode cimport BatchMessage, batch_decode_next
from pulsarx._core.byte_reader cimport (
    ByteReader, byte_reader_block, byte_reader_start, byte_reader_varint,
)
from pulsarx._core.invariant cimport invariant
from pulsarx._core.message_metadata cimport MessageMetadata, message_metadata_decode
from pulsarx._core.proto_field cimport proto_field_skip, proto_field_tag
from pulsarx._core.selector cimport *
from pulsarx._core.selector_text cimport *
from pulsarx._core.single_metadata cimport (
    METADATA_COMPACTED_OUT, METADATA_EVENT_TIME, METADATA_NULL_KEY, METADATA_PARTITION_KEY,
    METADATA_PROPERTIES, PropertyView, property_next,
)
from pulsarx._core.status cimport STATUS_END, STATUS_OK

cdef extern from "<string.h>" nogil:
    const void* memmem(const void*, size_t, const void*, size_t)

cdef extern from *:
    bint __builtin_add_overflow(int64_t, int64_t, int64_t*) nogil
    bint __builtin_sub_overflow(int64_t, int64_t, int64_t*) nogil
    bint __builtin_mul_overflow(int64_t, int64_t, int64_t*) nogil

cdef extern from *:
    """
    static inline int64_t quotient(int64_t left, int64_t right) { return left / right; }
    static inline double real_quotient(double left, double right) { return left / right; }
    """
    # Of C: cut towards 0, as in Java, where Cython's would look for 0 and raise.
    int64_t quotient(int64_t left, int64_t right) nogil
    double real_quotient(double left, double right) nogil

cdef enum:
    # Of SingleMessageMetadata:
    TAG_PROPERTY = 0x0A
    TAG_PARTITION_KEY = 0x12
    TAG_EVENT_TIME = 0x28
    TAG_NULL_KEY = 0x50
    FIELD_PROPERTY_SINGLE = 1
    FIELD_PROPERTY_ENTRY = 4

cdef struct Found:               # what the names of a program are in a message
    SelectorValue properties[SELECTOR_NAMES_MAX]
    SelectorValue key
    SelectorValue event_time
    int64_t publish_time_ms


# What a message has -------------------------------------------------------------------------------

cdef inline void set_text(SelectorValue* value, int kind, const uint8_t* text,
                          uint32_t size) noexcept nogil:
    value.kind = kind
    value.text = text
    value.size = size


cdef inline void set_whole(SelectorValue* value, int64_t number) noexcept nogil:
    value.kind = SELECTOR_WHOLE
    value.whole = number


cdef inline void note_property(const SelectorProgram* program, const PropertyView* property,
                               Found* found) noexcept nogil:
    cdef uint32_t at
    for at in range(program.name_count):
        if program.names[at].size == property.key_size and memcmp(
                program.names[at].text, property.key, property.key_size) == 0:
            # Of two with one name the last one counts, as everywhere.
            set_text(&found.properties[at], SELECTOR_PROPERTY, property.value, property.value_size)
            return


cdef inline bint usual_property(ByteReader* reader, PropertyView* property) noexcept nogil:
    """Take a property as encoders write it, with sizes of one byte, behind its tag. False: it is
    another one; nothing was taken."""
    cdef const uint8_t* at = reader.at
    cdef uint32_t size
    cdef uint32_t key_size
    if reader.end - at < 5 or at[0] >= 0x80 or reader.end - at - 1 < at[0] or at[0] < 4 or (
            at[1] != 0x0A):
        return False
    size = at[0]
    key_size = at[2]
    if key_size >= 0x80 or key_size + 4 > size or at[3 + key_size] != 0x12 or (
            at[4 + key_size] >= 0x80 or key_size + at[4 + key_size] + 4 != size):
        return False
    property.key = at + 3
    property.key_size = key_size
    property.value = at + 5 + key_size
    property.value_size = at[4 + key_size]
    reader.at = at + 1 + size
    return True


cdef int find_single(const SelectorProgram* program, const SelectorMessage* message,
                     Found* found) noexcept nogil:
    cdef ByteReader reader
    cdef ByteReader before
    cdef PropertyView property
    cdef const uint8_t* bytes = NULL
    cdef uint32_t size = 0
    cdef uint32_t tag = 0
    cdef uint64_t number = 0
    cdef bint null_key = False
    cdef int status
    byte_reader_start(&reader, message.metadata, message.metadata_size)
    while reader.at < reader.end:
        before = reader
        status = proto_field_tag(&reader, &tag)
        if status != STATUS_OK:
            return status
        if tag == TAG_PROPERTY and program.name_count:
            if not usual_property(&reader, &property):
                reader = before
                status = property_next(&reader, FIELD_PROPERTY_SINGLE, &property)
            if status == STATUS_OK:
                note_property(program, &property, found)
        elif tag == TAG_PARTITION_KEY:
            status = byte_reader_block(&reader, &bytes, &size)
            if status == STATUS_OK:
                set_text(&found.key, SELECTOR_STRING, bytes, size)
        elif tag == TAG_EVENT_TIME:
            status = byte_reader_varint(&reader, &number)
            if number:
                set_whole(&found.event_time, <int64_t>number)
        elif tag == TAG_NULL_KEY:
            status = byte_reader_varint(&reader, &number)
            null_key = number != 0
        else:
            status = proto_field_skip(&reader, tag)
        if status != STATUS_OK:
            return status
    if null_key:
        found.key.kind = SELECTOR_UNKNOWN
    return STATUS_OK


cdef int find_entry(const SelectorProgram* program, const SelectorMessage* message,
                    Found* found) noexcept nogil:
    cdef MessageMetadata metadata
    cdef ByteReader reader
    cdef PropertyView property
    cdef int status = message_metadata_decode(message.metadata, message.metadata_size, &metadata)
    if status != STATUS_OK:
        return status
    if metadata.flags & METADATA_PARTITION_KEY and not metadata.flags & METADATA_NULL_KEY:
        set_text(&found.key, SELECTOR_STRING, metadata.partition_key, metadata.partition_key_size)
    if metadata.flags & METADATA_EVENT_TIME and metadata.event_time_ms:
        set_whole(&found.event_time, <int64_t>metadata.event_time_ms)
    if program.name_count == 0 or not metadata.flags & METADATA_PROPERTIES:
        return STATUS_OK
    byte_reader_start(&reader, message.metadata, message.metadata_size)
    while True:
        status = property_next(&reader, FIELD_PROPERTY_ENTRY, &property)
        if status != STATUS_OK:
            return STATUS_OK if status == STATUS_END else status
        note_property(program, &property, found)


# Values -------------------------------------------------------------------------------------------

cdef inline bint is_number(const SelectorValue* value) noexcept nogil:
    return value.kind == SELECTOR_WHOLE or value.kind == SELECTOR_REAL


cdef void read_number(SelectorValue* value) noexcept nogil:
    """Make a number of it; unknown where it is none."""
    if value.kind == SELECTOR_PROPERTY:
        if not selector_number(value.text, value.size, value):
            value.kind = SELECTOR_UNKNOWN
    elif not is_number(value):
        value.kind = SELECTOR_UNKNOWN


cdef bint is_word(const SelectorValue* value, const char* word, uint32_t size) noexcept nogil:
    cdef uint32_t at
    if value.size != size:
        return False
    for at in range(size):
        if (value.text[at] | 0x20) != <uint8_t>word[at]:
            return False
    return True


cdef void read_condition(SelectorValue* value) noexcept nogil:
    if value.kind == SELECTOR_PROPERTY:
        value.kind = SELECTOR_CONDITION
        if is_word(value, b"true", 4):
            value.whole = 1
        elif is_word(value, b"false", 5):
            value.whole = 0
        else:
            value.kind = SELECTOR_UNKNOWN
    elif value.kind != SELECTOR_CONDITION:
        value.kind = SELECTOR_UNKNOWN


cdef inline double as_real(const SelectorValue* value) noexcept nogil:
    return value.real if value.kind == SELECTOR_REAL else <double>value.whole


cdef void make_alike(SelectorValue* left, SelectorValue* right, bint orders) noexcept nogil:
    """Read properties as what they are compared with. Two of them: as numbers where both are, or
    are to be put in order; else as strings."""
    cdef SelectorValue first
    cdef SelectorValue second
    if left.kind == SELECTOR_PROPERTY and right.kind == SELECTOR_PROPERTY:
        first = left[0]
        second = right[0]
        read_number(&first)
        read_number(&second)
        if orders or (is_number(&first) and is_number(&second)):
            left[0] = first
            right[0] = second
        else:
            left.kind = right.kind = SELECTOR_STRING
        return
    if right.kind == SELECTOR_PROPERTY:
        left, right = right, left
    if left.kind != SELECTOR_PROPERTY:
        return
    if is_number(right):
        read_number(left)
    elif right.kind == SELECTOR_CONDITION:
        read_condition(left)
    else:
        left.kind = SELECTOR_STRING


cdef inline bint holds(uint32_t code, bint less, bint equal, bint greater) noexcept nogil:
    if code == SELECTOR_EQUAL:
        return equal
    if code == SELECTOR_UNEQUAL:
        return less or greater
    if code == SELECTOR_LESS:
        return less
    if code == SELECTOR_LESS_EQUAL:
        return less or equal
    if code == SELECTOR_GREATER:
        return greater
    return greater or equal


cdef void compare(uint32_t code, SelectorValue* left, SelectorValue* right) noexcept nogil:
    """Put the condition in the place of the left one."""
    cdef bint orders = code != SELECTOR_EQUAL and code != SELECTOR_UNEQUAL
    cdef bint equal
    cdef double first
    cdef double second
    if left.kind == SELECTOR_UNKNOWN or right.kind == SELECTOR_UNKNOWN:
        left.kind = SELECTOR_UNKNOWN
        return
    make_alike(left, right, orders)
    if left.kind == SELECTOR_WHOLE and right.kind == SELECTOR_WHOLE:
        left.whole = holds(code, left.whole < right.whole, left.whole == right.whole,
                           left.whole > right.whole)
    elif is_number(left) and is_number(right):
        first = as_real(left)
        second = as_real(right)
        left.whole = holds(code, first < second, first == second, first > second)
    elif left.kind != right.kind or orders or left.kind == SELECTOR_UNKNOWN:
        left.kind = SELECTOR_UNKNOWN
        return
    else:
        if left.kind == SELECTOR_STRING:
            equal = left.size == right.size and (
                left.size == 0 or memcmp(left.text, right.text, left.size) == 0)
        else:
            equal = left.whole == right.whole
        left.whole = equal if code == SELECTOR_EQUAL else not equal
    left.kind = SELECTOR_CONDITION


cdef void calculate(uint32_t code, SelectorValue* left, SelectorValue* right) noexcept nogil:
    """Whole numbers stay whole, a quotient too, as in Java; where 64 bits do not hold the result it
    is a real one. Divided by a whole 0: unknown."""
    cdef double first
    cdef double second
    cdef bint overflows = True
    read_number(left)
    read_number(right)
    if left.kind == SELECTOR_UNKNOWN or right.kind == SELECTOR_UNKNOWN:
        left.kind = SELECTOR_UNKNOWN
        return
    first = as_real(left)
    second = as_real(right)
    if left.kind == SELECTOR_WHOLE and right.kind == SELECTOR_WHOLE:
        if code == SELECTOR_ADD:
            overflows = __builtin_add_overflow(left.whole, right.whole, &left.whole)
        elif code == SELECTOR_SUBTRACT:
            overflows = __builtin_sub_overflow(left.whole, right.whole, &left.whole)
        elif code == SELECTOR_MULTIPLY:
            overflows = __builtin_mul_overflow(left.whole, right.whole, &left.whole)
        elif right.whole == 0:
            left.kind = SELECTOR_UNKNOWN
            return
        elif left.whole != INT64_MIN or right.whole != -1:
            left.whole = quotient(left.whole, right.whole)
            overflows = False
        if not overflows:
            return
    left.kind = SELECTOR_REAL
    if code == SELECTOR_ADD:
        left.real = first + second
    elif code == SELECTOR_SUBTRACT:
        left.real = first - second
    elif code == SELECTOR_MULTIPLY:
        left.real = first * second
    else:
        left.real = real_quotient(first, second)


cdef void negate(SelectorValue* value) noexcept nogil:
    read_number(value)
    if value.kind == SELECTOR_WHOLE and value.whole != INT64_MIN:
        value.whole = -value.whole
    elif value.kind != SELECTOR_UNKNOWN:
        value.real = -as_real(value)
        value.kind = SELECTOR_REAL


cdef inline uint32_t next_character(const uint8_t* text, uint32_t size, uint32_t at) noexcept nogil:
    at += 1
    while at < size and (text[at] & 0xC0) == 0x80:
        at += 1
    return at


cdef inline uint32_t literal_size(const uint8_t* pattern, uint32_t size,
                                  uint32_t at) noexcept nogil:
    """How many bytes of a pattern stand for themselves from there on."""
    cdef uint32_t end = at
    while end < size and pattern[end] != PATTERN_ANY and pattern[end] != PATTERN_ONE:
        end += 1
    return end - at


cdef bint is_like(const uint8_t* text, uint32_t size, const uint8_t* pattern,
                  uint32_t pattern_size) noexcept nogil:
    """After each % the shortest text that the rest matches is enough: so nothing is tried twice but
    what lies behind the last one, and that only where there is a _."""
    cdef uint32_t at = 0
    cdef uint32_t in_pattern = 0
    cdef uint32_t any_at = 0         # behind the last %; 0: there was none
    cdef uint32_t literal = 0        # bytes that stand for themselves there
    cdef uint32_t from_at = 0        # where the text goes on behind what that one took
    cdef const void* found
    while at < size:
        if in_pattern < pattern_size and pattern[in_pattern] == PATTERN_ANY:
            in_pattern += 1
            any_at = in_pattern
            literal = literal_size(pattern, pattern_size, any_at)
            if any_at + literal == pattern_size:
                return literal <= size - at and memcmp(
                    text + size - literal, pattern + any_at, literal) == 0
            from_at = at
        elif in_pattern < pattern_size and pattern[in_pattern] == PATTERN_ONE:
            at = next_character(text, size, at)
            in_pattern += 1
            continue
        elif in_pattern < pattern_size and pattern[in_pattern] == text[at]:
            at += 1
            in_pattern += 1
            continue
        elif any_at == 0:
            return False
        else:
            from_at = next_character(text, size, from_at)
        if literal != 0:
            found = memmem(text + from_at, size - from_at, pattern + any_at, literal)
            if found == NULL:
                return False
            from_at = <uint32_t>(<const uint8_t*>found - text)
        at = from_at + literal
        in_pattern = any_at + literal
    while in_pattern < pattern_size and pattern[in_pattern] == PATTERN_ANY:
        in_pattern += 1
    return in_pattern == pattern_size


cdef void match_text(const SelectorProgram* program, const SelectorOp* op,
                     SelectorValue* value) noexcept nogil:
    """IN and LIKE."""
    cdef const SelectorValue* literal
    cdef uint32_t at
    if value.kind != SELECTOR_PROPERTY and value.kind != SELECTOR_STRING:
        value.kind = SELECTOR_UNKNOWN
        return
    value.kind = SELECTOR_CONDITION
    value.whole = 0
    if op.code == SELECTOR_LIKE:
        literal = &program.literals[op.at]
        value.whole = is_like(value.text, value.size, literal.text, literal.size)
        return
    for at in range(op.at, op.at + op.count):
        literal = &program.literals[at]
        if literal.size == value.size and (
                value.size == 0 or memcmp(literal.text, value.text, value.size) == 0):
            value.whole = 1
            return


cdef inline bint is_true(const SelectorValue* value) noexcept nogil:
    return value.kind == SELECTOR_CONDITION and value.whole != 0


cdef inline bint is_false(const SelectorValue* value) noexcept nogil:
    return value.kind == SELECTOR_CONDITION and value.whole == 0


cdef void join(bint by_and, SelectorValue* left, const SelectorValue* right) noexcept nogil:
    """AND is false where one is, OR true where one is; else unknown where one is."""
    if by_and:
        if is_false(left) or is_false(right):
            left.whole = 0
            left.kind = SELECTOR_CONDITION
            return
    elif is_true(left) or is_true(right):
        left.whole = 1
        left.kind = SELECTOR_CONDITION
        return
    if left.kind == SELECTOR_UNKNOWN or right.kind == SELECTOR_UNKNOWN:
        left.kind = SELECTOR_UNKNOWN
        return
    left.kind = SELECTOR_CONDITION
    left.whole = by_and


# The machine --------------------------------------------------------------------------------------

cdef inline void push_value(const SelectorProgram* program, const SelectorOp* op,
                            const Found* found, SelectorValue* value) noexcept nogil:
    if op.code == SELECTOR_PUSH_PROPERTY:
        value[0] = found.properties[op.at]
    elif op.code == SELECTOR_PUSH_LITERAL:
        value[0] = program.literals[op.at]
    elif op.code == SELECTOR_PUSH_KEY:
        value[0] = found.key
    elif op.code == SELECTOR_PUSH_PUBLISH_TIME or (
            op.code == SELECTOR_PUSH_TIMESTAMP and found.event_time.kind == SELECTOR_UNKNOWN):
        set_whole(value, found.publish_time_ms)
    else:
        value[0] = found.event_time


cdef bint run(const SelectorProgram* program, const Found* found) noexcept nogil:
    cdef SelectorValue[SELECTOR_STACK_MAX] stack
    cdef SelectorValue second
    cdef SelectorValue* top = stack
    cdef const SelectorOp* op
    cdef uint32_t at = 0
    cdef uint32_t size = 0
    while at < program.op_count:
        op = &program.ops[at]
        at += 1
        if op.code <= SELECTOR_PUSH_TIMESTAMP:
            invariant(size < SELECTOR_STACK_MAX)
            top = &stack[size]
            size += 1
            push_value(program, op, found, top)
        elif op.code <= SELECTOR_LIKE:
            if op.code == SELECTOR_IN or op.code == SELECTOR_LIKE:
                match_text(program, op, top)
            elif op.code == SELECTOR_AS_CONDITION:
                read_condition(top)
            elif op.code == SELECTOR_IS_NULL:
                top.whole = top.kind == SELECTOR_UNKNOWN
                top.kind = SELECTOR_CONDITION
            elif op.code == SELECTOR_NOT:
                top.whole = top.whole == 0
            else:
                negate(top)
        elif op.code <= SELECTOR_OR:
            invariant(size >= 2)
            second = top[0]
            size -= 1
            top = &stack[size - 1]
            if op.code <= SELECTOR_DIVIDE:
                calculate(op.code, top, &second)
            elif op.code <= SELECTOR_GREATER_EQUAL:
                compare(op.code, top, &second)
            else:
                join(op.code == SELECTOR_AND, top, &second)
        elif op.code == SELECTOR_BETWEEN:
            invariant(size >= 3)
            size -= 2
            top = &stack[size - 1]
            second = top[0]
            read_number(&top[1])
            read_number(&top[2])
            compare(SELECTOR_GREATER_EQUAL, top, &top[1])
            compare(SELECTOR_LESS_EQUAL, &second, &top[2])
            join(True, top, &second)
        elif (op.code == SELECTOR_GO_FALSE and is_false(top)) or (
                op.code == SELECTOR_GO_TRUE and is_true(top)):
            at = op.at
    invariant(size == 1)
    return is_true(top)


cdef inline void begin(const SelectorProgram* program, Found* found,
                       int64_t publish_time_ms) noexcept nogil:
    cdef uint32_t at
    for at in range(program.name_count):
        found.properties[at].kind = SELECTOR_UNKNOWN
    memset(&found.key, 0, sizeof(SelectorValue))
    memset(&found.event_time, 0, sizeof(SelectorValue))
    found.publish_time_ms = publish_time_ms


cdef int selector_match(const SelectorProgram* program, const SelectorMessage* message,
                        bint* matches) noexcept nogil:
    cdef Found found
    cdef int status
    begin(program, &found, message.publish_time_ms)
    if message.in_batch:
        status = find_single(program, message, &found)
    else:
        status = find_entry(program, message, &found)
    if status != STATUS_OK:
        return status
    matches[0] = run(program, &found)
    return STATUS_OK


cdef int selector_match_batch(const SelectorProgram* program, const uint8_t* payload, uint32_t size,
                              uint32_t* at, uint32_t first, uint32_t end,
                              int64_t publish_time_ms, uint8_t* matches) noexcept nogil:
    cdef SelectorMessage asked
    cdef BatchMessage message
    cdef uint32_t index
    cdef bint wanted
    cdef int status = STATUS_OK
    asked.in_batch = True
    asked.publish_time_ms = publish_time_ms
    for index in range(first, end):
        wanted = True
        if status == STATUS_OK:
            status = batch_decode_next(payload, size, at, &message)
        if status == STATUS_OK:
            asked.metadata = message.encoded_metadata
            asked.metadata_size = message.encoded_metadata_size
            if message.flags & METADATA_COMPACTED_OUT:
                wanted = False
            elif selector_match(program, &asked, &wanted) != STATUS_OK:
                wanted = True
        matches[index - first] = wanted
    return status
