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

from pulsarx import errors
from pulsarx.broker_options import BrokerOptions
from pulsarx.client import Client
from pulsarx.clock import ManualClock, SystemClock
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
    Result,
    SubscriptionMode,
)
from pulsarx.errors import *  # noqa: F403
from pulsarx.message import ArrowMessages, Message
from pulsarx.message_id import MessageId
from pulsarx.options.authentication import (
    Authentication,
    AuthenticationAthenz,
    AuthenticationBasic,
    AuthenticationOauth2,
    AuthenticationTLS,
    AuthenticationToken,
)
from pulsarx.options.consumer_policies import (
    ConsumerBatchReceivePolicy,
    ConsumerDeadLetterPolicy,
    ConsumerKeySharedPolicy,
)
from pulsarx.options.loggers import ConsoleLogger, FileLogger
from pulsarx.options.redelivery_backoff import MultiplierRedeliveryBackoff
from pulsarx.producer import Producer
from pulsarx.reader import Reader

__version__ = "0.1.0"

__all__ = [
    "ArrowMessages",
    "Authentication",
    "AuthenticationAthenz",
    "AuthenticationBasic",
    "AuthenticationOauth2",
    "AuthenticationTLS",
    "AuthenticationToken",
    "BatchingType",
    "BrokerOptions",
    "Client",
    "CompressionType",
    "ConsoleLogger",
    "Consumer",
    "ConsumerBatchReceivePolicy",
    "ConsumerCryptoFailureAction",
    "ConsumerDeadLetterPolicy",
    "ConsumerKeySharedPolicy",
    "ConsumerType",
    "FileLogger",
    "HashingScheme",
    "InitialPosition",
    "KeySharedMode",
    "LoggerLevel",
    "ManualClock",
    "Message",
    "MessageId",
    "MultiplierRedeliveryBackoff",
    "PartitionsRoutingMode",
    "Producer",
    "ProducerAccessMode",
    "Reader",
    "RegexSubscriptionMode",
    "Result",
    "SubscriptionMode",
    "SystemClock",
    "__version__",
]
__all__ += errors.__all__
