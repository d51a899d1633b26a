"""Verbs about topics: which there are, creating them, their partitions, what is in them."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.catalogue.changes import create_topic
from pulsarx.broker.topics.partitioned_topic import partition_count_of, partition_names
from pulsarx.broker.verbs.http import Http
from pulsarx.broker.verbs.subscriptions import kept_topics_of, topics_of
from pulsarx.broker.verbs.verb import CONSUME, IN_NAMESPACE, LOOKUP, TENANT_ADMIN, verb
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

    Json = dict[str, Any]


_OF_STATS = (
    "getPreciseBacklog",
    "subscriptionBacklogSize",
    "getEarliestTimeInBacklog",
    "excludePublishers",
    "excludeConsumers",
)
DOMAINS = ("any", "persistent", "non-persistent")


@verb("topics.get_list", needs=IN_NAMESPACE, reads=True,
    http=Http("GET", "/{domain}/{namespace}",
        "Get the topics of a namespace, of partitioned ones their partitions.",
        query={"include_system_topic": "includeSystemTopic"}, answer="names"))  # fmt: skip
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


@verb("topics.get_partitioned_topic_list", needs=IN_NAMESPACE, reads=True,
    http=Http("GET", "/{domain}/{namespace}/partitioned",
        "Get the partitioned topics of a namespace.", answer="names"))  # fmt: skip
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


@verb("topics.create_non_partitioned_topic", needs=TENANT_ADMIN,
    http=Http("PUT", "{topic}", "Create a topic without partitions."))  # fmt: skip
def create_non_partitioned_topic(broker: Broker, topic: TopicName) -> None:
    """NotAllowedError: it exists."""
    broker.topics.create_non_partitioned_topic(topic)


@verb("topics.create_partitioned_topic", needs=TENANT_ADMIN,
    http=Http("PUT", "{topic}/partitions", "Create a partitioned topic.", body="integer",
        argument="partitions"))  # fmt: skip
def create_partitioned_topic(broker: Broker, topic: TopicName, partitions: int) -> None:
    """NotAllowedError: it exists."""
    broker.topics.create_partitioned_topic(topic, partitions)


@verb("topics.update_partitioned_topic", needs=TENANT_ADMIN,
    http=Http("POST", "{topic}/partitions", "Give a partitioned topic more partitions.",
        body="integer", argument="partitions", refused=422, missing=409))  # fmt: skip
def update_partitioned_topic(broker: Broker, topic: TopicName, partitions: int) -> None:
    """NotAllowedError: partitions only become more."""
    check_is_not_of_the_system(topic, "give partitions to")
    broker.topics.update_partitioned_topic(topic, partitions)


@verb("topics.ensure", needs=TENANT_ADMIN)
def ensure(broker: Broker, topic: TopicName, partitions: int) -> Json:
    """Create a topic unless it exists; partitions 0: without. The answer says how it is."""
    count, created = broker.topics.ensure(topic, partitions)
    return {"topic": topic.full, "partitions": count, "created": created}


@verb("topics.get_producer_sequences", needs=TENANT_ADMIN, reads=True)
def get_producer_sequences(folder: OpenFolder, topic: TopicName) -> dict[str, int]:
    """The highest sequence id that is stored of each producer; of none without deduplication, nor
    beside the owner."""
    found = folder.topic(_existing(folder, topic), create=False)
    deduplication = getattr(found, "deduplication", None)
    return {} if deduplication is None else deduplication.highest()


# Ending -------------------------------------------------------------------------------------------


@verb("topics.delete", needs=TENANT_ADMIN, removes=True,
    http=Http("DELETE", "{topic}", "Delete a topic.", query={"force": "force"},
        refused=412))  # fmt: skip
def delete(broker: Broker, topic: TopicName, force: bool) -> None:
    """A partition is there again at once, without messages and subscriptions: in Pulsar when it is
    used. NotAllowedError: it has partitions; or it is in use, and it is not forced."""
    full = topic.full
    whole = topic.whole

    def select(state: CatalogueState) -> list[str]:
        if not broker.topics.is_there(full):
            raise errors.missing_topic(full)
        if partition_count_of(state, topic):
            raise errors.NotAllowedError(
                detail=f"delete {full}: it has partitions; call delete_partitioned_topic"
            )
        return [full]

    def made_again(state: CatalogueState) -> list[Operation]:
        is_partition = 0 <= topic.partition_index < partition_count_of(state, whole)
        if not is_partition or not topic.persistent:
            return []
        return [create_topic(full, broker.catalogue.allocate_id())]

    broker.topics.delete(select, force, made_again)


@verb("topics.delete_partitioned_topic", needs=TENANT_ADMIN, removes=True,
    http=Http("DELETE", "{topic}/partitions", "Delete a partitioned topic.",
        query={"force": "force"}, refused=412))  # fmt: skip
def delete_partitioned_topic(broker: Broker, topic: TopicName, force: bool) -> None:
    """With its partitions, all or nothing. NotAllowedError: one of them is in use, and it is not
    forced."""

    def select(state: CatalogueState) -> list[str]:
        count = partition_count_of(state, topic)
        if not count:
            raise errors.missing_topic(topic, partitioned=True)
        return [topic.full, *partition_names(topic, count)]

    broker.topics.delete(select, force)


@verb("topics.terminate", needs=TENANT_ADMIN,
    http=Http("POST", "{topic}/terminate", "Terminate a topic.", answer="MessageId"))  # fmt: skip
def terminate(broker: Broker, topic: TopicName) -> str:
    """The id of the last message, as text. OperationNotSupported: it has partitions."""
    check_is_not_of_the_system(topic, "terminate")
    found = broker.topic(topic, create=False)
    found.ledger.terminate()
    found.producers.terminate()
    return found.ledger.last_message_id().to_text()


@verb("topics.truncate", needs=TENANT_ADMIN, removes=True,
    http=Http("DELETE", "{topic}/truncate", "Remove what a topic holds."))  # fmt: skip
def truncate(broker: Broker, topic: TopicName) -> None:
    """On a partitioned topic: each partition."""
    for each in topics_of(broker, topic):
        each.truncate()


@verb("topics.trim", needs=TENANT_ADMIN,
    http=Http("POST", "{topic}/trim", "Remove ledgers that are not needed any more."))  # fmt: skip
def trim(broker: Broker, topic: TopicName) -> None:
    """Remove the ledgers that are not needed any more, now. On a partitioned topic: each
    partition."""
    for each in kept_topics_of(broker, topic):
        each.trim()


@verb("topics.unload", needs=TENANT_ADMIN, http=Http("PUT", "{topic}/unload", "Unload a topic."))
def unload(broker: Broker, topic: TopicName) -> None:
    """On a partitioned topic: each partition."""
    for each in topics_of(broker, topic):
        broker.topics.unload(each.topic_name)


# Compacting ---------------------------------------------------------------------------------------


@verb("topics.trigger_compaction", needs=TENANT_ADMIN,
    http=Http("PUT", "{topic}/compaction", "Compact a topic."))  # fmt: skip
def trigger_compaction(broker: Broker, topic: TopicName) -> None:
    """On a partitioned topic: each partition. NotAllowedError: a compaction goes on."""
    topics = kept_topics_of(broker, topic)
    for each in topics:
        each.compaction.check_idle()
    for each in topics:
        each.compaction.trigger()


@verb("topics.compaction_status", needs=TENANT_ADMIN, reads=True,
    http=Http("GET", "{topic}/compaction", "Get the status of a compaction.",
        answer="LongRunningProcessStatus"))  # fmt: skip
def compaction_status(folder: OpenFolder, topic: TopicName) -> dict[str, str]:
    """A partitioned topic is RUNNING or ERROR when one of its partitions is, else SUCCESS when one
    is."""
    return _worst([each.compaction_status() for each in _views_of(folder, topic)])


def _views_of(folder: OpenFolder, topic: TopicName) -> list[TopicView]:
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


@verb("topics.offload", needs=TENANT_ADMIN)
def offload(broker: Broker, topic: TopicName, size_threshold: int) -> None:
    """On a partitioned topic: each partition. OperationNotSupported: there is no object store.
    NotAllowedError: it is being offloaded."""
    if size_threshold < 0:
        raise ValueError(f"offload {topic}: size_threshold is {size_threshold}; give bytes from 0")
    topics = kept_topics_of(broker, topic)
    for each in topics:
        each.offload.check_idle()
    for each in topics:
        each.offload.trigger(size_threshold)


@verb("topics.offload_before", needs=TENANT_ADMIN,
    http=Http("PUT", "{topic}/offload",
        "Offload the ledgers of a topic in front of the one with a message.", body="MessageId",
        argument="message_id"))  # fmt: skip
def offload_before(broker: Broker, topic: TopicName, message_id: str) -> None:
    """The ledgers in front of the one with a message. OperationNotSupported: the topic has
    partitions. As offload."""
    from pulsarx._pycore.message.message_id import MessageId

    name = check_keeps_messages(_existing(broker, topic))
    found = broker.topic(name, create=False).require_kept("offload")
    found.offload.trigger(0, MessageId.from_text(message_id).ledger_id())


@verb("topics.offload_status", needs=TENANT_ADMIN, reads=True,
    http=Http("GET", "{topic}/offload", "Get the status of offloading.",
        answer="LongRunningProcessStatus"))  # fmt: skip
def offload_status(folder: OpenFolder, topic: TopicName) -> dict[str, str]:
    """The worst status of offloading among the parts of a topic, in the form of
    compaction_status."""
    return _worst([each.offload_status() for each in _views_of(folder, topic)])


@verb("topics.merge_ledgers", needs=TENANT_ADMIN)
def merge_ledgers(broker: Broker, topic: TopicName, size_max: int) -> Json:
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


@verb("topics.get_last_message_id", needs=CONSUME, reads=True,
    http=Http("GET", "{topic}/lastMessageId", "Get the id of the last message.",
        answer="MessageId"))  # fmt: skip
def get_last_message_id(folder: OpenFolder, topic: TopicName) -> str:
    """The id of the last message, as text. OperationNotSupported: it has partitions."""
    name = _existing(folder, topic)
    return folder.topic(name, create=False).ledger.last_message_id().to_text()


@verb("topics.get_backlog_size", needs=CONSUME, reads=True,
    http=Http("PUT", "{topic}/backlogSize", "Get the bytes that a topic holds from a message on.",
        body="MessageId", argument="message_id", answer="integer"))  # fmt: skip
def get_backlog_size(folder: OpenFolder, topic: TopicName, message_id: str) -> int:
    """Bytes of the entries from a message on. OperationNotSupported: it has partitions."""
    from pulsarx._pycore.message.message_id import MessageId
    from pulsarx.broker.subscriptions.backlog import backlog_extent

    ledger = folder.topic(_existing(folder, topic), create=False).ledger
    position = ledger.position_of(MessageId.from_text(message_id), True)
    return backlog_extent(position, ledger, 0)["backlog_size"]


@verb("topics.get_partitioned_topic_metadata", needs=LOOKUP, reads=True,
    http=Http("GET", "{topic}/partitions",
        "Get how many partitions a topic has; 0: it is not partitioned.",
        more=("checkAllowAutoCreation",), answer="PartitionedTopicMetadata"))  # fmt: skip
def get_partitioned_topic_metadata(folder: OpenFolder, topic: TopicName) -> dict[str, int]:
    return {"partitions": partition_count_of(folder.catalogue.state, _existing(folder, topic))}


@verb("topics.stats", needs=LOOKUP, reads=True,
    http=Http("GET", "{topic}/stats", "Get the statistics of a topic.",
        more=_OF_STATS))  # fmt: skip
def stats(folder: OpenFolder, topic: TopicName) -> Json:
    """OperationNotSupported: it has partitions."""
    from pulsarx.broker.topics.statistics import topic_statistics

    name = _existing(folder, topic)
    if partition_count_of(folder.catalogue.state, name):
        raise errors.OperationNotSupported(
            detail=f"stats of {name}, which has partitions; call partitioned_stats, or stats of one"
        )
    return topic_statistics(folder.topic(name, create=False))


@verb("topics.partitioned_stats", needs=LOOKUP, reads=True,
    http=Http("GET", "{topic}/partitioned-stats", "Get the statistics of a partitioned topic.",
        more=("perPartition", *_OF_STATS)))  # fmt: skip
def partitioned_stats(folder: OpenFolder, topic: TopicName) -> Json:
    """TopicNotFound: there is no partitioned topic of this name."""
    from pulsarx.broker.topics.statistics import partitioned_statistics

    folder.refresh()
    count = partition_count_of(folder.catalogue.state, topic)
    if not count:
        raise errors.missing_topic(topic, partitioned=True)
    found = [stats(folder, TopicName.of(each)) for each in partition_names(topic, count)]
    return partitioned_statistics(topic.full, found)


def _existing(folder: OpenFolder, topic: TopicName) -> TopicName:
    folder.refresh()
    if topic.full not in folder.catalogue.state.topics and topic.full not in folder.volatile:
        raise errors.missing_topic(topic)
    return topic
