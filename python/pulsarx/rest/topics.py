"""Routes of topics: which there are, their partitions, what they hold."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.admin.http_forms import ANSWERS, id_answer
from pulsarx.admin.http_statistics import (
    deduplication_cursor,
    internal_statistics,
    partitioned_statistics,
    topic_statistics,
)
from pulsarx.message_id import MessageId
from pulsarx.rest.call import Answer, Refusal, integer_of, read_form, whole
from pulsarx.rest.policies import TOPIC
from pulsarx.rest.route import Route
from pulsarx.rest.subscriptions import message_answer
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.rest.call import Call

    Json = dict[str, Any]


def _list(call: Call) -> list[str]:
    found: list[str] = call.perform(
        "topics.get_list",
        namespace=call.namespace,
        include_system_topic=call.flag("includeSystemTopic"),
        domain=call.domain,
    )
    return found


def _list_partitioned(call: Call) -> list[str]:
    found = call.perform("topics.get_partitioned_topic_list", namespace=call.namespace)
    return [name for name in found if name.startswith(f"{call.domain}://")]


# Creating and deleting ----------------------------------------------------------------------------


def _create(call: Call) -> None:
    if call.has_body and call.json():
        raise errors.OperationNotSupported(
            detail="properties of a topic are not supported by PulsarX yet"
        )
    call.perform("topics.create_non_partitioned_topic", topic=call.topic)


def _count(call: Call) -> int:
    """How many partitions: a number, or an object that has it."""
    found = call.json()
    if isinstance(found, dict):
        if found.get("properties"):
            raise errors.OperationNotSupported(
                detail="properties of a topic are not supported by PulsarX yet"
            )
        count = integer_of(found, "partitions")
    else:
        count = call.json_integer()
    if count <= 0:
        raise Refusal(406, "The number of partitions must be more than 0")
    return count


def _create_partitioned(call: Call) -> None:
    call.perform("topics.create_partitioned_topic", topic=call.topic, partitions=_count(call))


def _update_partitioned(call: Call) -> None:
    call.perform("topics.update_partitioned_topic", topic=call.topic, partitions=_count(call))


def _partitions(call: Call) -> Json:
    """The number of partitions. A topic that is not there is made first, if checkAllowAutoCreation
    asks for that."""
    name = TopicName.of(call.topic)
    try:
        found = call.perform("topics.get_partitioned_topic_metadata", topic=str(name))
    except errors.TopicNotFound:
        if not call.flag("checkAllowAutoCreation") or name.partition_index >= 0:
            raise
        found = {"partitions": call.host.broker.topics.partitions_if_used(name)}
    shown: Json = ANSWERS["PartitionedTopicMetadata"].shown(found)
    return shown


def _delete(call: Call) -> None:
    if _partition_count(call):
        raise Refusal(
            409,
            f"{call.topic} is a partitioned topic, instead of calling delete topic, please call "
            "delete-partitioned-topic.",
        )
    call.perform("topics.delete", topic=call.topic, force=call.flag("force"))


def _delete_partitioned(call: Call) -> None:
    if not _partition_count(call):
        raise Refusal(
            409,
            f"{call.topic} is a non-partitioned topic. Instead of calling delete-partitioned-topic "
            "please call delete.",
        )
    call.perform("topics.delete_partitioned_topic", topic=call.topic, force=call.flag("force"))


def _trim(call: Call) -> Answer:
    call.perform("topics.trim", topic=call.topic)
    return Answer(b"")


def _properties(call: Call) -> Json:
    _partition_count(call)
    return {}


def _nothing_missing(call: Call) -> None:
    """Partitions are made with their topic."""
    if not _partition_count(call):
        raise errors.missing_topic(call.topic, partitioned=True)


def _partition_count(call: Call) -> int:
    found = call.perform("topics.get_partitioned_topic_metadata", topic=call.topic)
    return int(found["partitions"])


# What is in it ------------------------------------------------------------------------------------


def _terminate_partitions(call: Call) -> Json:
    found = {}
    count = _partition_count(call)
    if not count:
        raise Refusal(
            405,
            "Termination of a non-partitioned topic is not allowed using partitioned-terminate, "
            "please use terminate commands",
        )
    for index in range(count):
        partition = str(TopicName.of(call.topic).partition(index))
        last = call.perform("topics.terminate", topic=partition)
        found[str(index)] = id_answer(last)
    return found


def _unpartitioned(call: Call) -> str:
    """TopicNotFound: it has partitions, as in Pulsar."""
    if _partition_count(call):
        raise errors.TopicNotFound(detail=f"Topic {call.topic} not found: it is partitioned")
    return call.topic


def _last_message_id(call: Call) -> Json:
    found = call.perform("topics.get_last_message_id", topic=_unpartitioned(call))
    return id_answer(found)


# A message --------------------------------------------------------------------------------------


def _examine(call: Call) -> Answer:
    end = call.query.get("initialPosition") or "latest"
    if end not in ("latest", "earliest"):
        raise Refusal(412, f"initialPosition is latest or earliest, not {end!r:.100}")
    number = whole("messagePosition", call.query.get("messagePosition") or "1")
    return message_answer(
        call.perform(
            "topics.examine_message",
            topic=call.topic,
            number=max(number, 1),
            from_end=end == "latest",
        )
    )


def _message(call: Call) -> Answer:
    index = whole("batchIndex", call.query.get("batchIndex") or "-1")
    wanted = MessageId(-1, call.number("ledger"), call.number("entry"), index)
    found = call.perform("topics.get_message_by_id", topic=call.topic, message_id=wanted.to_text())
    if found is None:
        raise Refusal(404, "Message id not found")
    return message_answer(found)


def _offload(call: Call) -> None:
    message_id = read_form("MessageId", call.json())
    call.perform("topics.offload_before", topic=_unpartitioned(call), message_id=message_id)


def _stats(call: Call) -> Json:
    return topic_statistics(call, call.perform("topics.stats", topic=_unpartitioned(call)))


def _partitioned_stats(call: Call) -> Json:
    found = call.perform("topics.partitioned_stats", topic=call.topic)
    return partitioned_statistics(call, found, per_partition=call.flag("perPartition", True))


def _internal_stats(call: Call) -> Json:
    topic = _unpartitioned(call)
    found = internal_statistics(call.perform("topics.stats", topic=topic))
    sequences = call.perform("topics.get_producer_sequences", topic=topic)
    if sequences:
        found["cursors"]["pulsar.dedup"] = deduplication_cursor(found, sequences)
    return found


def _partitioned_internal_stats(call: Call) -> Json:
    found = call.perform("topics.partitioned_stats", topic=call.topic)
    partitions = found["partitions"]
    return {
        "metadata": _partitions(call),
        "partitions": {name: internal_statistics(each) for name, each in partitions.items()},
    }


OWN: dict[str, Callable[[Call], Any]] = {
    "topics.get_list": _list,
    "topics.get_partitioned_topic_list": _list_partitioned,
    "topics.create_non_partitioned_topic": _create,
    "topics.create_partitioned_topic": _create_partitioned,
    "topics.update_partitioned_topic": _update_partitioned,
    "topics.get_partitioned_topic_metadata": _partitions,
    "topics.delete": _delete,
    "topics.delete_partitioned_topic": _delete_partitioned,
    "topics.trim": _trim,
    "topics.get_last_message_id": _last_message_id,
    "topics.examine_message": _examine,
    "topics.offload_before": _offload,
    "topics.stats": _stats,
    "topics.partitioned_stats": _partitioned_stats,
}
ROUTES = [
    Route(
        "POST",
        f"{TOPIC}/createMissedPartitions",
        _nothing_missing,
        "Create the missing partitions of a topic: there are none.",
    ),
    Route("GET", f"{TOPIC}/properties", _properties, "Get the properties of a topic."),
    Route(
        "GET", f"{TOPIC}/internalStats", _internal_stats, "Get the ledgers and cursors of a topic."
    ),
    Route(
        "GET",
        f"{TOPIC}/partitioned-internalStats",
        _partitioned_internal_stats,
        "Get the ledgers and cursors of the partitions of a topic.",
    ),
    Route(
        "GET",
        f"{TOPIC}/ledger/{{ledger}}/entry/{{entry}}",
        _message,
        "Get the message of an id.",
    ),
    Route(
        "POST",
        f"{TOPIC}/terminate/partitions",
        _terminate_partitions,
        "Terminate the partitions of a topic.",
    ),
]
