"""Every exception of the library. A leaf: imports nothing else of ours, so that the core may
import it."""

# ruff: noqa: F403, F405 - the two modules define all that is listed here
from __future__ import annotations

import builtins
import sys

from pulsarx.errors.base import *
from pulsarx.errors.base import _remade  # noqa: F401 - as pickles name it

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from pulsarx.errors.calls import *

__all__ = [
    "AlreadyClosed",
    "AuthenticationError",
    "AuthorizationError",
    "BrokerMetadataError",
    "BrokerPersistenceError",
    "CatalogueError",
    "ChecksumError",
    "ConnectError",
    "ConsumerAssignError",
    "ConsumerBusy",
    "ConsumerNotFound",
    "ConsumerNotInitialized",
    "CorruptDataError",
    "CryptoError",
    "CumulativeAcknowledgementNotAllowedError",
    "DataLossError",
    "ErrorGettingAuthenticationData",
    "FolderError",
    "FolderOwnedError",
    "ForkedError",
    "IncompatibleSchema",
    "InternalError",
    "Interrupted",
    "InterruptedByKeyboard",
    "InvalidConfiguration",
    "InvalidMessage",
    "InvalidTopicName",
    "InvalidTxnStatusError",
    "InvalidUrl",
    "LedgerPoisonedError",
    "LookupError",
    "MemoryBufferIsFull",
    "MessageTooBig",
    "NewerFormatError",
    "NotAllowedError",
    "NotConnected",
    "OperationNotSupported",
    "ProducerBlockedQuotaExceededError",
    "ProducerBlockedQuotaExceededException",
    "ProducerBusy",
    "ProducerFenced",
    "ProducerNotInitialized",
    "ProducerQueueIsFull",
    "PulsarException",
    "ReadError",
    "ServiceUnitNotReady",
    "StorageError",
    "StorageFullError",
    "SubscriptionNotFound",
    "Timeout",
    "TooManyLookupRequestException",
    "TopicNotFound",
    "TopicTerminated",
    "TransactionConflict",
    "TransactionCoordinatorNotFoundError",
    "TransactionHasOperationFailed",
    "TransactionNotFound",
    "UnknownError",
    "UnreadableEntryError",
    "UnsupportedVersionError",
]


# Of calls, beside the classes.
_REST = ("forked_error", "missing_namespace", "missing_subscription", "missing_topic")
_finder = sys.path_importer_cache.get(__path__[0])  # base was found by it


def _load(name: str) -> Any:
    if name not in __all__ and name not in _REST:
        raise AttributeError(f"module 'pulsarx.errors' has no attribute {name!r}")
    try:
        from pulsarx.errors import calls
    except ImportError:
        if sys.meta_path:  # None when the interpreter ends
            raise
        calls = _run_calls()
    # All of them: when the interpreter ends, what is there by then needs no import.
    there = vars(calls)
    globals().update((each, there[each]) for each in (*__all__, *_REST) if each in there)
    return globals()[name]


def _run_calls() -> ModuleType:
    """The module calls when the interpreter ends. Finalizers run then that may raise and catch, and
    nothing can be imported any more: it gets what it imports from here, where all of that is."""
    name = f"{__name__}.calls"
    spec = None if _finder is None else _finder.find_spec(name)
    loader: Any = None if spec is None else spec.loader
    if loader is None:
        raise ImportError(f"{name} cannot be imported while Python ends", name=name)
    made = type(sys)(name)
    vars(made).update(globals())
    vars(made)["__builtins__"] = {**vars(builtins), "__import__": lambda *_: made}
    exec(loader.get_code(name), vars(made))
    return made


if not TYPE_CHECKING:  # type checkers know what is there, and what is not
    __getattr__ = _load


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
