"""The exceptions that opening a folder does not name. Loaded with the first of them that is asked
for: making a class of exceptions takes as long as a small module, and most programs meet none.

The groups are those of base.py.
"""

from __future__ import annotations

from pulsarx.errors.base import (
    AlreadyClosed,
    PulsarException,
    StorageError,
    parent_pid,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__name__ = "pulsarx.errors"  # as in base.py


class ChecksumError(PulsarException):
    """Bytes are not what was published."""

    _text = "Pulsar error: ChecksumError"


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


class OperationNotSupported(PulsarException):
    """Cannot be done here; `detail` says what can."""

    _text = "Pulsar error: OperationNotSupported"


class CorruptDataError(StorageError, ChecksumError):
    """A file is not what was written. The text names file or ledger, entry and offset."""


class ForkedError(AlreadyClosed):
    """This process was forked from the owner of the client. Open a client of its own in the
    child. owner_pid: the process that opened it, where it is known."""

    _detail_in_text = True
    _attributes = ("owner_pid",)
    owner_pid: int | None = None


class ConsumerBusy(PulsarException):
    """The subscription already has its consumer."""

    _text = "Pulsar error: ConsumerBusy"


class Interrupted(PulsarException):
    """A call was interrupted: InterruptedByKeyboard by Ctrl-C, itself in the official client alone.
    What other handlers of signals raise comes out of a call as it is."""

    _text = "Pulsar error: ResultInterrupted"


class MessageTooBig(PulsarException):
    """Larger than `max_message_size`. size, max_size: in bytes, where they are known."""

    _text = "Pulsar error: MessageTooBig"
    _attributes = ("size", "max_size")
    size: int | None = None
    max_size: int | None = None


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


class TransactionHasOperationFailed(PulsarException):
    """A send or an acknowledgement in the transaction failed: it was aborted, and not committed."""

    _text = "Pulsar error: TransactionHasOperationFailed"
    _detail_in_text = True


class TransactionNotFound(PulsarException):
    """The transaction is not known."""

    _text = "Pulsar error: ResultTransactionNotFound"


class UnknownError(PulsarException):
    """An error of which nothing better is known."""

    _text = "Pulsar error: UnknownError"


class InterruptedByKeyboard(Interrupted, KeyboardInterrupt):
    """Ctrl-C during a blocking call: both what the official client raises and what Python users
    expect."""


class LedgerPoisonedError(StorageError):
    """A flush failed, so what is on disk is unknown. Close the client and open it again."""


class UnreadableEntryError(CorruptDataError):
    """An entry would be larger than this client allows, or is compressed in a way that cannot be
    undone here. Its messages stay unacknowledged."""


class DataLossError(StorageError):
    """Messages that were asked for are not there any more: retention removed them."""


class InternalError(UnknownError):
    """A bug of PulsarX. Please report it with the text."""

    _detail_in_text = True


def missing_topic(name: object, *, partitioned: bool = False) -> TopicNotFound:
    """The error of a topic that is not there, in Pulsar's words. name: the whole one. partitioned:
    one with partitions was asked for."""
    return TopicNotFound(
        detail=f"{'Partitioned Topic' if partitioned else 'Topic'} {name} not found"
    )


def missing_subscription(name: str, topic: object) -> SubscriptionNotFound:
    """The error of a subscription that is not there, in Pulsar's words."""
    return SubscriptionNotFound(detail=f"Subscription {name} not found for topic {topic}")


def missing_namespace(namespace: str, asked: str = "") -> TopicNotFound:
    """The error of a topic in a namespace that is not there. asked: what stands before it."""
    return TopicNotFound(
        detail=f"{asked}there is no namespace {namespace}; create it before: "
        f"client.admin.namespaces.create_namespace, `pulsarx namespaces create` or "
        f"`pulsarx run --namespace {namespace}`"
    )


def forked_error(owner_pid: int) -> ForkedError:
    """The error that every call of an inherited client raises.

    owner_pid: the process that opened it.
    """
    relation = "the parent" if owner_pid == parent_pid() else "an ancestor"
    return ForkedError(
        detail=f"the client was opened by {relation} of this process (process {owner_pid}), which "
        "owns it, and what it made there; consumers, readers and all that is in memory do not come "
        "along in a fork: make them here",
        owner_pid=owner_pid,
    )
