"""Every exception of the library. A leaf: imports nothing of ours, so that the core may import it.

The first group has the names and texts of the official client. The second adds what an embedded
broker can meet; each is a subclass of an official one, so that code written for the official client
catches it.
"""

from __future__ import annotations

import posix


class PulsarException(Exception):
    """Base of all. Its text starts with `Pulsar error: ` and the name of the result, as in the
    official client."""

    _result = "UnknownError"

    def __init__(self, detail: str | None = None) -> None:
        text = f"Pulsar error: {self._result}"
        super().__init__(text if not detail else f"{text}: {detail}")


def detail_of(error: Exception) -> str:
    """The text of an error, to be put into another: without the words each of ours begins with."""
    return str(error).removeprefix(f"Pulsar error: {getattr(error, '_result', '')}: ")


def _official(name: str, result: str | None = None) -> type[PulsarException]:
    made = type(name, (PulsarException,), {"_result": result or name, "__module__": __name__})
    return made


class AlreadyClosed(PulsarException):
    """The object was closed. Do not use it again."""

    _result = "AlreadyClosed"


class BrokerMetadataError(PulsarException):
    """The catalogue could not be read or written, or others still use what was to be removed."""

    _result = "BrokerMetadataError"


class BrokerPersistenceError(PulsarException):
    """Storing or reading failed."""

    _result = "BrokerPersistenceError"


class ChecksumError(PulsarException):
    """Bytes are not what was published."""

    _result = "ChecksumError"


class ConnectError(PulsarException):
    """The broker cannot be reached; in process: the folder cannot be opened."""

    _result = "ConnectError"


class ConsumerBusy(PulsarException):
    """The subscription already has its consumer."""

    _result = "ConsumerBusy"


class Interrupted(PulsarException):
    """A signal handler raised during a blocking call; its exception is the cause of this one."""

    _result = "ResultInterrupted"


class InvalidConfiguration(PulsarException):
    """The options do not go together, or not with what is already open."""

    _result = "InvalidConfiguration"


class InvalidTopicName(PulsarException):
    """Not a topic name."""

    _result = "InvalidTopicName"


class InvalidUrl(PulsarException):
    """Not a folder, `file:`, `memory:` or `pulsar:` URL."""

    _result = "InvalidUrl"


class MessageTooBig(PulsarException):
    """Larger than `max_message_size`."""

    _result = "MessageTooBig"


class OperationNotSupported(PulsarException):
    """Cannot be done here; the text says what can."""

    _result = "OperationNotSupported"


class ProducerBusy(PulsarException):
    """A producer of this name is already on the topic."""

    _result = "ProducerBusy"


class ProducerQueueIsFull(PulsarException):
    """`max_pending_messages` are on their way and `block_if_queue_full` is off. Wait and send
    again."""

    _result = "ProducerQueueIsFull"


class SubscriptionNotFound(PulsarException):
    """No such subscription on the topic."""

    _result = "SubscriptionNotFound"


class Timeout(PulsarException):
    """Nothing came in the time given. Not a `TimeoutError`, as in the official client."""

    _result = "TimeOut"


class TopicNotFound(PulsarException):
    """No such topic, namespace or tenant."""

    _result = "TopicNotFound"


class UnsupportedVersionError(PulsarException):
    """Written by a newer version."""

    _result = "UnsupportedVersionError"


class NotAllowedError(PulsarException):
    """Not allowed in the present state; the text says why."""

    _result = "ResultNotAllowedError"


class CumulativeAcknowledgementNotAllowedError(PulsarException):
    """Cumulative acknowledgement on a Shared or Key_Shared subscription."""

    _result = "ResultCumulativeAcknowledgementNotAllowedError"


AuthenticationError = _official("AuthenticationError")
AuthorizationError = _official("AuthorizationError")
ConsumerAssignError = _official("ConsumerAssignError", "ResultConsumerAssignError")
ConsumerNotFound = _official("ConsumerNotFound")
ConsumerNotInitialized = _official("ConsumerNotInitialized")
CryptoError = _official("CryptoError")
ErrorGettingAuthenticationData = _official("ErrorGettingAuthenticationData")
IncompatibleSchema = _official("IncompatibleSchema")
InvalidMessage = _official("InvalidMessage")
InvalidTxnStatusError = _official("InvalidTxnStatusError", "ResultInvalidTxnStatusError")
LookupError = _official("LookupError")
MemoryBufferIsFull = _official("MemoryBufferIsFull", "ResultMemoryBufferIsFull")
NotConnected = _official("NotConnected")
ProducerBlockedQuotaExceededError = _official("ProducerBlockedQuotaExceededError")
ProducerBlockedQuotaExceededException = _official("ProducerBlockedQuotaExceededException")
ProducerFenced = _official("ProducerFenced", "ResultProducerFenced")
ProducerNotInitialized = _official("ProducerNotInitialized")
ReadError = _official("ReadError")
ServiceUnitNotReady = _official("ServiceUnitNotReady")
TooManyLookupRequestException = _official("TooManyLookupRequestException")
TopicTerminated = _official("TopicTerminated")
TransactionConflict = _official("TransactionConflict", "ResultTransactionConflict")
TransactionCoordinatorNotFoundError = _official(
    "TransactionCoordinatorNotFoundError", "ResultTransactionCoordinatorNotFoundError"
)
TransactionNotFound = _official("TransactionNotFound", "ResultTransactionNotFound")


class UnknownError(PulsarException):
    """An error of which nothing better is known."""

    _result = "UnknownError"


class InterruptedByKeyboard(Interrupted, KeyboardInterrupt):
    """Ctrl-C during a blocking call: both what the official client raises and what Python users
    expect."""


class StorageError(BrokerPersistenceError):
    """The disk or the operating system refused."""


class StorageFullError(StorageError):
    """No room on the device. Nothing was written; it works again once there is room."""


class LedgerPoisonedError(StorageError):
    """A flush failed, so what is on disk is unknown. Close the client and open it again."""


class CorruptDataError(StorageError, ChecksumError):
    """A file is not what was written. The text names file or ledger, entry and offset."""


class UnreadableEntryError(CorruptDataError):
    """An entry would be larger than this client allows, or is compressed in a way this version does
    not know. Its messages stay unacknowledged."""


class DataLossError(StorageError):
    """Messages that were asked for are not there any more: retention removed them."""


class CatalogueError(BrokerMetadataError, StorageError):
    """A commit of the catalogue is damaged or missing."""


class FolderOwnedError(ConnectError):
    """Another process owns the data directory; the text names its pid."""


class FolderError(ConnectError, InvalidUrl):
    """The path is no data directory and cannot become one."""


class NewerFormatError(UnsupportedVersionError):
    """The folder or file was written by a newer PulsarX. Upgrade to open it."""


class ForkedError(AlreadyClosed):
    """This process was forked from the owner of the client. Open a client of its own in the
    child."""


_pid = posix.getpid()
_parent_pid = 0  # of a forked process: the process that forked it


def _note_parent() -> None:
    global _parent_pid, _pid
    _parent_pid, _pid = _pid, posix.getpid()  # the parent may be gone by now, so it is not asked


posix.register_at_fork(after_in_child=_note_parent)


def parent_pid() -> int:
    """The process that forked this one; 0: it was not forked since PulsarX was imported."""
    return _parent_pid


def forked_error(owner_pid: int) -> ForkedError:
    """The error that every call of an inherited client raises.

    owner_pid: the process that opened it.
    """
    relation = "the parent" if owner_pid == _parent_pid else "an ancestor"
    return ForkedError(
        f"the client was opened by {relation} of this process (process {owner_pid}), which owns "
        "it; open one here, with read_only=True for a folder that the owner has open"
    )


class InternalError(UnknownError):
    """A bug of PulsarX. Please report it with the text."""


__all__ = sorted(
    name
    for name, found in list(globals().items())
    if isinstance(found, type) and issubclass(found, PulsarException)
)
