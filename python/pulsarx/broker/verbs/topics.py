"""Verbs about topics: which there are, creating them, their partitions, what is in them."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.catalogue.changes import create_topic
from pulsarx.broker.topics.partitioned_topic import partition_count_of, partition_names
from pulsarx.broker.verbs.subscriptions import kept_topics_of, topics_of
from pulsarx.broker.verbs.verb import Verb
from pulsarx.topic_name import (
    TopicName,
    check_is_not_of_the_system,
    check_keeps_messages,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.catalogue.draft import Operation
    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker.faces import OpenFolder, TopicView

    Arguments = dict[str, Any]


DOMAINS = ("any", "persistent", "non-persistent")


def get_list(
    folder: OpenFolder, namespace: str, include_system_topic: bool, domain: str
) -> list[str]:
    """Topics that are used as such: of a partitioned topic, its partitions. domain: any for both.
    Non-persistent topics without partitions are known to the owner alone."""
    if domain not in DOMAINS:
        raise ValueError(f"domain must be persistent or non-persistent, not {domain!r:.100}")
    names = _names(folder, namespace, partitioned=False)
    head = f"non-persistent://{namespace}/"
    names = sorted([*names, *(name for name in list(folder.volatile) if name.startswith(head))])
    return [
        name
        for name in names
        if domain in ("any", TopicName.of(name).domain)
        and (include_system_topic or not TopicName.of(name).is_system)
    ]


def get_partitioned_topic_list(folder: OpenFolder, namespace: str) -> list[str]:
    """Not the system's."""
    names = _names(folder, namespace, partitioned=True)
    return [name for name in names if not TopicName.of(name).is_system]


def _names(folder: OpenFolder, namespace: str, partitioned: bool) -> list[str]:
    folder.refresh()
    if namespace not in folder.catalogue.state.namespaces:
        raise errors.TopicNotFound(detail=f"there is no namespace {namespace}")
    prefix = f"://{namespace}/"
    return sorted(
        name
        for name, record in list(folder.catalogue.state.topics.items())
        if prefix in name and (record.partition_count > 0) == partitioned
    )


# Creating -----------------------------------------------------------------------------------------


def create_non_partitioned_topic(broker: Broker, topic: str) -> None:
    """NotAllowedError: it exists."""
    broker.topics.create_non_partitioned_topic(TopicName.of(topic))


def create_partitioned_topic(broker: Broker, topic: str, partitions: int) -> None:
    """NotAllowedError: it exists."""
    broker.topics.create_partitioned_topic(TopicName.of(topic), partitions)


def update_partitioned_topic(broker: Broker, topic: str, partitions: int) -> None:
    """NotAllowedError: partitions only become more."""
    name = check_is_not_of_the_system(TopicName.of(topic), "give partitions to")
    broker.topics.update_partitioned_topic(name, partitions)


def ensure(broker: Broker, topic: str, partitions: int) -> Arguments:
    """Create a topic unless it exists; partitions 0: without. The answer says how it is."""
    name = TopicName.of(topic)
    count, created = broker.topics.ensure(name, partitions)
    return {"topic": name.full, "partitions": count, "created": created}


def get_producer_sequences(folder: OpenFolder, topic: str) -> dict[str, int]:
    """The highest sequence id that is stored of each producer; of none without deduplication, nor
    beside the owner."""
    found = folder.topic(_existing(folder, topic), create=False)
    deduplication = getattr(found, "deduplication", None)
    return {} if deduplication is None else deduplication.highest()


# Ending -------------------------------------------------------------------------------------------


def delete(broker: Broker, topic: str, force: bool) -> None:
    """A partition is there again at once, without messages and subscriptions: in Pulsar when it is
    used. NotAllowedError: it has partitions; or it is in use, and it is not forced."""
    name = TopicName.of(topic)
    full = name.full
    whole = TopicName.of(name.partitioned_name)

    def select(state: CatalogueState) -> list[str]:
        if not broker.topics.is_there(full):
            raise errors.missing_topic(full)
        if partition_count_of(state, name):
            raise errors.NotAllowedError(
                detail=f"delete {full}: it has partitions; call delete_partitioned_topic"
            )
        return [full]

    def made_again(state: CatalogueState) -> list[Operation]:
        is_partition = 0 <= name.partition_index < partition_count_of(state, whole)
        if not is_partition or not name.persistent:
            return []
        return [create_topic(full, broker.catalogue.allocate_id())]

    broker.topics.delete(select, force, made_again)


def delete_partitioned_topic(broker: Broker, topic: str, force: bool) -> None:
    """With its partitions, all or nothing. NotAllowedError: one of them is in use, and it is not
    forced."""
    name = TopicName.of(topic)

    def select(state: CatalogueState) -> list[str]:
        count = partition_count_of(state, name)
        if not count:
            raise errors.missing_topic(name, partitioned=True)
        return [name.full, *partition_names(name, count)]

    broker.topics.delete(select, force)


def terminate(broker: Broker, topic: str) -> str:
    """The id of the last message, as text. OperationNotSupported: it has partitions."""
    name = check_is_not_of_the_system(TopicName.of(topic), "terminate")
    found = broker.topic(name, create=False)
    found.ledger.terminate()
    found.producers.terminate()
    return found.ledger.last_message_id().to_text()


def truncate(broker: Broker, topic: str) -> None:
    """On a partitioned topic: each partition."""
    for each in topics_of(broker, topic):
        each.truncate()


def trim(broker: Broker, topic: str) -> None:
    """Remove the ledgers that are not needed any more, now. On a partitioned topic: each
    partition."""
    for each in kept_topics_of(broker, topic):
        each.trim()


def unload(broker: Broker, topic: str) -> None:
    """On a partitioned topic: each partition."""
    for each in topics_of(broker, topic):
        broker.topics.unload(each.topic_name)


# Compacting ---------------------------------------------------------------------------------------


def trigger_compaction(broker: Broker, topic: str) -> None:
    """On a partitioned topic: each partition. NotAllowedError: a compaction goes on."""
    topics = kept_topics_of(broker, topic)
    for each in topics:
        each.compaction.check_idle()
    for each in topics:
        each.compaction.trigger()


def compaction_status(folder: OpenFolder, topic: str) -> dict[str, str]:
    """A partitioned topic is RUNNING or ERROR when one of its partitions is, else SUCCESS when one
    is."""
    return _worst([each.compaction_status() for each in _views_of(folder, topic)])


def _views_of(folder: OpenFolder, topic: str) -> list[TopicView]:
    """A topic that keeps messages, or its partitions."""
    name = check_keeps_messages(_existing(folder, topic))
    count = partition_count_of(folder.catalogue.state, name)
    names = [TopicName.of(each) for each in partition_names(name, count)] if count else [name]
    return [folder.topic(each, create=False) for each in names]


def _worst(found: list[dict[str, str]]) -> dict[str, str]:
    """The status of a partitioned topic: that of the partition which says most."""
    for status in ("RUNNING", "ERROR", "SUCCESS"):
        for each in found:
            if each["status"] == status:
                return each
    return found[0]


def offload(broker: Broker, topic: str, size_threshold: int) -> None:
    """On a partitioned topic: each partition. OperationNotSupported: there is no object store.
    NotAllowedError: it is being offloaded."""
    if size_threshold < 0:
        raise ValueError(f"offload {topic}: size_threshold is {size_threshold}; give bytes from 0")
    topics = kept_topics_of(broker, topic)
    for each in topics:
        each.offload.check_idle()
    for each in topics:
        each.offload.trigger(size_threshold)


def offload_before(broker: Broker, topic: str, message_id: str) -> None:
    """The ledgers in front of the one with a message. OperationNotSupported: the topic has
    partitions. As offload."""
    from pulsarx._pycore.message.message_id import MessageId

    name = check_keeps_messages(_existing(broker, topic))
    found = broker.topic(name, create=False).require_kept("offload")
    found.offload.trigger(0, MessageId.from_text(message_id).ledger_id())


def offload_status(folder: OpenFolder, topic: str) -> dict[str, str]:
    """As compaction_status."""
    return _worst([each.offload_status() for each in _views_of(folder, topic)])


def merge_ledgers(broker: Broker, topic: str, size_max: int) -> Arguments:
    """On a partitioned topic, in each partition."""
    from pulsarx.broker.topics.ledger_merge import merge_ledgers as merge

    if size_max < 1:
        raise ValueError(f"merge ledgers of {topic}: size_max is {size_max}; give bytes, 1 or more")
    found = {"ledgers": 0, "files": 0}
    for each in kept_topics_of(broker, topic):
        for name, count in merge(broker.runtime, each.ledger, size_max).items():
            found[name] += count
    return found


# Looking ------------------------------------------------------------------------------------------


def get_last_message_id(folder: OpenFolder, topic: str) -> str:
    """As text. OperationNotSupported: it has partitions."""
    name = _existing(folder, topic)
    return folder.topic(name, create=False).ledger.last_message_id().to_text()


def get_backlog_size(folder: OpenFolder, topic: str, message_id: str) -> int:
    """Bytes of the entries from a message on. OperationNotSupported: it has partitions."""
    from pulsarx._pycore.message.message_id import MessageId
    from pulsarx.broker.subscriptions.backlog import backlog_extent

    ledger = folder.topic(_existing(folder, topic), create=False).ledger
    position = ledger.position_of(MessageId.from_text(message_id), True)
    return backlog_extent(position, ledger, 0)["backlog_size"]


def get_partitioned_topic_metadata(folder: OpenFolder, topic: str) -> dict[str, int]:
    return {"partitions": partition_count_of(folder.catalogue.state, _existing(folder, topic))}


def stats(folder: OpenFolder, topic: str) -> Arguments:
    """OperationNotSupported: it has partitions."""
    from pulsarx.broker.topics.statistics import topic_statistics

    name = _existing(folder, topic)
    if partition_count_of(folder.catalogue.state, name):
        raise errors.OperationNotSupported(
            detail=f"stats of {name}, which has partitions; call partitioned_stats, or stats of one"
        )
    return topic_statistics(folder.topic(name, create=False))


def partitioned_stats(folder: OpenFolder, topic: str) -> Arguments:
    """TopicNotFound: there is no partitioned topic of this name."""
    from pulsarx.broker.topics.statistics import partitioned_statistics

    folder.refresh()
    name = TopicName.of(topic)
    count = partition_count_of(folder.catalogue.state, name)
    if not count:
        raise errors.missing_topic(name, partitioned=True)
    return partitioned_statistics(
        name.full, [stats(folder, each) for each in partition_names(name, count)]
    )


def _existing(folder: OpenFolder, topic: str) -> TopicName:
    folder.refresh()
    name = TopicName.of(topic)
    if name.full not in folder.catalogue.state.topics and name.full not in folder.volatile:
        raise errors.missing_topic(name)
    return name


_TOPIC = {"topic": str}
_PARTITIONS = {"topic": str, "partitions": int}
_NAMESPACE = {"namespace": str}
VERBS = {
    "topics.get_list": Verb(
        get_list, {"namespace": str, "include_system_topic": bool, "domain": str}, reads=True
    ),
    "topics.get_partitioned_topic_list": Verb(get_partitioned_topic_list, _NAMESPACE, reads=True),
    "topics.create_non_partitioned_topic": Verb(create_non_partitioned_topic, _TOPIC),
    "topics.create_partitioned_topic": Verb(create_partitioned_topic, _PARTITIONS),
    "topics.update_partitioned_topic": Verb(update_partitioned_topic, _PARTITIONS),
    "topics.get_producer_sequences": Verb(get_producer_sequences, _TOPIC, reads=True),
    "topics.ensure": Verb(ensure, _PARTITIONS),
    "topics.get_partitioned_topic_metadata": Verb(
        get_partitioned_topic_metadata, _TOPIC, reads=True
    ),
    "topics.delete": Verb(delete, {"topic": str, "force": bool}, removes=True),
    "topics.delete_partitioned_topic": Verb(
        delete_partitioned_topic, {"topic": str, "force": bool}, removes=True
    ),
    "topics.terminate": Verb(terminate, _TOPIC),
    "topics.truncate": Verb(truncate, _TOPIC, removes=True),
    "topics.trim": Verb(trim, _TOPIC),
    "topics.unload": Verb(unload, _TOPIC),
    "topics.trigger_compaction": Verb(trigger_compaction, _TOPIC),
    "topics.offload": Verb(offload, {**_TOPIC, "size_threshold": int}),
    "topics.offload_before": Verb(offload_before, {**_TOPIC, "message_id": str}),
    "topics.offload_status": Verb(offload_status, _TOPIC, reads=True),
    "topics.merge_ledgers": Verb(merge_ledgers, {**_TOPIC, "size_max": int}),
    "topics.compaction_status": Verb(compaction_status, _TOPIC, reads=True),
    "topics.get_last_message_id": Verb(get_last_message_id, _TOPIC, reads=True),
    "topics.get_backlog_size": Verb(get_backlog_size, {**_TOPIC, "message_id": str}, reads=True),
    "topics.stats": Verb(stats, _TOPIC, reads=True),
    "topics.partitioned_stats": Verb(partitioned_stats, _TOPIC, reads=True),
}
