"""Protocols for type checkers: the interface that parts of a guest's broker need of the parts above
them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from pulsarx._pycore.ground.job_queue import JobQueue
    from pulsarx._pycore.ground.open_state import OpenState
    from pulsarx._pycore.ground.weak_list import WeakList
    from pulsarx._pycore.publish.completion_queue import CompletionQueue
    from pulsarx.broker.faces import FolderView
    from pulsarx.broker.ledgers.read_only_ledger import ReadOnlyLedger
    from pulsarx.broker.policies.policy_store import PolicyStore
    from pulsarx.clock import Deadline
    from pulsarx.processes.guest.owner_connection import GuestConnection
    from pulsarx.topic_name import TopicName

    class GuestHost(FolderView, Protocol):
        """A folder that another process owns, as its topics see it."""

        name: str
        clock: Any
        state: OpenState
        post: Any
        topics: Any  # GuestTopics
        policies: PolicyStore
        completions: CompletionQueue
        background: JobQueue
        producers: WeakList
        volatile: dict[str, Any]
        members: WeakList

        @property
        def timeout_seconds(self) -> int:
            """How long the owner may take to answer the call that this thread makes."""

        @property
        def connection(self) -> GuestConnection:
            """To the owner there is now; waits for the next one."""

        def live(self, deadline: Deadline) -> GuestConnection:
            """The connection, waited for until the deadline."""

        def ask(self, name: str, **values: Any) -> dict[str, Any]:
            """The owner's answer to a command that may be repeated."""

        def ask_verb(self, verb: str, **arguments: Any) -> Any:
            """Like `ask`, for a verb of the session."""

        def asked(self, what: str, ask: Callable[[GuestConnection], Any]) -> Any:
            """Like `ask`, for what may be asked of a connection."""

        def lookup(self, name: TopicName, *, create: bool = True) -> Any:
            """Like Broker.lookup."""

        def refresh_non_persistent(self, namespaces: set[str]) -> None:
            """Have `volatile` name the owner's non-persistent topics without partitions."""

        def perform(self, verb: str, arguments: dict[str, Any]) -> Any:
            """The owner's answer to a verb."""

        def unanswered(self, what: str, connection: GuestConnection) -> Exception:
            """The error of an owner that lives and does not answer."""

        def unserved(self, within: str = "") -> str:
            """That there is no owner which does what it is asked, and what it is."""

        def bring(self, member: Any) -> None:
            """Have a member resume at the owner there is now."""

        def resume_later(self, job: Callable[[], object]) -> None:
            """Have something brought to a connection, not now."""

    class ProducersTopic(Protocol):
        """A topic, as its producers see it."""

        name: str
        topic_name: TopicName
        topic_id: int
        keeps_messages: bool
        ledger: ReadOnlyLedger

        @property
        def host(self) -> GuestHost: ...
