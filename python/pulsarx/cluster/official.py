"""The native layer of the official client (`_pulsar`), and how its things map to ours and back."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.enumerations import LoggerLevel, SchemaType
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

    from pulsarx.enumerations import Enumeration
    from pulsarx.options.authentication import Authentication
    from pulsarx.options.base import ClientOptions
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


def key_reader(options: ProducerOptions | ConsumerOptions | ReaderOptions) -> Any:
    given = options.crypto_key_reader
    if given is None:
        return None
    return native().CryptoKeyReader(given.public_key_path, given.private_key_path)


# Configurations -----------------------------------------------------------------------------------


def refuse(call: str, asked: dict[str, bool], why: str) -> None:
    """OperationNotSupported when one of these was asked for."""
    for what, is_asked in asked.items():
        if is_asked:
            raise errors.OperationNotSupported(detail=f"{call}({what}) on a cluster: {why}")


def client_configuration(options: ClientOptions) -> Any:
    conf = native().ClientConfiguration()
    given: Any = options
    if given.authentication is not None:
        conf.authentication(authentication(given.authentication))
    conf.operation_timeout_seconds(given.operation_timeout_seconds)
    conf.connection_timeout(given.connection_timeout_ms)
    conf.io_threads(given.io_threads)
    conf.message_listener_threads(given.message_listener_threads)
    conf.concurrent_lookup_requests(given.concurrent_lookup_requests)
    conf.stats_interval_in_seconds(given.stats_interval_in_seconds)
    _set_logger(conf, given.logger)
    if given.listener_name:
        conf.listener_name(given.listener_name)
    trusted = given.tls_trust_certs_file_path
    if not trusted:
        import certifi  # which the official client depends on

        trusted = certifi.where()
    conf.tls_trust_certs_file_path(trusted)
    conf.tls_allow_insecure_connection(given.tls_allow_insecure_connection)
    conf.tls_validate_hostname(given.tls_validate_hostname)
    if given.tls_private_key_file_path is not None:
        conf.tls_private_key_file_path(given.tls_private_key_file_path)
    if given.tls_certificate_file_path is not None:
        conf.tls_certificate_file_path(given.tls_certificate_file_path)
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
    conf = native().ProducerConfiguration()
    conf.send_timeout_millis(options.send_timeout_millis)
    conf.compression_type(enumeration(options.compression_type))
    conf.max_pending_messages(options.max_pending_messages)
    conf.max_pending_messages_across_partitions(options.max_pending_messages_across_partitions)
    conf.block_if_queue_full(options.block_if_queue_full)
    conf.batching_enabled(options.batching_enabled)
    conf.batching_max_messages(options.batching_max_messages)
    conf.batching_max_allowed_size_in_bytes(options.batching_max_allowed_size_in_bytes)
    conf.batching_max_publish_delay_ms(options.batching_max_publish_delay_ms)
    conf.partitions_routing_mode(enumeration(options.message_routing_mode))
    conf.batching_type(enumeration(options.batching_type))
    conf.chunking_enabled(options.chunking_enabled)
    conf.lazy_start_partitioned_producers(options.lazy_start_partitioned_producers)
    conf.access_mode(enumeration(options.access_mode))
    if options.producer_name:
        conf.producer_name(options.producer_name)
    if options.initial_sequence_id is not None:
        conf.initial_sequence_id(options.initial_sequence_id)
    for name, value in (options.properties or {}).items():
        conf.property(name, value)
    conf.schema(native_schema_of(options.schema))
    if options.encryption_key:
        conf.encryption_key(options.encryption_key)
    if (reader := key_reader(options)) is not None:
        conf.crypto_key_reader(reader)
    return conf


def consumer_configuration(options: ConsumerOptions) -> Any:
    """Without the listener."""
    conf = native().ConsumerConfiguration()
    given: Any = options
    conf.consumer_type(enumeration(given.consumer_type))
    conf.regex_subscription_mode(enumeration(given.regex_subscription_mode))
    conf.read_compacted(given.is_read_compacted)
    conf.receiver_queue_size(given.receiver_queue_size)
    conf.max_total_receiver_queue_size_across_partitions(
        given.max_total_receiver_queue_size_across_partitions
    )
    if given.consumer_name:
        conf.consumer_name(given.consumer_name)
    if given.unacked_messages_timeout_ms:
        conf.unacked_messages_timeout_ms(given.unacked_messages_timeout_ms)
    conf.negative_ack_redelivery_delay_ms(given.negative_ack_redelivery_delay_ms)
    conf.broker_consumer_stats_cache_time_ms(given.broker_consumer_stats_cache_time_ms)
    conf.pattern_auto_discovery_period(given.pattern_auto_discovery_period)
    for name, value in (given.properties or {}).items():
        conf.property(name, value)
    conf.subscription_initial_position(enumeration(given.initial_position))
    conf.schema(native_schema_of(given.schema))
    if (reader := key_reader(options)) is not None:
        conf.crypto_key_reader(reader)
    conf.crypto_failure_action(enumeration(given.crypto_failure_action))
    conf.replicate_subscription_state_enabled(bool(given.replicate_subscription_state_enabled))
    conf.max_pending_chunked_message(given.max_pending_chunked_message)
    conf.auto_ack_oldest_chunked_message_on_queue_full(
        given.auto_ack_oldest_chunked_message_on_queue_full
    )
    conf.start_message_id_inclusive(given.start_message_id_inclusive)
    conf.batch_index_ack_enabled(given.batch_index_ack_enabled)
    _set_policies(conf, given)
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
    conf.receiver_queue_size(options.receiver_queue_size)
    if options.reader_name:
        conf.reader_name(options.reader_name)
    if options.subscription_role_prefix:
        conf.subscription_role_prefix(options.subscription_role_prefix)
    conf.schema(native_schema_of(options.schema))
    conf.read_compacted(options.is_read_compacted)
    if (reader := key_reader(options)) is not None:
        conf.crypto_key_reader(reader)
    conf.start_message_id_inclusive(options.start_message_id_inclusive)
    conf.crypto_failure_action(enumeration(options.crypto_failure_action))
    return conf
