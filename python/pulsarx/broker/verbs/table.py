"""The table of everything that can be asked of an opened folder, for all callers.

`client.admin` asks in process, other processes over the control socket of the owner, and a process
that owns the folder for just one request asks itself. Arguments are untrusted; they are checked
here.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.ledgers.ledger_gone import LedgerTrimmed
from pulsarx.broker.topics.topic_gone import TopicGone
from pulsarx.broker.verbs import (  # noqa: F401 (what they declare is in VERBS)
    brokers,
    delayed_messages,
    figures,
    leases,
    ledgers,
    messages,
    namespaces,
    permissions,
    policies,
    schemas,
    subscriptions,
    tenants,
    topic_subscriptions,
    topics,
    transactions,
)
from pulsarx.broker.verbs.verb import VERBS
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.faces import OpenFolder

__all__ = ["VERBS", "perform"]

_NAME_SIZE_MAX = 32_767  # of a topic's full name
_LOOKS_MAX = 20
_INT_END = 1 << 63


def perform(folder: OpenFolder, name: object, arguments: object, read_only: bool = False) -> Any:
    """Do what is asked; the answer is what JSON can say. A call of the control plane.

    OperationNotSupported: no such verb, or one that changes something where nothing may be changed.
    ValueError: arguments the verb does not have. Else as the verb.
    """
    verb = VERBS.get(name) if isinstance(name, str) else None
    if verb is None:
        raise errors.OperationNotSupported(
            detail=f"request {name!r:.100} is not known to this version of PulsarX; it knows "
            f"{', '.join(sorted(VERBS))}"
        )
    if not isinstance(arguments, dict) or (
        set(arguments) - verb.optional != set(verb.kinds) - verb.optional
    ):
        required = [each for each in verb.kinds if each not in verb.optional]
        raise ValueError(f"request {name}: its arguments are {', '.join(required)}")
    for each, kind in verb.kinds.items():
        if each in arguments:
            _check(f"{name}: {each}", kind, arguments[each])
    if not verb.reads and (read_only or folder.read_only):
        raise errors.OperationNotSupported(detail=f"{name}: the folder was opened read_only")
    given = {
        each: TopicName.of(value) if verb.kinds[each] is TopicName else value
        for each, value in arguments.items()
    }
    looks = 0
    while True:
        folder.state.require_open()
        number = folder.catalogue.state.number
        try:
            return verb.function(folder, **given)
        except TopicGone:
            pass  # deleted or unloaded just after it was found: it is looked for again
        except (LedgerTrimmed, errors.NotAllowedError) as error:
            # Beside an owner, which may seal and remove ledgers between two steps of a look.
            looks += 1
            if not _has_moved(folder, number) or looks == _LOOKS_MAX:
                if isinstance(error, LedgerTrimmed):
                    raise errors.ServiceUnitNotReady(
                        detail=f"{name}: ledgers were removed while they were looked at; ask again"
                    ) from error
                raise


def _has_moved(folder: OpenFolder, number: int) -> bool:
    """Whether another process, which owns the folder, has committed something behind a commit."""
    if not folder.read_only:
        return False
    folder.refresh()
    return folder.catalogue.state.number != number


def _check(what: str, kind: type, value: object) -> None:
    is_text = kind is str or kind is TopicName
    if value.__class__ is not (str if is_text else kind) or (
        isinstance(value, str) and not 0 < len(value) <= _NAME_SIZE_MAX
    ):
        said = f"str of 1 to {_NAME_SIZE_MAX} characters" if is_text else kind.__name__
        raise ValueError(f"{what} must be {said}, not {value!r:.100}")
    if isinstance(value, int) and not -_INT_END <= value < _INT_END:
        raise ValueError(f"{what} must be an int of 64 bits, not {errors.shown(value)}")
