"""What other processes may ask of the owner of a data directory: one function a verb, in one table.

Performed in the owner, or in a process that owns the folder for just that long. Every verb may be
repeated: the answer to a request may get lost. Arguments are untrusted; they are checked here.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.staging.file_list import read_list
from pulsarx.broker.staging.ledger_attachment import attach_ledgers, attached_already
from pulsarx.broker.staging.staged_file import StagedFile
from pulsarx.broker.topics.partitioned_topic import partition_count_of, partition_names
from pulsarx.topic_name import TopicName, check_subscription_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker.topics.topic import Topic

    Arguments = dict[str, Any]

_NAME_SIZE_MAX = 1000
_TTL_MAX_MS = 30 * 24 * 3600 * 1000


def perform(broker: Broker, verb: object, arguments: object) -> Arguments:
    """Do what is asked; the answer is what JSON can say.

    OperationNotSupported: no such verb. ValueError: arguments it does not have. Else as the verb.
    """
    known = VERBS.get(verb) if isinstance(verb, str) else None
    if known is None:
        raise errors.OperationNotSupported(
            f"request {verb!r:.100} is not known to the owner's version of PulsarX; it knows "
            f"{', '.join(sorted(VERBS))}"
        )
    function, kinds = known
    if not isinstance(arguments, dict) or set(arguments) != set(kinds):
        raise ValueError(f"request {verb}: its arguments are {', '.join(kinds)}")
    for name, kind in kinds.items():
        value = arguments[name]
        fits = value.__class__ is kind
        if not fits or (kind is str and not 0 < len(value) <= _NAME_SIZE_MAX):
            raise ValueError(f"request {verb}: {name} {value!r:.100} is no {kind.__name__}")
    broker.check_open()
    return function(broker, **arguments)


def _attach(
    broker: Broker, application: str, batch_id: int, files: list[Any], thorough: bool
) -> Arguments:
    if batch_id < 0:
        raise ValueError(f"attach: batch_id {batch_id} is below 0")
    staged = [StagedFile.of_document(each) for each in files]
    return attach_ledgers(broker, application, batch_id, staged, thorough)


def _attach_list(
    broker: Broker,
    application: str,
    batch_id: int,
    job: str,
    name: str,
    count: int,
    checksum: int,
    thorough: bool,
) -> Arguments:
    """As attach; the files are described in a list in the staging area."""
    if batch_id < 0:
        raise ValueError(f"attach_list: batch_id {batch_id} is below 0")
    known = attached_already(broker.catalogue.state, application, batch_id)
    if known is not None:
        return known
    staged = read_list(broker.directory.path, job, name, count, checksum)
    return attach_ledgers(broker, application, batch_id, staged, thorough)


def _lease(broker: Broker, job: str, ledgers: Arguments, ttl_ms: int) -> Arguments:
    now_ms, expires_ms = _times(broker, ttl_ms)
    ledgers = {str(TopicName.of(name)): ids for name, ids in ledgers.items()}
    for name, ids in ledgers.items():
        if not isinstance(ids, list) or not all(one.__class__ is int and one > 0 for one in ids):
            raise ValueError(f"lease: {ids!r:.100} are no ids of ledgers of {name:.200}")

    def operations(state: CatalogueState) -> list[Arguments]:
        for name, ids in ledgers.items():
            record = state.topics.get(name)
            if record is None:
                raise errors.TopicNotFound(name)
            gone = set(ids).difference(each.ledger_id for each in record.ledgers)
            if gone:
                raise errors.NotAllowedError(
                    f"lease ledgers of {name} for job {job}: {len(gone)} of them are not there "
                    f"(any more), {min(gone)} for one. Plan again"
                )
        wanted = {"op": "set_lease", "job": job, "expires_ms": expires_ms, "ledgers": ledgers}
        return [{**wanted, "forgotten": _expired(state, now_ms)}]

    broker.catalogue.commit(operations)
    return {"expires_ms": expires_ms}


def _renew(broker: Broker, job: str, ttl_ms: int) -> Arguments:
    now_ms, expires_ms = _times(broker, ttl_ms)

    def operations(state: CatalogueState) -> list[Arguments]:
        lease = state.leases.get(job)
        if lease is None or lease.expires_ms <= now_ms:
            # Ledgers of it may have been trimmed since.
            raise errors.NotAllowedError(f"renew the lease of job {job}: it has none (any more)")
        return [{"op": "renew_lease", "job": job, "expires_ms": expires_ms}]

    broker.catalogue.commit(operations)
    return {"expires_ms": expires_ms}


def _times(broker: Broker, ttl_ms: int) -> tuple[int, int]:
    if not 0 < ttl_ms <= _TTL_MAX_MS:
        raise ValueError(f"lease: ttl_ms is {ttl_ms}; it must be from 1 to {_TTL_MAX_MS}")
    now_ms = broker.clock.now_ms()
    return now_ms, now_ms + ttl_ms


def _expired(state: CatalogueState, now_ms: int) -> list[str]:
    return [each.job for each in state.leases.values() if each.expires_ms <= now_ms]


def _release(broker: Broker, job: str) -> Arguments:
    topics: list[str] = []

    def operations(state: CatalogueState) -> list[Arguments]:
        lease = state.leases.get(job)
        topics[:] = () if lease is None else lease.ledgers
        gone = {job, *_expired(state, broker.clock.now_ms())}
        return [{"op": "remove_leases", "jobs": sorted(gone)}]

    if job not in broker.catalogue.state.leases:
        return {"released": False}
    broker.catalogue.commit(operations)
    for name in topics:
        topic = broker.topics.get(name)
        if topic is not None:
            topic.trim_soon()
    return {"released": True}


def _create_topic(broker: Broker, topic: str, partitions: int) -> Arguments:
    """Partitions 0: a topic without. One that exists stays as it is, and the answer says how."""
    name = TopicName.of(topic)
    with broker.lock:
        created = str(name) not in broker.catalogue.state.topics
        if created and partitions:
            broker.create_partitioned_topic(name, partitions)
        elif created:
            broker.create_non_partitioned_topic(name)
        count = partition_count_of(broker.catalogue.state, name)
    return {"topic": str(name), "partitions": count, "created": created}


def _create_subscription(broker: Broker, topics: list[Any], name: str, position: str) -> Arguments:
    """position: earliest or latest. Of a partitioned topic: on all partitions. One that exists
    stays where it is, and the answer says where: its first message that is not acknowledged."""
    check_subscription_name(name)
    if position not in ("earliest", "latest"):
        raise ValueError(f"create_subscription: position {position!r:.100}: earliest or latest")
    created, found = 0, {}
    for each in [one for topic in topics for one in _topics(broker, topic)]:
        with each.lock:
            if name in each.subscriptions:
                found[each.name] = list(each.subscriptions[name].mark_delete())
                continue
            ledgers = each.ledger
            start = ledgers.first_position() if position == "earliest" else ledgers.end_position()
            each.create_subscription(name, start)
            created += 1
    return {"created": created, "found": found}


def _move_subscriptions(broker: Broker, name: str, positions: Arguments) -> Arguments:
    """Acknowledge everything before a message, given by topic as its ledger and its ordinal there.
    Never goes back. Gone are topics that are not there, or do not have the subscription.

    NotAllowedError: consumers are attached, or a topic has no such message."""
    check_subscription_name(name)
    moved, gone = [], []
    for topic, place in positions.items():
        if not isinstance(place, list) or [each.__class__ for each in place] != [int, int]:
            raise ValueError(f"move_subscriptions: {place!r:.100} of {topic:.200} is no place")
    for topic, (ledger_id, message) in positions.items():
        try:
            found = broker.topic(TopicName.of(topic), create=False)
            if _move_subscription(found, name, ledger_id, message):
                moved.append(topic)
        except (errors.TopicNotFound, errors.SubscriptionNotFound):
            gone.append(topic)
        else:
            found.trim_soon()
    return {"moved": moved, "gone": gone}


def _move_subscription(topic: Topic, name: str, ledger_id: int, message: int) -> bool:
    with topic.lock:
        subscription = topic.subscriptions.get(name)
        if subscription is None:
            raise errors.SubscriptionNotFound(f"subscription {name:.200} of {topic.name}")
        if subscription.consumers():
            raise errors.NotAllowedError(
                f"move subscription {name:.200} of {topic.name}: consumers are attached"
            )
        return bool(subscription.acknowledge_before((ledger_id, message)))


def _stats(broker: Broker, topic: str) -> Arguments:
    from pulsarx.broker.topics.statistics import topic_statistics

    return {"topics": [topic_statistics(each) for each in _topics(broker, topic)]}


def _topics(broker: Broker, topic: str) -> list[Topic]:
    """The topic, or all its partitions. TopicNotFound, ValueError."""
    if not isinstance(topic, str):
        raise ValueError(f"{topic!r:.100} is no name of a topic")
    name = TopicName.of(topic)
    count = partition_count_of(broker.catalogue.state, name)
    if not count:
        return [broker.topic(name, create=False)]
    names = partition_names(name, count)
    return [broker.topic(TopicName.of(each), create=False) for each in names]


# Verb: its function, and its arguments with their kinds.
VERBS: dict[str, tuple[Callable[..., Arguments], dict[str, type]]] = {
    "attach": (
        _attach,
        {"application": str, "batch_id": int, "files": list, "thorough": bool},
    ),
    "attach_list": (
        _attach_list,
        {
            "application": str,
            "batch_id": int,
            "job": str,
            "name": str,
            "count": int,
            "checksum": int,
            "thorough": bool,
        },
    ),
    "lease": (_lease, {"job": str, "ledgers": dict, "ttl_ms": int}),
    "renew": (_renew, {"job": str, "ttl_ms": int}),
    "release": (_release, {"job": str}),
    "create_topic": (_create_topic, {"topic": str, "partitions": int}),
    "create_subscription": (_create_subscription, {"topics": list, "name": str, "position": str}),
    "move_subscriptions": (_move_subscriptions, {"name": str, "positions": dict}),
    "stats": (_stats, {"topic": str}),
}
