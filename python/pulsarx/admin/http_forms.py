"""The JSON of Pulsar's admin REST API for what admin operations take and answer: for client and
server, so that what one writes the other reads."""

from __future__ import annotations

from pulsarx.message_id import MessageId
from pulsarx.options.argument_check import INT32_MAX, INT64_MAX, is_whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Json = dict[str, Any]

CLUSTER = "standalone"  # the only one of a folder


def _same(value: Any) -> Any:
    return value


class Form:
    """A value. shown: what is written for an argument or answer of a verb; read: what was written,
    as the verb has it. ValueError: it is nothing of the kind."""

    __slots__ = ("read", "shown")

    def __init__(
        self, shown: Callable[[Any], Any] = _same, read: Callable[[Any], Any] = _same
    ) -> None:
        self.shown: Callable[[Any], Any] = shown
        self.read: Callable[[Any], Any] = read


# Ids of messages ----------------------------------------------------------------------------------


def id_answer(text: str) -> Json:
    """A message id as a service answers it."""
    found = MessageId.from_text(text)
    return {
        "ledgerId": found.ledger_id(),
        "entryId": found.entry_id(),
        "partitionIndex": found.partition(),
        "batchIndex": found.batch_index(),
        "batchSize": 0,
    }


def id_of_answer(found: Json) -> str:
    entry = found["ledgerId"], found["entryId"]
    made = MessageId(found.get("partitionIndex", -1), *entry, found.get("batchIndex", -1))
    text: str = made.to_text()
    return text


def id_body(text: str) -> Json:
    """A message id as the body of a request has it. The least and the greatest one are the two ends
    of a topic."""
    message_id = MessageId.from_text(text)
    if message_id in (MessageId.earliest, MessageId.latest):
        end = -1 if message_id == MessageId.earliest else INT64_MAX
        return {"ledgerId": end, "entryId": end, "partitionIndex": -1}
    found = {
        "ledgerId": message_id.ledger_id(),
        "entryId": message_id.entry_id(),
        "partitionIndex": message_id.partition(),
    }
    if message_id.batch_index() >= 0:
        found["batchIndex"] = message_id.batch_index()
    return found


def id_of_body(found: object) -> str:
    """The message id of a body with ledgerId, entryId, partitionIndex and batchIndex. isExcluded:
    the message behind it."""
    if not isinstance(found, dict):
        raise ValueError("a message id is a JSON object with ledgerId and entryId")
    ledger_id, entry_id = _integer(found, "ledgerId"), _integer(found, "entryId")
    partition, batch_index = (
        _integer(found, "partitionIndex", -1),
        _integer(found, "batchIndex", -1),
    )
    if ledger_id == INT64_MAX or ledger_id < 0:
        end: str = (MessageId.earliest if ledger_id < 0 else MessageId.latest).to_text()
        return end
    if not (
        ledger_id <= INT64_MAX
        and -1 <= entry_id <= INT64_MAX
        and -1 <= partition <= INT32_MAX
        and -1 <= batch_index <= INT32_MAX
    ):
        raise ValueError(f"{found!r:.200} is no message id")
    if found.get("isExcluded") is True:
        if batch_index >= 0:
            batch_index += 1
        else:
            entry_id += 1
    text: str = MessageId(partition, ledger_id, entry_id, batch_index).to_text()
    return text


def _integer(found: Json, name: str, default: int | None = None) -> int:
    value = found.get(name, default)
    if not is_whole_number(value):
        raise ValueError(f"{name} must be a whole number, not {value!r:.100}")
    return value


# Others -------------------------------------------------------------------------------------------


def _checked(kind: type, what: str) -> Form:
    """A body that is as the verb has it."""

    def read(found: object) -> Any:
        if found.__class__ is not kind:
            raise ValueError(f"the body must be {what}")
        return found

    return Form(read=read)


def _tenant(found: Json) -> Json:
    # Nothing is set: there is one.
    clusters = found["allowed_clusters"] or [CLUSTER]
    return {"adminRoles": found["admin_roles"], "allowedClusters": clusters}


def _tenant_of(found: Json) -> Json:
    return {
        "admin_roles": list(found.get("adminRoles") or ()),
        "allowed_clusters": list(found.get("allowedClusters") or ()),
    }


def _partitions(found: Json) -> Json:
    return {"partitions": found["partitions"], "deleted": False}


def _partitions_of(found: Json) -> Json:
    return {"partitions": found["partitions"]}


def _status(found: Json) -> Json:
    return {"status": found["status"], "lastError": found["last_error"]}


def _status_of(found: Json) -> Json:
    return {"status": found["status"], "last_error": found.get("lastError") or ""}


def _sorted_lists(found: Json) -> Json:
    return {name: sorted(each) for name, each in sorted(found.items())}


def _sorted_some(found: Json) -> Json:
    return {name: each for name, each in _sorted_lists(found).items() if each}


# Written by who asks, read by the service.
# Transactions -------------------------------------------------------------------------------------

# By the names in Python those in JSON; what is None is left out there.
_METADATA = {
    "txn_id": "txnId",
    "status": "status",
    "open_timestamp": "openTimestamp",
    "timeout_at": "timeoutAt",
    "owner": "owner",
    "produced_partitions": "producedPartitions",
    "acked_partitions": "ackedPartitions",
}
_OPEN = {**_METADATA, "age_ms": "ageMs", "held_messages": "heldMessages"}
_IN_BUFFER = {"start_position": "startPosition", "aborted": "aborted"}
_IN_ACKS = {"cumulative_ack_position": "cumulativeAckPosition"}
_BUFFER = {
    "state": "state",
    "max_read_position": "maxReadPosition",
    "ongoing_txn_size": "ongoingTxnSize",
    "committed_txn_count": "committedTxnCount",
    "aborted_txn_count": "totalAbortedTransactions",
    "held_messages": "heldMessages",
}
_COORDINATOR = {
    "state": "state",
    "least_sig_bits": "leastSigBits",
    "low_water_mark": "lowWaterMark",
    "ongoing_txn_size": "ongoingTxnSize",
    "created_count": "createdCount",
    "committed_count": "committedCount",
    "aborted_count": "abortedCount",
    "timeout_count": "timeoutCount",
}


def _renamed(names: dict[str, str]) -> Form:
    """An object of these fields."""
    return Form(
        lambda found: {names[name]: value for name, value in found.items() if value is not None},
        lambda found: {name: found[theirs] for name, theirs in names.items() if theirs in found},
    )


def _each(form: Form) -> Form:
    """An object whose values have a form."""
    return Form(
        lambda found: {name: form.shown(value) for name, value in found.items()},
        lambda found: {name: form.read(value) for name, value in found.items()},
    )


_PRODUCED, _ACKED = _each(_renamed(_IN_BUFFER)), _each(_each(_renamed(_IN_ACKS)))


def _transaction(names: dict[str, str]) -> Form:
    fields = _renamed(names)

    def shown(found: Json) -> Json:
        parts = {
            "produced_partitions": _PRODUCED.shown(found["produced_partitions"]),
            "acked_partitions": _ACKED.shown(found["acked_partitions"]),
        }
        made: Json = fields.shown({**found, **parts})
        return made

    def read(found: Json) -> Json:
        made: Json = fields.read(found)
        made["produced_partitions"] = _PRODUCED.read(found.get("producedPartitions") or {})
        made["acked_partitions"] = _ACKED.read(found.get("ackedPartitions") or {})
        return made

    return Form(shown, read)


def _list_of(form: Form) -> Form:
    return Form(
        lambda found: [form.shown(each) for each in found],
        lambda found: [form.read(each) for each in found],
    )


BODIES: dict[str, Form] = {
    "MessageId": Form(id_body, id_of_body),
    "ResetCursorData": Form(
        lambda position: id_body(position["message_id"]),
        lambda found: {"message_id": id_of_body(found)},
    ),
    "properties": _checked(dict, "texts by name"),
    "a list of actions": _checked(list, "a list of actions"),
    "a list of roles": _checked(list, "a list of roles"),
    '"None" or "Prefix"': _checked(str, "the name of a mode"),
    "integer": _checked(int, "a whole number"),
}
# Written by the service, read by who asked.
ANSWERS: dict[str, Form] = {
    "MessageId": Form(id_answer, id_of_answer),
    "LongRunningProcessStatus": Form(_status, _status_of),
    "PartitionedTopicMetadata": Form(_partitions, _partitions_of),
    "Policies": Form(),
    "TenantInfo": Form(_tenant, _tenant_of),
    "OpenTransactions": _list_of(_transaction(_OPEN)),
    "TransactionMetadata": _transaction(_METADATA),
    "SlowTransactions": _each(_transaction(_METADATA)),
    "Coordinators": _list_of(_renamed({"id": "id", "broker_service_url": "brokerServiceUrl"})),
    "CoordinatorStats": _each(_renamed(_COORDINATOR)),
    "TransactionBufferStats": _renamed(_BUFFER),
    "PendingAckStats": _renamed({"state": "state", "ongoing_txn_size": "ongoingTxnSize"}),
    "TransactionInBufferStats": _renamed(_IN_BUFFER),
    "integer": Form(),
    "names": Form(read=sorted),
    "properties": Form(read=dict),
    "actions of roles": Form(read=_sorted_lists),
    "roles of subscriptions": Form(read=_sorted_some),
    "mode": Form(read=lambda found: found or "None"),
}
