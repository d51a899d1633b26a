"""Checks the choice that a user makes of values: their format, and what becomes of those that are
not of it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from pyspark.sql.types import StructType

    from pulsarx.tables.json_rules import JsonRules

FORMATS = RAW, STRING, JSON, AVRO, SCHEMA = "raw", "string", "json", "avro", "schema"
MODES = FAIL_FAST, PERMISSIVE, DROP_MALFORMED = "FAILFAST", "PERMISSIVE", "DROPMALFORMED"


CORRUPT_RECORD = "_corrupt_record"
# Of JSON: the options of from_json, and the arguments of JsonRules and JsonTimes.
JSON_OPTIONS = {
    "timeZone": "time_zone",
    "timestampFormat": "timestamp_format",
    "timestampNTZFormat": "timestamp_ntz_format",
    "dateFormat": "date_format",
    "enableDateTimeParsingFallback": "parsing_fallback",
    "allowComments": "allow_comments",
    "allowUnquotedFieldNames": "allow_unquoted_field_names",
    "allowSingleQuotes": "allow_single_quotes",
    "allowNumericLeadingZeros": "allow_numeric_leading_zeros",
    "allowNonNumericNumbers": "allow_non_numeric_numbers",
    "allowBackslashEscapingAnyCharacter": "allow_backslash_escaping_any_character",
    "allowUnquotedControlChars": "allow_unquoted_control_chars",
}


def rules_of(options: Mapping[str, Any]) -> JsonRules | None:
    """Return how JSON is written, by the options of from_json; None: nothing is said of it.

    ValueError: a zone or format is not known.
    """
    given = {
        argument: options[name]
        for name, argument in JSON_OPTIONS.items()
        if options.get(name) is not None
    }
    if not given:
        return None
    from pulsarx.tables.json_rules import JsonRules

    return JsonRules.of(given)


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
