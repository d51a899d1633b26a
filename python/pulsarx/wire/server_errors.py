"""The error codes of Pulsar's binary protocol (ServerError), and what raises which."""

from __future__ import annotations

from pulsarx import errors

UNKNOWN = 0
NOT_READY = 6
CHECKSUM = 9
SUBSCRIPTION_NOT_FOUND = 12
NO_COORDINATOR = 20
NOT_ALLOWED = 22

# The first row of a class is its code; a subclass without a row has its base's.
_TABLE: tuple[tuple[int, type[errors.PulsarException]], ...] = (
    (UNKNOWN, errors.UnknownError),
    (CHECKSUM, errors.ChecksumError),
    (CHECKSUM, errors.CorruptDataError),  # two bases: this is the one that a client acts on
    (1, errors.BrokerMetadataError),
    (2, errors.BrokerPersistenceError),
    (3, errors.AuthenticationError),
    (4, errors.AuthorizationError),
    (5, errors.ConsumerBusy),
    (NOT_READY, errors.ServiceUnitNotReady),
    (NOT_READY, errors.AlreadyClosed),
    (7, errors.ProducerBlockedQuotaExceededError),
    (8, errors.ProducerBlockedQuotaExceededException),
    (10, errors.UnsupportedVersionError),
    (11, errors.TopicNotFound),
    (SUBSCRIPTION_NOT_FOUND, errors.SubscriptionNotFound),
    (13, errors.ConsumerNotFound),
    (14, errors.TooManyLookupRequestException),
    (15, errors.TopicTerminated),
    (16, errors.ProducerBusy),
    (18, errors.IncompatibleSchema),
    (19, errors.ConsumerAssignError),
    (NOT_ALLOWED, errors.NotAllowedError),
    (NOT_ALLOWED, errors.OperationNotSupported),
    (NOT_ALLOWED, errors.CumulativeAcknowledgementNotAllowedError),
    (NOT_ALLOWED, errors.MessageTooBig),
    (NOT_ALLOWED, errors.InvalidConfiguration),
    (NOT_ALLOWED, errors.InvalidTopicName),  # clients try 17 again and again
    (NO_COORDINATOR, errors.TransactionCoordinatorNotFoundError),
    (21, errors.InvalidTxnStatusError),
    (23, errors.TransactionConflict),
    (24, errors.TransactionNotFound),
    (25, errors.ProducerFenced),
)
_CODES = {kind: code for code, kind in reversed(_TABLE)}
_CLASSES = dict(reversed(_TABLE)) | {17: errors.InvalidTopicName}


def code_of(error: BaseException) -> int:
    """The code that a client is told of an error."""
    return next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), UNKNOWN)


def error_of(code: int, message: str) -> errors.PulsarException:
    """The error that a client raises for a code; one that is not known is an UnknownError."""
    return _CLASSES.get(code, errors.UnknownError)(detail=message)


def error_named(name: str, message: str, attributes: object = None) -> Exception:
    """The error that an answer names by its class, as those of verbs do."""
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, errors.PulsarException):
        return errors.remade(kind, message, attributes)
    return (
        ValueError(message)
        if name == "ValueError"
        else errors.UnknownError(detail=f"{name}: {message}")
    )


def message_of(error: BaseException) -> str:
    """Return what an error says, for the message of an answer."""
    if isinstance(error, errors.PulsarException):
        return errors.detail_of(error)
    return f"{type(error).__name__}: {error}"
