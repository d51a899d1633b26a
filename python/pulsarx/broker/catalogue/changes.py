"""Operations of the catalogue, each made by a function of its own, which returns it for
`Catalogue.commit`. Used by all that commit; no other module spells an operation.

The operations themselves, and what each checks, are in `operations` and `topic_operations`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.catalogue.draft import Operation
    from pulsarx.broker.catalogue.records import CompactionRecord
    from pulsarx.broker.catalogue.state import CatalogueState

# As in topic_name, which opening a folder does not load.
_SYSTEM_TENANT = "pulsar"
_SYSTEM_NAMESPACE = "pulsar/system"


def open_epoch(epoch: int) -> Operation:
    return {"op": "open_epoch", "epoch": epoch}


def create_tenant(tenant: str, properties: dict[str, Any]) -> Operation:
    return {"op": "create_tenant", "tenant": tenant, "properties": properties}


def update_tenant(tenant: str, properties: dict[str, Any]) -> Operation:
    """properties: all of them; others go."""
    return {"op": "update_tenant", "tenant": tenant, "properties": properties}


def delete_tenant(tenant: str) -> Operation:
    return {"op": "delete_tenant", "tenant": tenant}


def create_namespace(namespace: str) -> Operation:
    return {"op": "create_namespace", "namespace": namespace}


def delete_namespace(namespace: str) -> Operation:
    """Its policies go with it."""
    return {"op": "delete_namespace", "namespace": namespace}


def system_namespace(state: CatalogueState) -> list[Operation]:
    """Create the namespace of the system, and its tenant, as far as they are missing."""
    made = []
    if _SYSTEM_TENANT not in state.tenants:
        made.append(create_tenant(_SYSTEM_TENANT, {}))
    if _SYSTEM_NAMESPACE not in state.namespaces:
        made.append(create_namespace(_SYSTEM_NAMESPACE))
    return made


def set_namespace_policy(namespace: str, policy: str, value: object) -> Operation:
    """value: what JSON can say; None takes the policy away."""
    return {
        "op": "set_namespace_policy",
        "namespace": namespace,
        "policy": policy,
        "value": value,
    }


def set_topic_policy(topic: str, policy: str, value: object) -> Operation:
    """Like set_namespace_policy, for one topic."""
    return {"op": "set_topic_policy", "topic": topic, "policy": policy, "value": value}


def create_topic(topic: str, topic_id: int, *, partition_count: int = 0) -> Operation:
    """partition_count 0: a topic that holds messages."""
    operation: Operation = {"op": "create_topic", "topic": topic, "topic_id": topic_id}
    return operation | {"partition_count": partition_count} if partition_count else operation


def set_partition_count(topic: str, partition_count: int) -> Operation:
    return {"op": "set_partition_count", "topic": topic, "partition_count": partition_count}


def set_topic_epoch(topic: str, epoch: int) -> Operation:
    """The topic was taken by one producer alone."""
    return {"op": "set_topic_epoch", "topic": topic, "epoch": epoch}


def delete_topic(topic: str) -> Operation:
    """Its ledgers, subscriptions and policies go with it."""
    return {"op": "delete_topic", "topic": topic}


def expect_change_event(topic: str) -> Operation:
    """The policies of a topic are changed, which is to be told in `__change_events`."""
    return {"op": "expect_change_event", "topic": topic}


def forget_change_events(topics: list[str]) -> Operation:
    """It was told."""
    return {"op": "forget_change_events", "topics": topics}


def forget_deletions(topic_ids: list[int]) -> Operation:
    """The files of deleted topics, by the ids they had, are gone."""
    return {"op": "forget_deletions", "topic_ids": topic_ids}


def begin_offload(topic: str, file_id: int, uuid: str, location: str) -> Operation:
    """An object is about to be made of a file that holds sealed ledgers of the topic."""
    return {
        "op": "begin_offload",
        "topic": topic,
        "file_id": file_id,
        "uuid": uuid,
        "location": location,
    }


def finish_offload(file_id: int, location: str, size: int, offloaded_ms: int) -> Operation:
    """The object is there, and was read back: it may be read instead of the file."""
    return {
        "op": "finish_offload",
        "file_id": file_id,
        "location": location,
        "size": size,
        "offloaded_ms": offloaded_ms,
    }


def forget_offloads(file_ids: list[int]) -> Operation:
    """The objects made of these files are gone."""
    return {"op": "forget_offloads", "file_ids": file_ids}


def terminate_topic(topic: str) -> Operation:
    return {"op": "terminate_topic", "topic": topic}


def hold_chunks(topic: str) -> Operation:
    """Messages in chunks are about to be stored, for which statistics have to look from now on."""
    return {"op": "hold_chunks", "topic": topic}


def add_ledger(topic: str, ledger_id: int, uuid: str, slot: int) -> Operation:
    """An open ledger, behind the others. slot: of its end among the published ends."""
    return {
        "op": "add_ledger",
        "topic": topic,
        "ledger_id": ledger_id,
        "uuid": uuid,
        "slot": slot,
    }


def prepare_ledger(topic: str, ledger_id: int, uuid: str, slot: int) -> Operation:
    """A ledger that is ready to take the entries behind the last one of the ledger in front of it,
    and takes none yet."""
    return {
        "op": "prepare_ledger",
        "topic": topic,
        "ledger_id": ledger_id,
        "uuid": uuid,
        "slot": slot,
    }


def use_ledger(topic: str, ledger_id: int) -> Operation:
    """A prepared ledger takes entries."""
    return {"op": "use_ledger", "topic": topic, "ledger_id": ledger_id}


def seal_ledger(
    topic: str,
    ledger_id: int,
    summary: Any,
    *,
    sealed_ms: int,
    damaged: bool,
    first_index: int = -1,
) -> Operation:
    """summary: a LedgerSummary, what its footer says. first_index: of its first message."""
    return {
        "op": "seal_ledger",
        "topic": topic,
        "ledger_id": ledger_id,
        "entry_count": summary.entry_count,
        "message_count": summary.message_count,
        "size": summary.size,
        "first_publish_ms": summary.first_publish_ms,
        "last_publish_ms": summary.last_publish_ms,
        "sealed_ms": sealed_ms,
        "damaged": damaged,
        "first_index": first_index,
    }


def remove_ledgers(topic: str, ledger_ids: list[int], removed_index: int = 0) -> Operation:
    """removed_index: of the message behind the last of them; 0: they had none."""
    operation = {"op": "remove_ledgers", "topic": topic, "ledger_ids": ledger_ids}
    return operation | ({"removed_index": removed_index} if removed_index else {})


def attach_ledgers(
    application: str,
    batch_id: int,
    *,
    attached_ms: int,
    ledgers: dict[str, list[Any]],
    forgotten: list[str],
    content: str = "",
) -> Operation:
    """ledgers: by topic, a row a ledger (see `topic_operations`). forgotten: applications whose
    last transaction need not be known any more. content: a digest of the messages."""
    return {
        "op": "attach_ledgers",
        "application": application,
        "batch_id": batch_id,
        "attached_ms": attached_ms,
        "ledgers": ledgers,
        "forgotten": forgotten,
        "content": content,
    }


def reserve_transactions(next_transaction: int) -> Operation:
    """Numbers of transactions below this one may be in use from now on."""
    return {"op": "reserve_transactions", "next_transaction": next_transaction}


def end_transaction(
    number: int,
    *,
    committed: bool,
    order: int,
    ended_ms: int,
    messages: dict[str, list[list[int]]],
    acknowledged: list[list[Any]],
) -> Operation:
    """order: among the ends of the folder, 1, 2, 3 ... messages: by topic: ledger id, first
    message, and behind the last, of each run. acknowledged: see EndedTransaction."""
    return {
        "op": "end_transaction",
        "number": number,
        "committed": committed,
        "order": order,
        "ended_ms": ended_ms,
        "messages": messages,
        "acknowledged": acknowledged,
        "settled": [],
    }


def settle_cursors(cursor_ids: list[int]) -> Operation:
    """These cursors keep what transactions acknowledged there, or were moved since."""
    return {"op": "settle_transactions", "numbers": [], "cursor_ids": cursor_ids}


def abort_messages(topic: str, ledger_id: int, runs: list[list[int]]) -> Operation:
    """Messages of transactions that ended with their process: first, and behind the last."""
    return {"op": "abort_messages", "topic": topic, "ledger_id": ledger_id, "runs": runs}


def create_subscription(
    topic: str,
    name: str,
    cursor_id: int,
    *,
    type: str,
    created_ms: int,
    initial: tuple[int, int] | None = None,
    properties: dict[str, str] | None = None,
) -> Operation:
    """initial: the ledger and the ordinal where it begins; None: at the first message. properties
    None: it has none."""
    operation: Operation = {
        "op": "create_subscription",
        "topic": topic,
        "name": name,
        "cursor_id": cursor_id,
        "type": type,
        "created_ms": created_ms,
    }
    if initial is not None:
        operation |= {"initial_ledger_id": initial[0], "initial_message": initial[1]}
    return operation if properties is None else operation | {"properties": properties}


def set_subscription_properties(topic: str, name: str, properties: dict[str, str]) -> Operation:
    """In the place of all that it has."""
    return {
        "op": "set_subscription_properties",
        "topic": topic,
        "name": name,
        "properties": properties,
    }


def remove_subscription(topic: str, name: str) -> Operation:
    return {"op": "remove_subscription", "topic": topic, "name": name}


def set_lease(
    job: str, expires_ms: int, ledgers: dict[str, list[int]], *, forgotten: list[str]
) -> Operation:
    """ledgers: ids by topic. forgotten: jobs whose lease has expired."""
    return {
        "op": "set_lease",
        "job": job,
        "expires_ms": expires_ms,
        "ledgers": ledgers,
        "forgotten": forgotten,
    }


def renew_lease(job: str, expires_ms: int) -> Operation:
    return {"op": "renew_lease", "job": job, "expires_ms": expires_ms}


def remove_leases(jobs: list[str]) -> Operation:
    return {"op": "remove_leases", "jobs": jobs}


def begin_compaction(topic: str, ledger_id: int, uuid: str) -> Operation:
    """A file is about to be written; until it is the topic's compacted ledger, the next owner
    removes it."""
    return {"op": "begin_compaction", "topic": topic, "ledger_id": ledger_id, "uuid": uuid}


def set_compaction(topic: str, compaction: CompactionRecord) -> Operation:
    """The topic has another compacted ledger; the one before is to be removed."""
    return {"op": "set_compaction", "topic": topic, **compaction.fields()}


def remove_compaction(topic: str) -> Operation:
    """The topic has no compacted ledger any more; the one it had is to be removed."""
    return {"op": "remove_compaction", "topic": topic}


def merge_ledgers(topic: str, merged_id: int, uuid: str, places: list[list[int]]) -> Operation:
    """A file that was begun as by `begin_compaction` holds these ledgers; those they had are to be
    removed. places: id, first byte in the file, and bytes of each."""
    return {
        "op": "merge_ledgers",
        "topic": topic,
        "merged_id": merged_id,
        "uuid": uuid,
        "places": places,
    }


def add_schema(
    topic: str,
    version: int,
    *,
    type_name: str,
    name: str,
    definition: str,
    properties: dict[str, str],
    created_ms: int,
) -> Operation:
    """version: the next one of the topic. type_name: of SchemaType."""
    operation: Operation = {
        "op": "add_schema",
        "topic": topic,
        "version": version,
        "type_name": type_name,
        "name": name,
        "definition": definition,
        "created_ms": created_ms,
    }
    return operation | {"properties": properties} if properties else operation


def delete_schema(topic: str, version: int, *, deleted_ms: int) -> Operation:
    """version: the next one of the topic, which the deletion takes."""
    return {
        "op": "delete_schema",
        "topic": topic,
        "version": version,
        "created_ms": deleted_ms,
    }
