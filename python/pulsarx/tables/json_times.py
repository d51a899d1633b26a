"""Reads texts and numbers of JSON as values of other types, like Spark's from_json: times without a
zone or finer than a microsecond, numbers since 1970, numbers in columns of text, exact decimals,
NaN and Infinity in quotes. For JsonDecoder; the slow way of it, value by value.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Context, Decimal, InvalidOperation, localcontext
from zoneinfo import ZoneInfo

import pyarrow as pa

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ZONE = r"Z|z|[+-]\d{1,2}(?::?\d{2})?(?::?\d{2})?|[A-Za-z][\w/+-]*"
_TEXT = re.compile(
    r"(?P<y>\d{4})-(?P<M>\d{1,2})-(?P<d>\d{1,2})"
    r"(?:[T ](?P<H>\d{1,2}):(?P<m>\d{1,2})(?::(?P<s>\d{1,2})(?:\.(?P<S>\d{1,9}))?)?"
    rf"\s?(?P<z>{_ZONE})?)?",
    re.ASCII,
)
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?", re.ASCII)
_DATE_AND_MORE = re.compile(r"(\d{4}-\d{1,2}-\d{1,2})(?:[T ].*)?", re.ASCII | re.DOTALL)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = "|".join(
    ("january", "february", "march", "april", "may", "june", "july", "august", "september",
     "october", "november", "december", *_MONTHS)
)  # fmt: skip
_NOT_NUMBERS = {
    "NaN": float("nan"), "INF": float("inf"), "+INF": float("inf"), "Infinity": float("inf"),
    "+Infinity": float("inf"), "-INF": float("-inf"), "-Infinity": float("-inf"),
}  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EXACT = Context(prec=76)


class Digits(float):
    """A number of JSON with a fraction or exponent, and its text."""

    def __new__(cls, text: str) -> Digits:
        found = super().__new__(cls, text)
        found.text = text
        return found

    text: str


class JsonTimes:
    """The formats in which a user says that times are written. A value that pickles: it travels to
    the tasks."""

    def __init__(
        self,
        time_zone: str | None = None,
        timestamp_format: str | None = None,
        date_format: str | None = None,
    ) -> None:
        """time_zone: of times that name none; None: UTC. The formats are patterns of Java, as Spark
        takes them, and then the only ones. ValueError: one of them is not known."""
        self.time_zone = time_zone
        self.timestamp_format = timestamp_format
        self.date_format = date_format
        self._zone = UTC if time_zone is None else zone_of(time_zone)
        self._timestamp = _TEXT if timestamp_format is None else _pattern(timestamp_format)
        self._date = None if date_format is None else _pattern(date_format)

    def __reduce__(self) -> tuple[Any, ...]:
        return JsonTimes, (self.time_zone, self.timestamp_format, self.date_format)

    def are_given(self, kind: Any) -> bool:
        """Whether a format is given for something that a type has."""
        if pa.types.is_timestamp(kind):
            return self.timestamp_format is not None
        if pa.types.is_date(kind):
            return self.date_format is not None
        return any(self.are_given(kind.field(number).type) for number in range(kind.num_fields))

    def of(self, value: Any, kind: Any) -> Any:
        """The value as the type, but for times, has it, and times as texts that Arrow casts; what
        cannot be is returned as it is, for its check to refuse."""
        if pa.types.is_timestamp(kind):
            return self._timestamp_of(value, kind)
        if pa.types.is_date(kind):
            return self._date_of(value)
        if pa.types.is_string(kind):
            return value if value is None or isinstance(value, str) else _text_of(value)
        if pa.types.is_floating(kind):
            if isinstance(value, str):
                return _NOT_NUMBERS.get(value, value)
            return float(value) if type(value) is int or isinstance(value, Digits) else value
        if pa.types.is_decimal(kind):
            return _decimal_of(value, kind)
        return value

    def _timestamp_of(self, value: Any, kind: pa.DataType) -> Any:
        if type(value) is int and kind.tz is not None:  # seconds
            try:
                return _written(_EPOCH + timedelta(seconds=value), kind)
            except OverflowError:
                return value
        if not isinstance(value, str):
            return value
        found = self._timestamp.fullmatch(value)
        if found is None:
            return value if self.timestamp_format is None else _unknown(value)
        try:
            return _written(_datetime_of(found, None if kind.tz is None else self._zone), kind)
        except (ValueError, OverflowError, LookupError):
            return value if self.timestamp_format is None else _unknown(value)

    def _date_of(self, value: Any) -> Any:
        if type(value) is int:  # days
            try:
                return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
            except OverflowError:
                return value
        if not isinstance(value, str):
            return value
        if self._date is not None:
            found = self._date.fullmatch(value)
            try:
                return _unknown(value) if found is None else str(_datetime_of(found, None).date())
            except (ValueError, LookupError):
                return _unknown(value)
        there = _DATE_AND_MORE.fullmatch(value)
        if there is None:
            return value
        year, month, day = there[1].split("-")
        return f"{year}-{month:0>2}-{day:0>2}"


def zone_of(name: str) -> tzinfo:
    """ValueError: there is no such time zone."""
    if name in ("Z", "z", "UTC", "GMT"):
        return UTC
    offset = re.fullmatch(
        r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?", name, re.ASCII
    )
    if offset is not None:
        sign, hours, minutes, seconds = offset.groups(default="0")
        there = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds))
        return timezone(-there if sign == "-" else there)
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError) as error:
        raise ValueError(
            f"there is no time zone {name!r:.80}; name it as Europe/Paris, +02:00 or UTC"
        ) from error


def _datetime_of(found: re.Match[str], zone: tzinfo | None) -> datetime:
    """zone: of one that names none; None: none may be named. Finer parts than microseconds are cut
    off."""
    parts = {name: text for name, text in found.groupdict().items() if text is not None}
    if "z" in parts:
        if zone is None:
            raise ValueError("it names a zone")
        zone = zone_of(parts["z"])
    month = parts.get("M", "1")
    hour = int(parts.get("H", "0"))
    if "h" in parts:
        hour = int(parts["h"]) % 12 + (12 if parts.get("a", "am").lower() == "pm" else 0)
    year = int(parts.get("y", "1970"))
    if "Y" in parts:
        year = 2000 + int(parts["Y"])
    return datetime(
        year,
        int(month) if month.isdigit() else _MONTHS.index(month[:3].lower()) + 1,
        int(parts.get("d", "1")),
        hour,
        int(parts.get("m", "0")),
        int(parts.get("s", "0")),
        int(f"{parts.get('S', '0'):0<6}"[:6]),
        zone,
    )


def _written(found: datetime, kind: pa.DataType) -> str:
    if kind.tz is not None:
        found = found.astimezone(UTC).replace(tzinfo=None)
    if kind.unit == "ms":
        found = found.replace(microsecond=found.microsecond // 1000 * 1000)
    text = found.isoformat(
        sep="T", timespec="milliseconds" if kind.unit == "ms" else "microseconds"
    )
    return text if kind.tz is None else text + "Z"


def _unknown(value: str) -> str:
    """A text that no cast takes for a time: the user gave another format."""
    return f"not in the given format: {value}"


def _text_of(value: Any) -> str:
    """Return what from_json has in a column of text: what stands there, without spaces."""
    import json

    if isinstance(value, Digits):
        return value.text
    if isinstance(value, dict):
        pairs = [f"{_text_of_name(name)}:{_inner(each)}" for name, each in value.items()]
        return f"{{{','.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_inner, value))}]"
    return json.dumps(value)


def _inner(value: Any) -> str:
    return _text_of_name(value) if isinstance(value, str) else _text_of(value)


def _text_of_name(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False)


def _decimal_of(value: Any, kind: pa.DataType) -> Any:
    """Exactly, or not at all."""
    if isinstance(value, Digits):
        value = value.text
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return value
    try:
        with localcontext(_EXACT):
            found = Decimal(value)
            cut = found.quantize(Decimal(1).scaleb(-kind.scale))
            return cut if cut == found else value
    except (InvalidOperation, ValueError):
        return value


_LETTERS = {
    "d": r"(?P<d>\d{%d,2})", "H": r"(?P<H>\d{%d,2})", "h": r"(?P<h>\d{%d,2})",
    "m": r"(?P<m>\d{%d,2})", "s": r"(?P<s>\d{%d,2})",
}  # fmt: skip


def _pattern(text: str) -> re.Pattern[str]:
    """A pattern of Java's DateTimeFormatter as a regular expression. ValueError: it has a letter
    that is not known here."""
    made = []
    for part in re.finditer(r"'((?:[^']|'')*)'|(([A-Za-z])\3*)|(.)", text, re.DOTALL):
        quoted, run, letter, other = part[1], part[2], part[3], part[4]
        if run is None:
            if quoted is not None:
                made.append(re.escape(quoted.replace("''", "'") if quoted else "'"))
            else:
                made.append({"[": "(?:", "]": ")?"}.get(other, re.escape(other)))
        elif letter in _LETTERS:
            made.append(_LETTERS[letter] % min(len(run), 2))
        elif letter in "yu":
            made.append(r"(?P<Y>\d{2})" if len(run) == 2 else r"(?P<y>\d{4})")
        elif letter in "ML":
            made.append(rf"(?P<M>\d{{{len(run)},2}})" if len(run) < 3 else rf"(?P<M>{_MONTH})")
        elif letter == "S":
            made.append(rf"(?P<S>\d{{{len(run)}}})")
        elif letter == "a":
            made.append("(?P<a>am|pm)")
        elif letter == "E":
            made.append("[a-z]+")
        elif letter in "XxZzVO":
            made.append(rf"(?P<z>{_ZONE})")
        else:
            raise ValueError(
                f"the letters {run} are not known here; a format is made of y M d H h m s S a E X "
                "x Z z V, of texts in single quotes and of [optional] parts"
            )
    try:
        return re.compile("".join(made), re.ASCII | re.IGNORECASE)
    except re.error as error:
        raise ValueError(f"it cannot be read: {error}") from error
