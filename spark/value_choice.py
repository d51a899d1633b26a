"""Checks the choice that a user makes of values: their format, and what becomes of those that are
not of it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from pulsarx.tables.json_times import JsonTimes

FORMATS = RAW, STRING, JSON, AVRO, SCHEMA = "raw", "string", "json", "avro", "schema"
MODES = FAIL_FAST, PERMISSIVE, DROP_MALFORMED = "FAILFAST", "PERMISSIVE", "DROPMALFORMED"


def times_of(
    time_zone: str | None, timestamp_format: str | None, date_format: str | None
) -> JsonTimes | None:
    """Return the formats of times in JSON; None: nothing is said of them. ValueError: one is not
    known."""
    if time_zone is None and timestamp_format is None and date_format is None:
        return None
    from pulsarx.tables.json_times import JsonTimes

    return JsonTimes(time_zone, timestamp_format, date_format)


def check_format(
    value_format: str, mode: str | None, value_schema: str | StructType | None
) -> None:
    """ValueError: the three do not go together."""
    if value_format not in FORMATS:
        raise ValueError(f"valueFormat {value_format!r} must be one of {', '.join(FORMATS)}")
    if mode is not None and str(mode).upper() not in MODES:
        raise ValueError(f"mode {mode!r} must be one of {', '.join(MODES)}")
    if mode is not None and value_format == RAW:
        raise ValueError("mode is about values that cannot be decoded; raw decodes none")
    if value_schema is not None and value_format not in (JSON, AVRO):
        raise ValueError(
            "a schema of the value needs valueFormat (argument value_format) json or avro, not "
            f"{value_format}"
        )
    if value_format == AVRO and not isinstance(value_schema, str):
        raise ValueError(
            "valueFormat avro needs option valueSchema: the definition as Avro's JSON; or use "
            "valueFormat schema, where the topic has one"
        )
