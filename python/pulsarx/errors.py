"""Every exception of the library. A leaf: imports nothing of ours, so that the core may import it.

The first group has the names and texts of the official client. The second adds what an embedded
broker can meet; each is a subclass of an official one, so that code written for the official client
catches it.
"""

from __future__ import annotations

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MAX_DETAIL = 4000
_SHOWN = 200


def shown(value: object) -> str:
    """The repr of an argument for the text of an error, shortened: an argument may be of any size,
    and any object."""
    size = ""
    if isinstance(value, (str, bytes, bytearray)):
        if len(value) <= _SHOWN:
            return repr(value)
        size = f"{len(value)} {'characters' if isinstance(value, str) else 'bytes'}"
        return f"{value[:_SHOWN]!r}... ({size})"
    if isinstance(value, int) and value.bit_length() > 8 * _SHOWN:
        return f"an integer of {value.bit_length()} bits"  # Python refuses to write larger ones
    try:
        text = repr(value)
    except Exception:
        return f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def _cut(detail: str) -> str:
    left_out = len(detail) - MAX_DETAIL
    half = MAX_DETAIL // 2
    return f"{detail[:half]}... ({left_out} characters left out) ...{detail[-half:]}"


class PulsarException(Exception):
    """The base of all.

    `str` of an error that the official client raises too is exactly the text it has there, such as
    `Pulsar error: TimeOut`, because programs compare it. `detail` says what was done, where, with
    which values; a traceback shows it below that text, as a note. The errors that only PulsarX has
    have the detail in their text.

    detail: shortened in the middle when it is longer than 4,000 characters. attributes: those that
    the class has.
    """

    _text = ""
    _detail_in_text = False
    _attributes: tuple[str, ...] = ()  # what travels to another process besides the detail
    detail = ""

    def __init__(self, detail: str | None = None, **attributes: object) -> None:
        if attributes:
            self.__dict__.update(attributes)
        text = self._text
        if not detail or detail == text:
            super().__init__(text)
            return
        if len(detail) > MAX_DETAIL:
            detail = _cut(detail)
        self.detail = detail
        if not text:  # a program's own error
            super().__init__(detail)
        elif self._detail_in_text:
            super().__init__(f"{text}: {detail}")
        else:
            super().__init__(text)
            self.add_note(detail)

    def __reduce__(self) -> tuple[Any, ...]:
        state = self.__dict__.copy()
        if "__notes__" in state:
            state["__notes__"] = list(state["__notes__"])  # a copy gets notes of its own
        return _remade, (type(self), self.args), state


def _remade(kind: type[PulsarException], args: tuple[Any, ...]) -> PulsarException:
    return kind.__new__(kind, *args)


def detail_of(error: BaseException) -> str:
    """What an error says to people, to be put into a log or into another error."""
    return getattr(error, "detail", "") or str(error)


def again(error: Exception) -> Exception:
    """The same error for another caller: each raises an object of its own."""
    import copy

    return copy.copy(error)


def attributes_of(error: BaseException) -> dict[str, Any]:
    """The attributes besides `detail` that an error has when it reaches another process; values are
    JSON."""
    names = error._attributes if isinstance(error, PulsarException) else ()
    return {name: value for name in names if (value := getattr(error, name)) is not None}


def remade(kind: type[PulsarException], detail: str, attributes: object = None) -> PulsarException:
    """The error of another process. attributes: of attributes_of; what the class does not have, a
    newer PulsarX may have sent, and is left out."""
    told = attributes if isinstance(attributes, dict) else {}
    return kind(detail, **{name: told[name] for name in kind._attributes if name in told})


class AlreadyClosed(PulsarException):
    """The object was closed. Do not use it again."""

    _text = "Pulsar error: AlreadyClosed"


class BrokerMetadataError(PulsarException):
    """The catalogue could not be read or written, or others still use what was to be removed."""

    _text = "Pulsar error: BrokerMetadataError"


class BrokerPersistenceError(PulsarException):
    """Storing or reading failed."""

    _text = "Pulsar error: BrokerPersistenceError"


class ChecksumError(PulsarException):
    """Bytes are not what was published."""

    _text = "Pulsar error: ChecksumError"


class ConnectError(PulsarException):
    """The broker cannot be reached; in process: the folder cannot be opened."""

    _text = "Pulsar error: ConnectError"


class ConsumerBusy(PulsarException):
    """The subscription already has its consumer."""

    _text = "Pulsar error: ConsumerBusy"


class Interrupted(PulsarException):
    """A signal handler raised during a blocking call; its exception is the cause of this one."""

    _text = "Pulsar error: ResultInterrupted"


class InvalidConfiguration(PulsarException):
    """The options do not go together, or not with what is already open.

    conflicts: option -> (what was asked for, what is in use), of a client whose folder is open with
    other options.
    """

    _text = "Pulsar error: InvalidConfiguration"
    conflicts: Mapping[str, tuple[Any, Any]] = {}


class InvalidTopicName(PulsarException):
    """Not a topic name."""

    _text = "Pulsar error: InvalidTopicName"


class InvalidUrl(PulsarException):
    """Not a folder, `file:`, `memory:` or `pulsar:` URL."""

    _text = "Pulsar error: InvalidUrl"


class MessageTooBig(PulsarException):
    """Larger than `max_message_size`. size, max_size: in bytes, where they are known."""

    _text = "Pulsar error: MessageTooBig"
    _attributes = ("size", "max_size")
    size: int | None = None
    max_size: int | None = None


class OperationNotSupported(PulsarException):
    """Cannot be done here; `detail` says what can."""

    _text = "Pulsar error: OperationNotSupported"


class ProducerBusy(PulsarException):
    """A producer of this name is already on the topic."""

    _text = "Pulsar error: ProducerBusy"


class ProducerQueueIsFull(PulsarException):
    """`max_pending_messages` are on their way and `block_if_queue_full` is off. Wait and send
    again."""

    _text = "Pulsar error: ProducerQueueIsFull"


class SubscriptionNotFound(PulsarException):
    """No such subscription on the topic."""

    _text = "Pulsar error: SubscriptionNotFound"


class Timeout(PulsarException):
    """Nothing came in the time given. Not a `TimeoutError`, as in the official client."""

    _text = "Pulsar error: TimeOut"


class TopicNotFound(PulsarException):
    """No such topic, namespace or tenant."""

    _text = "Pulsar error: TopicNotFound"


class UnsupportedVersionError(PulsarException):
    """Written by a newer version."""

    _text = "Pulsar error: UnsupportedVersionError"


class NotAllowedError(PulsarException):
    """Not allowed in the present state; `detail` says why."""

    _text = "Pulsar error: ResultNotAllowedError"


class CumulativeAcknowledgementNotAllowedError(PulsarException):
    """Cumulative acknowledgement on a Shared or Key_Shared subscription."""

    _text = "Pulsar error: ResultCumulativeAcknowledgementNotAllowedError"


class AuthenticationError(PulsarException):
    """The credentials are not of the form that their kind of authentication expects."""

    _text = "Pulsar error: AuthenticationError"


class AuthorizationError(PulsarException):
    """The credentials do not allow it."""

    _text = "Pulsar error: AuthorizationError"


class ConsumerAssignError(PulsarException):
    """The broker cannot give the consumer the part of the subscription that it asks for."""

    _text = "Pulsar error: ResultConsumerAssignError"


class ConsumerNotFound(PulsarException):
    """The broker does not know the consumer."""

    _text = "Pulsar error: ConsumerNotFound"


class ConsumerNotInitialized(PulsarException):
    """The consumer is not connected yet, or no more."""

    _text = "Pulsar error: ConsumerNotInitialized"


class CryptoError(PulsarException):
    """A message cannot be encrypted or decrypted, or a key is missing."""

    _text = "Pulsar error: CryptoError"


class ErrorGettingAuthenticationData(PulsarException):
    """The credentials could not be had."""

    _text = "Pulsar error: ErrorGettingAuthenticationData"


class IncompatibleSchema(PulsarException):
    """The schema does not go together with the schemas of the topic."""

    _text = "Pulsar error: IncompatibleSchema"


class InvalidMessage(PulsarException):
    """The broker does not take the message."""

    _text = "Pulsar error: InvalidMessage"


class InvalidTxnStatusError(PulsarException):
    """The transaction is not in the state that the call asks for."""

    _text = "Pulsar error: ResultInvalidTxnStatusError"


class LookupError(PulsarException):
    """The broker of a topic could not be found. Not the `LookupError` of Python."""

    _text = "Pulsar error: LookupError"


class MemoryBufferIsFull(PulsarException):
    """The producers of the client have `memory_limit_bytes` on their way, and `block_if_queue_full`
    is off. Wait and send again."""

    _text = "Pulsar error: ResultMemoryBufferIsFull"


class NotConnected(PulsarException):
    """There is no connection to a broker."""

    _text = "Pulsar error: NotConnected"


class ProducerBlockedQuotaExceededError(PulsarException):
    """The backlog quota of the topic is exceeded, and its policy holds producers back."""

    _text = "Pulsar error: ProducerBlockedQuotaExceededError"


class ProducerBlockedQuotaExceededException(PulsarException):
    """The backlog quota of the topic is exceeded, and its policy refuses messages."""

    _text = "Pulsar error: ProducerBlockedQuotaExceededException"


class ProducerFenced(PulsarException):
    """Another producer has the topic to itself."""

    _text = "Pulsar error: ResultProducerFenced"


class ProducerNotInitialized(PulsarException):
    """The producer is not connected yet, or no more."""

    _text = "Pulsar error: ProducerNotInitialized"


class ReadError(PulsarException):
    """The connection to the broker failed while reading."""

    _text = "Pulsar error: ReadError"


class ServiceUnitNotReady(PulsarException):
    """The broker does not serve the topic yet, or no more. Try again."""

    _text = "Pulsar error: ServiceUnitNotReady"


class TooManyLookupRequestException(PulsarException):
    """More lookups at once than the broker allows."""

    _text = "Pulsar error: TooManyLookupRequestException"


class TopicTerminated(PulsarException):
    """The topic was terminated: it takes no more messages, for ever."""

    _text = "Pulsar error: TopicTerminated"


class TransactionConflict(PulsarException):
    """Another transaction holds what this one acknowledges."""

    _text = "Pulsar error: ResultTransactionConflict"


class TransactionCoordinatorNotFoundError(PulsarException):
    """There is no coordinator for transactions."""

    _text = "Pulsar error: ResultTransactionCoordinatorNotFoundError"


class TransactionNotFound(PulsarException):
    """The transaction is not known."""

    _text = "Pulsar error: ResultTransactionNotFound"


class UnknownError(PulsarException):
    """An error of which nothing better is known."""

    _text = "Pulsar error: UnknownError"


class InterruptedByKeyboard(Interrupted, KeyboardInterrupt):
    """Ctrl-C during a blocking call: both what the official client raises and what Python users
    expect."""


class StorageError(BrokerPersistenceError):
    """The disk or the operating system refused. errno: what the system said, where it did."""

    _detail_in_text = True
    _attributes = ("errno",)
    errno: int | None = None


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

    _detail_in_text = True


class FolderOwnedError(ConnectError):
    """Another process owns the data directory. folder: its path. pid: of that process; None: it is
    just opening or closing the folder."""

    _detail_in_text = True
    _attributes = ("folder", "pid")
    folder: str | None = None
    pid: int | None = None


class FolderError(ConnectError, InvalidUrl):
    """The path is no data directory and cannot become one."""

    _detail_in_text = True


class NewerFormatError(UnsupportedVersionError):
    """The folder or file was written by a newer PulsarX. Upgrade to open it."""

    _detail_in_text = True


class ForkedError(AlreadyClosed):
    """This process was forked from the owner of the client. Open a client of its own in the
    child. owner_pid: the process that opened it, where it is known."""

    _detail_in_text = True
    _attributes = ("owner_pid",)
    owner_pid: int | None = None


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
        "it, and what it made there; consumers, readers and all that is in memory do not come "
        "along in a fork: make them here",
        owner_pid=owner_pid,
    )


class InternalError(UnknownError):
    """A bug of PulsarX. Please report it with the text."""

    _detail_in_text = True


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
    "TransactionNotFound",
    "UnknownError",
    "UnreadableEntryError",
    "UnsupportedVersionError",
]
