"""The arguments of the official calls, checked as the official client does and kept together.

Each call has a class. Its table has a row for each argument: name, type (or its module and name, if
a start is not to load it), default, whether None is allowed. Arguments that only matter on a
network are checked, kept, and have no effect.
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
    from typing import Any, ClassVar

    from pulsarx.options.authentication import Authentication
    from pulsarx.options.loggers import ConsoleLogger, FileLogger
    from pulsarx.randomness import Randomness

    Row = tuple[str, type | tuple[str, str], Any, bool]

DURABILITIES = ("sync", "interval", "os")


class Required:
    """Default of an argument that has none."""


class Options:
    """Base: builds itself from keyword arguments. Immutable after that, by custom."""

    __slots__ = ()

    CALL: ClassVar[str] = ""
    ROWS: ClassVar[tuple[Row, ...]] = ()

    def __init__(self, **arguments: Any) -> None:
        """Missing arguments get their default; unknown ones raise TypeError, as in any call."""
        for name, kind, default, none_allowed in self.ROWS:
            value = arguments.pop(name, default)
            if value is default:  # mostly, and it needs no check
                if value is Required:
                    raise TypeError(f"{self.CALL}() needs the argument {name}")
                setattr(self, name, value)
                continue
            if isinstance(kind, tuple):  # already loaded, if the value is of that type
                kind = getattr(__import__(kind[0], None, None, kind[1:]), kind[1])
            if none_allowed:
                check_type_or_none(kind, value, name)
            else:
                check_type(kind, value, name)
            setattr(self, name, value)
        if arguments:
            raise TypeError(f"{self.CALL}() has no argument {next(iter(arguments))!r}")
        self._check()

    def _check(self) -> None:
        """Bounds, and whatever is more than a type."""

    def as_dict(self) -> dict[str, Any]:
        return {row[0]: getattr(self, row[0]) for row in self.ROWS}

    def _at_least_0(self, *names: str) -> None:
        for name in names:
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be 0 or more, not {shown(getattr(self, name))}")

    def _native(self, lowest: int, highest: int, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if value.__class__ is not int or not lowest <= value <= highest:
                native_integer(value, name, lowest, highest)

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

    __slots__ = (
        "service_url", "authentication", "operation_timeout_seconds", "io_threads",
        "message_listener_threads", "concurrent_lookup_requests", "log_conf_file_path",
        "stats_interval_in_seconds", "use_tls", "tls_trust_certs_file_path",
        "tls_allow_insecure_connection", "tls_validate_hostname", "logger",
        "connection_timeout_ms", "listener_name", "tls_private_key_file_path",
        "tls_certificate_file_path",
        "clock", "randomness", "durability", "flush_interval_ms", "broker_options", "read_only",
        "memory_limit_bytes", "exclusive",
    )
    CALL = "Client"
    # Only the first four, logger and the second group have an effect in process.
    ROWS = (
        ("service_url", object, Required, False),
        ("operation_timeout_seconds", int, 30, False),
        ("message_listener_threads", int, 1, False),
        ("stats_interval_in_seconds", int, 600, False),
        ("authentication", ("pulsarx.options.authentication", "Authentication"), None, True),
        ("io_threads", int, 1, False),
        ("concurrent_lookup_requests", int, 50000, False),
        ("log_conf_file_path", str, None, True),
        ("use_tls", bool, False, False),
        ("tls_trust_certs_file_path", str, None, True),
        ("tls_allow_insecure_connection", bool, False, False),
        ("tls_validate_hostname", bool, False, False),
        ("logger", object, None, True),
        ("connection_timeout_ms", int, 10000, False),
        ("listener_name", str, None, True),
        ("tls_private_key_file_path", str, None, True),
        ("tls_certificate_file_path", str, None, True),
        ("clock", Clock, None, True),
        ("randomness", ("pulsarx.randomness", "Randomness"), None, True),
        ("durability", str, None, True),
        ("flush_interval_ms", int, None, True),
        ("broker_options", BrokerOptions, None, True),
        ("read_only", bool, False, False),
        ("memory_limit_bytes", int, 0, False),
        ("exclusive", bool, False, False),
    )
    service_url: ServiceUrl
    authentication: Authentication | None
    operation_timeout_seconds: int
    message_listener_threads: int
    stats_interval_in_seconds: int
    logger: Logger | ConsoleLogger | FileLogger | None
    clock: Clock | None
    randomness: Randomness | None
    durability: str | None
    flush_interval_ms: int | None
    broker_options: BrokerOptions | None
    read_only: bool
    memory_limit_bytes: int
    exclusive: bool

    def _check(self) -> None:
        self._native(-INT32_MAX - 1, INT32_MAX, "operation_timeout_seconds", "io_threads",
                     "message_listener_threads", "concurrent_lookup_requests",
                     "connection_timeout_ms")
        self._native(0, INT32_MAX, "stats_interval_in_seconds")
        self._native(0, INT64_MAX, "memory_limit_bytes")
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
