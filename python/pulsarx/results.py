"""The results of the official client, by which a callback of `send_async` is told what became of a
message. Any layer may use them."""

from __future__ import annotations

from pulsarx.enumerations import Enumeration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar


class Result(Enumeration):
    """The results that a callback of `send_async` is told, by the names of the exceptions."""

    __slots__ = ()
    Ok: ClassVar[Result]
    UnknownError: ClassVar[Result]
    InvalidConfiguration: ClassVar[Result]
    Timeout: ClassVar[Result]
    LookupError: ClassVar[Result]
    ConnectError: ClassVar[Result]
    ReadError: ClassVar[Result]
    AuthenticationError: ClassVar[Result]
    AuthorizationError: ClassVar[Result]
    ErrorGettingAuthenticationData: ClassVar[Result]
    BrokerMetadataError: ClassVar[Result]
    BrokerPersistenceError: ClassVar[Result]
    ChecksumError: ClassVar[Result]
    ConsumerBusy: ClassVar[Result]
    NotConnected: ClassVar[Result]
    AlreadyClosed: ClassVar[Result]
    InvalidMessage: ClassVar[Result]
    ConsumerNotInitialized: ClassVar[Result]
    ProducerNotInitialized: ClassVar[Result]
    ProducerBusy: ClassVar[Result]
    TooManyLookupRequestException: ClassVar[Result]
    InvalidTopicName: ClassVar[Result]
    InvalidUrl: ClassVar[Result]
    ServiceUnitNotReady: ClassVar[Result]
    OperationNotSupported: ClassVar[Result]
    ProducerBlockedQuotaExceededError: ClassVar[Result]
    ProducerBlockedQuotaExceededException: ClassVar[Result]
    ProducerQueueIsFull: ClassVar[Result]
    MessageTooBig: ClassVar[Result]
    TopicNotFound: ClassVar[Result]
    SubscriptionNotFound: ClassVar[Result]
    ConsumerNotFound: ClassVar[Result]
    UnsupportedVersionError: ClassVar[Result]
    TopicTerminated: ClassVar[Result]
    CryptoError: ClassVar[Result]
    IncompatibleSchema: ClassVar[Result]
    ConsumerAssignError: ClassVar[Result]
    CumulativeAcknowledgementNotAllowedError: ClassVar[Result]
    TransactionCoordinatorNotFoundError: ClassVar[Result]
    InvalidTxnStatusError: ClassVar[Result]
    NotAllowedError: ClassVar[Result]
    TransactionConflict: ClassVar[Result]
    TransactionNotFound: ClassVar[Result]
    ProducerFenced: ClassVar[Result]
    MemoryBufferIsFull: ClassVar[Result]
    Interrupted: ClassVar[Result]


def result_of(error: BaseException) -> Result:
    """The result that stands for an exception: the nearest official class, else UnknownError."""
    for kind in type(error).__mro__:
        result = Result.__members__.get(kind.__name__)
        if result is not None and kind.__module__ == "pulsarx.errors":
            return result
    return Result.UnknownError
