"""Says how JSON is written that becomes columns: the options of Spark's from_json. For
JsonDecoder.
"""

from __future__ import annotations

from pulsarx.tables.json_times import JsonTimes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class JsonRules:
    """Says what is allowed, and how times are written. A value that pickles: it travels to the
    tasks."""

    def __init__(
        self,
        *,
        times: JsonTimes | None = None,
        allow_comments: bool = False,
        allow_unquoted_field_names: bool = False,
        allow_single_quotes: bool = True,
        allow_numeric_leading_zeros: bool = False,
        allow_non_numeric_numbers: bool = True,
        allow_backslash_escaping_any_character: bool = False,
        allow_unquoted_control_chars: bool = False,
    ) -> None:
        """The defaults are those of from_json. times: None: as ISO 8601 has them, in UTC."""
        self.times: JsonTimes = times or JsonTimes()
        self.allow_comments = allow_comments
        self.allow_unquoted_field_names = allow_unquoted_field_names
        self.allow_single_quotes = allow_single_quotes
        self.allow_numeric_leading_zeros = allow_numeric_leading_zeros
        self.allow_non_numeric_numbers = allow_non_numeric_numbers
        self.allow_backslash_escaping_any_character = allow_backslash_escaping_any_character
        self.allow_unquoted_control_chars = allow_unquoted_control_chars

    @classmethod
    def of(cls, options: dict[str, Any]) -> JsonRules:
        """options: by the names of the arguments here and of JsonTimes; None: not given."""
        given = {name: value for name, value in options.items() if value is not None}
        allowed = {name: given.pop(name) for name in list(given) if name.startswith("allow_")}
        return cls(times=JsonTimes(**given), **allowed)
