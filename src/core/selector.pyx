"""Body of selector.pxd: a parser by recursive descent, bounded in depth, that writes ops as it goes.

A token is looked at once. Strings and quoted names lose their quotes in the program's own copy of
the text, in front of which everything was read by then.
"""

from libc.math cimport INFINITY
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset, strlen

from pulsarx._core.invariant cimport invariant
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_NO_MEMORY, STATUS_OK

cdef enum Token:
    TOKEN_END
    TOKEN_NAME
    TOKEN_QUOTED_NAME
    TOKEN_STRING
    TOKEN_NUMBER
    TOKEN_OPEN
    TOKEN_CLOSE
    TOKEN_COMMA
    TOKEN_PLUS
    TOKEN_MINUS
    TOKEN_STAR
    TOKEN_SLASH
    TOKEN_EQUAL
    TOKEN_UNEQUAL
    TOKEN_LESS
    TOKEN_LESS_EQUAL
    TOKEN_GREATER
    TOKEN_GREATER_EQUAL
    TOKEN_AND
    TOKEN_OR
    TOKEN_NOT
    TOKEN_BETWEEN
    TOKEN_IN
    TOKEN_LIKE
    TOKEN_ESCAPE
    TOKEN_IS
    TOKEN_NULL
    TOKEN_TRUE
    TOKEN_FALSE

cdef enum Type:
    TYPE_FAILED = 0
    TYPE_CONDITION = 1
    TYPE_NUMBER = 2
    TYPE_STRING = 4
    TYPE_PROPERTY = 8

cdef enum:
    POWER_EXACT_MAX = 22         # a double holds 10 ** 22, and no larger power of 10
    EXPONENT_MAX = 400           # beyond, a double is 0 or infinite, whatever its digits are
    DIGITS_MAX = 19              # that 64 bits hold in any case

cdef uint64_t MANTISSA_EXACT_END = <uint64_t>1 << 53
cdef uint64_t WHOLE_END = <uint64_t>1 << 63

cdef struct Compiler:
    SelectorProgram* program
    uint32_t size
    uint32_t at                  # behind the token
    int token
    uint32_t token_at
    uint8_t* content             # of a name or a string, without quotes
    uint32_t content_size
    SelectorValue number
    uint32_t depth
    uint32_t stack
    SelectorError error


cdef int fail(Compiler* self, int expected, uint32_t at) noexcept nogil:
    """TYPE_FAILED; the first thing that is wrong is told."""
    if self.error.expected == EXPECTED_NOTHING:
        self.error.expected = expected
        self.error.at = at
    return TYPE_FAILED


# Numbers ------------------------------------------------------------------------------------------

cdef inline bint is_digit(uint8_t byte) noexcept nogil:
    return 48 <= byte <= 57


cdef double scaled(uint64_t mantissa, int64_t exponent) noexcept nogil:
    cdef long double value = <long double>mantissa
    cdef long double power = 10.0
    cdef long double scale = 1.0
    cdef double exact = 1.0
    cdef uint64_t left = <uint64_t>(exponent if exponent >= 0 else -exponent)
    cdef uint64_t step
    if mantissa == 0:
        return 0.0
    if mantissa < MANTISSA_EXACT_END and left <= POWER_EXACT_MAX:
        for step in range(left):
            exact *= 10.0
        return <double>mantissa * exact if exponent >= 0 else <double>mantissa / exact
    if left > EXPONENT_MAX:
        return INFINITY if exponent > 0 else 0.0
    while left:
        if left & 1:
            scale *= power
        power *= power
        left >>= 1
    return <double>(value * scale) if exponent >= 0 else <double>(value / scale)


cdef bint selector_number(const uint8_t* text, uint32_t size, SelectorValue* value) noexcept nogil:
    cdef uint32_t at = 0
    cdef uint32_t digits = 0     # that count
    cdef int64_t exponent = 0
    cdef int64_t given = 0
    cdef uint64_t mantissa = 0
    cdef bint negative = False
    cdef bint falls = False
    cdef bint is_whole = True
    cdef bint found = False
    cdef bint behind = False     # the point
    if size and (text[0] == c'-' or text[0] == c'+'):
        negative = text[0] == c'-'
        at = 1
    while at < size and (is_digit(text[at]) or (text[at] == c'.' and not behind)):
        if text[at] == c'.':
            behind = True
            is_whole = False
        else:
            found = True
            if digits < DIGITS_MAX:
                mantissa = 10 * mantissa + (text[at] - 48)
                digits += mantissa != 0
                exponent -= behind
            else:
                is_whole = False
                exponent += not behind
        at += 1
    if not found:
        return False
    if at < size and (text[at] | 0x20) == c'e':
        is_whole = False
        at += 1
        if at < size and (text[at] == c'-' or text[at] == c'+'):
            falls = text[at] == c'-'
            at += 1
        if at == size:
            return False
        while at < size and is_digit(text[at]):
            if given < 100000:
                given = 10 * given + (text[at] - 48)
            at += 1
        exponent += -given if falls else given
    if at != size:
        return False
    if is_whole and (mantissa < WHOLE_END or (negative and mantissa == WHOLE_END)):
        value.kind = SELECTOR_WHOLE
        value.whole = <int64_t>(0 - mantissa) if negative else <int64_t>mantissa
        return True
    value.kind = SELECTOR_REAL
    value.real = scaled(mantissa, exponent)
    if negative:
        value.real = -value.real
    return True


# Tokens -------------------------------------------------------------------------------------------

cdef inline bint begins_name(uint8_t byte) noexcept nogil:
    return 97 <= (byte | 0x20) <= 122 or byte == c'_' or byte == c'$' or byte >= 0x80


cdef inline bint is_in_name(uint8_t byte) noexcept nogil:
    return begins_name(byte) or is_digit(byte) or byte == c'.'


cdef bint is_word(const uint8_t* text, uint32_t size, const char* word) noexcept nogil:
    """Whether it is that word, which is in capitals, in any case of its letters."""
    cdef uint32_t at
    if size != strlen(word):
        return False
    for at in range(size):
        if (text[at] & ~0x20) != <uint8_t>word[at]:
            return False
    return True


cdef int word_token(const uint8_t* text, uint32_t size) noexcept nogil:
    if is_word(text, size, b"AND"):
        return TOKEN_AND
    if is_word(text, size, b"OR"):
        return TOKEN_OR
    if is_word(text, size, b"NOT"):
        return TOKEN_NOT
    if is_word(text, size, b"BETWEEN"):
        return TOKEN_BETWEEN
    if is_word(text, size, b"IN"):
        return TOKEN_IN
    if is_word(text, size, b"LIKE"):
        return TOKEN_LIKE
    if is_word(text, size, b"ESCAPE"):
        return TOKEN_ESCAPE
    if is_word(text, size, b"IS"):
        return TOKEN_IS
    if is_word(text, size, b"NULL"):
        return TOKEN_NULL
    if is_word(text, size, b"TRUE"):
        return TOKEN_TRUE
    if is_word(text, size, b"FALSE"):
        return TOKEN_FALSE
    return TOKEN_NAME


cdef bint take_quoted(Compiler* self, uint8_t quote) noexcept nogil:
    """Take what is between quotes, of which a doubled one is one of the text."""
    cdef uint8_t* text = self.program.text
    cdef uint32_t at = self.at + 1
    cdef uint32_t to = at
    self.content = text + at
    while at < self.size:
        if text[at] == quote:
            if at + 1 == self.size or text[at + 1] != quote:
                self.content_size = to - (self.at + 1)
                self.at = at + 1
                return True
            at += 1
        text[to] = text[at]
        to += 1
        at += 1
    fail(self, EXPECTED_QUOTE, self.size)
    return False


cdef bint take_hexadecimal(Compiler* self) noexcept nogil:
    cdef const uint8_t* text = self.program.text
    cdef uint32_t at = self.at + 2
    cdef uint64_t value = 0
    cdef uint8_t byte
    while at < self.size:
        byte = text[at] | 0x20
        if not is_digit(text[at]) and not 97 <= byte <= 102:
            break
        if value >> 59:
            fail(self, EXPECTED_SMALLER, self.at)
            return False
        value = 16 * value + (text[at] - 48 if is_digit(text[at]) else byte - 87)
        at += 1
    if at == self.at + 2:
        fail(self, EXPECTED_NUMBER, self.at)
        return False
    self.number.kind = SELECTOR_WHOLE
    self.number.whole = <int64_t>value
    self.at = at
    return True


cdef bint take_number(Compiler* self) noexcept nogil:
    cdef const uint8_t* text = self.program.text
    cdef uint32_t at = self.at
    cdef bint is_whole = True
    if text[at] == c'0' and at + 1 < self.size and (text[at + 1] | 0x20) == c'x':
        if not take_hexadecimal(self):
            return False
    else:
        # Java has octal numbers, for which nobody takes 010.
        if text[at] == c'0' and at + 1 < self.size and is_digit(text[at + 1]):
            fail(self, EXPECTED_NUMBER, at)
            return False
        while at < self.size and (is_digit(text[at]) or text[at] == c'.'):
            is_whole = is_whole and text[at] != c'.'
            at += 1
        if at < self.size and (text[at] | 0x20) == c'e':
            is_whole = False
            at += 1
            if at < self.size and (text[at] == c'-' or text[at] == c'+'):
                at += 1
            while at < self.size and is_digit(text[at]):
                at += 1
        if not selector_number(text + self.at, at - self.at, &self.number):
            fail(self, EXPECTED_NUMBER, self.at)
            return False
        if is_whole and self.number.kind != SELECTOR_WHOLE:
            fail(self, EXPECTED_SMALLER, self.at)
            return False
        self.at = at
    if is_whole and self.at < self.size and (text[self.at] | 0x20) == c'l':
        self.at += 1                 # as of a long of Java
    if self.at < self.size and is_in_name(text[self.at]):
        fail(self, EXPECTED_OPERATOR, self.at)
        return False
    return True


cdef bint next_token(Compiler* self) noexcept nogil:
    """Take the next token; False: there is none, which is told."""
    cdef const uint8_t* text = self.program.text
    cdef uint8_t byte
    cdef uint8_t after
    while self.at < self.size and (text[self.at] == c' ' or 9 <= text[self.at] <= 13):
        self.at += 1
    self.token_at = self.at
    if self.at == self.size:
        self.token = TOKEN_END
        return True
    byte = text[self.at]
    after = text[self.at + 1] if self.at + 1 < self.size else 0
    if begins_name(byte):
        self.content = self.program.text + self.at
        while self.at < self.size and is_in_name(text[self.at]):
            self.at += 1
        self.content_size = self.at - self.token_at
        self.token = word_token(self.content, self.content_size)
        return True
    if byte == c"'":
        self.token = TOKEN_STRING
        return take_quoted(self, byte)
    if byte == c'"':
        self.token = TOKEN_QUOTED_NAME
        if take_quoted(self, byte) and self.content_size:
            return True
        fail(self, EXPECTED_NAME, self.token_at)
        return False
    if is_digit(byte) or (byte == c'.' and is_digit(after)):
        self.token = TOKEN_NUMBER
        return take_number(self)
    self.at += 1
    if byte == c'(':
        self.token = TOKEN_OPEN
    elif byte == c')':
        self.token = TOKEN_CLOSE
    elif byte == c',':
        self.token = TOKEN_COMMA
    elif byte == c'+':
        self.token = TOKEN_PLUS
    elif byte == c'-':
        self.token = TOKEN_MINUS
    elif byte == c'*':
        self.token = TOKEN_STAR
    elif byte == c'/':
        self.token = TOKEN_SLASH
    elif byte == c'=':
        self.token = TOKEN_EQUAL
    elif byte == c'<' or byte == c'>':
        self.token = TOKEN_LESS if byte == c'<' else TOKEN_GREATER
        if after == c'=':
            self.token = TOKEN_LESS_EQUAL if byte == c'<' else TOKEN_GREATER_EQUAL
            self.at += 1
        elif byte == c'<' and after == c'>':
            self.token = TOKEN_UNEQUAL
            self.at += 1
    else:
        fail(self, EXPECTED_OPERAND if self.token_at == 0 else EXPECTED_OPERATOR, self.token_at)
        return False
    return True


cdef bint take_token(Compiler* self, int token, int expected) noexcept nogil:
    """Go past this token; False: it is another one."""
    if self.token != token:
        fail(self, expected, self.token_at)
        return False
    return next_token(self)


# Ops ----------------------------------------------------------------------------------------------

cdef uint32_t emit(Compiler* self, uint32_t code, uint32_t at, int grows) noexcept nogil:
    """Write an op; grows: how many values more there are behind it. Its number."""
    cdef SelectorProgram* program = self.program
    invariant(program.op_count < 2 * self.size + 4)
    program.ops[program.op_count].code = code
    program.ops[program.op_count].at = at
    program.ops[program.op_count].count = 0
    program.op_count += 1
    self.stack = <uint32_t>(<int>self.stack + grows)
    if self.stack > SELECTOR_STACK_MAX:
        fail(self, EXPECTED_FLATTER, self.token_at)
    return program.op_count - 1


cdef uint32_t keep_literal(Compiler* self, const SelectorValue* value) noexcept nogil:
    cdef SelectorProgram* program = self.program
    invariant(program.literal_count <= self.size)
    program.literals[program.literal_count] = value[0]
    program.literal_count += 1
    return program.literal_count - 1


cdef uint32_t keep_string(Compiler* self) noexcept nogil:
    cdef SelectorValue value
    memset(&value, 0, sizeof(value))
    value.kind = SELECTOR_STRING
    value.text = self.content
    value.size = self.content_size
    return keep_literal(self, &value)


cdef bint is_called(const Compiler* self, const char* name) noexcept nogil:
    return self.content_size == strlen(name) and (
        memcmp(self.content, name, self.content_size) == 0)


cdef int push_name(Compiler* self) noexcept nogil:
    cdef SelectorProgram* program = self.program
    cdef SelectorName* name
    cdef uint32_t at
    if self.token == TOKEN_NAME:
        # As the JMS client calls them, and as the columns of Spark and of tables are called.
        if is_called(self, b"JMSXGroupID") or is_called(self, b"__key") or (
                is_called(self, b"__key__")):
            emit(self, SELECTOR_PUSH_KEY, 0, 1)
            return TYPE_STRING
        if is_called(self, b"JMSTimestamp"):
            emit(self, SELECTOR_PUSH_TIMESTAMP, 0, 1)
            return TYPE_NUMBER
        if is_called(self, b"__eventTime") or is_called(self, b"__event_time__"):
            emit(self, SELECTOR_PUSH_EVENT_TIME, 0, 1)
            return TYPE_NUMBER
        if is_called(self, b"__publishTime") or is_called(self, b"__publish_time__"):
            emit(self, SELECTOR_PUSH_PUBLISH_TIME, 0, 1)
            return TYPE_NUMBER
    for at in range(program.name_count):
        name = &program.names[at]
        if name.size == self.content_size and (
                memcmp(name.text, self.content, name.size) == 0):
            emit(self, SELECTOR_PUSH_PROPERTY, at, 1)
            return TYPE_PROPERTY
    if program.name_count == SELECTOR_NAMES_MAX:
        return fail(self, EXPECTED_FEWER_NAMES, self.token_at)
    name = &program.names[program.name_count]
    name.text = self.content
    name.size = self.content_size
    emit(self, SELECTOR_PUSH_PROPERTY, program.name_count, 1)
    program.name_count += 1
    return TYPE_PROPERTY


# Grammar ------------------------------------------------------------------------------------------

cdef bint enter(Compiler* self) noexcept nogil:
    self.depth += 1
    if self.depth > SELECTOR_DEPTH_MAX:
        fail(self, EXPECTED_FLATTER, self.token_at)
        return False
    return next_token(self)


cdef bint need_condition(Compiler* self, int type, uint32_t at) noexcept nogil:
    if type == TYPE_PROPERTY:
        emit(self, SELECTOR_AS_CONDITION, 0, 0)
    elif type != TYPE_CONDITION:
        if type != TYPE_FAILED:
            fail(self, EXPECTED_CONDITION, at)
        return False
    return True


cdef bint need(Compiler* self, int type, int types, int expected, uint32_t at) noexcept nogil:
    if type & types:
        return True
    if type != TYPE_FAILED:
        fail(self, expected, at)
    return False


cdef int parse_primary(Compiler* self) noexcept nogil:
    cdef int type
    cdef SelectorValue value
    if self.token == TOKEN_OPEN:
        if not enter(self):
            return TYPE_FAILED
        type = parse_or(self)
        self.depth -= 1
        if type == TYPE_FAILED or not take_token(self, TOKEN_CLOSE, EXPECTED_CLOSE):
            return TYPE_FAILED
        return type
    if self.token == TOKEN_NAME or self.token == TOKEN_QUOTED_NAME:
        type = push_name(self)
    elif self.token == TOKEN_STRING:
        emit(self, SELECTOR_PUSH_LITERAL, keep_string(self), 1)
        type = TYPE_STRING
    elif self.token == TOKEN_NUMBER:
        emit(self, SELECTOR_PUSH_LITERAL, keep_literal(self, &self.number), 1)
        type = TYPE_NUMBER
    elif self.token == TOKEN_TRUE or self.token == TOKEN_FALSE:
        memset(&value, 0, sizeof(value))
        value.kind = SELECTOR_CONDITION
        value.whole = self.token == TOKEN_TRUE
        emit(self, SELECTOR_PUSH_LITERAL, keep_literal(self, &value), 1)
        type = TYPE_CONDITION
    else:
        return fail(self, EXPECTED_OPERAND, self.token_at)
    if type == TYPE_FAILED or not next_token(self):
        return TYPE_FAILED
    return type


cdef int parse_unary(Compiler* self) noexcept nogil:
    cdef int token = self.token
    cdef uint32_t at
    cdef int type
    if token != TOKEN_PLUS and token != TOKEN_MINUS:
        return parse_primary(self)
    if not enter(self):
        return TYPE_FAILED
    at = self.token_at
    type = parse_unary(self)
    self.depth -= 1
    if not need(self, type, TYPE_NUMBER | TYPE_PROPERTY, EXPECTED_NUMBER, at):
        return TYPE_FAILED
    emit(self, SELECTOR_NEGATE, 0, 0)
    if token == TOKEN_PLUS:
        emit(self, SELECTOR_NEGATE, 0, 0)    # a property becomes a number by it, too
    return TYPE_NUMBER


cdef int parse_product(Compiler* self) noexcept nogil:
    cdef uint32_t at = self.token_at
    cdef int type = parse_unary(self)
    cdef int token
    while type and (self.token == TOKEN_STAR or self.token == TOKEN_SLASH):
        token = self.token
        if not need(self, type, TYPE_NUMBER | TYPE_PROPERTY, EXPECTED_NUMBER, at) or (
                not next_token(self)):
            return TYPE_FAILED
        at = self.token_at
        type = parse_unary(self)
        if not need(self, type, TYPE_NUMBER | TYPE_PROPERTY, EXPECTED_NUMBER, at):
            return TYPE_FAILED
        emit(self, SELECTOR_MULTIPLY if token == TOKEN_STAR else SELECTOR_DIVIDE, 0, -1)
        type = TYPE_NUMBER
    return type


cdef int parse_sum(Compiler* self) noexcept nogil:
    cdef uint32_t at = self.token_at
    cdef int type = parse_product(self)
    cdef int token
    while type and (self.token == TOKEN_PLUS or self.token == TOKEN_MINUS):
        token = self.token
        if not need(self, type, TYPE_NUMBER | TYPE_PROPERTY, EXPECTED_NUMBER, at) or (
                not next_token(self)):
            return TYPE_FAILED
        at = self.token_at
        type = parse_product(self)
        if not need(self, type, TYPE_NUMBER | TYPE_PROPERTY, EXPECTED_NUMBER, at):
            return TYPE_FAILED
        emit(self, SELECTOR_ADD if token == TOKEN_PLUS else SELECTOR_SUBTRACT, 0, -1)
        type = TYPE_NUMBER
    return type


cdef int parse_comparison(Compiler* self, int left) noexcept nogil:
    cdef int token = self.token
    cdef uint32_t operator_at = self.token_at
    cdef bint orders = token != TOKEN_EQUAL and token != TOKEN_UNEQUAL
    cdef uint32_t at
    cdef int right
    if not next_token(self):
        return TYPE_FAILED
    at = self.token_at
    right = parse_sum(self)
    if right == TYPE_FAILED:
        return TYPE_FAILED
    if orders and (left | right) & (TYPE_CONDITION | TYPE_STRING):
        return fail(self, EXPECTED_EQUALITY, operator_at)
    if left != TYPE_PROPERTY and right != TYPE_PROPERTY and left != right:
        return fail(self, EXPECTED_NUMBER if left == TYPE_NUMBER else (
            EXPECTED_STRING if left == TYPE_STRING else EXPECTED_BOOLEAN), at)
    emit(self, SELECTOR_EQUAL + (token - TOKEN_EQUAL), 0, -1)
    return TYPE_CONDITION


cdef int parse_between(Compiler* self, int left, uint32_t left_at) noexcept nogil:
    cdef uint32_t at
    if not need(self, left, TYPE_NUMBER | TYPE_PROPERTY, EXPECTED_NUMBER, left_at) or (
            not next_token(self)):
        return TYPE_FAILED
    at = self.token_at
    if not need(self, parse_sum(self), TYPE_NUMBER | TYPE_PROPERTY, EXPECTED_NUMBER, at) or (
            not take_token(self, TOKEN_AND, EXPECTED_AND)):
        return TYPE_FAILED
    at = self.token_at
    if not need(self, parse_sum(self), TYPE_NUMBER | TYPE_PROPERTY, EXPECTED_NUMBER, at):
        return TYPE_FAILED
    emit(self, SELECTOR_BETWEEN, 0, -2)
    return TYPE_CONDITION


cdef int parse_in(Compiler* self, int left, uint32_t left_at) noexcept nogil:
    cdef uint32_t op
    cdef uint32_t first = self.program.literal_count
    if not need(self, left, TYPE_STRING | TYPE_PROPERTY, EXPECTED_NAME, left_at) or (
            not next_token(self)) or not take_token(self, TOKEN_OPEN, EXPECTED_OPEN):
        return TYPE_FAILED
    while True:
        if self.token != TOKEN_STRING:
            return fail(self, EXPECTED_STRING, self.token_at)
        keep_string(self)
        if not next_token(self):
            return TYPE_FAILED
        if self.token != TOKEN_COMMA:
            break
        if not next_token(self):
            return TYPE_FAILED
    if not take_token(self, TOKEN_CLOSE, EXPECTED_NEXT):
        return TYPE_FAILED
    op = emit(self, SELECTOR_IN, first, 0)
    self.program.ops[op].count = self.program.literal_count - first
    return TYPE_CONDITION


cdef inline uint32_t character_size(const uint8_t* text, uint32_t size) noexcept nogil:
    """Bytes of the character that the text begins with."""
    cdef uint32_t found = 1
    while found < size and (text[found] & 0xC0) == 0x80:
        found += 1
    return found


cdef bint compile_pattern(SelectorValue* pattern, const uint8_t* escape,
                          uint32_t escape_size) noexcept nogil:
    """Put the bytes of SelectorPattern in the place of % and _ that are not escaped. False: the
    escape character stands in front of another one."""
    cdef uint8_t* text = <uint8_t*>pattern.text
    cdef uint32_t at = 0
    cdef uint32_t to = 0
    cdef uint8_t byte
    while at < pattern.size:
        byte = text[at]
        if escape_size and pattern.size - at >= escape_size and (
                memcmp(text + at, escape, escape_size) == 0):
            at += escape_size
            if at == pattern.size:
                return False
            if pattern.size - at >= escape_size and memcmp(text + at, escape, escape_size) == 0:
                memcpy(text + to, escape, escape_size)
                at += escape_size
                to += escape_size
                continue
            if text[at] != c'%' and text[at] != c'_':
                return False
            byte = text[at]
        elif byte == c'%':
            byte = PATTERN_ANY
        elif byte == c'_':
            byte = PATTERN_ONE
        at += 1
        if byte == PATTERN_ANY and to and text[to - 1] == PATTERN_ANY:
            continue
        text[to] = byte
        to += 1
    pattern.size = to
    return True


cdef int parse_like(Compiler* self, int left, uint32_t left_at) noexcept nogil:
    cdef uint32_t literal
    cdef uint32_t pattern_at
    cdef const uint8_t* escape = NULL
    cdef uint32_t escape_size = 0
    if not need(self, left, TYPE_STRING | TYPE_PROPERTY, EXPECTED_NAME, left_at) or (
            not next_token(self)):
        return TYPE_FAILED
    if self.token != TOKEN_STRING:
        return fail(self, EXPECTED_STRING, self.token_at)
    pattern_at = self.token_at
    literal = keep_string(self)
    if not next_token(self):
        return TYPE_FAILED
    if self.token == TOKEN_ESCAPE:
        if not next_token(self):
            return TYPE_FAILED
        if self.token != TOKEN_STRING or self.content_size == 0 or (
                character_size(self.content, self.content_size) != self.content_size):
            return fail(self, EXPECTED_ESCAPE, self.token_at)
        escape = self.content
        escape_size = self.content_size
        if not next_token(self):
            return TYPE_FAILED
    if not compile_pattern(&self.program.literals[literal], escape, escape_size):
        return fail(self, EXPECTED_ESCAPED, pattern_at)
    emit(self, SELECTOR_LIKE, literal, 0)
    return TYPE_CONDITION


cdef int parse_predicate(Compiler* self) noexcept nogil:
    cdef uint32_t at = self.token_at
    cdef int type = parse_sum(self)
    cdef bint negated = False
    if type == TYPE_FAILED:
        return TYPE_FAILED
    if TOKEN_EQUAL <= self.token <= TOKEN_GREATER_EQUAL:
        return parse_comparison(self, type)
    if self.token == TOKEN_IS:
        if not next_token(self):
            return TYPE_FAILED
        if self.token == TOKEN_NOT:
            negated = True
            if not next_token(self):
                return TYPE_FAILED
        if not take_token(self, TOKEN_NULL, EXPECTED_NULL):
            return TYPE_FAILED
        emit(self, SELECTOR_IS_NULL, 0, 0)
        if negated:
            emit(self, SELECTOR_NOT, 0, 0)
        return TYPE_CONDITION
    if self.token == TOKEN_NOT:
        negated = True
        if not next_token(self):
            return TYPE_FAILED
    if self.token == TOKEN_BETWEEN:
        type = parse_between(self, type, at)
    elif self.token == TOKEN_IN:
        type = parse_in(self, type, at)
    elif self.token == TOKEN_LIKE:
        type = parse_like(self, type, at)
    elif negated:
        return fail(self, EXPECTED_TEST, self.token_at)
    if negated and type != TYPE_FAILED:
        emit(self, SELECTOR_NOT, 0, 0)
    return type


cdef int parse_not(Compiler* self) noexcept nogil:
    cdef uint32_t at
    cdef int type
    if self.token != TOKEN_NOT:
        return parse_predicate(self)
    if not enter(self):
        return TYPE_FAILED
    at = self.token_at
    type = parse_not(self)
    self.depth -= 1
    if not need_condition(self, type, at):
        return TYPE_FAILED
    emit(self, SELECTOR_NOT, 0, 0)
    return TYPE_CONDITION


cdef int parse_and(Compiler* self) noexcept nogil:
    cdef uint32_t at = self.token_at
    cdef int type = parse_not(self)
    cdef uint32_t jump
    while type and self.token == TOKEN_AND:
        if not need_condition(self, type, at):
            return TYPE_FAILED
        jump = emit(self, SELECTOR_GO_FALSE, 0, 0)
        if not next_token(self):
            return TYPE_FAILED
        at = self.token_at
        type = parse_not(self)
        if not need_condition(self, type, at):
            return TYPE_FAILED
        emit(self, SELECTOR_AND, 0, -1)
        self.program.ops[jump].at = self.program.op_count
        type = TYPE_CONDITION
    return type


cdef int parse_or(Compiler* self) noexcept nogil:
    cdef uint32_t at = self.token_at
    cdef int type = parse_and(self)
    cdef uint32_t jump
    while type and self.token == TOKEN_OR:
        if not need_condition(self, type, at):
            return TYPE_FAILED
        jump = emit(self, SELECTOR_GO_TRUE, 0, 0)
        if not next_token(self):
            return TYPE_FAILED
        at = self.token_at
        type = parse_and(self)
        if not need_condition(self, type, at):
            return TYPE_FAILED
        emit(self, SELECTOR_OR, 0, -1)
        self.program.ops[jump].at = self.program.op_count
        type = TYPE_CONDITION
    return type


cdef bint parse(Compiler* self) noexcept nogil:
    cdef uint32_t at
    if not next_token(self):
        return False
    at = self.token_at
    if not need_condition(self, parse_or(self), at):
        return False
    if self.token != TOKEN_END:
        fail(self, EXPECTED_OPERATOR, self.token_at)
    return self.error.expected == EXPECTED_NOTHING


cdef int selector_compile(const uint8_t* text, uint32_t size, SelectorProgram* program,
                          SelectorError* error) noexcept nogil:
    cdef Compiler compiler
    cdef uint32_t at
    cdef void* cut
    error.expected = EXPECTED_NOTHING
    error.at = 0
    if size > SELECTOR_SIZE_MAX:
        error.expected = EXPECTED_SHORTER
        error.at = SELECTOR_SIZE_MAX
        return STATUS_CORRUPT
    for at in range(size):
        if text[at] >= 0xF8:
            error.expected = EXPECTED_TEXT
            error.at = at
            return STATUS_CORRUPT
    memset(&compiler, 0, sizeof(compiler))
    memset(program, 0, sizeof(program[0]))
    compiler.program = program
    compiler.size = size
    program.text = <uint8_t*>malloc(size + 1)
    program.ops = <SelectorOp*>malloc((2 * size + 4) * sizeof(SelectorOp))
    program.literals = <SelectorValue*>malloc((size + 1) * sizeof(SelectorValue))
    if program.text == NULL or program.ops == NULL or program.literals == NULL:
        selector_free(program)
        return STATUS_NO_MEMORY
    memcpy(program.text, text, size)
    if not parse(&compiler):
        error[0] = compiler.error
        selector_free(program)
        return STATUS_CORRUPT
    cut = realloc(program.ops, program.op_count * sizeof(SelectorOp))
    if cut != NULL:
        program.ops = <SelectorOp*>cut
    cut = realloc(program.literals, (program.literal_count + 1) * sizeof(SelectorValue))
    if cut != NULL:
        program.literals = <SelectorValue*>cut
    return STATUS_OK


cdef void selector_free(SelectorProgram* program) noexcept nogil:
    free(program.text)
    free(program.ops)
    free(program.literals)
    memset(program, 0, sizeof(program[0]))
