"""The configuration classes of `_pulsar`. One name asks and sets: without an argument it answers
the value, with one it sets it and returns the configuration."""

from __future__ import annotations

from types import MethodType

from pulsarx.enumerations import (
    Enumeration,
    InitialPosition,
    LoggerLevel,
    PartitionsRoutingMode,
    SchemaType,
)
from pulsarx.options.argument_check import INT32_MAX, INT64_MAX, native_integer, native_type
from pulsarx.options.authentication import Authentication, CryptoKeyReader
from pulsarx.options.base import ClientOptions, Options, Whole
from pulsarx.options.consumer_policies import (
    BatchReceivePolicy,
    DeadLetterPolicy,
    KeySharedPolicy,
)
from pulsarx.options.loggers import ConsoleLogger, FileLogger
from pulsarx.options.members import (
    ConsumerOptions,
    ProducerOptions,
    ReaderOptions,
    TableViewOptions,
)
from pulsarx.schema.schema import SchemaInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Self


class Setting:
    """A method of a configuration, of any value. Base of the others."""

    def __init__(self, default: Any, answers: bool = True) -> None:
        """answers: whether it can be asked, too."""
        self.default = default
        self.answers = answers

    def __set_name__(self, owner: type, name: str) -> None:
        self.__name__ = name
        self.__qualname__ = f"{owner.__name__}.{name}"

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __call__(self, configuration: Any, *value: Any) -> Any:
        values = configuration._values
        if not value and self.answers:
            return values.get(self.__name__, self.default)
        if len(value) != 1:
            raise TypeError(f"{self.__qualname__}() takes one argument, not {len(value)}")
        values[self.__name__] = self.checked(value[0])
        return configuration

    def checked(self, value: Any) -> Any:
        return value


class Of(Setting):
    """Takes values of a class."""

    def __init__(self, kind: type, default: Any, answers: bool = True) -> None:
        super().__init__(default, answers)
        self._kind = kind

    def checked(self, value: Any) -> Any:
        native_type(self._kind, value, self.__name__)
        return value


class Flag(Setting):
    """Takes what is true or not."""

    def checked(self, value: Any) -> bool:
        return bool(value)


class Integer(Setting):
    """Takes integers. TypeError: outside of the C++ type; ValueError: below `least`."""

    def __init__(
        self, default: int, lowest: int = -INT32_MAX - 1, highest: int = INT32_MAX, least: int = 0
    ) -> None:
        super().__init__(default)
        self._bounds = lowest, highest
        self._least = least

    def checked(self, value: Any) -> int:
        number = native_integer(value, self.__name__, *self._bounds)
        if self._least and number < self._least:
            raise ValueError(f"{self.__name__} must be {self._least} or more, not {number}")
        return number


class Natural(Integer):
    """Takes integers from 0 up. ValueError: below it."""

    def checked(self, value: Any) -> int:
        number = super().checked(value)
        if number < 0:
            raise ValueError(f"{self.__name__} must be 0 or more, not {number}")
        return number


class UnackedTimeout(Integer):
    """Takes 0, or 10 seconds and more."""

    def checked(self, value: Any) -> int:
        number = super().checked(value)
        if 0 < number < 10_000:
            raise ValueError(f"{self.__name__} must be 0, or 10000 or more, not {number}")
        return number


def setting_of(kind: Any, default: Any) -> Setting | None:
    """The setting of an argument that takes the values of the call of `pulsar`; None: it has
    others."""
    if kind is bool:
        return Flag(default)
    if isinstance(kind, Whole) and default is not None:
        return Integer(default)
    if kind is str and default is None:
        return Of(str, "")
    if kind is CryptoKeyReader:
        return Of(kind, None, answers=False)
    if isinstance(kind, type) and issubclass(kind, Enumeration):
        return Of(kind, default)
    return None


class Configuration:
    """Base of the configurations. A subclass has the settings of a class of options, and writes
    those down that differ."""

    RENAMED: ClassVar[dict[str, str]] = {}
    """Settings that the call of `pulsar` knows by another name."""
    EMPTY: ClassVar[tuple[Any, ...]] = ("",)
    """The values that stand for an option that is not given."""

    def __init_subclass__(cls, options: type[Options], without: tuple[str, ...] = ()) -> None:
        """without: arguments that are no settings."""
        written = {*without, *cls.RENAMED.values(), *vars(cls)}
        for name, kind, default, is_official in options.ROWS:
            found = setting_of(kind, default) if is_official and name not in written else None
            if found is not None:
                found.__set_name__(cls, name)
                setattr(cls, name, found)

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def arguments(self) -> dict[str, Any]:
        """Return the settings as arguments of the call of `pulsar`. Not in the official client."""
        return {
            self.RENAMED.get(name, name): value
            for name, value in self._values.items()
            if value not in self.EMPTY
        }

    def _keep(self, name: str, value: Any) -> Self:
        self._values[name] = value
        return self

    def _add_property(self, name: str, value: str) -> Self:
        native_type(str, name, "name of a property")
        native_type(str, value, f"property {name}")
        return self._keep("properties", {**self._values.get("properties", {}), name: value})


NO_SCHEMA = SchemaInfo(SchemaType.BYTES, "BYTES", "")
UINT32_MAX, UINT64_MAX = 2 * INT32_MAX + 1, 2 * INT64_MAX + 1
INT64 = (-INT64_MAX - 1, INT64_MAX)


class ClientConfiguration(
    Configuration, options=ClientOptions, without=("log_conf_file_path", "use_tls")
):
    """Options of a client."""

    RENAMED = {"connection_timeout": "connection_timeout_ms"}  # noqa: RUF012

    authentication: Of = Of(Authentication, None, answers=False)
    connection_timeout: Integer = Integer(10000)
    stats_interval_in_seconds: Integer = Integer(600, 0, UINT32_MAX)
    listener_name: Of = Of(str, "", answers=False)
    tls_trust_certs_file_path: Of = Of(str, "", answers=False)
    tls_validate_hostname: Flag = Flag(False, answers=False)

    def set_logger(self, logger: Any) -> Self:
        """A `logging.Logger`."""
        return self._keep("logger", logger)

    def set_console_logger(self, level: LoggerLevel) -> Self:
        return self._keep("logger", ConsoleLogger(level))

    def set_file_logger(self, level: LoggerLevel, file: str) -> Self:
        return self._keep("logger", FileLogger(level, file))


class ProducerConfiguration(Configuration, options=ProducerOptions):
    """Options of a producer. Batching is on until it is set, other than in create_producer."""

    RENAMED = {"partitions_routing_mode": "message_routing_mode"}  # noqa: RUF012

    schema: Of = Of(SchemaInfo, NO_SCHEMA)
    initial_sequence_id: Integer = Integer(-1, *INT64)
    max_pending_messages: Natural = Natural(1000)
    max_pending_messages_across_partitions: Natural = Natural(50000)
    partitions_routing_mode: Of = Of(
        PartitionsRoutingMode, PartitionsRoutingMode.RoundRobinDistribution
    )
    message_router: Setting = Setting(None, answers=False)
    batching_enabled: Flag = Flag(True)
    batching_max_messages: Integer = Integer(1000, 0, UINT32_MAX, least=2)
    batching_max_allowed_size_in_bytes: Integer = Integer(131072, 0, UINT64_MAX)
    batching_max_publish_delay_ms: Integer = Integer(10, 0, UINT64_MAX)
    encryption_key: Of = Of(str, None, answers=False)

    def property(self, name: str, value: str) -> Self:
        return self._add_property(name, value)

    def arguments(self) -> dict[str, Any]:
        found = {"batching_enabled": True, **super().arguments()}
        if found.get("initial_sequence_id") == -1:
            del found["initial_sequence_id"]
        return found


class ConsumerConfiguration(Configuration, options=ConsumerOptions, without=("subscription_name",)):
    """Options of a consumer."""

    RENAMED = {  # noqa: RUF012
        "read_compacted": "is_read_compacted",
        "subscription_initial_position": "initial_position",
    }

    schema: Of = Of(SchemaInfo, NO_SCHEMA)
    message_listener: Setting = Setting(None, answers=False)
    batch_receive_policy: Of = Of(BatchReceivePolicy, BatchReceivePolicy(-1, 10485760, 100))
    unacked_messages_timeout_ms: UnackedTimeout = UnackedTimeout(0, 0, UINT64_MAX)
    broker_consumer_stats_cache_time_ms: Integer = Integer(30000, *INT64)
    read_compacted: Flag = Flag(False)
    negative_ack_redelivery_delay_ms: Integer = Integer(60000, *INT64)
    subscription_initial_position: Of = Of(InitialPosition, InitialPosition.Latest)
    replicate_subscription_state_enabled: Flag = Flag(False)
    max_pending_chunked_message: Integer = Integer(10, 0, UINT64_MAX)
    key_shared_policy: Of = Of(KeySharedPolicy, KeySharedPolicy())
    dead_letter_policy: Of = Of(DeadLetterPolicy, DeadLetterPolicy())

    def property(self, name: str, value: str) -> Self:
        return self._add_property(name, value)


class ReaderConfiguration(Configuration, options=ReaderOptions):
    """Options of a reader."""

    RENAMED = {"read_compacted": "is_read_compacted"}  # noqa: RUF012

    schema: Of = Of(SchemaInfo, NO_SCHEMA)
    reader_listener: Setting = Setting(None, answers=False)
    read_compacted: Flag = Flag(False)


class TableViewConfiguration(Configuration, options=TableViewOptions):
    """Options of a table view."""

    schema: Of = Of(SchemaInfo, NO_SCHEMA, answers=False)
    subscription_name: Of = Of(str, "", answers=False)
