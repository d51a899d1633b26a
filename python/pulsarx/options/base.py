"""The arguments of the official calls, checked as the official client does and kept together.

Each call has a class, which is the table of its arguments: a row says name, type, what is checked
and the default. Slots, ROWS and what other layers set of an official configuration come from it.
Arguments that only matter on a network are checked, kept, and have no effect.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker_options import BrokerOptions
from pulsarx.clock import Clock
from pulsarx.errors import shown
from pulsarx.options.argument_check import (
    INT32_MAX,
    INT64_MAX,
    check_type,
    check_type_or_none,
    native_integer,
)
from pulsarx.options.service_url import ServiceUrl, parse_service_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logging import Logger
    from typing import Any, ClassVar, TypeAlias

    from pulsarx.options.authentication import Authentication
    from pulsarx.options.loggers import ConsoleLogger, FileLogger
    from pulsarx.randomness import Randomness

    Kind: TypeAlias = "type | tuple[str, str] | Whole"
    Row = tuple[str, Kind, Any, bool]

DURABILITIES = ("sync", "interval", "os")


class Required:
    """Default of an argument that has none."""


class Whole:
    """Integers of a row, between the bounds of the C++ type."""

    __slots__ = ("highest", "is_count", "lowest")

    def __init__(self, lowest: int, highest: int, is_count: bool = False) -> None:
        """is_count: the official client itself refuses what is below 0, as a ValueError."""
        self.lowest: int = lowest
        self.highest: int = highest
        self.is_count: bool = is_count

    def check(self, value: int, name: str) -> None:
        """ValueError: no count. TypeError: out of bounds."""
        if self.is_count and value < 0:
            raise ValueError(f"{name} must be 0 or more, not {shown(value)}")
        native_integer(value, name, self.lowest, self.highest)


COUNT = Whole(0, INT32_MAX, True)
COUNT_64 = Whole(0, INT64_MAX, True)
SIGNED = Whole(-INT32_MAX - 1, INT32_MAX)
UNSIGNED = Whole(0, INT32_MAX)
SIGNED_64 = Whole(-INT64_MAX - 1, INT64_MAX)
UNSIGNED_64 = Whole(0, INT64_MAX)


class Argument:
    """The columns of a row beside the name."""

    __slots__ = ("default", "is_official", "kind")

    def __init__(self, kind: Kind, default: Any, is_official: bool) -> None:
        self.kind: Kind = kind
        self.default: Any = default
        self.is_official: bool = is_official


def row(kind: Kind, default: Any = Required) -> Any:
    """The row of an argument. kind: its type, or module and name of that, if a start is not to
    load it; or which integers. None is allowed where it is the default."""
    return Argument(kind, default, True)


def ours(kind: Kind, default: Any) -> Any:
    """The row of an argument that the official client does not have."""
    return Argument(kind, default, False)


def _check_value(name: str, kind: Kind, may_be_none: bool, value: Any) -> None:
    found = int if isinstance(kind, Whole) else kind
    if isinstance(found, tuple):  # already loaded, if the value is of that type
        found = getattr(__import__(found[0], None, None, found[1:]), found[1])
    if may_be_none:
        check_type_or_none(found, value, name)
    else:
        check_type(found, value, name)
    if isinstance(kind, Whole):
        kind.check(value, name)


class Table(type):
    """Makes the class of a call: a slot for each name that it annotates, and ROWS of its rows."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Table:
        rows = {each: value for each, value in body.items() if type(value) is Argument}
        for each in rows:
            del body[each]  # a slot takes its place
        body["__slots__"] = tuple(body.get("__annotations__", ()))
        body["ROWS"] = tuple(
            (each, found.kind, found.default, found.is_official) for each, found in rows.items()
        )
        return type.__new__(cls, name, bases, body)


class Options(metaclass=Table):
    """Base: builds itself from keyword arguments. Immutable after that, by custom."""

    CALL = ""
    if TYPE_CHECKING:
        ROWS: ClassVar[tuple[Row, ...]]  # (name, kind, default, whether it is official)

    def __init__(self, **arguments: Any) -> None:
        """Missing arguments get their default; unknown ones raise TypeError, as in any call."""
        for name, kind, default, _ in self.ROWS:
            value = arguments.pop(name, default)
            setattr(self, name, value)
            if value is default:  # mostly, and it needs no check
                if value is Required:
                    raise TypeError(f"{self.CALL}() needs the argument {name}")
            elif value.__class__ is not kind and not (
                kind.__class__ is Whole
                and value.__class__ is int
                and kind.lowest <= value <= kind.highest
            ):
                _check_value(name, kind, default is None, value)
        if arguments:
            raise TypeError(f"{self.CALL}() has no argument {next(iter(arguments))!r}")
        self._check()

    def _check(self) -> None:
        """Bounds, and whatever is more than a type."""

    def as_dict(self) -> dict[str, Any]:
        return {each[0]: getattr(self, each[0]) for each in self.ROWS}

    def __repr__(self) -> str:
        changed = (
            f"{name}={getattr(self, name)!r}"
            for name, _, default, _ in self.ROWS
            if getattr(self, name) != default
        )
        return f"{type(self).__name__}({', '.join(changed)})"


# fmt: off
class ClientOptions(Options):
    """Arguments of `Client`. The second group is not in the official client."""

    CALL = "Client"

    # Only the first four, logger and the second group have an effect in process.
    service_url: ServiceUrl = row(object)
    operation_timeout_seconds: int = row(SIGNED, 30)
    message_listener_threads: int = row(SIGNED, 1)
    stats_interval_in_seconds: int = row(UNSIGNED, 600)
    authentication: Authentication | None = row(
        ("pulsarx.options.authentication", "Authentication"), None
    )
    io_threads: int = row(SIGNED, 1)
    concurrent_lookup_requests: int = row(SIGNED, 50000)
    log_conf_file_path: str | None = row(str, None)
    use_tls: bool = row(bool, False)
    tls_trust_certs_file_path: str | None = row(str, None)
    tls_allow_insecure_connection: bool = row(bool, False)
    tls_validate_hostname: bool = row(bool, False)
    logger: Logger | ConsoleLogger | FileLogger | None = row(object, None)
    connection_timeout_ms: int = row(SIGNED, 10000)
    listener_name: str | None = row(str, None)
    tls_private_key_file_path: str | None = row(str, None)
    tls_certificate_file_path: str | None = row(str, None)
    clock: Clock | None = ours(Clock, None)
    randomness: Randomness | None = ours(("pulsarx.randomness", "Randomness"), None)
    durability: str | None = ours(str, None)
    flush_interval_ms: int | None = ours(int, None)
    broker_options: BrokerOptions | None = ours(BrokerOptions, None)
    read_only: bool = ours(bool, False)
    memory_limit_bytes: int = ours(UNSIGNED_64, 0)
    exclusive: bool = ours(bool, False)
    enable_busy_wait: bool = ours(bool, False)

    def _check(self) -> None:
        if self.logger is not None:
            from pulsarx.options.loggers import check_logger

            check_logger(self.logger)
        if self.durability is not None and self.durability not in DURABILITIES:
            raise ValueError(
                f"durability must be 'sync', 'interval' or 'os', not {shown(self.durability)}"
            )
        if self.flush_interval_ms is not None and not 1 <= self.flush_interval_ms <= INT32_MAX:
            raise ValueError(f"flush_interval_ms must be 1 or more, not "
                             f"{shown(self.flush_interval_ms)}")
        if self.exclusive and self.read_only:
            raise errors.InvalidConfiguration(
                detail="a client is read_only or exclusive, and not both"
            )
        # Last: a wrong argument is named before a folder is.
        self.service_url = parse_service_url(self.service_url)  # type: ignore[arg-type]
# fmt: on
