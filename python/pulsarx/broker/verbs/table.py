"""Everything that can be asked of an opened folder: one table for all callers.

`client.admin` asks in process, other processes over the control socket of the owner, and a process
that owns the folder for just one request asks itself. Arguments are untrusted; they are checked
here.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.ledgers.ledger_list import LedgerTrimmed
from pulsarx.broker.topics.topic_gone import TopicGone
from pulsarx.broker.verbs import (
    brokers,
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
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.faces import OpenFolder
    from pulsarx.broker.verbs.verb import Verb

_NAME_SIZE_MAX = 32_767  # of a topic's full name
_LOOKS_MAX = 20
_INT_END = 1 << 63

VERBS: dict[str, Verb] = {
    **topics.VERBS,
    **topic_subscriptions.VERBS,
    **messages.VERBS,
    **figures.VERBS,
    **subscriptions.VERBS,
    **brokers.VERBS,
    **tenants.VERBS,
    **namespaces.VERBS,
    **policies.VERBS,
    **permissions.VERBS,
    **ledgers.VERBS,
    **leases.VERBS,
    **schemas.VERBS,
}


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
    if not isinstance(arguments, dict) or set(arguments) - set(verb.optional) != set(verb.kinds):
        raise ValueError(f"request {name}: its arguments are {', '.join(verb.kinds)}")
    for each, kind in {**verb.kinds, **verb.optional}.items():
        if each not in arguments:
            continue
        value = arguments[each]
        if value.__class__ is not kind or (
            isinstance(value, str) and not 0 < len(value) <= _NAME_SIZE_MAX
        ):
            raise ValueError(f"{name}: {each} must be {_said(kind)}, not {value!r:.100}")
        if isinstance(value, int) and not -_INT_END <= value < _INT_END:
            raise ValueError(f"{name}: {each} must be an int of 64 bits, not {errors.shown(value)}")
    if not verb.reads and (read_only or folder.read_only):
        raise errors.OperationNotSupported(detail=f"{name}: the folder was opened read_only")
    looks = 0
    while True:
        folder.state.require_open()
        number = folder.catalogue.state.number
        try:
            return verb.function(folder, **arguments)
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


def _said(kind: type) -> str:
    return f"str of 1 to {_NAME_SIZE_MAX} characters" if kind is str else kind.__name__
