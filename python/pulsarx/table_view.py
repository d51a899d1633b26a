"""A table view: what `Client.create_table_view` returns. The last value of each key of a topic.

A reader on each partition follows the topic; one SerialWork of the client's listener threads
applies what it reads, so updates and listeners never overlap.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.locks import Condition, Lock
from pulsarx.clock import Deadline
from pulsarx.consuming.partition_follower import PartitionFollower
from pulsarx.enumerations import SchemaType
from pulsarx.ground.attempt import attempt
from pulsarx.ground.closing import Closing
from pulsarx.ground.owner import client_is_closing
from pulsarx.listening.listener_loop import ListenerLoop
from pulsarx.listening.listener_pool import SerialWork, log_exception
from pulsarx.message_id import MessageId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from pulsarx._pycore.consume.consumer_core import ConsumerCore
    from pulsarx._pycore.message.message import Message
    from pulsarx.broker.broker import Broker
    from pulsarx.broker.ledgers.compacted_view import CompactedView
    from pulsarx.broker.topics.any_topic import AnyTopic
    from pulsarx.broker.topics.non_persistent_reader import NonPersistentReader
    from pulsarx.broker.topics.reader_cursor import ReaderCursor
    from pulsarx.ground.owner import MemberOwner
    from pulsarx.listening.listener_pool import ListenerPool
    from pulsarx.options.members import TableViewOptions

    Listener = Callable[[str, Any], object]

# Decodings of an empty payload that the official client passes to listeners of a removed key.
_EMPTY = {SchemaType.BYTES: b"", SchemaType.STRING: ""}


class TableView:
    """The last value of each key of a topic, as a dictionary to read. Any thread may call.

    Messages without a key are ignored. A message without a value, or with an empty one, removes its
    key. Order holds within a key. Nothing is acknowledged and no ledger is kept from being trimmed.
    A value is the object that the schema decoded, shared by all callers.
    """

    owner: MemberOwner | None = None

    def __init__(self, name: str, options: TableViewOptions, pool: ListenerPool) -> None:
        """Use `Client.create_table_view`.

        Args:
            name: The name of the topic.
            options: As they were given to the client.
            pool: The threads of the client's listeners.
        """
        self._name = name
        self._options = options
        self._pool = pool
        self._values: dict[str, Any] = {}
        self._listeners: list[Listener] = []
        self._applying = Condition()  # held while updates are applied, and by for_each_and_listen
        self._lock = Lock()  # of what follows; taken by calls of the control plane only
        self._partitions: list[_Partition] = []
        self._is_live = False
        self._follower: PartitionFollower | None = None
        self._is_undecoded = True
        self._closing = Closing()
        self._removed = _EMPTY.get(options.schema.schema_info().schema_type())
        pool.grow()
        self._work = SerialWork(pool, self._step, f"the table view of {name}")

    # Making ---------------------------------------------------------------------------------------

    def attach(self, broker: Broker, found: Any) -> None:
        """Begin to read the topic, or each of its partitions. A call of the control plane.

        Args:
            broker: The one of the client.
            found: The topic.

        Raises:
            TopicNotFound: It was deleted meanwhile.
        """
        if found.is_partitioned:
            self._follower = PartitionFollower(found, broker.runtime, self._attach_partition)
            self._follower.start()
        else:
            self._attach_one(found)

    def _attach_partition(self, partition: AnyTopic, _: bool) -> None:
        self._attach_one(partition)

    def _attach_one(self, topic: AnyTopic) -> None:
        from pulsarx.broker.ledgers.compacted_view import CompactedView

        positions = CompactedView(topic.ledger) if topic.keeps_messages else None
        # A topic that keeps nothing holds nothing now: the view has what comes from now on.
        start, last = (0, 0), MessageId.earliest
        if positions is not None:
            start = positions.first_position()
        cursor = topic.reader_cursor(self._options.schema, read_compacted=topic.keeps_messages)
        core = cursor.attach(start)
        loop = ListenerLoop(self._pool, core, self._update, None)
        if positions is not None:
            last = positions.last_message_id()
        made = _Partition(cursor, core, loop, last, positions)
        with self._lock:
            self._partitions.append(made)
            if self._is_live:
                self._follow(made)

    def fill(self) -> None:
        """Apply what the topic held when this was made, in the caller's thread, then follow it.

        Raises:
            StorageError: It cannot be read.
        """
        for each in list(self._partitions):
            each.read_up_to_end(self)
        control_plane.perform(self._go_live)

    def keep(self, message: Message) -> None:
        """Apply one message in the caller's thread. It is not decoded here: what a signal handler
        raises meanwhile must not be taken for a refusal of the schema.

        Args:
            message: The newest of its key.
        """
        key = message.partition_key()
        if key and _is_empty(message):
            self._values.pop(key, None)
        elif key:
            self._values[key] = _Undecoded(message)

    def _go_live(self) -> None:
        with self._lock:
            self._is_live = True
            for each in self._partitions:
                self._follow(each)

    def _follow(self, partition: _Partition) -> None:
        partition.core.watch(self._work.due)
        self._work.due()

    # Following ------------------------------------------------------------------------------------

    def _step(self) -> bool:
        more = False
        with self._applying:
            if self._is_undecoded:
                self._is_undecoded = False
                self._decode_all()
            for each in list(self._partitions):
                try:
                    more = each.loop.turn(self) or more
                except errors.AlreadyClosed:
                    each.core.unwatch(self._work.due)
        return more

    def _decode_all(self) -> None:
        """Give up the messages that `fill` kept: each keeps the mapping of its ledger."""
        for key, value in list(self._values.items()):
            if type(value) is _Undecoded:
                self._values[key] = _decoded(value.message)

    def _update(self, _: object, message: Message) -> None:
        """Apply one message and tell the listeners. What they raise is logged."""
        key = message.partition_key()
        if not key:
            return
        value: Any = self._removed
        if _is_empty(message):
            self._values.pop(key, None)
        else:
            value = _decoded(message)
            self._values[key] = value
        for listener in tuple(self._listeners):
            try:
                listener(key, _value_of(value))
            except Exception:
                log_exception("%s: a listener of a table view raised at key %r", self._name, key)

    # Reading --------------------------------------------------------------------------------------

    def topic(self) -> str:
        """Return the full name of the topic."""
        return self._name

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, decoded by the schema. Raises what the schema raised for it.

        Args:
            key: The key of the messages.
            default: Returned when the table does not have the key.

        Example:
            client.create_producer("stock").send(b"7", partition_key="apples")
            view = client.create_table_view("stock")
            assert view.get("pears", b"0") == b"0"
        """
        return _value_of(self._values.get(key, default))

    def __getitem__(self, key: str) -> Any:
        return _value_of(self._values[key])

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[str]:
        """The keys there are now."""
        return iter(self.keys())

    def keys(self) -> list[str]:
        """Return the keys there are now, in a new list."""
        return list(self._values)

    def values(self) -> list[Any]:
        """Return the values there are now, in a new list. Raises what the schema raised for one."""
        return [_value_of(each) for each in list(self._values.values())]

    def items(self) -> list[tuple[str, Any]]:
        """Return the keys and values there are now, in a new list. Raises what the schema raised
        for one."""
        return [(key, _value_of(each)) for key, each in list(self._values.items())]

    def to_arrow(self) -> Any:
        """Return the keys and values there are now as a `pyarrow.Table`, a row for each key:
        `__key__`, and the fields of records, or `value`. Not in the official client.

        ValueError names the key whose value its column cannot hold. OperationNotSupported: values
        of the schema have no columns. ImportError: pyarrow is missing.
        """
        control_plane.load("pulsarx.ground.extras")
        from pulsarx.ground.extras import optional_module

        optional_module("pyarrow", "arrow", "to_arrow")
        control_plane.load("pulsarx.tables.key_values")
        from pulsarx.tables.key_values import table_of

        return table_of(self._name, self.items(), self._options.schema)

    def for_each(self, callback: Listener) -> None:
        """Call a function with what the table holds now, in this thread.

        Args:
            callback: Called with a key and its value.

        Raises:
            TypeError: callback cannot be called.
        """
        _check_is_callable(callback)
        for key, value in self.items():
            callback(key, value)

    def for_each_and_listen(self, callback: Listener) -> None:
        """Call a function with what the table holds now, in this thread, then with each update, in
        a listener thread.

        No update between the two is lost or told twice: none is applied before this returns, so the
        callback must not wait for one. What the callback raises comes out of this call, and it is
        not called again; of updates it is logged.

        Args:
            callback: Called with a key and its value; that of a removed key is b"" with
                BytesSchema, "" with StringSchema, else None.

        Raises:
            TypeError: callback cannot be called.
            AlreadyClosed: The view is closed.
        """
        _check_is_callable(callback)
        self._require_open()
        with self._applying:
            for key, value in self.items():
                callback(key, value)
            self._listeners.append(callback)

    # Closing --------------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop following; what was read stays readable. It does not wait for a listener that runs.

        Raises:
            AlreadyClosed: A second call, unless the client closed it.
        """
        if self._is_forked or (self._closing.told and not client_is_closing(self.owner)):
            self._require_open()
        self._closing.close(self._shut, self.owner)

    def close_with_client(self) -> None:
        """Close it like close, when the client closes. A call of the control plane."""
        self._closing.finish(self._shut, self.owner)

    def _shut(self) -> None:
        failure: Exception | None = None
        with self._lock:
            partitions = list(self._partitions)
            self._is_live = False
        for each in partitions:
            failure = attempt(each.core.shut) or failure
            failure = attempt(each.cursor.end) or failure  # what it has mapped is given back
        if failure is not None:
            raise failure

    @property
    def _is_forked(self) -> bool:
        return any(each.core.is_forked for each in self._partitions)

    def _require_open(self) -> None:
        for each in self._partitions:
            each.core.require_open()
        if self._closing.begun:
            raise errors.AlreadyClosed(detail=f"table view of {self._name}")

    def __enter__(self) -> TableView:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._closing.begun:
            self.close()

    def _repr_html_(self) -> str:
        """Show the table view in a notebook."""
        control_plane.load("pulsarx.tables.notebook")
        from pulsarx.tables.notebook import facts_html

        is_open = True
        keys: int | None = None
        try:
            keys = len(self)  # a cluster tells it as long as the view is open
            self._require_open()
        except errors.PulsarException:
            is_open = False
        return facts_html("TableView", {"topic": self._name, "keys": keys, "open": is_open})

    def __repr__(self) -> str:
        name = self._options.subscription_name
        return f"TableView(topic={self._name!r}, subscription_name={name!r}, keys={len(self)})"


class _Partition:
    """A topic that is read: the whole one, or a partition."""

    __slots__ = ("core", "cursor", "last", "loop", "positions")

    def __init__(
        self,
        cursor: ReaderCursor | NonPersistentReader,
        core: ConsumerCore,
        loop: ListenerLoop,
        last: MessageId,
        positions: CompactedView | None,
    ) -> None:
        self.cursor = cursor  # which its topic holds weakly, and closes with itself
        self.core = core
        self.loop = loop
        self.positions = positions  # None: the topic keeps nothing
        self.last = last  # when reading began; (-1, -1, -1, -1) where there was none

    def read_up_to_end(self, view: TableView) -> None:
        """Apply what there was when reading began. Raises StorageError where it cannot be read."""
        if self.positions is None or self.last == MessageId.earliest:
            return
        while self.core.has_message():
            try:
                message = self.core.take_now()
            except errors.CorruptDataError as error:
                if not getattr(error, "logged", False):
                    log_exception("%s: damaged messages were skipped", view.topic())
                continue
            if message is None:
                if not self.core.has_message():
                    return
                self.core.wait_for_message(Deadline(None))  # for the dispatch rate
                continue
            view.keep(message)
            if message.message_id() >= self.last:
                # A compaction that ended meanwhile may have left what came later in its place.
                self.last = control_plane.perform(self.positions.last_survivor)
                if message.message_id() >= self.last:
                    return


class _Undecoded:
    """Stands for a value that was not decoded yet, or that the schema refused."""

    __slots__ = ("message",)

    def __init__(self, message: Message) -> None:
        self.message = message


def _is_empty(message: Message) -> bool:
    return message.has_null_value() or not message.data()


def _check_is_callable(callback: object) -> None:
    if not callable(callback):
        raise TypeError(
            f"callback must be callable, not {type(callback).__name__}: {errors.shown(callback)}"
        )


def _decoded(message: Message) -> object:
    """Decode a value in a listener thread, where no signal arrives."""
    try:
        return message.value()
    except Exception:
        return _Undecoded(message)


def _value_of(value: Any) -> Any:
    """The value; what decoding it raises, for each caller anew."""
    return value.message.value() if type(value) is _Undecoded else value
