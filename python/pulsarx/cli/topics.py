"""`pulsarx topics`: the commands of `pulsar-admin topics`, and policies of topics."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.cli import subscriptions
from pulsarx.cli.command import SIZE, command, force_option, message_id_of, topic_argument
from pulsarx.cli.declared import Choice, Failed, Group, Whole, argument, option
from pulsarx.cli.permissions import add_permissions
from pulsarx.cli.policies import add_policies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.cli.folder import Folder

_LOOK_SECONDS = 0.05
_partitions = option(
    "-p", "--partitions", type=Whole(min=1), required=True, help="How many partitions."
)
_namespace = argument("namespace", default="public/default")


topics: Group = Group("Administer topics, their subscriptions and policies.")


@command("pulsarx topics list public/default", watched=True)
@_namespace
@option(
    "-td",
    "--topic-domain",
    "domain",
    type=Choice(("persistent", "non_persistent")),
    help="Only topics of this domain.",
)
def list_topics(folder: Folder, namespace: str, domain: str | None) -> None:
    """List the topics of a namespace; for a partitioned topic its partitions."""
    wanted = None if domain is None else domain.replace("_", "-")
    names = folder.admin().topics.get_list(namespace, domain=wanted)
    folder.output.rows(("topic",), [{"topic": name} for name in names])


@command("pulsarx topics list-partitioned-topics public/default", watched=True)
@_namespace
def list_partitioned(folder: Folder, namespace: str) -> None:
    """List the partitioned topics of a namespace."""
    names = folder.admin().topics.get_partitioned_topic_list(namespace)
    folder.output.rows(("topic",), [{"topic": name} for name in names])


@command("pulsarx topics create orders")
@topic_argument
def create(folder: Folder, topic: str) -> None:
    """Create a topic without partitions."""
    folder.admin().topics.create_non_partitioned_topic(topic)


@command("pulsarx topics create-partitioned-topic orders -p 4")
@topic_argument
@_partitions
def create_partitioned(folder: Folder, topic: str, partitions: int) -> None:
    """Create a topic with partitions."""
    folder.admin().topics.create_partitioned_topic(topic, partitions)


@command("pulsarx topics update-partitioned-topic orders -p 8")
@topic_argument
@_partitions
def update_partitioned(folder: Folder, topic: str, partitions: int) -> None:
    """Give a topic more partitions; keys change theirs."""
    folder.admin().topics.update_partitioned_topic(topic, partitions)


@command("pulsarx topics get-partitioned-topic-metadata orders")
@topic_argument
def metadata(folder: Folder, topic: str) -> None:
    """Tell how many partitions a topic has; 0: it is not partitioned."""
    folder.output.record(folder.admin().topics.get_partitioned_topic_metadata(topic))


@command("pulsarx topics delete orders")
@topic_argument
@force_option
def delete(folder: Folder, topic: str, force: bool) -> None:
    """Delete a topic without partitions, with its messages, subscriptions, schemas and policies."""
    folder.admin().topics.delete(topic, force)


@command("pulsarx topics delete-partitioned-topic orders")
@topic_argument
@force_option
def delete_partitioned(folder: Folder, topic: str, force: bool) -> None:
    """Delete a topic with all its partitions."""
    folder.admin().topics.delete_partitioned_topic(topic, force)


@command("pulsarx topics truncate orders")
@topic_argument
def truncate(folder: Folder, topic: str) -> None:
    """Remove all messages of a topic, acknowledged or not, whatever retention says."""
    folder.admin().topics.truncate(topic)


@command("pulsarx topics terminate orders")
@topic_argument
def terminate(folder: Folder, topic: str) -> None:
    """Terminate a topic: it takes no more messages, for good. Prints the id of its last one."""
    last = folder.admin().topics.terminate(topic)
    folder.output.record({"message_id": last.to_text()})


@command("pulsarx topics unload orders")
@topic_argument
def unload(folder: Folder, topic: str) -> None:
    """Seal the open ledger of a topic and write down the positions of its subscriptions."""
    folder.admin().topics.unload(topic)


@command("pulsarx topics compact orders")
@topic_argument
def compact(folder: Folder, topic: str) -> None:
    """Compact a topic: keep the last message of each key.

    The owner of the folder is asked and goes on alone, see compaction-status; where there is none
    the command compacts, and waits for it.
    """
    if folder.is_http:
        folder.admin().topics.trigger_compaction(topic)
        return
    from pulsarx._pycore.ground.locks import Event

    try:
        with folder.owned("topics compact") as client:
            client.admin.topics.trigger_compaction(topic)
            found = client.admin.topics.compaction_status(topic)
            pause = Event()
            while found["status"] == "RUNNING":
                pause.wait(_LOOK_SECONDS)
                found = client.admin.topics.compaction_status(topic)
    except errors.FolderOwnedError:
        folder.admin().topics.trigger_compaction(topic)
        return
    if found["status"] != "SUCCESS":
        raise Failed(f"compaction of {topic} failed: {found['last_error']}")


@command("pulsarx topics compaction-status orders", watched=True)
@topic_argument
def compaction_status(folder: Folder, topic: str) -> None:
    """Tell the status of compaction: NOT_RUN, RUNNING, SUCCESS or ERROR."""
    folder.output.record(folder.admin().topics.compaction_status(topic))


@command("pulsarx topics offload orders --size-threshold 10G")
@topic_argument
@option(
    "-s",
    "--size-threshold",
    type=SIZE,
    required=True,
    help="How many of the newest bytes stay: 10M, 16G. 0: all sealed ledgers are offloaded.",
)
def offload(folder: Folder, topic: str, size_threshold: int) -> None:
    """Copy the oldest ledgers of a topic to the object store of the folder's owner.

    The owner goes on alone, see offload-status. There has to be one, with `offload_url`.
    """
    folder.admin().topics.offload(topic, size_threshold)


@command("pulsarx topics offload-status orders", watched=True)
@topic_argument
def offload_status(folder: Folder, topic: str) -> None:
    """Tell the status of offloading: NOT_RUN, RUNNING, SUCCESS or ERROR."""
    folder.output.record(folder.admin().topics.offload_status(topic))


@command("pulsarx topics merge-ledgers orders")
@topic_argument
@option(
    "--size-max",
    type=Whole(min=1),
    default=1 << 20,
    show_default=True,
    help="Ledgers of fewer bytes are merged.",
)
def merge_ledgers(folder: Folder, topic: str, size_max: int) -> None:
    """Merge the files of small ledgers, as jobs leave them; message ids stay."""
    folder.output.record(folder.admin().topics.merge_ledgers(topic, size_max))


@command("pulsarx topics last-message-id orders")
@topic_argument
def last_message_id(folder: Folder, topic: str) -> None:
    """Tell the id of the last message; -1:-1:-1 in an empty topic."""
    last = folder.admin().topics.get_last_message_id(topic)
    folder.output.record({"message_id": last.to_text()})


@command("pulsarx topics get-message-id-by-index orders -i 3")
@topic_argument
@option("-i", "--index", type=Whole(min=0), required=True, help="From 0, trimmed ones counted.")
def message_id_by_index(folder: Folder, topic: str, index: int) -> None:
    """Tell the id of the message of an index."""
    found = folder.admin().topics.get_message_id_by_index(topic, index)
    folder.output.record({"message_id": found.to_text()})


@command("pulsarx topics get-message-by-id orders -m 7:0")
@topic_argument
@option("-m", "--messageId", "place", required=True, help="The message: ledger:entry.")
def message_by_id(folder: Folder, topic: str, place: str) -> None:
    """Show the message of an id, whatever was acknowledged of it."""
    found = folder.admin().topics.get_message_by_id(topic, message_id_of(place))
    if found is None:
        raise Failed(f"{topic} has no message {place}")
    folder.output.message(found)


@command("pulsarx topics get-backlog-size orders -m 7:0")
@topic_argument
@option(
    "-m", "--messageId", "place", default="earliest", help="ledger:entry; else the first message."
)
def backlog_size(folder: Folder, topic: str, place: str) -> None:
    """Tell the bytes that a topic holds from a message on."""
    size = folder.admin().topics.get_backlog_size(topic, message_id_of(place))
    folder.output.record({"backlog_size": size})


@command("pulsarx topics stats orders", watched=True)
@topic_argument
def stats(folder: Folder, topic: str) -> None:
    """Show the figures of a topic without partitions and of its subscriptions."""
    from pulsarx.cli.listing import show_stats

    show_stats(folder.output, folder.admin().topics.stats(topic))


@command("pulsarx topics partitioned-stats orders --per-partition", watched=True)
@topic_argument
@option("--per-partition", is_flag=True, help="Also those of each partition.")
def partitioned_stats(folder: Folder, topic: str, per_partition: bool) -> None:
    """Show the figures of a partitioned topic, added up."""
    from pulsarx.cli.listing import show_stats

    found = folder.admin().topics.partitioned_stats(topic)
    if not per_partition:
        del found["partitions"]
    show_stats(folder.output, found)


for _subject, _commands in {
    "Topics": {
        "list": list_topics,
        "list-partitioned-topics": list_partitioned,
        "create": create,
        "create-partitioned-topic": create_partitioned,
        "update-partitioned-topic": update_partitioned,
        "get-partitioned-topic-metadata": metadata,
        "delete": delete,
        "delete-partitioned-topic": delete_partitioned,
        "truncate": truncate,
        "terminate": terminate,
        "unload": unload,
    },
    "Figures": {
        "stats": stats,
        "partitioned-stats": partitioned_stats,
        "last-message-id": last_message_id,
        "get-message-id-by-index": message_id_by_index,
        "get-message-by-id": message_by_id,
        "get-backlog-size": backlog_size,
    },
    "Storage": {
        "compact": compact,
        "compaction-status": compaction_status,
        "offload": offload,
        "offload-status": offload_status,
        "merge-ledgers": merge_ledgers,
    },
    "Subscriptions": {
        "subscriptions": subscriptions.list_subscriptions,
        "create-subscription": subscriptions.create_subscription,
        "unsubscribe": subscriptions.delete_subscription,
        "peek-messages": subscriptions.peek,
        "reset-cursor": subscriptions.seek,
        "skip": subscriptions.skip,
        "clear-backlog": subscriptions.clear,
        "expire-messages": subscriptions.expire,
    },
}.items():
    for _name, _command in _commands.items():
        topics.add_command(_command, _name, _subject)
add_permissions(topics, "topic")
add_policies(topics, "topics", "topic")
