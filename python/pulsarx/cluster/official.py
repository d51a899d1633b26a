"""The native layer of the official client (`_pulsar`), and how its things map to ours and back."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.enumerations import Enumeration, LoggerLevel, SchemaType
from pulsarx.message_id import MessageId
from pulsarx.options.authentication import (
    AuthenticationAthenz,
    AuthenticationBasic,
    AuthenticationOauth2,
    AuthenticationTLS,
    AuthenticationToken,
)
from pulsarx.options.loggers import ConsoleLogger, FileLogger
from pulsarx.results import Result
from pulsarx.schema.schema import SchemaInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.options.authentication import Authentication
    from pulsarx.options.base import ClientOptions, Options
    from pulsarx.options.members import ConsumerOptions, ProducerOptions, ReaderOptions
    from pulsarx.schema.schema import Schema

_loaded: Any = None
_LEVELS = {"DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50}


def native() -> Any:
    """The module `_pulsar`. ImportError: the package is not installed. OperationNotSupported:
    PulsarX stands in its place in this process."""
    global _loaded
    if _loaded is None:
        try:
            import _pulsar as found
        except ImportError as error:
            raise ImportError(
                "a client of a Pulsar cluster needs the package pulsar-client: "
                "pip install 'pulsarx[pulsar]'"
            ) from error
        if (getattr(found, "__file__", None) or "").endswith(".py"):
            raise errors.OperationNotSupported(
                detail="PulsarX stands in for the package pulsar-client in this process, so that "
                "it connects to no cluster; name a route from the URL to a folder"
            )
        _loaded = found
    return _loaded


# Errors -------------------------------------------------------------------------------------------


def call(where: object, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a native function; its exception is raised as ours, with itself as the cause.

    where: named in the detail.
    """
    try:
        return function(*arguments)
    except _loaded.PulsarException as error:
        raise error_of(type(error).__name__, f"{function.__name__} of {where}") from error


def error_of(name: str, detail: str) -> errors.PulsarException:
    """Our exception of that name."""
    kind = getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, errors.PulsarException)):
        kind = errors.UnknownError
    made: errors.PulsarException = kind(detail=detail)
    return made


def result_of(result: Any) -> Result:
    """Our Result, of a native one."""
    return Result(int(result))


def error_of_result(result: Any, detail: str) -> errors.PulsarException:
    return error_of(result_of(result).name, detail)


# Values -------------------------------------------------------------------------------------------


def enumeration(value: Enumeration) -> Any:
    """The native member of the same enumeration and number."""
    return getattr(native(), type(value).__name__)(int(value))


def id_of(native_id: Any) -> MessageId:
    return MessageId.deserialize(native_id.serialize())


def native_id_of(message_id: MessageId) -> Any:
    kind = native().MessageId
    if message_id == MessageId.earliest:
        return kind.earliest
    if message_id == MessageId.latest:
        return kind.latest
    return kind.deserialize(message_id.serialize())


def schema_of(native_info: Any, version: int) -> SchemaInfo:
    kind = SchemaType(int(native_info.schema_type()))
    return SchemaInfo(kind, native_info.name(), native_info.schema(), None, version)


def native_schema_of(schema: Schema[Any]) -> Any:
    info = schema.schema_info()
    if info.schema_type() == SchemaType.KEY_VALUE or info.properties():
        raise errors.OperationNotSupported(
            detail=f"a {info.schema_type().name} schema on a cluster: the official client takes no "
            "properties of a schema, by which this one is described"
        )
    return native().SchemaInfo(enumeration(info.schema_type()), info.name(), info.schema())


def authentication(given: Authentication) -> Any:
    module, values = native(), given._parameters  # secret, so no public accessor tells them
    arguments: tuple[str, ...]
    if isinstance(given, AuthenticationTLS):
        kind, arguments = module.AuthenticationTLS, ("certificate_path", "private_key_path")
    elif isinstance(given, AuthenticationToken):
        kind, arguments = module.AuthenticationToken, ("token",)
    elif isinstance(given, AuthenticationAthenz):
        kind, arguments = module.AuthenticationAthenz, ("parameters",)
    elif isinstance(given, AuthenticationOauth2):
        kind, arguments = module.AuthenticationOauth2, ("parameters",)
    elif isinstance(given, AuthenticationBasic):
        named = (values["username"], values["password"], given._method)
        return call(given, module.AuthenticationBasic.create, *named)
    else:
        kind, arguments = module.Authentication, ("library", "parameters")
    return call(given, kind.create, *[values[name] for name in arguments])


# Configurations -----------------------------------------------------------------------------------


def refuse(call: str, asked: dict[str, bool], why: str) -> None:
    """OperationNotSupported when one of these was asked for."""
    for what, is_asked in asked.items():
        if is_asked:
            raise errors.OperationNotSupported(detail=f"{call}({what}) on a cluster: {why}")


_RENAMED = {
    "connection_timeout_ms": "connection_timeout",
    "initial_position": "subscription_initial_position",
    "is_read_compacted": "read_compacted",
    "message_routing_mode": "partitions_routing_mode",
}


def _set(conf: Any, options: Options, *others: str) -> None:
    """Set what the official client has, and the setter takes as it is given. others: arguments
    that are set in another way."""
    for name, _, _, is_official in options.ROWS:
        value = getattr(options, name)
        if not is_official or name in others or value is None or value == "":
            continue
        if isinstance(value, Enumeration):
            value = enumeration(value)
        getattr(conf, _RENAMED.get(name, name))(value)


def _set_parts(conf: Any, options: ProducerOptions | ConsumerOptions | ReaderOptions) -> None:
    """Set the options that producers, consumers and readers have in different kinds."""
    conf.schema(native_schema_of(options.schema))
    given = options.crypto_key_reader
    if given is not None:
        paths = (given.public_key_path, given.private_key_path)
        conf.crypto_key_reader(native().CryptoKeyReader(*paths))


def _set_properties(conf: Any, properties: dict[str, str] | None) -> None:
    for name, value in (properties or {}).items():
        conf.property(name, value)


def client_configuration(options: ClientOptions) -> Any:
    conf = native().ClientConfiguration()
    _set(
        conf,
        options,
        "service_url",
        "authentication",
        "log_conf_file_path",
        "use_tls",
        "logger",
        "tls_trust_certs_file_path",
    )
    if options.authentication is not None:
        conf.authentication(authentication(options.authentication))
    _set_logger(conf, options.logger)
    trusted = options.tls_trust_certs_file_path
    if not trusted:
        import certifi  # which the official client depends on

        trusted = certifi.where()
    conf.tls_trust_certs_file_path(trusted)
    return conf


def _set_logger(conf: Any, logger: Any) -> None:
    if isinstance(logger, ConsoleLogger):
        conf.set_console_logger(_level(logger.log_level))
    elif isinstance(logger, FileLogger):
        conf.set_file_logger(_level(logger.log_level), logger.log_file)
    elif logger is not None:

        def log(level: str, message: str) -> None:
            logger.log(_LEVELS.get(level, 20), "%s", message)

        conf.set_logger(log)


def _level(level: LoggerLevel) -> Any:
    return enumeration(level)


def producer_configuration(options: ProducerOptions) -> Any:
    """Without the router."""
    conf = native().ProducerConfiguration()
    _set(conf, options, "topic", "schema", "properties", "crypto_key_reader", "message_router")
    _set_parts(conf, options)
    _set_properties(conf, options.properties)
    return conf


def consumer_configuration(options: ConsumerOptions) -> Any:
    """Without the listener."""
    conf = native().ConsumerConfiguration()
    _set(
        conf,
        options,
        "topic",
        "subscription_name",
        "schema",
        "message_listener",
        "properties",
        "crypto_key_reader",
        "replicate_subscription_state_enabled",
        "batch_receive_policy",
        "key_shared_policy",
        "dead_letter_policy",
    )
    _set_parts(conf, options)
    _set_properties(conf, options.properties)
    conf.replicate_subscription_state_enabled(bool(options.replicate_subscription_state_enabled))
    _set_policies(conf, options)
    return conf


def _set_policies(conf: Any, given: Any) -> None:
    module = native()
    if given.batch_receive_policy is not None:
        batch = given.batch_receive_policy.policy()
        bounds = (batch.getMaxNumMessages(), batch.getMaxNumBytes(), batch.getTimeoutMs())
        conf.batch_receive_policy(module.BatchReceivePolicy(*bounds))
    if given.key_shared_policy is not None:
        keys = given.key_shared_policy
        shared = module.KeySharedPolicy()
        shared.set_key_shared_mode(enumeration(keys.key_shared_mode))
        shared.set_allow_out_of_order_delivery(keys.allow_out_of_order_delivery)
        if keys.sticky_ranges:
            shared.set_sticky_ranges(keys.sticky_ranges)
        conf.key_shared_policy(shared)
    if given.dead_letter_policy is not None:
        letters = given.dead_letter_policy
        builder = module.DeadLetterPolicyBuilder()
        builder.maxRedeliverCount(letters.max_redeliver_count)
        if letters.dead_letter_topic:
            builder.deadLetterTopic(letters.dead_letter_topic)
        if letters.initial_subscription_name:
            builder.initialSubscriptionName(letters.initial_subscription_name)
        conf.dead_letter_policy(builder.build())


def reader_configuration(options: ReaderOptions) -> Any:
    """Without the listener."""
    conf = native().ReaderConfiguration()
    others = ("topic", "start_message_id", "schema", "reader_listener", "crypto_key_reader")
    _set(conf, options, *others)
    _set_parts(conf, options)
    return conf
