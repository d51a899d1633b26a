"""Cuts the text of a selector into tokens. For selector.

A token is looked at once: strings and quoted names lose their quotes in place, in front of which
everything was read by then.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t

cdef enum SelectorKind:          # of a value
    SELECTOR_UNKNOWN             # NULL; as a condition, neither true nor false
    SELECTOR_CONDITION           # whole: 1 or 0
    SELECTOR_WHOLE
    SELECTOR_REAL
    SELECTOR_STRING
    SELECTOR_PROPERTY            # text that is read as what it is compared with

cdef struct SelectorValue:
    int kind                     # SelectorKind
    uint32_t size                # of the text
    const uint8_t* text
    int64_t whole
    double real

cdef enum SelectorExpected:      # what stands where something else was found
    EXPECTED_NOTHING
    EXPECTED_OPERAND
    EXPECTED_CONDITION
    EXPECTED_NUMBER
    EXPECTED_STRING
    EXPECTED_BOOLEAN
    EXPECTED_NAME
    EXPECTED_OPEN
    EXPECTED_CLOSE
    EXPECTED_NEXT
    EXPECTED_AND
    EXPECTED_NULL
    EXPECTED_TEST
    EXPECTED_QUOTE
    EXPECTED_ESCAPE
    EXPECTED_ESCAPED
    EXPECTED_EQUALITY
    EXPECTED_OPERATOR
    EXPECTED_SMALLER
    EXPECTED_SHORTER
    EXPECTED_FLATTER
    EXPECTED_FEWER_NAMES
    EXPECTED_TEXT
    EXPECTED_COUNT

cdef struct SelectorError:
    int expected                 # SelectorExpected
    uint32_t at                  # offset in the text

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

cdef struct SelectorText:
    uint8_t* text
    uint32_t size
    uint32_t at                  # behind the token
    int token                    # Token
    uint32_t token_at
    uint8_t* content             # of a name or a string, without quotes
    uint32_t content_size
    SelectorValue number         # of TOKEN_NUMBER
    SelectorError error          # the first thing that is wrong

cdef void selector_text_fail(SelectorText* self, int expected, uint32_t at) noexcept nogil
"""Note that something else was expected, unless something was noted before."""

cdef bint selector_text_next(SelectorText* self) noexcept nogil
"""Take the next token; False: there is none, which is noted."""

cdef bint selector_number(const uint8_t* text, uint32_t size, SelectorValue* value) noexcept nogil
"""Read digits with sign, point and exponent as a number: a whole one that 64 bits hold, else a real
one. False: it is none, and value is unchanged."""
