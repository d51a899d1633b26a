"""The operations of topics, their ledgers, subscriptions and schemas, one function each. Loaded by
`operations` with the first of them.
"""

from __future__ import annotations

from bisect import bisect_left

from pulsarx.broker.catalogue.draft import (
    POLICY,
    CatalogueDraft,
    is_ids,
    is_integer,
    namespace_of,
    policies_with,
)
from pulsarx.broker.catalogue.records import (
    LEDGER_OPEN,
    LEDGER_PREPARED,
    LEDGER_SEALED,
    CompactionRecord,
    DeletionRecord,
    EndedTransaction,
    LeaseRecord,
    LedgerRecord,
    OffloadRecord,
    SchemaRecord,
    SubscriptionRecord,
    TopicRecord,
    TransactionRecord,
)
from pulsarx.errors import CatalogueError

ENDED_KEPT = 1000  # transactions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pulsarx.broker.catalogue.draft import Operation


def _set_topic_policy(draft: CatalogueDraft, fields: Operation) -> None:
    topic = draft.topic(fields["topic"])
    topic.policies = policies_with(topic.policies, fields)
    draft.changes_policies = True


def _create_topic(draft: CatalogueDraft, fields: Operation) -> None:
    name = fields["topic"]
    if draft.topic_if_any(name) is not None:
        raise CatalogueError(detail=f"topic {name} exists already")
    parts = name.partition("://")[2].split("/")
    if len(parts) != 3 or not parts[2]:
        raise CatalogueError(detail=f"topic {name!r} is not written in full")
    namespace_of(draft, f"{parts[0]}/{parts[1]}")
    topic_id = draft.take_id(fields["topic_id"], "topic")
    draft.topics[name] = TopicRecord(
        topic_id, name, fields["partition_count"], fields.get("properties", {})
    )


def _set_topic_epoch(draft: CatalogueDraft, fields: Operation) -> None:
    topic = draft.topic(fields["topic"])
    if fields["epoch"] <= topic.epoch:
        raise CatalogueError(
            detail=f"epoch {fields['epoch']} of topic {topic.name} does not come after "
            f"{topic.epoch}"
        )
    topic.epoch = fields["epoch"]


def _set_partition_count(draft: CatalogueDraft, fields: Operation) -> None:
    topic = draft.topic(fields["topic"])
    if not 0 < topic.partition_count < fields["partition_count"]:
        raise CatalogueError(
            detail=f"topic {topic.name} has {topic.partition_count} partitions (0: it is not "
            f"partitioned); it cannot be given {fields['partition_count']}, partitions only become "
            "more"
        )
    topic.partition_count = fields["partition_count"]


def _delete_topic(draft: CatalogueDraft, fields: Operation) -> None:
    """Its files are still to be removed: a record says so until they are. Leases on it end: a topic
    that gets its name later is another one."""
    topic = draft.topic(fields["topic"])
    draft.topics[topic.name] = None
    if topic.name in draft.schemas or topic.name in draft.state.schemas:
        draft.schemas[topic.name] = None
    # A prepared one too. Without any of them there may be sequences of its producers.
    ledgers = [[ledger.ledger_id, ledger.uuid] for ledger in topic.ledgers if not ledger.merged_id]
    ledgers += [list(each) for each in topic.merged.items()]
    if topic.compaction is not None and topic.compaction.ledger_id:
        ledgers.append([topic.compaction.ledger_id, topic.compaction.uuid])
    cursor_ids = [each.cursor_id for each in topic.subscriptions.values()]
    if ledgers or cursor_ids or topic.removed_ledger_id:
        draft.deletions[topic.topic_id] = DeletionRecord(
            topic.topic_id, topic.name, ledgers, cursor_ids
        )
    for job in {*draft.state.leases, *draft.leases}:
        lease = draft.leases[job] if job in draft.leases else draft.state.leases[job]
        if lease is not None and topic.name in lease.ledgers:
            left = {name: runs for name, runs in lease.ledgers.items() if name != topic.name}
            draft.leases[job] = LeaseRecord(job, lease.expires_ms, left)
    draft.changes_policies = True


def _expect_change_event(draft: CatalogueDraft, fields: Operation) -> None:
    """The topic may be gone, with its policies."""
    topic = fields["topic"]
    known = draft.change_events if topic in draft.change_events else draft.state.change_events
    draft.change_events[topic] = (known.get(topic) or 0) + 1


def _forget_change_events(draft: CatalogueDraft, fields: Operation) -> None:
    for topic in fields["topics"]:
        draft.change_events[topic] = None


def _begin_compaction(draft: CatalogueDraft, fields: Operation) -> None:
    topic = draft.topic(fields["topic"])
    if topic.partition_count:
        raise CatalogueError(
            detail=f"topic {topic.name} is partitioned; its partitions are compacted"
        )
    _check_keeps_messages(topic)
    ledger_id = draft.take_id(fields["ledger_id"], "ledger")
    _remove_later(draft, topic, ledger_id, fields["uuid"])


def _remove_later(draft: CatalogueDraft, topic: TopicRecord, ledger_id: int, uuid: str) -> None:
    """A file of this name, if there is one, is none of the topic's ledgers. Nor are those that were
    merged into it, which the disk may have refused to remove."""
    known = draft.state.deletions.get(ledger_id)
    if ledger_id in draft.deletions:
        known = draft.deletions[ledger_id]
    left = [] if known is None else [each for each in known.ledgers if each[0] != ledger_id]
    draft.deletions[ledger_id] = DeletionRecord(
        ledger_id, topic.name, [*left, [ledger_id, uuid]], []
    )


def _remove_compaction(draft: CatalogueDraft, fields: Operation) -> None:
    topic = draft.topic(fields["topic"])
    before = topic.compaction
    if before is None:
        raise CatalogueError(detail=f"topic {topic.name} has no compacted ledger")
    if before.ledger_id:
        _remove_later(draft, topic, before.ledger_id, before.uuid)
    topic.compaction = None


def _set_compaction(draft: CatalogueDraft, fields: Operation) -> None:
    topic = draft.topic(fields.pop("topic"))
    made = CompactionRecord(**fields)
    begun = draft.state.deletions.get(made.ledger_id)
    if made.ledger_id in draft.deletions:
        begun = draft.deletions[made.ledger_id]
    if made.ledger_id and (begun is None or begun.ledgers != [[made.ledger_id, made.uuid]]):
        raise CatalogueError(
            detail=f"topic {topic.name} has begun no compaction into ledger {made.ledger_id}"
        )
    before = topic.compaction
    if before is not None and before.horizon > made.horizon:
        raise CatalogueError(
            detail=f"topic {topic.name} is compacted up to {before.horizon}, and not only to "
            f"{made.horizon}"
        )
    if not _are_places(made.ledgers) or not all(map(is_integer, made.last + made.first_indexes)):
        raise CatalogueError(detail=f"{made!r} of topic {topic.name} does not say what survived")
    if before is not None and before.ledger_id:
        _remove_later(draft, topic, before.ledger_id, before.uuid)
    if made.ledger_id:
        draft.deletions[made.ledger_id] = None
    topic.compaction = made


def _are_places(rows: list[Any]) -> bool:
    """Whether these are ids and ordinals, ascending by id."""
    before = 0
    for row in rows:
        if not isinstance(row, list) or len(row) != 2 or not all(map(is_integer, row)):
            return False
        if row[0] <= before or row[1] < 1:
            return False
        before = row[0]
    return True


def _forget_deletions(draft: CatalogueDraft, fields: Operation) -> None:
    for topic_id in fields["topic_ids"]:
        draft.deletions[topic_id] = None


def _offload(draft: CatalogueDraft, file_id: int) -> OffloadRecord | None:
    if file_id in draft.offloads:
        return draft.offloads[file_id]
    return draft.state.offloads.get(file_id)


def _begin_offload(draft: CatalogueDraft, fields: Operation) -> None:
    """An object is about to be written: whoever finds this record removes it, unless it was
    finished."""
    topic = draft.topic(fields["topic"])
    file_id = fields["file_id"]
    if not any(each.file_id == file_id and each.state == LEDGER_SEALED for each in topic.ledgers):
        raise CatalogueError(detail=f"topic {topic.name} has no sealed ledger in file {file_id}")
    if _offload(draft, file_id) is not None:
        raise CatalogueError(detail=f"file {file_id} of topic {topic.name} is offloaded already")
    draft.offloads[file_id] = OffloadRecord(
        file_id, topic.name, fields["uuid"], fields["location"], 0, 0
    )


def _finish_offload(draft: CatalogueDraft, fields: Operation) -> None:
    file_id = fields["file_id"]
    begun = _offload(draft, file_id)
    if begun is None or begun.location != fields["location"] or begun.size:
        raise CatalogueError(
            detail=f"no offload of file {file_id} to {fields['location']} was begun"
        )
    draft.offloads[file_id] = OffloadRecord(
        file_id, begun.topic, begun.uuid, begun.location, fields["size"], fields["offloaded_ms"]
    )


def _forget_offloads(draft: CatalogueDraft, fields: Operation) -> None:
    for file_id in fields["file_ids"]:
        draft.offloads[file_id] = None


def _terminate_topic(draft: CatalogueDraft, fields: Operation) -> None:
    topic = draft.topic(fields["topic"])
    if topic.partition_count:
        raise CatalogueError(
            detail=f"topic {topic.name} is partitioned; its partitions are terminated"
        )
    topic.terminated = True


def _hold_chunks(draft: CatalogueDraft, fields: Operation) -> None:
    topic = draft.topic(fields["topic"])
    if topic.partition_count:
        raise CatalogueError(
            detail=f"topic {topic.name} is partitioned; its partitions hold messages"
        )
    _check_keeps_messages(topic)
    topic.chunked = True


def _check_keeps_messages(topic: TopicRecord) -> None:
    if topic.name.startswith("non-persistent:"):
        raise CatalogueError(detail=f"topic {topic.name} is non-persistent and has no ledgers")


def _check_comes_last(topic: TopicRecord, ledger_id: int) -> None:
    """Readers go from one ledger to the next by its id."""
    if topic.terminated:
        raise CatalogueError(
            detail=f"topic {topic.name} is terminated and gets no ledger {ledger_id}"
        )
    if not topic.ledgers:
        return
    last = topic.ledgers[-1]
    if last.state == LEDGER_PREPARED and last.ledger_id != ledger_id:
        raise CatalogueError(
            detail=f"ledger {ledger_id} of topic {topic.name} cannot come behind ledger "
            f"{last.ledger_id}, which is prepared to be the next one"
        )
    if ledger_id > last.ledger_id:
        return
    if any(ledger.ledger_id == ledger_id for ledger in topic.ledgers):
        raise CatalogueError(detail=f"topic {topic.name} has ledger {ledger_id} already")
    raise CatalogueError(
        detail=f"ledger {ledger_id} of topic {topic.name} comes before ledger "
        f"{topic.ledgers[-1].ledger_id}, which is there already"
    )


def _add_ledger(draft: CatalogueDraft, fields: Operation) -> None:
    topic = draft.topic(fields.pop("topic"))
    ledger_id = draft.take_id(fields["ledger_id"], "ledger")
    if topic.partition_count:
        raise CatalogueError(
            detail=f"topic {topic.name} is partitioned; ledgers belong to its partitions"
        )
    _check_keeps_messages(topic)
    _check_comes_last(topic, ledger_id)
    if fields["state"] not in (LEDGER_OPEN, LEDGER_SEALED):
        raise CatalogueError(
            detail=f"ledger {ledger_id}: state {fields['state']!r} is neither open nor sealed"
        )
    topic.ledgers.append(LedgerRecord(**fields))


def _prepare_ledger(draft: CatalogueDraft, fields: Operation) -> None:
    _add_ledger(draft, fields | dict.fromkeys(_LEDGER_END, 0) | {"state": LEDGER_OPEN})
    ledgers = draft.topic(fields["topic"]).ledgers
    ledgers[-1] = LedgerRecord(fields["ledger_id"], fields["uuid"], fields["slot"], LEDGER_PREPARED)


def _use_ledger(draft: CatalogueDraft, fields: Operation) -> None:
    topic = draft.topic(fields["topic"])
    last = topic.ledgers[-1] if topic.ledgers else None
    if last is None or last.ledger_id != fields["ledger_id"] or last.state != LEDGER_PREPARED:
        raise CatalogueError(
            detail=f"topic {topic.name} has no ledger {fields['ledger_id']} that is prepared"
        )
    topic.ledgers[-1] = last.used()


def _seal_ledger(draft: CatalogueDraft, fields: Operation) -> None:
    topic = draft.topic(fields.pop("topic"))
    ids = [ledger.ledger_id for ledger in topic.ledgers]
    if fields["ledger_id"] not in ids:
        raise CatalogueError(detail=f"topic {topic.name} has no ledger {fields['ledger_id']}")
    index = ids.index(fields["ledger_id"])
    ledger = topic.ledgers[index]
    if ledger.state == LEDGER_SEALED:
        raise CatalogueError(
            detail=f"ledger {ledger.ledger_id} of topic {topic.name} is sealed already"
        )
    topic.ledgers[index] = LedgerRecord(uuid=ledger.uuid, slot=-1, state=LEDGER_SEALED, **fields)
    topic.committed.pop(ledger.ledger_id, None)


def _remove_ledgers(draft: CatalogueDraft, fields: Operation) -> None:
    topic = draft.topic(fields["topic"])
    gone = set(fields["ledger_ids"])
    kept = [ledger for ledger in topic.ledgers if ledger.ledger_id not in gone]
    if len(kept) + len(gone) != len(topic.ledgers) or len(gone) != len(fields["ledger_ids"]):
        missing = sorted(gone.difference(ledger.ledger_id for ledger in topic.ledgers))
        raise CatalogueError(
            detail=f"topic {topic.name} has no ledgers {missing}, or they are named twice"
        )
    for ledger in topic.ledgers:
        if ledger.ledger_id in gone and ledger.message_count:
            topic.removed_ledger_id = ledger.ledger_id
            topic.removed_messages = ledger.message_count
    topic.removed_index = max(topic.removed_index, fields["removed_index"])
    topic.ledgers = kept
    if topic.committed or topic.aborted:
        for ledger_id in gone:
            topic.committed.pop(ledger_id, None)
            topic.aborted.pop(ledger_id, None)
    if topic.merged:
        left = {ledger.merged_id for ledger in kept}
        for merged_id, uuid in list(topic.merged.items()):
            if merged_id not in left:
                del topic.merged[merged_id]
                _remove_later(draft, topic, merged_id, uuid)


def _merge_ledgers(draft: CatalogueDraft, fields: Operation) -> None:
    """The files they had until now are among those to be removed."""
    topic = draft.topic(fields["topic"])
    merged_id, uuid = fields["merged_id"], fields["uuid"]
    begun = draft.state.deletions.get(merged_id)
    if merged_id in draft.deletions:
        begun = draft.deletions[merged_id]
    if begun is None or begun.ledgers != [[merged_id, uuid]]:
        raise CatalogueError(
            detail=f"topic {topic.name} has begun no file {merged_id} of merged ledgers"
        )
    places: dict[int, tuple[int, int]] = {}
    for row in fields["places"]:
        if not isinstance(row, list) or len(row) != 3 or not all(map(is_integer, row)):
            raise CatalogueError(detail=f"{row!r:.100} is no place of a ledger in a merged file")
        if row[1] < 0 or row[1] % 4096 or row[2] < 1:
            raise CatalogueError(
                detail=f"ledger {row[0]} cannot be {row[2]} bytes at {row[1]} of a file"
            )
        places[row[0]] = (row[1], row[2])
    before = []
    ledgers = topic.ledgers.copy()
    for at, ledger in enumerate(ledgers):
        if ledger.ledger_id in places and ledger.state == LEDGER_SEALED and not ledger.merged_id:
            before.append([ledger.ledger_id, ledger.uuid])
            ledgers[at] = ledger.merged(merged_id, *places[ledger.ledger_id])
    if not before or len(before) != len(fields["places"]):
        raise CatalogueError(
            detail=f"topic {topic.name} has not all of the ledgers {sorted(places)} as sealed "
            "files of their own"
        )
    topic.ledgers = ledgers
    topic.merged[merged_id] = uuid
    draft.deletions[merged_id] = DeletionRecord(merged_id, topic.name, before, [])


def _create_subscription(draft: CatalogueDraft, fields: Operation) -> None:
    topic = draft.topic(fields.pop("topic"))
    name = fields["name"]
    if name in topic.subscriptions:
        raise CatalogueError(detail=f"topic {topic.name} has subscription {name!r} already")
    draft.take_id(fields["cursor_id"], "cursor")
    topic.subscriptions[name] = SubscriptionRecord(**fields)


def _set_subscription_properties(draft: CatalogueDraft, fields: Operation) -> None:
    topic = draft.topic(fields["topic"])
    found = topic.subscriptions.get(fields["name"])
    if found is None:
        raise CatalogueError(detail=f"topic {topic.name} has no subscription {fields['name']!r}")
    topic.subscriptions[found.name] = found.with_properties(fields["properties"])


def _remove_subscription(draft: CatalogueDraft, fields: Operation) -> None:
    topic = draft.topic(fields["topic"])
    if topic.subscriptions.pop(fields["name"], None) is None:
        raise CatalogueError(detail=f"topic {topic.name} has no subscription {fields['name']!r}")


def _reserve_transactions(draft: CatalogueDraft, fields: Operation) -> None:
    if fields["next_transaction"] < draft.next_transaction:
        raise CatalogueError(
            detail=f"transactions up to {draft.next_transaction} may be in use, so not only those "
            f"up to {fields['next_transaction']}"
        )
    draft.next_transaction = fields["next_transaction"]


def _end_transaction(draft: CatalogueDraft, fields: Operation) -> None:
    number, committed, order = fields["number"], fields["committed"], fields["order"]
    if order <= draft.last_end:
        return  # read from the log of ends before
    if order != draft.last_end + 1:
        raise CatalogueError(detail=f"end {order} does not follow end {draft.last_end}")
    draft.last_end = order
    if number in draft.ended or number in draft.state.ended:
        raise CatalogueError(detail=f"transaction {number} has ended already")
    if number >= draft.next_transaction:
        raise CatalogueError(detail=f"transaction {number} was never opened")
    for name, rows in fields["messages"].items():
        topic = draft.topic(name)
        for row in rows:
            if not isinstance(row, list) or len(row) != 3:
                raise CatalogueError(detail=f"{row!r:.100} are no messages of a transaction")
            _decide(topic, row[0], [row[1:]], committed)
    for row in fields["acknowledged"]:
        if not isinstance(row, list) or len(row) != 3 or not is_integer(row[0]):
            raise CatalogueError(detail=f"{row!r:.100} are no acknowledgements")
    _settle(draft, fields["settled"])
    draft.ended[number] = EndedTransaction(
        number, committed, fields["ended_ms"], fields["acknowledged"]
    )
    _forget_ended(draft)


def _decide(topic: TopicRecord, ledger_id: object, runs: list[Any], committed: bool) -> None:
    """Messages of a ledger are those of a transaction that has ended."""
    ledger = next((each for each in reversed(topic.ledgers) if each.ledger_id == ledger_id), None)
    if ledger is None:
        raise CatalogueError(detail=f"topic {topic.name} has no ledger {ledger_id!r}")
    for run in runs:
        if not isinstance(run, list) or len(run) != 2 or not all(map(is_integer, run)) or (
            not 0 <= run[0] < run[1]
        ):  # fmt: skip
            raise CatalogueError(detail=f"{run!r:.100} are no messages of a ledger")
    if committed and ledger.state == LEDGER_SEALED:
        return
    known = topic.committed if committed else topic.aborted
    known[ledger.ledger_id] = with_runs(known.get(ledger.ledger_id, ()), runs)


def with_runs(known: Iterable[list[int]], runs: list[list[int]]) -> list[list[int]]:
    """Runs, ascending, of which none touch, with more of them. There may be thousands."""
    found = list(known)
    for first, end in runs:
        at = past = bisect_left(found, first, key=_end_of)
        while past < len(found) and found[past][0] <= end:
            first, end = min(first, found[past][0]), max(end, found[past][1])
            past += 1
        found[at:past] = [[first, end]]
    return found


def _end_of(run: list[int]) -> int:
    return run[1]


def _abort_messages(draft: CatalogueDraft, fields: Operation) -> None:
    _decide(draft.topic(fields["topic"]), fields["ledger_id"], fields["runs"], False)


def _settle_transactions(draft: CatalogueDraft, fields: Operation) -> None:
    """numbers: transactions of which all cursors keep what was acknowledged. cursor_ids: cursors
    that keep what all transactions acknowledged."""
    _settle(draft, fields["numbers"])
    cursor_ids = set(fields["cursor_ids"])
    for each in list({**draft.state.ended, **draft.ended}.values()) if cursor_ids else ():
        if each is not None and any(row[0] in cursor_ids for row in each.acknowledged):
            left = [row for row in each.acknowledged if row[0] not in cursor_ids]
            draft.ended[each.number] = EndedTransaction(
                each.number, each.committed, each.ended_ms, left
            )
    _forget_ended(draft)


def _settle(draft: CatalogueDraft, numbers: list[int]) -> None:
    for number in numbers:
        known = draft.ended.get(number) or draft.state.ended.get(number)
        if known is not None and known.acknowledged:
            draft.ended[number] = EndedTransaction(number, known.committed, known.ended_ms, [])


def _forget_ended(draft: CatalogueDraft) -> None:
    """Outcomes are kept for who asks once more. What is over alone is looked at."""
    known, changed = draft.state.ended, draft.ended
    over = len(known) - ENDED_KEPT
    for number in changed:
        over += (number not in known) - (changed[number] is None)
    for number in known:
        if over <= 0:
            return
        each = changed[number] if number in changed else known[number]
        if each is not None:
            over -= 1
            if not each.acknowledged:
                changed[number] = None


def _attach_ledgers(draft: CatalogueDraft, fields: Operation) -> None:
    application, batch_id = fields["application"], fields["batch_id"]
    for name in fields["forgotten"]:
        draft.transactions[name] = None
    known = draft.transactions if application in draft.transactions else draft.state.transactions
    last = known.get(application)
    if last is not None and last.batch_id >= batch_id:
        raise CatalogueError(
            detail=f"{application} has attached batch {last.batch_id} already, so not batch "
            f"{batch_id}"
        )
    ids: list[int] = []
    message_count = 0
    for name, rows in fields["ledgers"].items():
        topic = draft.topic(name)
        if topic.partition_count:
            raise CatalogueError(
                detail=f"topic {name} is partitioned; ledgers belong to its partitions"
            )
        for row in rows:
            _check_keeps_messages(topic)
            ledger = _attached(row, fields["attached_ms"])
            _check_comes_last(topic, ledger.ledger_id)
            ids.append(draft.take_id(ledger.ledger_id, "ledger"))
            message_count += ledger.message_count
            topic.ledgers.append(ledger)
    first = min(ids, default=0)
    if ids and max(ids) - first + 1 != len(ids):
        raise CatalogueError(
            detail="the ids of ledgers that are attached together follow each other"
        )
    draft.transactions[application] = TransactionRecord(
        application,
        batch_id,
        fields["attached_ms"],
        first,
        len(ids),
        message_count,
        fields["content"],
    )


def _attached(row: object, attached_ms: int) -> LedgerRecord:
    """A ledger of the fields id, uuid, entries, messages, size, first and last publish time."""
    if not isinstance(row, list) or len(row) != 7:
        raise CatalogueError(detail=f"{row!r} does not describe a ledger")
    ledger_id, uuid, entry_count, message_count, size, first_ms, last_ms = row
    if not all(is_integer(one) for one in (ledger_id, *row[2:])) or not isinstance(uuid, str):
        raise CatalogueError(detail=f"{row!r} does not describe a ledger")
    if ledger_id < 1 or min(row[2:5]) < 0:
        raise CatalogueError(detail=f"{row!r} does not describe a ledger")
    return LedgerRecord(
        ledger_id, uuid, -1, LEDGER_SEALED, entry_count, message_count, size, first_ms, last_ms,
        attached_ms,
    )  # fmt: skip


def _set_lease(draft: CatalogueDraft, fields: Operation) -> None:
    for name in fields["forgotten"]:
        draft.leases[name] = None
    runs = {}
    for name, ids in fields["ledgers"].items():
        if not is_ids(ids):
            raise CatalogueError(detail=f"lease of {fields['job']}: {ids!r} are no ids")
        topic = draft.topic_if_any(name)
        known = [ledger.ledger_id for ledger in topic.ledgers] if topic is not None else []
        missing = sorted(set(ids).difference(known))
        if missing:
            raise CatalogueError(detail=f"topic {name} has no ledgers {missing} (any more)")
        runs[name] = id_runs(ids)
    draft.leases[fields["job"]] = LeaseRecord(fields["job"], fields["expires_ms"], runs)


def id_runs(ids: list[int]) -> list[list[int]]:
    """First and last of each run of ids that follow each other, ascending."""
    found: list[list[int]] = []
    for one in sorted(ids):
        if found and one <= found[-1][1] + 1:
            found[-1][1] = one
        else:
            found.append([one, one])
    return found


def _renew_lease(draft: CatalogueDraft, fields: Operation) -> None:
    job = fields["job"]
    lease = draft.leases[job] if job in draft.leases else draft.state.leases.get(job)
    if lease is None:
        raise CatalogueError(detail=f"job {job} has no lease (any more)")
    draft.leases[job] = LeaseRecord(job, fields["expires_ms"], lease.ledgers)


def _remove_leases(draft: CatalogueDraft, fields: Operation) -> None:
    for job in fields["jobs"]:
        draft.leases[job] = None


def _schemas(draft: CatalogueDraft, fields: Operation) -> tuple[SchemaRecord, ...]:
    """The schemas of a topic, to which a record with this version may be added."""
    topic = fields["topic"]
    if draft.topic_if_any(topic) is None:
        raise CatalogueError(detail=f"there is no topic {topic}")
    known = draft.schemas if topic in draft.schemas else draft.state.schemas
    found = known.get(topic) or ()
    if fields["version"] != len(found):
        raise CatalogueError(
            detail=f"topic {topic} has {len(found)} versions of its schema, so the next one is not "
            f"{fields['version']}"
        )
    return found


def _add_schema(draft: CatalogueDraft, fields: Operation) -> None:
    from pulsarx.enumerations import SchemaType

    found = _schemas(draft, fields)
    if fields["type_name"] not in SchemaType.__members__:
        raise CatalogueError(detail=f"{fields['type_name']!r} is no type of schemas")
    if not all(isinstance(each, str) for each in fields["properties"].values()):
        raise CatalogueError(detail="properties of a schema are texts")
    topic = fields.pop("topic")
    draft.schemas[topic] = (*found, SchemaRecord(**fields))


def _delete_schema(draft: CatalogueDraft, fields: Operation) -> None:
    found = _schemas(draft, fields)
    if not found or found[-1].type_name is None:
        raise CatalogueError(detail=f"topic {fields['topic']} has no schema (any more)")
    record = SchemaRecord(fields["version"], None, "", "", {}, fields["created_ms"])
    draft.schemas[fields["topic"]] = (*found, record)


_LEDGER_END: dict[str, str] = {
    "entry_count": "count",
    "message_count": "count",
    "size": "count",
    "first_publish_ms": "integer",
    "last_publish_ms": "integer",
    "sealed_ms": "integer",
}

TOPIC_OPERATIONS: dict[str, Any] = {
    "set_topic_policy": (_set_topic_policy, {"topic": "text", **POLICY}, {}),
    "create_topic": (
        _create_topic,
        {"topic": "text", "topic_id": "id"},
        {"partition_count": ("count", 0), "properties": ("object", {})},
    ),
    "set_partition_count": (_set_partition_count, {"topic": "text", "partition_count": "id"}, {}),
    "set_topic_epoch": (_set_topic_epoch, {"topic": "text", "epoch": "count"}, {}),
    "delete_topic": (_delete_topic, {"topic": "text"}, {}),
    # topic_ids: of deleted topics whose files are gone.
    "begin_compaction": (
        _begin_compaction,
        {"topic": "text", "ledger_id": "id", "uuid": "text"},
        {},
    ),
    "set_compaction": (
        _set_compaction,
        {
            "topic": "text",
            "ledger_id": "count",
            "uuid": "string",
            "entry_count": "count",
            "message_count": "count",
            "size": "count",
            "horizon_ledger_id": "id",
            "horizon_entry": "count",
            "horizon_message": "count",
            "last": "list",
            "ledgers": "list",
            "compacted_ms": "integer",
            "duration_ms": "count",
            "removed_count": "count",
        },
        {"first_indexes": ("list", [])},
    ),
    "remove_compaction": (_remove_compaction, {"topic": "text"}, {}),
    # places: id of a ledger, where it begins in the file, and its bytes there.
    "merge_ledgers": (
        _merge_ledgers,
        {"topic": "text", "merged_id": "id", "uuid": "text", "places": "list"},
        {},
    ),
    "forget_deletions": (_forget_deletions, {"topic_ids": "ids"}, {}),
    "begin_offload": (
        _begin_offload,
        {"topic": "text", "file_id": "id", "uuid": "text", "location": "text"},
        {},
    ),
    "finish_offload": (
        _finish_offload,
        {"file_id": "id", "location": "text", "size": "id", "offloaded_ms": "integer"},
        {},
    ),
    "forget_offloads": (_forget_offloads, {"file_ids": "ids"}, {}),
    "expect_change_event": (_expect_change_event, {"topic": "text"}, {}),
    "forget_change_events": (_forget_change_events, {"topics": "texts"}, {}),
    "terminate_topic": (_terminate_topic, {"topic": "text"}, {}),
    "hold_chunks": (_hold_chunks, {"topic": "text"}, {}),
    "add_ledger": (
        _add_ledger,
        {"topic": "text", "ledger_id": "id", "uuid": "text"},
        {
            "slot": ("integer", -1),
            "state": ("text", LEDGER_OPEN),
            "damaged": ("flag", False),
            **{name: (kind, 0) for name, kind in _LEDGER_END.items()},
        },
    ),
    "prepare_ledger": (
        _prepare_ledger,
        {"topic": "text", "ledger_id": "id", "uuid": "text", "slot": "integer"},
        {},
    ),
    "use_ledger": (_use_ledger, {"topic": "text", "ledger_id": "id"}, {}),
    "seal_ledger": (
        _seal_ledger,
        {"topic": "text", "ledger_id": "id", **_LEDGER_END},
        {"damaged": ("flag", False), "first_index": ("integer", -1)},
    ),
    # removed_index: of the message behind the last of them; 0: they had none.
    "remove_ledgers": (
        _remove_ledgers,
        {"topic": "text", "ledger_ids": "ids"},
        {"removed_index": ("count", 0)},
    ),
    "create_subscription": (
        _create_subscription,
        {"topic": "text", "name": "text", "cursor_id": "id"},
        {
            "type": ("text", "Exclusive"),
            "created_ms": ("integer", 0),
            "properties": ("object", {}),
            "initial_ledger_id": ("integer", -1),
            "initial_message": ("integer", 0),
        },
    ),
    "set_subscription_properties": (
        _set_subscription_properties,
        {"topic": "text", "name": "text", "properties": "object"},
        {},
    ),
    "remove_subscription": (_remove_subscription, {"topic": "text", "name": "text"}, {}),
    # ledgers: by topic, rows as `_attached` reads them. forgotten: applications too long ago.
    "reserve_transactions": (_reserve_transactions, {"next_transaction": "count"}, {}),
    "end_transaction": (
        _end_transaction,
        {
            "number": "count",
            "committed": "flag",
            "order": "id",
            "ended_ms": "integer",
            "messages": "rows",
            "acknowledged": "list",
            "settled": "list",
        },
        {},
    ),
    "settle_transactions": (
        _settle_transactions,
        {"numbers": "list"},
        {"cursor_ids": ("list", [])},
    ),
    "abort_messages": (
        _abort_messages,
        {"topic": "text", "ledger_id": "id", "runs": "list"},
        {},
    ),
    "attach_ledgers": (
        _attach_ledgers,
        {"application": "text", "batch_id": "count", "attached_ms": "integer", "ledgers": "rows"},
        {"forgotten": ("texts", []), "content": ("string", "")},
    ),
    # ledgers: ids by topic. forgotten: jobs whose lease has expired.
    "set_lease": (
        _set_lease,
        {"job": "text", "expires_ms": "integer", "ledgers": "rows"},
        {"forgotten": ("texts", [])},
    ),
    "renew_lease": (_renew_lease, {"job": "text", "expires_ms": "integer"}, {}),
    "remove_leases": (_remove_leases, {"jobs": "texts"}, {}),
    "add_schema": (
        _add_schema,
        {
            "topic": "text",
            "version": "count",
            "type_name": "text",
            "name": "string",
            "definition": "string",
            "created_ms": "integer",
        },
        {"properties": ("object", {})},
    ),
    "delete_schema": (
        _delete_schema,
        {"topic": "text", "version": "count", "created_ms": "integer"},
        {},
    ),
}
