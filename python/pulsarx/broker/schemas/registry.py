"""The schemas of the topics of one folder: one list of versions a topic, kept in the catalogue.

A partition shares the list of its topic. Versions count from 0; a deletion takes a version too and
leaves what came before readable, but compared with nothing any more.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ground.locks import Lock
from pulsarx.broker.catalogue import changes
from pulsarx.broker.catalogue.records import SchemaRecord
from pulsarx.broker.schemas.compatibility import (
    check_compatible,
    consumer_strategy,
    identity_of,
    is_transitive,
)
from pulsarx.enumerations import SchemaType
from pulsarx.schema.schema import SchemaInfo
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.catalogue.catalogue import Catalogue
    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker.policies.policy_store import PolicyStore


class SchemaRegistry:
    """Any thread may call, but not the main one; a read-only folder can be asked and not changed.

    topic: any name; that of a partition stands for its topic.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        policies: PolicyStore,
        now_ms: Callable[[], int],
        refresh: Callable[[], object] = lambda: None,
        volatile: dict[str, tuple[SchemaRecord, ...]] | None = None,
    ) -> None:
        """refresh: reads what the owner of a folder that is not ours committed. volatile: topics
        that the catalogue does not know, with their schemas."""
        self._volatile = {} if volatile is None else volatile
        self._volatile_lock = Lock()  # of the schemas of those
        self._catalogue = catalogue
        self._policies = policies
        self._now_ms = now_ms
        self._refresh = refresh

    # Asking ---------------------------------------------------------------------------------------

    def versions(self, topic: TopicName) -> list[SchemaInfo]:
        """The schemas since the last deletion, the oldest first."""
        return [_info(each) for each in self._live(topic.partitioned_name)]

    def _records(self, name: str) -> tuple[SchemaRecord, ...]:
        return self._volatile.get(name) or self._catalogue.state.schemas.get(name, ())

    def _live(self, name: str) -> list[SchemaRecord]:
        return _live(self._records(name))

    def find(self, topic: TopicName, version: int) -> SchemaInfo | None:
        """The schema of a version, deleted by now or not; None: there is none."""
        name = topic.partitioned_name
        for is_last in (False, True):
            records = self._records(name)
            if 0 <= version < len(records):
                found = records[version]
                return None if found.type_name is None else _info(found)
            if not is_last:
                self._refresh()
        return None

    def created_ms(self, topic: TopicName, version: int) -> int:
        """When a version, which there is, was registered."""
        return self._records(topic.partitioned_name)[version].created_ms

    def version_of(self, topic: TopicName, info: SchemaInfo) -> int | None:
        """The version that this schema has; None: none."""
        found = _same(self._live(topic.partitioned_name), identity_of(info))
        return None if found is None else found.version

    def next_version(self, topic: TopicName) -> int:
        """The version that the next schema gets that is registered."""
        return len(self._records(topic.partitioned_name))

    def closed_topics(self) -> list[str]:
        """The topics that refuse a producer without a schema, as check_producer does."""
        return [
            name
            for name in self._catalogue.state.schemas
            if self._live(name) and self._policies.of_topic(TopicName.of(name)).schema.enforced
        ]

    def strategy(self, topic: TopicName) -> str:
        """The compatibility strategy in force."""
        if topic.local_name.startswith("__"):
            return "ALWAYS_COMPATIBLE"  # system topics
        return self._policies.of_topic(topic.whole).schema.strategy

    def check(self, topic: TopicName, info: SchemaInfo, strategy: str | None = None) -> None:
        """IncompatibleSchema: it may not be the next one. ValueError: it is malformed."""
        identity = identity_of(info)
        live = self._live(topic.partitioned_name)
        if _same(live, identity) is None:
            applied = strategy or self.strategy(topic)
            self._check(topic.partitioned_name, info, live, applied)

    def _check(self, name: str, info: SchemaInfo, live: list[SchemaRecord], strategy: str) -> None:
        self._compare(name, info, live if is_transitive(strategy) else live[-1:], strategy)

    def _compare(
        self, name: str, info: SchemaInfo, compared: list[SchemaRecord], strategy: str
    ) -> None:
        try:
            check_compatible(info, [_info(each) for each in compared], strategy)
        except errors.IncompatibleSchema as error:
            raise errors.IncompatibleSchema(detail=f"{name}: {errors.detail_of(error)}") from error

    # Producers and consumers ----------------------------------------------------------------------

    def check_producer(self, topic: TopicName, info: SchemaInfo | None) -> None:
        """Refuse a producer before anything is made for it. IncompatibleSchema; ValueError: its
        schema is malformed."""
        name = topic.partitioned_name
        policies = self._policies.of_topic(topic.whole).schema
        live = self._live(name)
        if info is None:
            if policies.enforced and live:
                raise closed_error(name)
            return
        if _same(live, identity_of(info)) is None:
            self._check_new(topic, info, live)

    def _check_new(self, topic: TopicName, info: SchemaInfo, live: list[SchemaRecord]) -> None:
        """Refuse a producer's schema that the topic does not have."""
        name = topic.partitioned_name
        if not self._policies.of_topic(topic.whole).schema.auto_update:
            raise errors.IncompatibleSchema(
                detail=f"{name} does not have this schema of type {info.schema_type().name}, and "
                "is_allow_auto_update_schema is off; register it with admin.schemas.create_schema"
            )
        self._check(name, info, live, self.strategy(topic))

    def register_producer(self, topic: TopicName, info: SchemaInfo) -> int:
        """The version of a producer's schema, registered if it is new. As check_producer."""
        self.check_producer(topic, info)
        return self.register(topic, info)

    def check_consumer(
        self, topic: TopicName, info: SchemaInfo, is_idle: Callable[[], bool]
    ) -> bool:
        """Refuse a consumer before anything is made for it; True: its schema is to be registered,
        because the topic is idle and has none. IncompatibleSchema, ValueError as check_producer.

        is_idle: whether the topic has no producer, no consumer and never had an entry.
        """
        name = topic.partitioned_name
        identity_of(info)
        live = self._live(name)
        policies = self._policies.of_topic(topic.whole).schema
        if not live and is_idle():
            if not policies.auto_update:
                self.check_producer(topic, info)
            return True
        strategy, against_all = consumer_strategy(self.strategy(topic))
        if strategy == "ALWAYS_COMPATIBLE":
            return False
        if not live and info.schema_type() == SchemaType.NONE:
            return False  # it wants bytes, which is what there is
        if not live:
            raise errors.IncompatibleSchema(
                detail=f"{name} is in use without a schema, so a consumer cannot bring one of type "
                f"{info.schema_type().name}; open a producer with it first, or register it with "
                "admin.schemas.create_schema"
            )
        self._compare(name, info, live if against_all else live[-1:], strategy)
        return False

    # Changing -------------------------------------------------------------------------------------

    def register(self, topic: TopicName, info: SchemaInfo, strategy: str | None = None) -> int:
        """The version of a schema, which is the next one unless the topic has it. Durable on
        return. IncompatibleSchema, ValueError; TopicNotFound: there is no such topic."""
        name = topic.partitioned_name
        identity = identity_of(info)
        applied = strategy or self.strategy(topic)
        if name in self._volatile:
            return self._register_volatile(name, info, applied)

        def operations(state: CatalogueState) -> list[dict[str, Any]]:
            live = _live(_records_in(state, name))
            same = _same(live, identity)
            if same is not None:
                raise _Known(same.version)
            self._check(name, info, live, applied)
            return [self._addition(state, name, info)]

        found = _same(self._live(name), identity)
        if found is not None:
            return found.version
        try:
            self._catalogue.commit(operations)
        except _Known as known:
            return known.version
        registered = _same(self._live(name), identity)
        if registered is None:
            raise errors.IncompatibleSchema(
                detail=f"{name}: the schema was deleted as it was registered"
            )
        return registered.version

    def planned(
        self, state: CatalogueState, topic: TopicName, info: SchemaInfo, version: int
    ) -> list[dict[str, Any]]:
        """The operations of a commit that give a producer's schema the version it was planned
        with; none where the topic has it as that.

        IncompatibleSchema: as check_producer; or it would get, or has, another version. ValueError:
        it is malformed. TopicNotFound: there is no such topic.
        """
        name = topic.partitioned_name
        records = _records_in(state, name)
        live = _live(records)
        same = _same(live, identity_of(info))
        if version != (len(records) if same is None else same.version):
            raise errors.IncompatibleSchema(
                detail=f"{name}: other schemas were registered or deleted since this one was "
                f"planned as version {version}; plan it again"
            )
        if same is not None:
            return []
        self._check_new(topic, info, live)
        return [self._addition(state, name, info)]

    def _addition(self, state: CatalogueState, name: str, info: SchemaInfo) -> dict[str, Any]:
        return changes.add_schema(
            name,
            len(state.schemas.get(name, ())),
            type_name=info.schema_type().name,
            name=info.name(),
            definition=info.schema(),
            properties=info.properties(),
            created_ms=self._now_ms(),
        )

    def _register_volatile(self, name: str, info: SchemaInfo, strategy: str) -> int:
        """Like `register`, for a topic that the catalogue does not know: it has its schemas as long
        as it is there itself."""
        with self._volatile_lock:
            records = self._records(name)
            live = _live(records)
            same = _same(live, identity_of(info))
            if same is None:
                self._check(name, info, live, strategy)
                same = SchemaRecord(
                    len(records),
                    info.schema_type().name,
                    info.name(),
                    info.schema(),
                    info.properties(),
                    self._now_ms(),
                )
                self._volatile[name] = (*records, same)
            return same.version

    def delete(self, topic: TopicName) -> None:
        """Delete the schemas of a topic; nothing where it has none. Durable on return."""
        name = topic.partitioned_name
        if name in self._volatile:
            with self._volatile_lock:
                records = self._records(name)
                if _live(records):
                    gone = SchemaRecord(len(records), None, "", "", {}, self._now_ms())
                    self._volatile[name] = (*records, gone)
            return

        def operations(state: CatalogueState) -> list[dict[str, Any]]:
            if not _live(state.schemas.get(name, ())):
                raise _Known(-1)
            version = len(state.schemas[name])
            return [changes.delete_schema(name, version, deleted_ms=self._now_ms())]

        try:
            self._catalogue.commit(operations)
        except _Known:
            pass


class _Known(Exception):
    """There is nothing to commit."""

    def __init__(self, version: int) -> None:
        super().__init__(version)
        self.version = version


def closed_error(topic: str) -> errors.IncompatibleSchema:
    """The error that a producer without a schema is told."""
    return errors.IncompatibleSchema(
        detail=f"{topic} has a schema and schema_validation_enforced is set: a producer without a "
        "schema is refused"
    )


def _records_in(state: CatalogueState, name: str) -> tuple[SchemaRecord, ...]:
    """TopicNotFound: there is no such topic."""
    if name not in state.topics:
        raise errors.missing_topic(name)
    return state.schemas.get(name, ())


def _live(records: tuple[SchemaRecord, ...]) -> list[SchemaRecord]:
    """The records since the last deletion."""
    found: list[SchemaRecord] = []
    for each in reversed(records):
        if each.type_name is None:
            break
        found.append(each)
    found.reverse()
    return found


def _same(records: list[SchemaRecord], identity: str) -> SchemaRecord | None:
    for each in records:
        if identity_of(_info(each)) == identity:
            return each
    return None


def _info(record: SchemaRecord) -> SchemaInfo:
    assert record.type_name is not None
    kind = SchemaType.__members__[record.type_name]
    return SchemaInfo(kind, record.name, record.definition, record.properties, record.version)
