"""Making the readers and table views of a client. In the control plane."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.ledgers.compacted_view import positions_to_read
from pulsarx.broker.topics.topic_gone import TopicGone
from pulsarx.consuming.seek_position import start_position
from pulsarx.ground.attempt import attempt
from pulsarx.options.members import decryption_of
from pulsarx.reader import Reader
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx._pycore.ground.work_pool import WorkPool
    from pulsarx.broker.broker import Broker
    from pulsarx.broker.read_only_broker import ReadOnlyBroker
    from pulsarx.consuming.consumer_schema import ConsumerSchema
    from pulsarx.options.members import ReaderOptions, TableViewOptions
    from pulsarx.table_view import TableView


def make_reader(
    broker: Broker | ReadOnlyBroker, options: ReaderOptions, pool: WorkPool, read_only: bool
) -> Reader:
    """The reader that the options ask for; its listener is not started.

    read_only: of the client, which may use the broker of one that owns the folder.
    """
    if read_only:  # it makes no topics
        return _make_reader(broker, options, pool, True)
    writable: Any = broker
    with writable.topics.taking_back():
        return _make_reader(broker, options, pool, False)


def _make_reader(
    broker: Broker | ReadOnlyBroker, options: ReaderOptions, pool: WorkPool, read_only: bool
) -> Reader:
    name = TopicName.of(options.topic)
    schema = _schema_of(broker, name, options)
    while True:
        if read_only and not name.persistent:
            from pulsarx.broker.topics.non_persistent_reader import refuse_reading

            refuse_reading(name.full)
        found: Any = broker.lookup(name, create=options.creates and not read_only)
        try:
            reader = (_reader_of_partitions if found.is_partitioned else _reader_of)(
                broker, found, options, pool
            )
            break
        except TopicGone:
            pass  # it was found just before it went; look for it again
        except errors.TopicNotFound:
            if not _has_gone(found):
                raise
    if schema is not None:
        try:
            schema.register(read_only)
        except BaseException:
            attempt(reader.close_with_client)
            raise
    return reader


def _has_gone(found: Any) -> bool:
    """Whether a topic was deleted since it was found: by its owner, which is another process."""
    return bool(found.is_deleted if found.is_partitioned else found.is_gone)


def _reader_of(broker: Any, topic: Any, options: ReaderOptions, pool: WorkPool) -> Reader:
    compacted = options.is_read_compacted
    positions = positions_to_read(topic, compacted)
    position = start_position(
        positions, options.start_message_id, options.start_message_id_inclusive
    )
    decryption = decryption_of(options)
    cursor = topic.reader_cursor(options.schema, compacted, decryption, options.selector or "")
    core = cursor.attach(position, options.receiver_queue_size)
    return Reader(core, cursor, topic.name, options, pool)


def _reader_of_partitions(
    broker: Any, topic: Any, options: ReaderOptions, pool: WorkPool
) -> Reader:
    from pulsarx.consuming.partitioned_reader import PartitionedReader

    reader: PartitionedReader = PartitionedReader(topic.name, options, pool)
    try:
        reader.attach(getattr(broker, "runtime", None), topic)
    except BaseException:
        attempt(reader.close_with_client)
        raise
    return reader


def make_table_view(broker: Broker, options: TableViewOptions, pool: WorkPool) -> TableView:
    """The view that the options ask for, attached and not filled."""
    with broker.topics.taking_back():
        return _make_table_view(broker, options, pool)


def _make_table_view(broker: Broker, options: TableViewOptions, pool: WorkPool) -> TableView:
    from pulsarx.table_view import TableView

    name = TopicName.of(options.topic)
    schema = _schema_of(broker, name, options)
    while True:
        found: Any = broker.lookup(name)
        view = TableView(name.full, options, pool)
        try:
            view.attach(broker, found)
            if schema is not None:
                schema.register()
            return view
        except errors.TopicNotFound as error:
            attempt(view.close_with_client)
            if not isinstance(error, TopicGone) and not _has_gone(found):
                raise  # else it was found just before it went; look for it again
        except BaseException:
            attempt(view.close_with_client)
            raise


def _schema_of(
    broker: Broker | ReadOnlyBroker, name: TopicName, options: ReaderOptions | TableViewOptions
) -> ConsumerSchema | None:
    if options.schema_info is None:
        return None
    from pulsarx.consuming.consumer_schema import ConsumerSchema

    return ConsumerSchema(broker, [name], options.schema_info)
