"""Body of selector.pxd: a parser by recursive descent, bounded in depth, that writes ops."""

from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset, strlen

from pulsarx._core.invariant cimport invariant
from pulsarx._core.selector_text cimport *
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_NO_MEMORY, STATUS_OK

cdef enum Type:
    TYPE_FAILED = 0
    TYPE_CONDITION = 1
    TYPE_NUMBER = 2
    TYPE_STRING = 4
    TYPE_PROPERTY = 8

cdef struct Compiler:
    SelectorProgram* program
    SelectorText text
    uint32_t depth
    uint32_t stack


cdef int fail(Compiler* self, int expected, uint32_t at) noexcept nogil:
    """TYPE_FAILED."""
    selector_text_fail(&self.text, expected, at)
    return TYPE_FAILED


cdef inline bint next_token(Compiler* self) noexcept nogil:
    return selector_text_next(&self.text)


cdef bint take_token(Compiler* self, int token, int expected) noexcept nogil:
    """Go past this token; False: it is another one."""
    if self.text.token != token:
        fail(self, expected, self.text.token_at)
        return False
    return next_token(self)


# Ops ----------------------------------------------------------------------------------------------

cdef uint32_t emit(Compiler* self, uint32_t code, uint32_t at, int grows) noexcept nogil:
    """Write an op; grows: how many values more there are behind it. Its number."""
    cdef SelectorProgram* program = self.program
    invariant(program.op_count < 2 * self.text.size + 4)
    program.ops[program.op_count].code = code
    program.ops[program.op_count].at = at
    program.ops[program.op_count].count = 0
    program.op_count += 1
    self.stack = <uint32_t>(<int>self.stack + grows)
    if self.stack > SELECTOR_STACK_MAX:
        fail(self, EXPECTED_FLATTER, self.text.token_at)
    return program.op_count - 1


cdef uint32_t keep_literal(Compiler* self, const SelectorValue* value) noexcept nogil:
    cdef SelectorProgram* program = self.program
    invariant(program.literal_count <= self.text.size)
    program.literals[program.literal_count] = value[0]
    program.literal_count += 1
    return program.literal_count - 1


cdef uint32_t keep_string(Compiler* self) noexcept nogil:
    cdef SelectorValue value
    memset(&value, 0, sizeof(value))
    value.kind = SELECTOR_STRING
    value.text = self.text.content
    value.size = self.text.content_size
    return keep_literal(self, &value)


cdef bint is_called(const Compiler* self, const char* name) noexcept nogil:
    return self.text.content_size == strlen(name) and (
        memcmp(self.text.content, name, self.text.content_size) == 0)


cdef int push_name(Compiler* self) noexcept nogil:
    cdef SelectorProgram* program = self.program
    cdef SelectorName* name
    cdef uint32_t at
    if self.text.token == TOKEN_NAME:
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
        if name.size == self.text.content_size and (
                memcmp(name.text, self.text.content, name.size) == 0):
            emit(self, SELECTOR_PUSH_PROPERTY, at, 1)
            return TYPE_PROPERTY
    if program.name_count == SELECTOR_NAMES_MAX:
        return fail(self, EXPECTED_FEWER_NAMES, self.text.token_at)
    name = &program.names[program.name_count]
    name.text = self.text.content
    name.size = self.text.content_size
    emit(self, SELECTOR_PUSH_PROPERTY, program.name_count, 1)
    program.name_count += 1
    return TYPE_PROPERTY


# Grammar ------------------------------------------------------------------------------------------

cdef bint enter(Compiler* self) noexcept nogil:
    self.depth += 1
    if self.depth > SELECTOR_DEPTH_MAX:
        fail(self, EXPECTED_FLATTER, self.text.token_at)
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
    if self.text.token == TOKEN_OPEN:
        if not enter(self):
            return TYPE_FAILED
        type = parse_or(self)
        self.depth -= 1
        if type == TYPE_FAILED or not take_token(self, TOKEN_CLOSE, EXPECTED_CLOSE):
            return TYPE_FAILED
        return type
    if self.text.token == TOKEN_NAME or self.text.token == TOKEN_QUOTED_NAME:
        type = push_name(self)
    elif self.text.token == TOKEN_STRING:
        emit(self, SELECTOR_PUSH_LITERAL, keep_string(self), 1)
        type = TYPE_STRING
    elif self.text.token == TOKEN_NUMBER:
        emit(self, SELECTOR_PUSH_LITERAL, keep_literal(self, &self.text.number), 1)
        type = TYPE_NUMBER
    elif self.text.token == TOKEN_TRUE or self.text.token == TOKEN_FALSE:
        memset(&value, 0, sizeof(value))
        value.kind = SELECTOR_CONDITION
        value.whole = self.text.token == TOKEN_TRUE
        emit(self, SELECTOR_PUSH_LITERAL, keep_literal(self, &value), 1)
        type = TYPE_CONDITION
    else:
        return fail(self, EXPECTED_OPERAND, self.text.token_at)
    if type == TYPE_FAILED or not next_token(self):
        return TYPE_FAILED
    return type


cdef int parse_unary(Compiler* self) noexcept nogil:
    cdef int token = self.text.token
    cdef uint32_t at
    cdef int type
    if token != TOKEN_PLUS and token != TOKEN_MINUS:
        return parse_primary(self)
    if not enter(self):
        return TYPE_FAILED
    at = self.text.token_at
    type = parse_unary(self)
    self.depth -= 1
    if not need(self, type, TYPE_NUMBER | TYPE_PROPERTY, EXPECTED_NUMBER, at):
        return TYPE_FAILED
    emit(self, SELECTOR_NEGATE, 0, 0)
    if token == TOKEN_PLUS:
        emit(self, SELECTOR_NEGATE, 0, 0)    # a property becomes a number by it, too
    return TYPE_NUMBER


cdef int parse_product(Compiler* self) noexcept nogil:
    cdef uint32_t at = self.text.token_at
    cdef int type = parse_unary(self)
    cdef int token
    while type and (self.text.token == TOKEN_STAR or self.text.token == TOKEN_SLASH):
        token = self.text.token
        if not need(self, type, TYPE_NUMBER | TYPE_PROPERTY, EXPECTED_NUMBER, at) or (
                not next_token(self)):
            return TYPE_FAILED
        at = self.text.token_at
        type = parse_unary(self)
        if not need(self, type, TYPE_NUMBER | TYPE_PROPERTY, EXPECTED_NUMBER, at):
            return TYPE_FAILED
        emit(self, SELECTOR_MULTIPLY if token == TOKEN_STAR else SELECTOR_DIVIDE, 0, -1)
        type = TYPE_NUMBER
    return type


cdef int parse_sum(Compiler* self) noexcept nogil:
    cdef uint32_t at = self.text.token_at
    cdef int type = parse_product(self)
    cdef int token
    while type and (self.text.token == TOKEN_PLUS or self.text.token == TOKEN_MINUS):
        token = self.text.token
        if not need(self, type, TYPE_NUMBER | TYPE_PROPERTY, EXPECTED_NUMBER, at) or (
                not next_token(self)):
            return TYPE_FAILED
        at = self.text.token_at
        type = parse_product(self)
        if not need(self, type, TYPE_NUMBER | TYPE_PROPERTY, EXPECTED_NUMBER, at):
            return TYPE_FAILED
        emit(self, SELECTOR_ADD if token == TOKEN_PLUS else SELECTOR_SUBTRACT, 0, -1)
        type = TYPE_NUMBER
    return type


cdef int parse_comparison(Compiler* self, int left) noexcept nogil:
    cdef int token = self.text.token
    cdef uint32_t operator_at = self.text.token_at
    cdef bint orders = token != TOKEN_EQUAL and token != TOKEN_UNEQUAL
    cdef uint32_t at
    cdef int right
    if not next_token(self):
        return TYPE_FAILED
    at = self.text.token_at
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
    at = self.text.token_at
    if not need(self, parse_sum(self), TYPE_NUMBER | TYPE_PROPERTY, EXPECTED_NUMBER, at) or (
            not take_token(self, TOKEN_AND, EXPECTED_AND)):
        return TYPE_FAILED
    at = self.text.token_at
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
        if self.text.token != TOKEN_STRING:
            return fail(self, EXPECTED_STRING, self.text.token_at)
        keep_string(self)
        if not next_token(self):
            return TYPE_FAILED
        if self.text.token != TOKEN_COMMA:
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
    if self.text.token != TOKEN_STRING:
        return fail(self, EXPECTED_STRING, self.text.token_at)
    pattern_at = self.text.token_at
    literal = keep_string(self)
    if not next_token(self):
        return TYPE_FAILED
    if self.text.token == TOKEN_ESCAPE:
        if not next_token(self):
            return TYPE_FAILED
        escape = self.text.content
        escape_size = self.text.content_size
        if self.text.token != TOKEN_STRING or escape_size == 0 or (
                character_size(escape, escape_size) != escape_size):
            return fail(self, EXPECTED_ESCAPE, self.text.token_at)
        if not next_token(self):
            return TYPE_FAILED
    if not compile_pattern(&self.program.literals[literal], escape, escape_size):
        return fail(self, EXPECTED_ESCAPED, pattern_at)
    emit(self, SELECTOR_LIKE, literal, 0)
    return TYPE_CONDITION


cdef int parse_predicate(Compiler* self) noexcept nogil:
    cdef uint32_t at = self.text.token_at
    cdef int type = parse_sum(self)
    cdef bint negated = False
    if type == TYPE_FAILED:
        return TYPE_FAILED
    if TOKEN_EQUAL <= self.text.token <= TOKEN_GREATER_EQUAL:
        return parse_comparison(self, type)
    if self.text.token == TOKEN_IS:
        if not next_token(self):
            return TYPE_FAILED
        if self.text.token == TOKEN_NOT:
            negated = True
            if not next_token(self):
                return TYPE_FAILED
        if not take_token(self, TOKEN_NULL, EXPECTED_NULL):
            return TYPE_FAILED
        emit(self, SELECTOR_IS_NULL, 0, 0)
        if negated:
            emit(self, SELECTOR_NOT, 0, 0)
        return TYPE_CONDITION
    if self.text.token == TOKEN_NOT:
        negated = True
        if not next_token(self):
            return TYPE_FAILED
    if self.text.token == TOKEN_BETWEEN:
        type = parse_between(self, type, at)
    elif self.text.token == TOKEN_IN:
        type = parse_in(self, type, at)
    elif self.text.token == TOKEN_LIKE:
        type = parse_like(self, type, at)
    elif negated:
        return fail(self, EXPECTED_TEST, self.text.token_at)
    if negated and type != TYPE_FAILED:
        emit(self, SELECTOR_NOT, 0, 0)
    return type


cdef int parse_not(Compiler* self) noexcept nogil:
    cdef uint32_t at
    cdef int type
    if self.text.token != TOKEN_NOT:
        return parse_predicate(self)
    if not enter(self):
        return TYPE_FAILED
    at = self.text.token_at
    type = parse_not(self)
    self.depth -= 1
    if not need_condition(self, type, at):
        return TYPE_FAILED
    emit(self, SELECTOR_NOT, 0, 0)
    return TYPE_CONDITION


cdef int parse_and(Compiler* self) noexcept nogil:
    cdef uint32_t at = self.text.token_at
    cdef int type = parse_not(self)
    cdef uint32_t jump
    while type and self.text.token == TOKEN_AND:
        if not need_condition(self, type, at):
            return TYPE_FAILED
        jump = emit(self, SELECTOR_GO_FALSE, 0, 0)
        if not next_token(self):
            return TYPE_FAILED
        at = self.text.token_at
        type = parse_not(self)
        if not need_condition(self, type, at):
            return TYPE_FAILED
        emit(self, SELECTOR_AND, 0, -1)
        self.program.ops[jump].at = self.program.op_count
        type = TYPE_CONDITION
    return type


cdef int parse_or(Compiler* self) noexcept nogil:
    cdef uint32_t at = self.text.token_at
    cdef int type = parse_and(self)
    cdef uint32_t jump
    while type and self.text.token == TOKEN_OR:
        if not need_condition(self, type, at):
            return TYPE_FAILED
        jump = emit(self, SELECTOR_GO_TRUE, 0, 0)
        if not next_token(self):
            return TYPE_FAILED
        at = self.text.token_at
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
    at = self.text.token_at
    if not need_condition(self, parse_or(self), at):
        return False
    if self.text.token != TOKEN_END:
        fail(self, EXPECTED_OPERATOR, self.text.token_at)
    return self.text.error.expected == EXPECTED_NOTHING


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
    compiler.text.size = size
    program.text = <uint8_t*>malloc(size + 1)
    program.ops = <SelectorOp*>malloc((2 * size + 4) * sizeof(SelectorOp))
    program.literals = <SelectorValue*>malloc((size + 1) * sizeof(SelectorValue))
    if program.text == NULL or program.ops == NULL or program.literals == NULL:
        selector_free(program)
        return STATUS_NO_MEMORY
    memcpy(program.text, text, size)
    compiler.text.text = program.text
    if not parse(&compiler):
        error[0] = compiler.text.error
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
