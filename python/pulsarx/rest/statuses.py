"""The HTTP status with which an error is told to a client."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.rest.call import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.rest.route import Route

# A subclass without a row has its base's.
_STATUSES: dict[type[BaseException], int] = {
    errors.SubscriptionNotFound: 404,
    errors.TransactionNotFound: 404,
    errors.InvalidTxnStatusError: 409,
    errors.IncompatibleSchema: 409,
    errors.TopicTerminated: 409,
    errors.ConsumerBusy: 412,
    errors.InvalidTopicName: 412,
    errors.InvalidConfiguration: 412,
    errors.OperationNotSupported: 405,
    errors.AuthorizationError: 403,
    errors.AuthenticationError: 401,
    errors.AlreadyClosed: 503,
    errors.FolderOwnedError: 503,
    errors.Timeout: 504,
    errors.PulsarException: 500,
}


def refusal_of(error: Exception, route: Route) -> Refusal | None:
    """The refusal that a client is told; None: the error is a bug."""
    if isinstance(error, Refusal):
        return error
    statuses = {
        **_STATUSES,
        errors.NotAllowedError: route.refused,
        errors.TopicNotFound: route.missing,
        ValueError: route.invalid,
    }
    for kind in type(error).__mro__:
        if kind in statuses:
            told = errors.detail_of(error) if isinstance(error, errors.PulsarException) else error
            return Refusal(statuses[kind], str(told))
    return None
