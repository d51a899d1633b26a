"""Body of selector_text.pxd."""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport strlen

cdef enum:
    POWER_EXACT_MAX = 22         # a double holds 10 ** 22, and no larger power of 10
    EXPONENT_MAX = 400           # beyond, a double is 0 or infinite, whatever its digits are
    DIGITS_MAX = 19              # that 64 bits hold in any case

cdef uint64_t MANTISSA_EXACT_END = <uint64_t>1 << 53
cdef uint64_t WHOLE_END = <uint64_t>1 << 63


cdef void selector_text_fail(SelectorText* self, int expected, uint32_t at) noexcept nogil:
    if self.error.expected == EXPECTED_NOTHING:
        self.error.expected = expected
        self.error.at = at


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


cdef bint take_quoted(SelectorText* self, uint8_t quote) noexcept nogil:
    """Take what is between quotes, of which a doubled one is one of the text."""
    cdef uint8_t* text = self.text
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
    selector_text_fail(self, EXPECTED_QUOTE, self.size)
    return False


cdef bint take_hexadecimal(SelectorText* self) noexcept nogil:
    cdef const uint8_t* text = self.text
    cdef uint32_t at = self.at + 2
    cdef uint64_t value = 0
    cdef uint8_t byte
    while at < self.size:
        byte = text[at] | 0x20
        if not is_digit(text[at]) and not 97 <= byte <= 102:
            break
        if value >> 59:
            selector_text_fail(self, EXPECTED_SMALLER, self.at)
            return False
        value = 16 * value + (text[at] - 48 if is_digit(text[at]) else byte - 87)
        at += 1
    if at == self.at + 2:
        selector_text_fail(self, EXPECTED_NUMBER, self.at)
        return False
    self.number.kind = SELECTOR_WHOLE
    self.number.whole = <int64_t>value
    self.at = at
    return True


cdef bint take_number(SelectorText* self) noexcept nogil:
    cdef const uint8_t* text = self.text
    cdef uint32_t at = self.at
    cdef bint is_whole = True
    if text[at] == c'0' and at + 1 < self.size and (text[at + 1] | 0x20) == c'x':
        if not take_hexadecimal(self):
            return False
    else:
        # Java has octal numbers, for which nobody takes 010.
        if text[at] == c'0' and at + 1 < self.size and is_digit(text[at + 1]):
            selector_text_fail(self, EXPECTED_NUMBER, at)
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
            selector_text_fail(self, EXPECTED_NUMBER, self.at)
            return False
        if is_whole and self.number.kind != SELECTOR_WHOLE:
            selector_text_fail(self, EXPECTED_SMALLER, self.at)
            return False
        self.at = at
    if is_whole and self.at < self.size and (text[self.at] | 0x20) == c'l':
        self.at += 1                 # as of a long of Java
    if self.at < self.size and is_in_name(text[self.at]):
        selector_text_fail(self, EXPECTED_OPERATOR, self.at)
        return False
    return True


cdef bint selector_text_next(SelectorText* self) noexcept nogil:
    cdef const uint8_t* text = self.text
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
        self.content = self.text + self.at
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
        selector_text_fail(self, EXPECTED_NAME, self.token_at)
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
        selector_text_fail(self, EXPECTED_OPERAND if self.token_at == 0 else EXPECTED_OPERATOR,
                           self.token_at)
        return False
    return True
