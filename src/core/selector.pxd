"""Compiles a selector in the syntax of JMS, a condition on the properties, key and times of a
message, to a program. selector_match runs it.

  condition  = condition OR condition | condition AND condition | NOT condition | predicate
  predicate  = sum (= | <> | < | <= | > | >=) sum | sum [NOT] BETWEEN sum AND sum
             | name [NOT] IN (string, ...) | name [NOT] LIKE string [ESCAPE string]
             | sum IS [NOT] NULL | name | TRUE | FALSE | ( condition )
  sum        = numbers, names and strings, joined by + - * /, with signs and parentheses
  name       = letters, digits, _ $ and . with no digit first, or any text in double quotes

Text is untrusted: its size and depth are bounded, and what is wrong with it is told with its place.
Source: JMS 2.0, 3.8.1 Message selectors.
"""

from libc.stdint cimport uint8_t, uint32_t

from pulsarx._core.selector_text cimport SelectorError, SelectorValue

cdef enum SelectorLimits:
    SELECTOR_SIZE_MAX = 16384    # bytes of text
    SELECTOR_DEPTH_MAX = 64      # parentheses, signs and NOT within each other: the parser recurses
    SELECTOR_NAMES_MAX = 64      # different properties
    SELECTOR_STACK_MAX = 64      # values that a program has at hand at a time

cdef enum SelectorCode:
    # Push one value.
    SELECTOR_PUSH_LITERAL        # at: which
    SELECTOR_PUSH_PROPERTY       # at: which name
    SELECTOR_PUSH_KEY
    SELECTOR_PUSH_EVENT_TIME
    SELECTOR_PUSH_PUBLISH_TIME
    SELECTOR_PUSH_TIMESTAMP      # the event time, where there is one, else the publish time
    # Put a result in the place of one value.
    SELECTOR_NEGATE
    SELECTOR_NOT
    SELECTOR_AS_CONDITION        # of a property
    SELECTOR_IS_NULL
    SELECTOR_IN                  # at, count: literals
    SELECTOR_LIKE                # at: a literal, compiled
    # Of two.
    SELECTOR_ADD
    SELECTOR_SUBTRACT
    SELECTOR_MULTIPLY
    SELECTOR_DIVIDE
    SELECTOR_EQUAL
    SELECTOR_UNEQUAL
    SELECTOR_LESS
    SELECTOR_LESS_EQUAL
    SELECTOR_GREATER
    SELECTOR_GREATER_EQUAL
    SELECTOR_AND
    SELECTOR_OR
    # Of three.
    SELECTOR_BETWEEN
    # Leave the value and go to op `at` when that decides what comes.
    SELECTOR_GO_FALSE
    SELECTOR_GO_TRUE

cdef enum SelectorPattern:       # bytes of a compiled pattern that no UTF-8 has
    PATTERN_ONE = 0xFE           # any character
    PATTERN_ANY = 0xFF           # any number of them

cdef struct SelectorOp:
    uint32_t code                # SelectorCode
    uint32_t at
    uint32_t count

cdef struct SelectorName:
    const uint8_t* text
    uint32_t size

cdef struct SelectorProgram:
    uint8_t* text                # owned: the selector, its strings without quotes
    SelectorOp* ops              # owned
    SelectorValue* literals      # owned
    SelectorName names[SELECTOR_NAMES_MAX]
    uint32_t op_count
    uint32_t literal_count
    uint32_t name_count

cdef int selector_compile(const uint8_t* text, uint32_t size, SelectorProgram* program,
                          SelectorError* error) noexcept nogil
"""Compile a text; the program is to be freed with selector_free.

STATUS_CORRUPT: it is no selector; error says why. STATUS_NO_MEMORY. There is nothing to free then.
"""

cdef void selector_free(SelectorProgram* program) noexcept nogil
