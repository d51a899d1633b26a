"""Makes rows of JSON objects by a schema, value by value: as Spark's from_json has it, also what is
left of the fields of an object that is malformed. For JsonDecoder, the slow way of it.

Each type has two ways to a value. `made` takes what Python's json gives, `read` the tokens of the
text; what the first does not take, for whatever reason, is read by the second, which says what is
wrong, and has all that is odd: single quotes, comments, fields that come twice.
"""

from __future__ import annotations

import json
import math
import re
import struct
from decimal import Context, Decimal, DecimalException, localcontext

import pyarrow as pa

from pulsarx.tables.json_rules import JsonRules
from pulsarx.tables.json_tokens import (
    ARRAY,
    ARRAY_END,
    DEPTH_MAX,
    DIGITS_MAX,
    FALSE,
    INTEGER,
    NAME,
    NAME_MAX,
    NULL,
    NUMBER,
    OBJECT,
    OBJECT_END,
    TEXT,
    TRUE,
    JsonTokens,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_EXACT = Context(prec=1100)
_DECIMAL_TEXT = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_LONG_NUMBER = re.compile(rf"\d{{{DIGITS_MAX // 2}}}")
_INSIDES = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)
_NOT_NUMBERS = {
    "NaN": math.nan, "Infinity": math.inf, "+Infinity": math.inf, "+INF": math.inf,
    "-Infinity": -math.inf, "-INF": -math.inf,
}  # fmt: skip
_QUOTED = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}
_TO_QUOTE = re.compile('["\\\\\x00-\x1f\ud800-\udfff]')
_TYPE_NAMES = {
    pa.bool_(): "boolean", pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int",
    pa.int64(): "bigint", pa.float32(): "float", pa.float64(): "double", pa.string(): "string",
    pa.binary(): "binary", pa.date32(): "date",
}  # fmt: skip


class Digits(float):
    """A number of JSON with a fraction or exponent, and its text."""

    def __new__(cls, text: str) -> Digits:
        found = super().__new__(cls, text)
        found.text = text
        return found

    text: str


class Malformed(ValueError):
    """A value that is not of its type. partial: what there is of it nevertheless."""

    def __init__(self, why: str, path: str = "") -> None:
        super().__init__(f"{path}: {why}" if path else why)
        self.why = why
        self.path = path

    def below(self, name: str) -> Malformed:
        """The same of what has the value: a field's name, `[]` or `{}`."""
        joint = "" if not self.path or self.path[0] in "[{" else "."
        return Malformed(self.why, f"{name}{joint}{self.path}")


class Partial(Exception):
    """A struct, list or map of which a part is malformed."""

    def __init__(self, value: Any, why: Malformed) -> None:
        super().__init__(str(why))
        self.value = value
        self.why = why


class _Pairs(list):  # type: ignore[type-arg]
    """The fields of an object, in order; one may come twice."""


class JsonRows:
    """Makes rows of payloads: what the fields have, by their names."""

    def __init__(self, fields: pa.Schema, rules: JsonRules) -> None:
        self._rules = rules
        self._root = _Struct(list(fields), rules)

    def row(self, payload: bytes | None) -> dict[str, Any]:
        """ValueError: it is malformed. Partial: so it is, and this is left of it."""
        if payload is None:
            return self._empty("it has no value")
        text = payload.decode("utf-8")
        try:
            return self._of_python(text)
        except (ValueError, RecursionError, OverflowError, Partial):
            return self._of_tokens(text)

    def _empty(self, what: str) -> dict[str, Any]:
        if self._root.required:
            raise Malformed(f"{what}, and {self._root.required[0]} is required")
        return {}

    def _of_python(self, text: str) -> dict[str, Any]:
        """Fast, and of what every reader takes for the same. ValueError: it is not, or wrong."""
        if len(text) > DIGITS_MAX // 2:
            _check_large(text)
        found = json.loads(
            text, object_pairs_hook=_Pairs, parse_float=Digits, parse_constant=_refuse_constant
        )
        if not isinstance(found, _Pairs):
            raise Malformed("it is no JSON object")
        return self._root.made(found)

    def _of_tokens(self, text: str) -> dict[str, Any]:
        tokens = JsonTokens(text, self._rules)
        first = tokens.next()
        if first is None:
            return self._empty("it is empty")
        if first != OBJECT:
            raise Malformed(f"it is no JSON object: {text!r:.80}")
        made = self._root.inside(tokens)
        try:
            more = tokens.next()
        except ValueError as error:
            raise Partial(made, Malformed(f"something stands behind the object: {error}")) from None
        if more is not None:
            raise Partial(made, Malformed("something stands behind the object"))
        return made


def _refuse_constant(text: str) -> None:
    raise ValueError(text)


def _check_large(text: str) -> None:
    """ValueError: a number or name may be too long, or objects nested too deep."""
    if _LONG_NUMBER.search(text) is not None:
        raise ValueError("a long number")
    if text.count("{") + text.count("[") > DEPTH_MAX or len(text) > NAME_MAX:
        depth = 0
        for each in _INSIDES.finditer(text):
            if each.end() - each.start() > NAME_MAX:
                raise ValueError("a long text, which may be a name")
            depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(each[0], 0)
            if depth > DEPTH_MAX:
                raise ValueError("it is nested too deep")


# Types -------------------------------------------------------------------------------------------


class _Value:
    """Makes values of one type."""

    def made(self, value: Any) -> Any:
        """Make it of a value of Python's json that is not None."""
        raise NotImplementedError

    def read(self, tokens: JsonTokens) -> Any:
        """Make it of the token that is there, or of the one behind it if that is a name."""
        if tokens.token is NAME:
            tokens.next()
        if tokens.token is None or tokens.token is NULL:
            return None
        return self.inside(tokens)

    def inside(self, tokens: JsonTokens) -> Any:
        """Make it of the token that is there, which is not null."""
        raise NotImplementedError


class _Scalar(_Value):
    def __init__(self, convert: Callable[[Any], Any]) -> None:
        """convert: of text, int, Digits or bool. ValueError: it is not of the type."""
        self._convert = convert
        self.made = convert  # type: ignore[method-assign, assignment]  # one call less a value

    def inside(self, tokens: JsonTokens) -> Any:
        return self._convert(_python_of(tokens))


class _Text(_Value):
    def made(self, value: Any) -> str:
        return _checked_text(value if isinstance(value, str) else _text_of(value))

    def inside(self, tokens: JsonTokens) -> str:
        return _checked_text(tokens.value if tokens.token is TEXT else _copied(tokens))


class _Struct(_Value):
    def __init__(self, fields: list[pa.Field], rules: JsonRules) -> None:
        self._fields = {each.name: value_of(each.type, rules) for each in fields}
        self.required = [each.name for each in fields if not each.nullable]

    def made(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, _Pairs):
            raise Malformed("no object")
        row: dict[str, Any] = {}
        for name, each in value:
            field = self._fields.get(name)
            if field is not None:
                row[name] = None if each is None else field.made(each)
        self._check(row)
        return row

    def _check(self, row: dict[str, Any]) -> None:
        for name in self.required:
            if row.get(name) is None:
                raise Malformed("it is required, and null", name)

    def inside(self, tokens: JsonTokens) -> dict[str, Any]:
        if tokens.token is not OBJECT:
            raise _other(tokens, "struct")
        row: dict[str, Any] = {}
        flaw: Malformed | None = None
        while tokens.next() not in (OBJECT_END, None):
            name = tokens.name or ""
            field = self._fields.get(name) if tokens.name is not None else None
            if field is None:
                tokens.skip_children()
                continue
            try:
                row[name] = field.read(tokens)
            except Partial as error:
                row[name] = error.value
                flaw = flaw or error.why.below(name)
            except ValueError as error:
                flaw = flaw or _malformed(error).below(name)
                tokens.skip_children()
        if flaw is None:
            try:
                self._check(row)
            except Malformed as error:
                flaw = error
        if flaw is not None:
            raise Partial(row, flaw)
        return row


class _List(_Value):
    def __init__(self, item: pa.Field, rules: JsonRules) -> None:
        self._item = value_of(item.type, rules)
        self._is_optional = item.nullable

    def made(self, value: Any) -> list[Any]:
        if not isinstance(value, list) or isinstance(value, _Pairs):
            raise Malformed("no array")
        self._check(value)
        made = self._item.made
        return [None if each is None else made(each) for each in value]

    def _check(self, items: list[Any]) -> None:
        if not self._is_optional and None in items:
            raise Malformed("it is required, and null", "[]")

    def inside(self, tokens: JsonTokens) -> list[Any]:
        if tokens.token is not ARRAY:
            raise _other(tokens, "array")
        items: list[Any] = []
        flaw: Malformed | None = None
        while tokens.next() not in (ARRAY_END, None):
            try:
                items.append(self._item.read(tokens))
            except Partial as error:
                items.append(error.value)
                flaw = flaw or error.why.below("[]")
            except ValueError as error:
                raise _malformed(error).below("[]") from None
        self._check(items)
        if flaw is not None:
            raise Partial(items, flaw)
        return items


class _Map(_Value):
    """Values are lists of pairs, as Arrow takes maps."""

    def __init__(self, kind: pa.MapType, rules: JsonRules) -> None:
        self._item = value_of(kind.item_type, rules)
        self._is_optional = kind.item_field.nullable

    def made(self, value: Any) -> list[tuple[str, Any]]:
        if not isinstance(value, _Pairs):
            raise Malformed("no object")
        made = self._item.made
        pairs = [
            (_checked_text(name), None if each is None else made(each)) for name, each in value
        ]
        self._check(pairs)
        return pairs

    def _check(self, pairs: list[tuple[str, Any]]) -> None:
        if not self._is_optional:
            for name, value in pairs:
                if value is None:
                    raise Malformed("it is required, and null", f"{{{name:.80}}}")

    def inside(self, tokens: JsonTokens) -> list[tuple[str, Any]]:
        if tokens.token is not OBJECT:
            raise _other(tokens, "map")
        pairs: list[tuple[str, Any]] = []
        partly: Malformed | None = None
        flaw: Malformed | None = None
        while tokens.next() not in (OBJECT_END, None):
            name = tokens.name or ""
            path = f"{{{name:.80}}}"
            try:
                pairs.append((_checked_text(name), self._item.read(tokens)))
            except Partial as error:
                pairs.append((name, error.value))
                partly = partly or error.why.below(path)
            except ValueError as error:
                flaw = flaw or _malformed(error).below(path)
                tokens.skip_children()
        if flaw is not None:
            raise flaw
        self._check(pairs)
        if partly is not None:
            raise Partial(pairs, partly)
        return pairs


def _malformed(error: ValueError) -> Malformed:
    return error if isinstance(error, Malformed) else Malformed(str(error))


def _other(tokens: JsonTokens, kind: str) -> Malformed:
    if tokens.token is TEXT and tokens.value == "":
        return Malformed(f"an empty text is no {kind}")
    return Malformed(f"{_shown(tokens)} is no {kind}")


def _shown(tokens: JsonTokens) -> str:
    if tokens.token in (TEXT, INTEGER, NUMBER):
        return f"{tokens.value!r:.80}" if tokens.token is TEXT else f"{tokens.value:.80}"
    return {OBJECT: "an object", ARRAY: "an array"}.get(str(tokens.token), str(tokens.token))


def _python_of(tokens: JsonTokens) -> Any:
    """A scalar as Python's json gives it. ValueError: it is none."""
    token = tokens.token
    if token is TEXT:
        return tokens.value
    if token is INTEGER:
        return int(tokens.value)
    if token is NUMBER:
        return Digits(tokens.value)
    if token is TRUE or token is FALSE:
        return token is TRUE
    return _Nested(_shown(tokens))


class _Nested:
    """Stands for what is no scalar, by its name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


# Text --------------------------------------------------------------------------------------------


def _checked_text(text: str) -> str:
    """ValueError: it has half a surrogate pair, which no text has."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Malformed(f"{text!r:.80} has half a surrogate pair") from None
    return text


def _text_of(value: Any) -> str:
    """Return what from_json has in a column of text: what stands there, without spaces."""
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, Digits):
        return value.text
    if isinstance(value, _Pairs):
        return f"{{{','.join(f'{_quoted(name)}:{_text_of(each)}' for name, each in value)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_text_of, value))}]"
    return "null" if value is None else json.dumps(value)


def _quoted(text: str) -> str:
    return f'"{_TO_QUOTE.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    return _QUOTED.get(found[0]) or f"\\u{ord(found[0]):04X}"


def _copied(tokens: JsonTokens) -> str:
    """The same of what the tokens have from here."""
    parts: list[str] = []
    depth = 0
    is_first = True  # of its object or array, or behind a name
    while True:
        token = tokens.token
        if token is None:
            raise Malformed("it ends in an object or array")
        is_end = token in (OBJECT_END, ARRAY_END)
        if not is_first and not is_end:
            parts.append(",")
        is_first = token in (OBJECT, ARRAY, NAME)
        depth += 1 if token in (OBJECT, ARRAY) else -1 if is_end else 0
        if depth < 0:
            raise Malformed(f"{token} ends nothing")
        if token is NAME:
            parts.append(f"{_quoted(tokens.name or '')}:")
        elif token is TEXT:
            parts.append(_quoted(tokens.value))
        elif token is INTEGER:
            parts.append(str(int(tokens.value)))
        else:
            parts.append(tokens.value if token is NUMBER else token)
        if not depth and token is not NAME:
            return "".join(parts)
        tokens.next()


# Other scalars -----------------------------------------------------------------------------------


def value_of(kind: pa.DataType, rules: JsonRules) -> _Value:
    """Return what reads values of a type. TypeError: nothing in JSON is of it."""
    if pa.types.is_struct(kind):
        return _Struct(list(kind), rules)
    if pa.types.is_list(kind):
        return _List(kind.value_field, rules)
    if pa.types.is_map(kind):
        return _Map(kind, rules)
    if pa.types.is_string(kind):
        return _Text()
    return _Scalar(_converter(kind, rules))


def _converter(kind: pa.DataType, rules: JsonRules) -> Callable[[Any], Any]:
    types = pa.types
    if types.is_boolean(kind):
        return _boolean_of
    if types.is_integer(kind):
        return _integer_converter(kind)
    if types.is_floating(kind):
        return _float_converter(kind, rules)
    if types.is_decimal(kind):
        return _decimal_converter(kind)
    if types.is_binary(kind) or types.is_fixed_size_binary(kind):
        return _bytes_of
    if types.is_date(kind):
        return _date_converter(kind, rules)
    if types.is_timestamp(kind):
        return _time_converter(kind, rules)
    raise TypeError(f"JSON is not read as {kind}")


def _no(value: Any, kind: Any, why: str = "") -> Malformed:
    name = _type_name(kind) if isinstance(kind, pa.DataType) else kind
    if value == "" and isinstance(value, str):
        return Malformed(f"an empty text is no {name}")
    shown = value.text if isinstance(value, Digits) else repr(value)
    if isinstance(value, bool):
        shown = shown.lower()
    return Malformed(f"{shown:.80} is no {name}{f': {why}' if why else ''}")


def _type_name(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _TYPE_NAMES.get(kind) or str(kind)


def _boolean_of(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise _no(value, "boolean")


def _integer_converter(kind: pa.DataType) -> Callable[[Any], int]:
    most = 1 << (kind.bit_width - 1)

    def convert(value: Any) -> int:
        if type(value) is int and -most <= value < most:
            return value
        raise _no(value, kind)

    return convert


def _float_converter(kind: pa.DataType, rules: JsonRules) -> Callable[[Any], float]:
    is_narrow = kind == pa.float32()

    def convert(value: Any) -> float:
        if type(value) is int or isinstance(value, Digits):
            try:
                found = float(value)
            except OverflowError:
                found = math.inf if value > 0 else -math.inf
            return _to_odd(found, value) if is_narrow else found
        if isinstance(value, str) and rules.allow_non_numeric_numbers and value in _NOT_NUMBERS:
            return _NOT_NUMBERS[value]
        raise _no(value, kind)

    return convert


def _to_odd(found: float, value: int | Digits) -> float:
    """The number such that rounding it to 32 bits rounds the exact value, and not what was rounded
    before."""
    if not math.isfinite(found) or found == 0.0:
        return found
    exact = Decimal(value.text if isinstance(value, Digits) else value)
    if exact == Decimal(found) or struct.unpack("<q", struct.pack("<d", found))[0] & 1:
        return found
    return math.nextafter(found, math.inf if exact > Decimal(found) else -math.inf)


def _decimal_converter(kind: pa.DataType) -> Callable[[Any], Decimal]:
    """Exactly, or not at all."""
    step = Decimal(1).scaleb(-kind.scale)
    most = Decimal(10) ** (kind.precision - kind.scale)

    def convert(value: Any) -> Decimal:
        text = value.text if isinstance(value, Digits) else value
        if isinstance(text, str):
            plain = text if isinstance(value, Digits) else text.replace(",", "")
            if _DECIMAL_TEXT.fullmatch(plain) is None:
                raise _no(value, kind)
        elif type(text) is not int:
            raise _no(value, kind)
        else:
            plain = str(text)
        try:
            with localcontext(_EXACT):
                found = Decimal(plain)
                if found.is_zero():
                    return Decimal(0).quantize(step)
                if abs(found) >= most:
                    raise _no(value, kind, "it is too large")
                cut = found.quantize(step)
                if cut != found:
                    raise _no(value, kind, f"it has more than {kind.scale} digits behind the point")
                return cut
        except DecimalException:  # an exponent that is beyond all
            raise _no(value, kind) from None

    return convert


def _bytes_of(value: Any) -> bytes:
    if isinstance(value, str):
        return _checked_text(value).encode()
    raise _no(value, "binary")


def _date_converter(kind: pa.DataType, rules: JsonRules) -> Callable[[Any], int]:
    parse = rules.times.days

    def convert(value: Any) -> int:
        if type(value) is int and -(1 << 31) <= value < 1 << 31:
            return value
        if isinstance(value, str) and value:
            try:
                return parse(value)
            except (ValueError, LookupError, OverflowError) as error:
                raise _no(value, kind, str(error)) from None
        raise _no(value, kind)

    return convert


def _time_converter(kind: pa.DataType, rules: JsonRules) -> Callable[[Any], int]:
    parse = rules.times.plain_micros if kind.tz is None else rules.times.micros
    name = "timestamp_ntz" if kind.tz is None else "timestamp"
    divisor = {"us": 1, "ms": 1000}[kind.unit]
    seconds_max = (1 << 63) // 1_000_000

    def convert(value: Any) -> int:
        if type(value) is int and kind.tz is not None:
            if abs(value) <= seconds_max:
                return value * 1_000_000 // divisor
            raise _no(value, name, "it is more seconds than there are")
        if isinstance(value, str) and value:
            try:
                return parse(value) // divisor
            except (ValueError, LookupError, OverflowError) as error:
                raise _no(value, name, str(error)) from None
        raise _no(value, name)

    return convert
