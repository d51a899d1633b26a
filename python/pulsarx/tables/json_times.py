"""Reads texts as times, like Spark's from_json: with or without a zone, finer than a microsecond,
of years of more or less than four digits, or in a format that is given. For JsonDecoder; the slow
way of it, value by value.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pyarrow as pa

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TRIMMED = "".join(map(chr, (*range(0x21), 0x7F)))
_DATE = r"(?P<sign>[+-])?(?P<y>\d{4,%d})(?:-(?P<M>\d{1,2})(?:-(?P<d>\d{1,2})%s)?)?"
# The zone behind hours or minutes is Arrow's, which Spark does not take.
_TIME_TEXT = re.compile(
    _DATE % (6, r"(?:[T ](?P<H>\d{1,2})(?::(?P<m>\d{1,2})(?::(?P<s>\d{1,2})"
             r"(?:\.(?P<S>\d*))?(?P<z>[^\d.].*)?)?)?(?P<zone>Z|[+-]\d{2}(?::?\d{2})?)?)?"),
    re.ASCII | re.DOTALL,
)  # fmt: skip
_DATE_TEXT = re.compile(_DATE % (7, r"(?:[T ].*)?"), re.ASCII | re.DOTALL)
_DAYS_TEXT = re.compile(r"[+-]?\d+")
_OFFSET = re.compile(r"([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?", re.ASCII)
_REGION = re.compile(r"[A-Za-z][A-Za-z0-9~/._+-]+", re.ASCII)
_OFFSET_SECONDS_MAX = 24 * 3600 - 1
# As Java has them, which Spark knows beside the names of regions.
_SHORT_ZONES = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka", "CAT": "Africa/Harare", "CNT": "America/St_Johns",
    "CST": "America/Chicago", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
    "EST": "-05:00", "MST": "-07:00", "HST": "-10:00",
}  # fmt: skip
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LONG_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_GREGORIAN_DAY = -141_427  # 1582-10-15, from which on the calendars are one
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097  # in which the calendar comes again
_INT64 = 1 << 63


class JsonTimes:
    """The formats in which a user says that times are written. A value that pickles: it travels to
    the tasks."""

    def __init__(
        self,
        time_zone: str | None = None,
        timestamp_format: str | None = None,
        date_format: str | None = None,
        timestamp_ntz_format: str | None = None,
        parsing_fallback: bool | None = None,
    ) -> None:
        """time_zone: of times that name none; None: UTC. The formats are patterns of Java, as Spark
        takes them, and then the only ones but with parsing_fallback. ValueError: one of them is not
        known."""
        self._given = (
            time_zone, timestamp_format, date_format, timestamp_ntz_format, parsing_fallback,
        )  # fmt: skip
        self.timestamp_format = timestamp_format
        self.timestamp_ntz_format = timestamp_ntz_format
        self.date_format = date_format
        self._falls_back = parsing_fallback
        self._zone = UTC if time_zone is None else zone_of(time_zone)
        self._timestamp = None if timestamp_format is None else _pattern(timestamp_format)
        self._plain = None if timestamp_ntz_format is None else _pattern(timestamp_ntz_format)
        self._date = None if date_format is None else _pattern(date_format)

    def __reduce__(self) -> tuple[Any, ...]:
        return JsonTimes, self._given

    @property
    def is_utc(self) -> bool:
        """Whether times that name no zone are of UTC."""
        return self._zone is UTC

    def are_given(self, kind: Any) -> bool:
        """Whether a format is given for something that a type has."""
        if pa.types.is_timestamp(kind):
            given = self.timestamp_ntz_format if kind.tz is None else self.timestamp_format
            return given is not None
        if pa.types.is_date(kind):
            return self.date_format is not None
        return any(self.are_given(kind.field(number).type) for number in range(kind.num_fields))

    def micros(self, text: str) -> int:
        """Microseconds since 1970 of a time with a zone. ValueError: it is none."""
        if self._timestamp is not None:
            try:
                return _micros_by(self._timestamp, text, self._zone)
            except (ValueError, LookupError, OverflowError):
                if not self._falls_back:
                    raise
            return _micros(text.replace("GMT", ""), self._zone)
        try:
            return _micros(text, self._zone)
        except (ValueError, LookupError, OverflowError):
            if self._falls_back is False or "GMT" not in text:
                raise
        return _micros(text.replace("GMT", ""), self._zone)

    def plain_micros(self, text: str) -> int:
        """The same of one that names no zone."""
        if self._plain is not None:
            return _micros_by(self._plain, text, None)
        return _micros(text, None)

    def days(self, text: str) -> int:
        """Days since 1970. ValueError: it is no date."""
        if self._date is not None:
            try:
                return _date_by(self._date, text)
            except (ValueError, LookupError, OverflowError):
                if not self._falls_back:
                    raise
        elif self._falls_back is False:
            return _days(text)
        try:
            return _days(text)
        except ValueError:
            clean = text.replace("GMT", "")
            if clean != text:
                try:
                    return _days(clean)
                except ValueError:
                    pass
            if _DAYS_TEXT.fullmatch(text) is None or not -(1 << 31) <= int(text) < 1 << 31:
                raise
        return _rebased(int(text))


def _days(text: str) -> int:
    found = _DATE_TEXT.fullmatch(text.strip(_TRIMMED))
    if found is None:
        raise ValueError("it is no date")
    return _day(found)


def _day(found: re.Match[str]) -> int:
    year = int(f"{found['sign'] or ''}{found['y']}")
    return days_of(year, int(found["M"] or 1), int(found["d"] or 1))


def _micros(text: str, zone: tzinfo | None) -> int:
    """zone: of one that names none; None: none may be named."""
    found = _TIME_TEXT.fullmatch(text.strip(_TRIMMED))
    if found is None:
        raise ValueError("it is no time")
    named = found["z"] or found["zone"]
    if named is not None:
        if zone is None:
            raise ValueError("it names a zone")
        zone = zone_of(named.strip(_TRIMMED))
    day = _day(found)
    hour, minute, second = (int(found[name] or 0) for name in "Hms")
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError("it is no time of a day")
    seconds = hour * 3600 + minute * 60 + second
    fraction = int(f"{found['S'] or '':0<6}"[:6])
    return _since_1970(day, seconds, fraction, zone)


def _since_1970(day: int, seconds: int, micros: int, zone: tzinfo | None) -> int:
    local = day * 86_400 + seconds
    made = (local - _offset_of(zone, day, seconds)) * 1_000_000 + micros
    if not -_INT64 <= made < _INT64:
        raise ValueError("it is too far from 1970")
    return made


def _offset_of(zone: tzinfo | None, day: int, seconds: int) -> int:
    """Seconds that a zone is ahead at its local time. As Java has it, what a change of the clock
    skips is later, and what it repeats is the first."""
    if zone is None:
        return 0
    ordinal = day + _EPOCH_ORDINAL
    if ordinal < 1:
        ordinal = 1  # before there were zones
    while ordinal > date.max.toordinal() - 1:
        ordinal -= -(-(ordinal - date.max.toordinal() + 1) // _CYCLE_DAYS) * _CYCLE_DAYS
    there = datetime.fromordinal(ordinal) + timedelta(seconds=seconds)
    offset = zone.utcoffset(there.replace(tzinfo=zone))
    return 0 if offset is None else offset.days * 86_400 + offset.seconds


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970 of a date of any year, before and behind Python's, too. ValueError: there is
    no such day."""
    cycles = (year - 1) // _CYCLE_YEARS
    within = date(year - cycles * _CYCLE_YEARS, month, day)
    return within.toordinal() - _EPOCH_ORDINAL + cycles * _CYCLE_DAYS


def _rebased(days: int) -> int:
    """Days of the calendar that was used before 1582, as the same date in the one since then."""
    if days >= _GREGORIAN_DAY:
        return days
    number = days + 2_440_588 + 32_082  # since March of a year before all
    cycle = (4 * number + 3) // 1461
    left = number - 1461 * cycle // 4
    month = (5 * left + 2) // 153
    return days_of(
        cycle - 4800 + month // 10,
        month + 3 - 12 * (month // 10),
        left - (153 * month + 2) // 5 + 1,
    )


def zone_of(name: str) -> tzinfo:
    """The zone of a name, as Java and Spark take it. ValueError: there is none."""
    name = _SHORT_ZONES.get(name, name)
    if name in ("Z", "UTC", "GMT", "UT"):
        return UTC
    plain = name[3:] if name[:3] in ("UTC", "GMT") else name[2:] if name[:2] == "UT" else name
    offset = _OFFSET.fullmatch(plain)
    if offset is not None:
        sign, hours, minutes, seconds = offset.groups(default="0")
        total = int(hours) * 3600 + int(minutes) * 60 + int(seconds)
        if total <= _OFFSET_SECONDS_MAX and int(minutes) < 60 and int(seconds) < 60:
            return timezone(timedelta(seconds=-total if sign == "-" else total))
    elif _REGION.fullmatch(name):
        try:
            return ZoneInfo(name)
        except (LookupError, ValueError, OSError):
            pass
    raise ValueError(f"there is no time zone {name!r:.80}; name it as Europe/Paris, +02:00 or UTC")


def _micros_by(pattern: re.Pattern[str], text: str, zone: tzinfo | None) -> int:
    parts = _parts_by(pattern, text)
    if "z" in parts:
        if zone is None:
            raise ValueError("it names a zone")
        zone = _zone_by(parts["z"])
    fraction = int(f"{parts.get('S', '0'):0<6}"[:6])
    return _since_1970(_date_of(parts), _seconds_of(parts), fraction, zone)


def _date_by(pattern: re.Pattern[str], text: str) -> int:
    parts = _parts_by(pattern, text)
    if "z" in parts:
        _zone_by(parts["z"])
    _seconds_of(parts)
    return _date_of(parts)


def _zone_by(name: str) -> tzinfo:
    """The zone of a part of a format. What is short for several zones is none: which one of them
    Java takes for it depends on its version and place."""
    if name.upper() in _SHORT_ZONES:
        raise ValueError(f"the zone {name} is short for several; name it as Europe/Paris or +02:00")
    return zone_of(name.upper() if _ZONE_OFFSET.fullmatch(name) else name)


def _seconds_of(parts: dict[str, str]) -> int:
    """Since midnight."""
    minute, second = int(parts.get("m", "0")), int(parts.get("s", "0"))
    hour = int(parts.get("H", "0"))
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError("it is no time of a day")
    if not 1 <= int(parts.get("h", "1")) <= 12:
        raise ValueError("it is no hour of half a day")
    half = int(parts["h"]) % 12 if "h" in parts else None
    afternoon = 12 * (parts["a"].lower() == "pm") if "a" in parts else None
    if "H" not in parts:
        # The middle of the day where only its half is told.
        hour = (half or 0) + (afternoon or 0)
    elif half is not None and afternoon is not None:
        if hour != half + afternoon:
            raise ValueError("its hours differ")
    elif ("m" in parts or not {"s", "S"} & parts.keys()) and (
        "s" in parts or not {"m", "S"} <= parts.keys()
    ):  # Java compares them in a time that has no gap
        if half is not None and hour % 12 != half:
            raise ValueError("its hours differ")
        if afternoon is not None and hour - hour % 12 != afternoon:
            raise ValueError("it is of the other half of the day")
    return hour * 3600 + minute * 60 + second


def _parts_by(pattern: re.Pattern[str], text: str) -> dict[str, str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise ValueError("it is not in the given format")
    return {name: part for name, part in found.groupdict().items() if part is not None}


def _date_of(parts: dict[str, str]) -> int:
    month = parts.get("M", "1")
    year = 2000 + int(parts["Y"]) if "Y" in parts else int(parts.get("y", "1970"))
    if year == 0 and parts["y"][0] == "-":
        raise ValueError("it is a year of minus zero")
    number = int(month) if month.isdigit() else _MONTHS.index(month[:3].lower()) + 1
    return days_of(year, number, int(parts.get("d", "1")))


_LETTERS = {
    "d": r"(?P<d>\d{%s})", "H": r"(?P<H>\d{%s})", "h": r"(?P<h>\d{%s})", "m": r"(?P<m>\d{%s})",
    "s": r"(?P<s>\d{%s})",
}  # fmt: skip
_DIGITS = {1: "1,19", 2: "2"}
_YEARS = {1: r"-?\d{1,19}", 3: r"-?\d{3,19}", 4: r"\d{4}|-\d{4,19}|\+\d{5,19}",
          5: r"\d{5}|-\d{5,19}|\+\d{6,19}", 6: r"\d{6}|-\d{6,19}|\+\d{7,19}"}  # fmt: skip
_OFFSETS = {1: r"[+-]\d{2}(?:\d{2})?", 2: r"[+-]\d{4}", 3: r"[+-]\d{2}:\d{2}",
            4: r"[+-]\d{4}(?:\d{2})?", 5: r"[+-]\d{2}:\d{2}(?::\d{2})?"}  # fmt: skip
_ZONE_OFFSET = re.compile(rf"Z|(?:UTC?|GMT)(?:{_OFFSETS[5]})?|GMT[+-]\d.*", re.I | re.A)
_ZONE = rf"Z|(?:UTC?|GMT)?{_OFFSETS[5]}|(?!(?:UTC?|GMT)[+-]%s)[A-Za-z][\w/~.+-]*"
# By letters of a pattern; others take regions, too.
_FORMATTED_ZONES = {
    **{"x" * count: form for count, form in _OFFSETS.items()},
    **{"X" * count: f"Z|{form}" for count, form in _OFFSETS.items()},
    **{"Z" * count: _OFFSETS[2] for count in (1, 2, 3)},
    **{"z" * count: _ZONE % r"|Etc/GMT[+\d-]" for count in (1, 2, 3, 4)},
    "O": r"GMT(?:[+-]\d{1,2}(?::\d{2}(?::\d{2})?)?)?",
    "OOOO": f"GMT(?:{_OFFSETS[5]})?",
    "ZZZZ": f"GMT(?:{_OFFSETS[5]})?",
    "ZZZZZ": f"Z|{_OFFSETS[5]}",
}


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
        elif letter in _LETTERS and len(run) in _DIGITS:
            made.append(_LETTERS[letter] % _DIGITS[len(run)])
        elif letter in "yu" and len(run) == 2:
            made.append(r"(?P<Y>\d{2})")
        elif letter in "yu" and len(run) in _YEARS:
            made.append(rf"(?P<y>{_YEARS[len(run)]})")
        elif letter in "ML" and len(run) <= 4:
            names = {3: _MONTHS, 4: _LONG_MONTHS}.get(len(run))
            form = rf"\d{{{_DIGITS[len(run)]}}}" if names is None else "|".join(names)
            made.append(rf"(?P<M>{form})")
        elif letter == "S":
            made.append(rf"(?P<S>\d{{1,{len(run)}}})")
        elif run == "a":
            made.append("(?P<a>am|pm)")
        elif letter in "XxZzVO":
            made.append(rf"(?P<z>{_FORMATTED_ZONES.get(run, _ZONE % '')})")
        else:
            raise ValueError(
                f"the letters {run} are not known here; a format is made of y M d H h m s S a X "
                "x Z z V O, of texts in single quotes and of [optional] parts"
            )
    try:
        return re.compile("".join(made), re.ASCII | re.IGNORECASE)
    except re.error as error:
        raise ValueError(f"it cannot be read: {error}") from error
