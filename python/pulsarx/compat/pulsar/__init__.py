"""`pulsar`: the names of the official client. They stand here as there, those it leaks too."""

import logging
import re
import sys as _sys
from datetime import timedelta
from typing import Any as _Any
from typing import Callable, List, Optional, Tuple, Union

import _pulsar
from _pulsar import (
    BatchReceivePolicy,
    DeadLetterPolicyBuilder,
    KeySharedPolicy,
    MessageBatch,
)

from pulsarx._pycore.message.encryption_context import EncryptionContext, EncryptionKey
from pulsarx.client import Client
from pulsarx.compat.native_parts import give_parts as _give_parts
from pulsarx.consumer import Consumer
from pulsarx.enumerations import (
    BatchingType,
    CompressionType,
    ConsumerCryptoFailureAction,
    ConsumerType,
    InitialPosition,
    KeySharedMode,
    LoggerLevel,
    PartitionsRoutingMode,
    ProducerAccessMode,
    RegexSubscriptionMode,
)
from pulsarx.message import Message
from pulsarx.message_id import MessageId
from pulsarx.options.argument_check import check_type as _check_type
from pulsarx.options.argument_check import check_type_or_none as _check_type_or_none
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
from pulsarx.options.service_info import AutoClusterFailover, ServiceInfo, ServiceInfoProvider
from pulsarx.producer import Producer
from pulsarx.reader import Reader
from pulsarx.results import Result

from . import exceptions, functions, schema, tableview
from .__about__ import __version__
from .exceptions import *
from .functions.context import Context
from .functions.function import Function
from .functions.serde import IdentitySerDe, PickleSerDe, SerDe
from .schema.schema import BytesSchema
from .tableview import TableView

_give_parts()
_schema = schema
_retype = type(re.compile(""))
_sys.modules[f"{__name__}._pulsar"] = _pulsar


def _listener_wrapper(listener: _Any, schema: _Any) -> _Any:
    """The listener: it is handed what the official client has to wrap."""
    return listener


def _seek_arg_convert(seek_arg: _Any) -> _Any:
    """The argument of seek. ValueError: it is neither an id nor a time."""
    if isinstance(seek_arg, (MessageId, int)):
        return seek_arg
    raise ValueError(f"seek takes a MessageId or milliseconds, not {type(seek_arg).__name__}")
