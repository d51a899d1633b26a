"""The kinds of values that policies have: what each kind takes, and how Pulsar's admin REST API
writes it. `policies/table` makes each policy of them."""

from __future__ import annotations

from pulsarx.broker_options import check_choices
from pulsarx.options.argument_check import INT32_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker_options import BrokerOptions

    Json = dict[str, Any]

_DIGITS_MAX = 19  # of 64 bits
REQUIRED = object()  # in place of a default


class Kind:
    """A kind of values; this one has none. Values are immutable, and written in JSON as they are
    unless a kind says otherwise."""

    __slots__ = ("said", "unit")

    body = ""  # what the description of the REST API calls it
    annotation = ""  # of an argument of client.admin
    answer = ""  # of what is set, as client.admin returns it

    def __init__(self, said: str, unit: str) -> None:
        """said: what a value must be, after its name in an error. unit: what it is, for tables."""
        self.said: str = said
        self.unit: str = unit

    def check(self, name: str, value: object) -> Any:
        """The value as it is kept. ValueError: it is none of this kind; name is for its text."""
        if not self.takes(value):
            raise ValueError(f"{name} {self.said}, not {value!r:.100}")
        return value

    def takes(self, value: Any) -> bool:
        raise NotImplementedError

    def shown(self, value: Any) -> Any:
        """A value in JSON, as Pulsar writes it."""
        return value

    def read(self, found: Any) -> Any:
        """A value of JSON, whose bounds `check` looks at. ValueError: it is something else."""
        raise NotImplementedError

    def unset(self, options: BrokerOptions, names: str) -> Any:
        """The value in the broker's options: the first of the named ones that is not None."""
        values = (getattr(options, name) for name in names.split())
        return next((value for value in values if value is not None), None)


class Whole(Kind):
    """A whole number within bounds."""

    __slots__ = ("highest", "lowest")

    body: str = "integer"
    annotation: str = "int"
    answer: str = "int"

    def __init__(self, lowest: int, highest: int = INT32_MAX, unit: str = "", said: str = ""):
        super().__init__(said or f"must be an int from {lowest} to {highest}", unit)
        self.lowest: int = lowest
        self.highest: int = highest

    def takes(self, value: Any) -> bool:
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        return is_whole and self.lowest <= value <= self.highest

    def read(self, found: Any) -> int:
        if isinstance(found, str) and _is_whole(found):
            return int(found)  # as Pulsar, and its tests, take it
        if isinstance(found, bool) or not isinstance(found, int):
            raise ValueError("it must be a whole number")
        return found


class Flag(Kind):
    """True or False."""

    __slots__ = ()

    body: str = "boolean"
    annotation: str = "bool"
    answer: str = "bool"

    def __init__(self, said: str = "must be bool") -> None:
        super().__init__(said, "a flag")

    def takes(self, value: Any) -> bool:
        return isinstance(value, bool)

    def read(self, found: Any) -> bool:
        if not isinstance(found, bool):
            raise ValueError("it must be true or false")
        return found


class Choice(Kind):
    """One of some words."""

    __slots__ = ("choices",)

    body: str = "string"
    annotation: str = "str"
    answer: str = "str"

    def __init__(self, choices: tuple[str, ...], said: str = "", unit: str = "a word") -> None:
        super().__init__(said or f"must be {' or '.join(choices)}", unit)
        self.choices: tuple[str, ...] = choices

    def takes(self, value: Any) -> bool:
        return value in self.choices

    def read(self, found: Any) -> str:
        if not isinstance(found, str):
            raise ValueError("it must be a text")
        return found


class Choices(Kind):
    """Some of some words, at least one."""

    __slots__ = ("choices",)

    body: str = "array"
    annotation: str = "Iterable[str]"
    answer: str = "list[str]"

    def __init__(self, choices: tuple[str, ...]) -> None:
        super().__init__("", "names")
        self.choices: tuple[str, ...] = choices

    def check(self, name: str, value: object) -> list[str]:
        """In the order of the choices."""
        return list(check_choices(name, value, self.choices))

    def read(self, found: Any) -> list[Any]:
        if not isinstance(found, list):
            raise ValueError("it must be a list")
        return found


class Field:
    """A field of a record. A value."""

    __slots__ = ("argument", "default", "json_default", "kind", "name", "option", "theirs")

    def __init__(
        self,
        name: str,
        theirs: str,
        kind: Kind,
        *,
        default: Any = REQUIRED,
        json_default: Any = REQUIRED,
        option: str = "",
        argument: str = "",
    ) -> None:
        """theirs: Pulsar's name in JSON. default: where a call leaves it out; json_default: where
        JSON does, and another holds there. option: the broker's that holds where no level sets the
        policy, or several, the first that is not None; else that is the default of JSON. argument:
        of client.admin, where that is not the name."""
        self.name: str = name
        self.theirs: str = theirs
        self.kind: Kind = kind
        self.default: Any = default
        self.json_default: Any = default if json_default is REQUIRED else json_default
        self.option: str = option
        self.argument: str = argument or name


class Record(Kind):
    """An object with fields, all of which it has."""

    __slots__ = ("also", "called", "fields")

    answer = "dict[str, Any]"

    def __init__(
        self,
        *fields: Field,
        called: str = "",
        also: Callable[[Json], None] | None = None,
    ) -> None:
        """called: in errors, where that is not the policy's name. also: what else must hold of a
        value; ValueError: it does not."""
        super().__init__("", ", ".join(f"`{each.name}`" for each in fields))
        self.fields: tuple[Field, ...] = fields
        self.called: str = called
        self.also: Callable[[Json], None] | None = also

    def check(self, name: str, value: object) -> Json:
        name = self.called or name
        if not isinstance(value, dict) or set(value) != {each.name for each in self.fields}:
            raise ValueError(f"{name}: {value!r:.200} is no such policy")
        for each in self.fields:
            each.kind.check(f"{name}: {each.name}", value[each.name])
        if self.also is not None:
            self.also(value)
        return value

    def shown(self, value: Any) -> Json:
        return {each.theirs: value[each.name] for each in self.fields}

    def read(self, found: Any) -> Json:
        if not isinstance(found, dict):
            raise ValueError("it must be a JSON object")
        whole = {each.theirs: each.json_default for each in self.fields} | found
        missing = [each.theirs for each in self.fields if whole[each.theirs] is REQUIRED]
        if missing:
            raise ValueError(f"it lacks {', '.join(missing)}")
        return {each.name: whole[each.theirs] for each in self.fields}

    def unset(self, options: BrokerOptions, names: str) -> Json:
        return {
            each.name: each.kind.unset(options, each.option) if each.option else each.json_default
            for each in self.fields
        }


def _is_whole(text: str) -> bool:
    """Whether a text is a number in digits. Without `re`, which help of commands would pay for."""
    digits = text.removeprefix("-")
    return len(digits) <= _DIGITS_MAX and digits.isascii() and digits.isdecimal()
