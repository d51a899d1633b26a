"""Protocols for type checkers: the interface that parts of the broker need of the parts above
them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from pulsarx._pycore.ground.locks import RLock
    from pulsarx._pycore.ground.open_state import OpenState
    from pulsarx._pycore.ledger.ledger_tail import LedgerTail
    from pulsarx._pycore.ledger.published_ends import PublishedEnds
    from pulsarx.broker.catalogue.catalogue import Catalogue
    from pulsarx.broker.catalogue.records import LedgerRecord
    from pulsarx.broker.folder.data_directory import DataDirectory
    from pulsarx.broker.folder.memory_directory import MemoryDirectory
    from pulsarx.broker.ledgers.ledger_list import LedgerList
    from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
    from pulsarx.broker.policies.policy_store import PolicyStore
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.schemas.registry import SchemaRegistry
    from pulsarx.broker.topics.counted_rates import TopicRates
    from pulsarx.topic_name import TopicName

    class SubscriptionHost(Protocol):
        """The topic of a subscription, as the subscription sees it."""

        name: str
        topic_name: TopicName
        lock: RLock
        runtime: BrokerRuntime
        ledger: ManagedLedger

        @property
        def is_gone(self) -> bool: ...

        @property
        def schemas(self) -> SchemaRegistry: ...

        def trim(self) -> object:
            """Remove ledgers that are not needed any more, in the background."""

        def touch(self) -> None:
            """It is used now."""

        def take_back(self, subscription: Any) -> None:
            """Delete a subscription whose first consumer was refused, unless another uses it."""

        def drop_non_durable(self, subscription: Any) -> None:
            """Its last consumer has left."""

        def unsubscribe(self, name: str) -> None:
            """Delete a durable subscription."""

    class NonPersistentHost(SubscriptionHost, Protocol):
        """A non-persistent topic, as its readers and subscriptions see it."""

        def attach(self, request: Any, make: Callable[[Any, Any], Any]) -> Any:
            """Attach a consumer, whatever the limits are."""

    class SubscribedTopic(Protocol):
        """A topic on which durable subscriptions are made and deleted."""

        name: str
        lock: RLock
        runtime: BrokerRuntime
        ledger: ManagedLedger
        subscriptions: dict[str, Any]

        def check_not_gone(self) -> None:
            """TopicGone: it was deleted or unloaded."""

        def check_room_for(self, name: str) -> None:
            """NotAllowedError: it has as many subscriptions as it may."""

        def cursors(self) -> Any:
            """The maker and opener of its subscriptions' cursors."""

        def keep_cursors(self) -> None:
            """Give each subscription its cursor file."""

        def admit(self, name: str, record: Any, tracker: Any) -> Any:
            """A subscription that the catalogue names by now."""

        def touch(self) -> None:
            """It is used now."""

        def trim_soon(self) -> None:
            """Remove ledgers that are not needed any more, in the background."""

    class TopicView(Protocol):
        """A topic that can be read, owned or not."""

        name: str
        topic_name: TopicName
        decompressed_size_max: int
        is_partitioned: bool  # False: it has a ledger; True: partitions, each of which has one

        @property
        def is_gone(self) -> bool: ...
        @property
        def ledger(self) -> LedgerList: ...
        @property
        def tail(self) -> LedgerTail: ...
        @property
        def schemas(self) -> SchemaRegistry: ...
        def is_idle(self) -> bool: ...
        def reader_cursor(
            self,
            schema: object,
            read_compacted: bool = ...,
            decryption: object = ...,
            selector: str = ...,
        ) -> Any: ...
        @property
        def epoch(self) -> int | None: ...
        @property
        def deduplication_status(self) -> str | None: ...
        def compaction_status(self) -> dict[str, str]: ...
        def offload_status(self) -> dict[str, str]: ...
        @property
        def compaction_failed_ms(self) -> int: ...
        @property
        def offload_failed_ms(self) -> int: ...
        @property
        def held_by_leases(self) -> tuple[int, int] | None: ...
        @property
        def publish_rate_limited_times(self) -> int | None: ...
        def publisher_statistics(self) -> list[dict[str, Any]] | None: ...
        @property
        def rates(self) -> TopicRates | None: ...
        def published_since_opened(self) -> tuple[int | None, int | None]: ...
        def subscription_statistics(self) -> dict[str, dict[str, Any]]: ...
        def reader_statistics(self) -> dict[str, dict[str, Any]]: ...
        def abandon(self) -> None: ...

    class FolderView(Protocol):
        """A folder read beside its owner, as its topics see it."""

        catalogue: Catalogue
        directory: DataDirectory
        ends: PublishedEnds | None
        decompressed_size_max: int

        @property
        def schemas(self) -> SchemaRegistry: ...

        def refresh(self) -> bool:
            """Read what the owner committed since; whether there was anything."""

        def refresh_if_changed(self) -> int:
            """refresh where there is something; the number of the last commit."""

        def cursor_names(self, cursor_id: int) -> tuple[list[str], bool]:
            """The names of a cursor's files, and whether there are certainly no others."""

        def published(self, ledger: LedgerRecord) -> tuple[int, int, int]:
            """Bytes, entries and messages of an open ledger that are published; zeros when it is
            unknown."""

        def left_transactions(self) -> dict[int, Any]:
            """That an owner which is gone left open, and the next one goes on with, by number."""

    class OpenFolder(Protocol):
        """An opened folder: of a broker that owns it, or read beside its owner."""

        catalogue: Catalogue

        @property
        def policies(self) -> PolicyStore: ...

        volatile: Any  # what is by name a non-persistent topic that the catalogue does not know

        @property
        def read_only(self) -> bool: ...
        @property
        def is_guest(self) -> bool:
            """Whether another process owns the folder, and does what this one asks for."""

        @property
        def state(self) -> OpenState: ...
        @property
        def directory(self) -> DataDirectory | MemoryDirectory: ...
        @property
        def schemas(self) -> SchemaRegistry: ...

        def refresh(self) -> object:
            """Read what other processes committed; nothing, where there are none."""

        def refresh_if_changed(self) -> int:
            """refresh where there is something; the number of the last commit."""

        def topic(self, name: TopicName, *, create: bool = ...) -> TopicView: ...
        def close(self) -> None: ...
