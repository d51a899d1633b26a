"""Reads a text of JSON token by token, as the reader behind Spark's from_json does: what it allows,
and where it goes on after a mistake, which decides what is left of the fields of a malformed
object.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.tables.json_rules import JsonRules

OBJECT, OBJECT_END, ARRAY, ARRAY_END, NAME = "{", "}", "[", "]", "a name"
TEXT, INTEGER, NUMBER, TRUE, FALSE, NULL = "text", "integer", "number", "true", "false", "null"
_ENDS = {OBJECT: OBJECT_END, ARRAY: ARRAY_END}

DEPTH_MAX = 1000
DIGITS_MAX = 1000  # characters of a number
NAME_MAX = 50_000
_TOKEN_SHOWN_MAX = 256
_SPACE = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_PLAIN_SINGLE = re.compile(r"[^'\\\x00-\x1f]*")
_DIGITS = re.compile(r"[0-9]*")
_WORD = re.compile(r"[\w$]*")
_BARE_NAME = re.compile(r"[\w$#@*+-]+")
_HEX = re.compile(r"[0-9A-Fa-f]{4}")
_ESCAPES = {
    "b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "/": "/", "\\": "\\",
}  # fmt: skip
_ODD_NUMBERS = {"NaN": "NaN", "Infinity": "Infinity", "-INF": "-Infinity", "-Infinity": "-Infinity",
                "+INF": "Infinity", "+Infinity": "Infinity"}  # fmt: skip


class JsonSyntaxError(ValueError):
    """The text is no JSON."""


class _Level:
    """Is an object, an array, or what is outside of all of them."""

    __slots__ = ("count", "kind", "name")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.count = -1
        self.name: str | None = None


class JsonTokens:
    """Gives the tokens of a text, one after the other. `value` is that of TEXT, INTEGER (its
    digits) and NUMBER (its text)."""

    def __init__(self, text: str, rules: JsonRules) -> None:
        self._text = text
        self._rules = rules
        self._at = 0
        self._levels = [_Level("")]
        self._after_name: str | None = None
        self._is_open = False  # a text whose inside was not read yet
        self.token: str | None = None
        self._value = ""

    @property
    def name(self) -> str | None:
        """The name of the field whose value this is."""
        is_begin = self.token in _ENDS and len(self._levels) > 1
        return self._levels[-2 if is_begin else -1].name

    @property
    def value(self) -> str:
        """JsonSyntaxError: it is no text of JSON."""
        if self._is_open:
            self._is_open = False
            self._value = self._rest_of_text('"', _PLAIN)
        return self._value

    def next(self) -> str | None:
        """The next token, None at the end. JsonSyntaxError: there is none; what follows may be."""
        if self.token is NAME:
            self.token, self._after_name = self._after_name, None
            self._begin(self.token)
            return self.token
        if self._is_open:
            self._is_open = False
            self._rest_of_text('"', _PLAIN)
        first = self._skip_space()
        if first == "":
            if len(self._levels) > 1:
                raise self._wrong("it ends in an object or array")
            self.token = None
            return None
        if first in "}]":
            self._end(first)
            return self.token
        level = self._levels[-1]
        level.count += 1
        if level.kind and level.count > 0:
            if first != ",":
                raise self._unexpected(first, "a comma")
            first = self._skip_space()
            if first == "":
                raise self._wrong("it ends behind a comma")
        if level.kind == OBJECT:
            level.name = self._take_name(first)
            self.token = NAME
            if self._skip_space() != ":":
                raise self._unexpected(self._text[self._at - 1 : self._at], "a colon")
            first = self._skip_space()
            if first == "":
                raise self._wrong("it ends behind a name")
            self._after_name = self._take_value(first)
            return NAME
        token = self._take_value(first)
        self.token = token
        self._begin(token)
        return token

    def skip_children(self) -> None:
        """Pass over the rest of an object or array, where this is its beginning."""
        if self.token not in _ENDS:
            return
        depth = 1
        while depth:
            token = self.next()
            if token is None:
                raise self._wrong("it ends in an object or array")
            if token in _ENDS:
                depth += 1
            elif token in (OBJECT_END, ARRAY_END):
                depth -= 1

    # Objects and arrays --------------------------------------------------------------------------

    def _begin(self, token: str | None) -> None:
        if token in _ENDS:
            if len(self._levels) > DEPTH_MAX:
                raise self._wrong(f"it is nested more than {DEPTH_MAX} deep")
            self._levels.append(_Level(token))

    def _end(self, found: str) -> None:
        kind = self._levels[-1].kind
        if _ENDS.get(kind) != found:
            raise self._wrong(f"{found} ends nothing")
        self._levels.pop()
        self.token = found

    # Characters ----------------------------------------------------------------------------------

    def _wrong(self, what: str) -> JsonSyntaxError:
        return JsonSyntaxError(f"{what}, at character {self._at}")

    def _unexpected(self, found: str, wanted: str) -> JsonSyntaxError:
        if found == "":
            return self._wrong(f"it ends where {wanted} is expected")
        return self._wrong(f"{found!r} where {wanted} is expected")

    def _take(self) -> str:
        """The next character; empty at the end."""
        found = self._text[self._at : self._at + 1]
        self._at += len(found)
        return found

    def _skip_space(self) -> str:
        """The next character but spaces and comments; empty at the end."""
        while True:
            found = _SPACE.match(self._text, self._at)
            assert found is not None
            self._at = found.end()
            first = self._take()
            if first == "/":
                self._skip_comment()
            elif first and first < " ":
                raise self._wrong(f"{first!r} where none may be")
            else:
                return first

    def _skip_comment(self) -> None:
        if not self._rules.allow_comments:
            raise self._unexpected("/", "no comment")
        kind = self._take()
        end = {"/": "\n", "*": "*/"}.get(kind)
        if end is None:
            raise self._unexpected(kind, "a comment")
        at = self._text.find(end, self._at)
        if at < 0 and kind == "*":
            self._at = len(self._text)
            raise self._wrong("a comment has no end")
        self._at = len(self._text) if at < 0 else at + len(end)

    def _rest_of_text(self, quote: str, plain: re.Pattern[str]) -> str:
        """The text up to its quote; at is behind the first one."""
        parts: list[str] = []
        has_halves = False
        while True:
            found = plain.match(self._text, self._at)
            assert found is not None
            parts.append(found[0])
            self._at = found.end()
            first = self._take()
            if first == quote:
                break
            if first == "":
                raise self._wrong("a text has no end")
            if first == "\\":
                character = self._escaped()
                has_halves = has_halves or "\ud800" <= character <= "\udfff"
                parts.append(character)
            elif self._rules.allow_unquoted_control_chars:
                parts.append(first)
            else:
                raise self._wrong(f"the character {first!r} in a text")
        text = "".join(parts)
        if has_halves:  # two of them are one character
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return text

    def _escaped(self) -> str:
        kind = self._take()
        if kind in _ESCAPES:
            return _ESCAPES[kind]
        if kind == "u":
            found = _HEX.match(self._text, self._at)
            if found is None:
                for _ in range(4):
                    if self._take() not in set("0123456789abcdefABCDEF"):
                        break
                raise self._wrong("an escape without four digits")
            self._at += 4
            return chr(int(found[0], 16))
        if kind and self._rules.allow_backslash_escaping_any_character:
            return kind
        if kind == "'" and self._rules.allow_single_quotes:
            return kind
        raise self._wrong(f"the escape \\{kind}")

    def _take_name(self, first: str) -> str:
        if first == '"':
            name = self._rest_of_text('"', _PLAIN)
        elif first == "'" and self._rules.allow_single_quotes:
            name = self._rest_of_text("'", _PLAIN_SINGLE)
        else:
            if not self._rules.allow_unquoted_field_names or not _BARE_NAME.match(first):
                raise self._unexpected(first, "a name in quotes")
            found = _BARE_NAME.match(self._text, self._at - 1)
            assert found is not None
            self._at = found.end()
            name = found[0]
        if len(name) > NAME_MAX:
            raise self._wrong(f"a name of more than {NAME_MAX} characters")
        return name

    # Values --------------------------------------------------------------------------------------

    def _take_value(self, first: str) -> str:
        if first == '"':
            self._is_open = True
            return TEXT
        if first in _ENDS:
            return first
        if first in "-+0123456789":
            return self._take_number(first)
        if first == "'" and self._rules.allow_single_quotes:
            self._value = self._rest_of_text("'", _PLAIN_SINGLE)
            return TEXT
        for word in (TRUE, FALSE, NULL):
            if first == word[0]:
                self._match(word, 1)
                return word
        for word in ("NaN", "Infinity"):
            if first == word[0]:
                return self._odd_number(word, 1)
        if first.isidentifier() or first == "$":
            raise self._no_word(first)
        raise self._unexpected(first, "a value")

    def _match(self, word: str, count: int) -> None:
        """count: of its characters that were taken."""
        for each in word[count:]:
            if self._text[self._at : self._at + 1] != each:
                raise self._no_word(word[:count])
            self._at += 1
            count += 1
        after = self._text[self._at : self._at + 1]
        if after and (after.isalnum() or after in "_$"):
            raise self._no_word(word)

    def _no_word(self, begin: str) -> JsonSyntaxError:
        found = _WORD.match(self._text, self._at)
        assert found is not None
        rest = found[0][: _TOKEN_SHOWN_MAX - len(begin)]
        self._at += len(rest)
        return self._wrong(f"{begin}{rest} is no value")

    def _odd_number(self, word: str, count: int) -> str:
        self._match(word, count)
        if not self._rules.allow_non_numeric_numbers:
            raise self._wrong(f"{word} where allowNonNumericNumbers is not given")
        self._value = _ODD_NUMBERS[word]
        return NUMBER

    def _take_number(self, first: str) -> str:
        begin = self._at - 1
        if first in "-+":
            after = self._take()
            if after == "I":
                second = self._take()
                if second and second in "Nn":
                    return self._odd_number(first + ("INF" if second == "N" else "Infinity"), 3)
            if first == "+" or not after or after not in "0123456789":
                raise self._unexpected(after, "a digit")
            first = after
        is_strict = first == "0"
        digits_at = self._at - 1
        if is_strict:
            following = self._text[self._at : self._at + 1]
            if following and following in "0123456789":
                if not self._rules.allow_numeric_leading_zeros:
                    raise self._wrong("a number begins with a zero")
                while self._text[self._at - 1] == "0" and self._peek_digit():
                    self._at += 1
                digits_at = self._at - 1
        self._skip_digits()
        token = INTEGER
        resume = self._at + 1  # behind the point, or the e
        if self._text[self._at : self._at + 1] == ".":
            token = NUMBER
            self._at += 1
            if not self._skip_digits():
                raise self._no_digits(is_strict, resume, "a point")
        if self._text[self._at : self._at + 1] in ("e", "E"):
            token = NUMBER
            self._at += 1
            if self._text[self._at : self._at + 1] in ("-", "+"):
                self._at += 1
            if not self._skip_digits():
                raise self._no_digits(is_strict, resume, "an exponent")
        sign = "-" if self._text[begin] == "-" else ""
        self._value = sign + self._text[digits_at : self._at]
        if len(self._value) > DIGITS_MAX and sum(map(str.isdigit, self._value)) > DIGITS_MAX:
            raise self._wrong(f"a number of more than {DIGITS_MAX} digits")
        return token

    def _peek_digit(self) -> bool:
        following = self._text[self._at : self._at + 1]
        return bool(following) and following in "0123456789"

    def _skip_digits(self) -> int:
        found = _DIGITS.match(self._text, self._at)
        assert found is not None
        self._at = found.end()
        return len(found[0])

    def _no_digits(self, is_strict: bool, resume: int, behind: str) -> JsonSyntaxError:
        self._at = min(self._at + 1, len(self._text)) if is_strict else resume
        return self._wrong(f"no digit behind {behind}")
