"""Makes and deletes durable subscriptions on several topics, in one commit."""

from __future__ import annotations

from contextlib import ExitStack

from pulsarx import errors
from pulsarx.broker.catalogue import changes
from pulsarx.broker.folder.at_once import take_at_once
from pulsarx.broker.folder.storage_errors import storage_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pulsarx._pycore.cursor.ack_tracker import AckTracker
    from pulsarx.broker.catalogue.catalogue import Catalogue
    from pulsarx.broker.faces import SubscribedTopic
    from pulsarx.broker.folder.file_operations import FileOperations
    from pulsarx.broker.ledgers.ledger_list import Position
    from pulsarx.broker.subscriptions.subscription import Subscription


class NewSubscription:
    """A subscription that is about to be created, with the lock of its topic, which is held until
    it is. A value."""

    __slots__ = ("creation", "keep", "name", "topic", "tracker")

    def __init__(
        self,
        topic: SubscribedTopic,
        name: str,
        creation: dict[str, Any],
        tracker: AckTracker,
        keep: Callable[[], object] | None,
    ) -> None:
        """creation: as the catalogue is told of it. keep: makes the tracker durable; None: that is
        for later, before the first ledger."""
        self.topic: SubscribedTopic = topic
        self.name: str = name
        self.creation: dict[str, Any] = creation
        self.tracker: Any = tracker
        self.keep: Callable[[], object] | None = keep

    @classmethod
    def begin(
        cls, topic: SubscribedTopic, name: str, position: Position, type_name: str,
        files: FileOperations | None, properties: dict[str, str],
    ) -> NewSubscription:  # fmt: skip
        """It is not in the catalogue yet. files: see BrokerRuntime.new_tracker."""
        topic.check_room_for(name)
        ledger_id, ordinal = position
        cursor_id = topic.runtime.allocate_cursor_id()
        created_ms = topic.runtime.clock.now_ms()
        from pulsarx.broker.catalogue.records import SubscriptionRecord

        record = SubscriptionRecord(
            name, cursor_id, type_name, created_ms, properties, ledger_id or -1, ordinal
        )
        creation = changes.create_subscription(
            topic.name,
            name,
            cursor_id,
            type=type_name,
            created_ms=created_ms,
            initial=(ledger_id or -1, ordinal),
            properties=properties or None,
        )
        if topic.ledger.has_begun:
            tracker, keep = topic.cursors().begin(record, position, files)
            return cls(topic, name, creation, tracker, keep)
        topic.ledger.before_first = topic.keep_cursors
        tracker, _ = topic.cursors().begin(record, position)
        return cls(topic, name, creation, tracker, None)

    def finish(self) -> Subscription:
        """The catalogue names it."""
        state = self.topic.runtime.catalogue.state
        record = state.topics[self.topic.name].subscriptions[self.name]
        made: Subscription = self.topic.admit(self.name, record, self.tracker)
        return made

    def discard(self) -> None:
        """The catalogue does not name it."""
        self.topic.cursors().discard(self.tracker, self.name)


def locked_in_order(topics: Sequence[SubscribedTopic]) -> ExitStack:
    """A block with the locks of topics, in the order of their names, so that no two ever wait for
    each other. TopicGone: one of them has gone."""
    with ExitStack() as stack:
        for topic in sorted(topics, key=lambda each: each.name):
            stack.enter_context(topic.lock)
            topic.check_not_gone()
        return stack.pop_all()


def update_properties(
    topics: Sequence[SubscribedTopic], name: str, properties: dict[str, str]
) -> None:
    """Give a durable subscription of all topics that have it these properties, in the place of its
    own, in one commit. What is dispatched afterwards is selected by them.

    InvalidConfiguration: the selector among them is wrong. SubscriptionNotFound: no topic has the
    subscription."""
    from pulsarx.broker.subscriptions.selectors import filter_of

    filter_of(properties)
    with locked_in_order(topics):
        there = [topic for topic in topics if name in topic.subscriptions]
        if not there:
            raise errors.missing_subscription(name, topics[0].name)
        catalogue = there[0].runtime.catalogue
        catalogue.commit(
            [changes.set_subscription_properties(each.name, name, properties) for each in there]
        )
        for topic in there:
            record = catalogue.state.topics[topic.name].subscriptions[name]
            topic.subscriptions[name].use_record(record)


def delete_subscriptions(topics: Sequence[SubscribedTopic], name: str, force: bool) -> None:
    """Delete a durable subscription of all topics that have it, in one commit.

    NotAllowedError: consumers are attached, and it is not forced. SubscriptionNotFound: none has
    it."""
    with locked_in_order(topics):
        there = [topic for topic in topics if name in topic.subscriptions]
        if not there:
            raise errors.missing_subscription(name, topics[0].name)
        for topic in there:
            subscription = topic.subscriptions[name]
            subscription.detach_forgotten()
            if subscription.consumers() and not force:
                raise errors.NotAllowedError(
                    detail=f"delete subscription {name} of {topic.name}: "
                    f"{len(subscription.consumers())} consumers are attached; close them, or "
                    "delete it with force=True, which does"
                )
        commit = there[0].runtime.catalogue.commit
        commit([changes.remove_subscription(topic.name, name) for topic in there])
        for topic in there:
            topic.subscriptions.pop(name).remove()
            topic.touch()
    for topic in there:
        topic.trim_soon()


def create_subscriptions(
    catalogue: Catalogue,
    places: Sequence[tuple[SubscribedTopic, Position]],
    name: str,
    type_name: str,
    properties: dict[str, str] | None = None,
) -> list[Subscription]:
    """Make a durable subscription on each topic in one commit: all or none. With the locks of the
    topics. Durable on return. InvalidConfiguration: the selector among the properties is wrong."""
    from pulsarx.broker.subscriptions.selectors import filter_of

    given = dict(properties or {})
    filter_of(given)
    new: list[NewSubscription] = []
    runtime = places[0][0].runtime
    files = runtime.files_of_new_cursors() if len(places) > 1 else None
    with ExitStack() as stack:
        if not all(topic.ledger.has_begun for topic, _ in places):
            # No first ledger comes unless all of them are there, to be given their files before.
            stack.enter_context(runtime.first_ledgers)
        try:
            for topic, position in places:
                begun = NewSubscription.begin(topic, name, position, type_name, files, given)
                new.append(begun)
            # Before the catalogue names them, so that one that is not there later was lost.
            keeps = [each.keep for each in new if each.keep is not None]
            take_at_once(keeps)
            if files is not None and keeps:
                try:
                    files.flush()
                except OSError as error:
                    raise storage_error("flush the folder of cursors", error) from error
            catalogue.commit([each.creation for each in new])
        except BaseException:
            if not catalogue.outcome_unknown:
                for each in new:
                    each.discard()
            raise
        try:
            return [each.finish() for each in new]
        except MemoryError:  # the catalogue names them, so they must be there
            return [each.finish() for each in new]
