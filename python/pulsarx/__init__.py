"""Apache Pulsar's messaging model as an embedded library: topics in a folder, no server, no JVM.

    import pulsarx

    with pulsarx.Client("events") as client:
        producer = client.create_producer("orders")
        earliest = pulsarx.InitialPosition.Earliest
        consumer = client.subscribe("orders", "billing", initial_position=earliest)
        producer.send(b"hello")
        message = consumer.receive()
        consumer.acknowledge(message)

Names, arguments, defaults and exceptions are those of the official `pulsar-client`.
"""

from __future__ import annotations

from pulsarx.ground import linked_modules  # noqa: F401 - finds the others

# isort: split
from pulsarx import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx import access as access
    from pulsarx import admin as admin
    from pulsarx import aio as aio
    from pulsarx import backups as backups
    from pulsarx import exceptions as exceptions
    from pulsarx import forwarding as forwarding
    from pulsarx import functions as functions
    from pulsarx import hashing as hashing
    from pulsarx import rest as rest
    from pulsarx import schema as schema
    from pulsarx import server as server
    from pulsarx import spark as spark
    from pulsarx import testing as testing
    from pulsarx._pycore.message.encryption_context import EncryptionContext, EncryptionKey
    from pulsarx.broker_options import BrokerOptions
    from pulsarx.client import Client
    from pulsarx.clock import ManualClock, SystemClock
    from pulsarx.compat.alias import install_as_pulsar, uninstall_as_pulsar
    from pulsarx.consumer import Consumer
    from pulsarx.enumerations import (
        BatchingType,
        CompressionType,
        ConsumerCryptoFailureAction,
        ConsumerType,
        HashingScheme,
        InitialPosition,
        KeySharedMode,
        LoggerLevel,
        PartitionsRoutingMode,
        ProducerAccessMode,
        RegexSubscriptionMode,
        SubscriptionMode,
        TransactionState,
    )
    from pulsarx.errors import *  # noqa: F403
    from pulsarx.forwarding import Forwarder as Forwarder
    from pulsarx.interceptors import ConsumerInterceptor, OutgoingMessage, ProducerInterceptor
    from pulsarx.message import ArrowMessages, Message
    from pulsarx.message_id import MessageId, MessageIndex
    from pulsarx.options.authentication import (
        Authentication,
        AuthenticationAthenz,
        AuthenticationBasic,
        AuthenticationOauth2,
        AuthenticationTLS,
        AuthenticationToken,
        CryptoKeyReader,
    )
    from pulsarx.options.consumer_policies import (
        ConsumerBatchReceivePolicy,
        ConsumerDeadLetterPolicy,
        ConsumerKeySharedPolicy,
    )
    from pulsarx.options.loggers import ConsoleLogger, FileLogger
    from pulsarx.options.redelivery_backoff import MultiplierRedeliveryBackoff
    from pulsarx.options.service_info import AutoClusterFailover, ServiceInfo, ServiceInfoProvider
    from pulsarx.producer import Producer
    from pulsarx.reader import Reader
    from pulsarx.results import Result
    from pulsarx.table_view import TableView
    from pulsarx.transaction import Transaction

__version__ = "0.1.0"

__all__ = [
    "ArrowMessages",
    "Authentication",
    "AuthenticationAthenz",
    "AuthenticationBasic",
    "AuthenticationOauth2",
    "AuthenticationTLS",
    "AuthenticationToken",
    "AutoClusterFailover",
    "BatchingType",
    "BrokerOptions",
    "Client",
    "CompressionType",
    "ConsoleLogger",
    "Consumer",
    "ConsumerBatchReceivePolicy",
    "ConsumerCryptoFailureAction",
    "ConsumerDeadLetterPolicy",
    "ConsumerInterceptor",
    "ConsumerKeySharedPolicy",
    "ConsumerType",
    "CryptoKeyReader",
    "EncryptionContext",
    "EncryptionKey",
    "FileLogger",
    "HashingScheme",
    "InitialPosition",
    "KeySharedMode",
    "LoggerLevel",
    "ManualClock",
    "Message",
    "MessageId",
    "MessageIndex",
    "MultiplierRedeliveryBackoff",
    "OutgoingMessage",
    "PartitionsRoutingMode",
    "Producer",
    "ProducerAccessMode",
    "ProducerInterceptor",
    "Reader",
    "RegexSubscriptionMode",
    "Result",
    "ServiceInfo",
    "ServiceInfoProvider",
    "SubscriptionMode",
    "SystemClock",
    "TableView",
    "Transaction",
    "TransactionState",
    "__version__",
    "install_as_pulsar",
    "uninstall_as_pulsar",
]
__all__ += errors.__all__

# A program pays for what it uses: most of a start is loading modules.
_HOMES = {  # module: the public names that are loaded from it when they are asked for
    "pulsarx._pycore.message.encryption_context": ("EncryptionContext", "EncryptionKey"),
    "pulsarx.broker_options": ("BrokerOptions",),
    "pulsarx.client": ("Client",),
    "pulsarx.clock": (
        "ManualClock",
        "SystemClock",
    ),
    "pulsarx.compat.alias": ("install_as_pulsar", "uninstall_as_pulsar"),
    "pulsarx.consumer": ("Consumer",),
    "pulsarx.enumerations": (
        "BatchingType",
        "CompressionType",
        "ConsumerCryptoFailureAction",
        "ConsumerType",
        "HashingScheme",
        "InitialPosition",
        "KeySharedMode",
        "LoggerLevel",
        "PartitionsRoutingMode",
        "ProducerAccessMode",
        "RegexSubscriptionMode",
        "SubscriptionMode",
        "TransactionState",
    ),
    "pulsarx.errors": errors.__all__,
    "pulsarx.forwarding": ("Forwarder",),
    "pulsarx.interceptors": ("ConsumerInterceptor", "OutgoingMessage", "ProducerInterceptor"),
    "pulsarx.message": (
        "ArrowMessages",
        "Message",
    ),
    "pulsarx.message_id": ("MessageId", "MessageIndex"),
    "pulsarx.options.authentication": (
        "Authentication",
        "AuthenticationAthenz",
        "AuthenticationBasic",
        "AuthenticationOauth2",
        "AuthenticationTLS",
        "AuthenticationToken",
        "CryptoKeyReader",
    ),
    "pulsarx.options.consumer_policies": (
        "ConsumerBatchReceivePolicy",
        "ConsumerDeadLetterPolicy",
        "ConsumerKeySharedPolicy",
    ),
    "pulsarx.options.loggers": (
        "ConsoleLogger",
        "FileLogger",
    ),
    "pulsarx.options.redelivery_backoff": ("MultiplierRedeliveryBackoff",),
    "pulsarx.options.service_info": (
        "AutoClusterFailover",
        "ServiceInfo",
        "ServiceInfoProvider",
    ),
    "pulsarx.producer": ("Producer",),
    "pulsarx.reader": ("Reader",),
    "pulsarx.results": ("Result",),
    "pulsarx.table_view": ("TableView",),
    "pulsarx.transaction": ("Transaction",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
# Public modules, which `import pulsarx` is enough for; type checkers read them above.
_MODULES = (
    "access",
    "admin",
    "aio",
    "backups",
    "exceptions",
    "forwarding",
    "functions",
    "hashing",
    "rest",
    "schema",
    "server",
    "spark",
    "testing",
)


def _load(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None and name not in _MODULES:
        raise AttributeError(f"module 'pulsarx' has no attribute {name!r}")
    module = None if home is None else _loaded(home)
    if module is None:
        # Without importlib, which a start should not pay for.
        from pulsarx._pycore.ground.collector_paused import import_paused

        module = import_paused(home or f"pulsarx.{name}")
    found = module if home is None else getattr(module, name)
    globals()[name] = found
    return found


def _loaded(home: str) -> Any:
    """A module of the package that is there already; None: it is not. Nothing can be imported any
    more when the interpreter ends, but finalizers still ask for what to catch."""
    found = globals()
    for part in home.split(".")[1:]:
        module = found.get(part)
        if module is None:
            return None
        found = vars(module)
    return module


if not TYPE_CHECKING:  # type checkers know what is there, and what is not
    __getattr__ = _load


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
