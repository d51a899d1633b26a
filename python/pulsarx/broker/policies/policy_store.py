"""The policies in force on a topic: its own over its namespace's over the broker's options."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.catalogue import changes
from pulsarx.broker.policies.message_policies import (
    RETENTION,
    MessagePolicies,
    is_exempt,
)
from pulsarx.broker.policies.retention import RetentionPolicy
from pulsarx.broker.policies.schema_policies import SchemaPolicies
from pulsarx.topic_name import TopicName, check_is_not_of_the_system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

    from pulsarx.broker.catalogue.catalogue import Catalogue
    from pulsarx.broker.catalogue.draft import Operation
    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker_options import BrokerOptions


class TopicPolicies:
    """The policies that hold on one topic as of a version. A value."""

    __slots__ = (
        "deduplication", "messages", "retention", "retention_is_set", "schema", "version",
    )  # fmt: skip

    def __init__(
        self,
        version: int,
        retention: RetentionPolicy,
        retention_is_set: bool,
        schema: SchemaPolicies,
        deduplication: bool,
        messages: MessagePolicies,
    ) -> None:
        """retention_is_set: it was chosen, be it by an option."""
        self.messages: MessagePolicies = messages
        self.version: int = version
        self.schema: SchemaPolicies = schema
        self.deduplication: bool = deduplication
        self.retention: RetentionPolicy = retention
        self.retention_is_set: bool = retention_is_set


class PolicyStore:
    """Reads policies out of the catalogue and changes them. Any thread may call.

    A caller that keeps a TopicPolicies compares its version with `version`, and asks again when
    they differ.
    """

    def __init__(
        self, catalogue: Catalogue, options: BrokerOptions, volatile: Collection[str] = ()
    ) -> None:
        """options: give what no namespace and no topic sets. volatile: names of topics that the
        catalogue does not know, and that have no policies of their own."""
        self._volatile = volatile
        self._catalogue = catalogue
        self._options = options
        self._defaults: dict[bool, MessagePolicies] = {}  # by whether they are of exempt topics
        # On topics without policies of their own, by namespace and whether they are exempt; of a
        # state of the catalogue and its version. Replaced, never cleared.
        self._shared: tuple[CatalogueState, int, dict[tuple[str, bool], TopicPolicies]] = (
            catalogue.state, -1, {},
        )  # fmt: skip
        self._tell: Callable[[], object] | None = None

    def use_options(self, options: BrokerOptions) -> None:
        """Another owner of the folder may have others."""
        if options != self._options:
            self._options = options
            self._defaults = {}
            self._shared = (self._catalogue.state, -1, {})

    def tell_by(self, tell: Callable[[], object]) -> None:
        """Have changes of topic policies told: tell is called after each, without a lock."""
        if self._has_topic_policies:
            self._tell = tell

    @property
    def _has_topic_policies(self) -> bool:
        options = self._options
        return options.system_topic_enabled and options.topic_level_policies_enabled

    def events_of(self, topic: TopicName) -> list[dict[str, Any]]:
        """The operations that a commit which changes the policies of a topic has besides."""
        if self._tell is None or topic.is_system:
            return []
        return [changes.expect_change_event(topic.full)]

    def tell_changes(self) -> None:
        """Tell of what was committed."""
        if self._tell is not None:
            self._tell()

    @property
    def version(self) -> int:
        """Number of the last commit that changed a policy."""
        return self._catalogue.state.policies_number

    def of_topic(self, topic: TopicName) -> TopicPolicies:
        """TopicNotFound: its namespace is gone."""
        state = self._catalogue.state
        version = state.policies_number
        own = self._own(topic)
        key = (topic.namespace_name, is_exempt(topic))
        if own:
            return self._effective(version, key[0], own, key[1])
        of, of_version, shared = self._shared
        if of is not state or of_version != version:
            shared = {}
            self._shared = (state, version, shared)
        found = shared.get(key)
        if found is None:
            found = shared[key] = self._effective(version, key[0], own, key[1])
        return found

    def of_namespace(self, namespace: str) -> TopicPolicies:
        """The policies that hold on a topic that has no policies of its own. TopicNotFound: no
        namespace."""
        return self._effective(self.version, namespace, {})

    def _effective(
        self, version: int, namespace: str, own: dict[str, Any], exempt: bool = False
    ) -> TopicPolicies:
        policies = {**self._namespace(namespace), **own}
        options = self._options
        schema = SchemaPolicies.of(self._namespace(namespace), own, options)
        deduplication = policies.get("deduplication", options.broker_deduplication_enabled)
        messages = self._messages(policies, exempt)
        found = policies.get(RETENTION)
        if found is not None and not exempt:
            retention = RetentionPolicy(found["time_minutes"], found["size_mb"])
            return TopicPolicies(version, retention, True, schema, deduplication, messages)
        retention = RetentionPolicy()
        if not exempt:
            retention = RetentionPolicy(
                options.default_retention_time_in_minutes, options.default_retention_size_in_mb
            )
        is_set = not retention.keeps_nothing
        return TopicPolicies(version, retention, is_set, schema, deduplication, messages)

    def _messages(self, policies: dict[str, Any], exempt: bool) -> MessagePolicies:
        if policies:
            return MessagePolicies(policies, self._options, exempt)
        # Of most topics: not made anew for each that is opened.
        found = self._defaults.get(exempt)
        if found is None:
            found = self._defaults[exempt] = MessagePolicies({}, self._options, exempt)
        return found

    def _own(self, topic: TopicName) -> dict[str, Any]:
        """The policies set on a topic, over those of the partitioned topic that it is a partition
        of."""
        topics = self._catalogue.state.topics
        above = topics.get(topic.partitioned_name) if topic.partition_index >= 0 else None
        record = topics.get(topic.full)
        own = {} if record is None else record.policies
        return own if above is None else {**above.policies, **own}

    def _namespace(self, namespace: str) -> dict[str, Any]:
        found = self._catalogue.namespace_policies(namespace)
        if found is None:
            raise errors.missing_namespace(namespace)
        return found

    # One policy at one level, as JSON says it; None: it is not set there.

    def namespace_policy(self, namespace: str, policy: str) -> Any:
        """TopicNotFound: there is no such namespace."""
        return self._namespace(namespace).get(policy)

    def in_force(self, topic: TopicName, policy: str) -> Any:
        """The value that a topic, or else its namespace, sets; None: neither does. A partition has
        the policies of its partitioned topic. TopicNotFound: its namespace is gone."""
        record = self._catalogue.state.topics.get(topic.partitioned_name)
        found = None if record is None else record.policies.get(policy)
        return self.namespace_policy(topic.namespace_name, policy) if found is None else found

    def topic_policy(self, topic: TopicName, policy: str) -> Any:
        """TopicNotFound: there is no such topic."""
        record = self._catalogue.state.topics.get(topic.full)
        if record is None and topic.full in self._volatile:
            return None
        if record is None:
            raise errors.missing_topic(topic)
        return record.policies.get(policy)

    def set_namespace_policy(
        self,
        namespace: str,
        policy: str,
        value: object,
        check: Callable[[dict[str, Any]], object] | None = None,
    ) -> None:
        """None takes it away. Durable on return. TopicNotFound: there is no such namespace.

        check: given what would be set there; what it raises keeps it from being set.
        """

        def operations(_: CatalogueState) -> list[Operation]:
            there = self._namespace(namespace)  # it may just have been deleted
            if check is not None and value is not None:
                check({**there, policy: value})
            return [changes.set_namespace_policy(namespace, policy, value)]

        if self.namespace_policy(namespace, policy) != value:
            self._catalogue.commit(operations)

    def set_topic_policy(
        self,
        topic: TopicName,
        policy: str,
        value: object,
        check: Callable[[dict[str, Any]], object] | None = None,
    ) -> None:
        """Like set_namespace_policy, for a topic. check: given what would be set for it, by its
        namespace too. OperationNotSupported: it is not in the catalogue. NotAllowedError: topics
        have no policies of their own."""
        self._check_may_have(topic, policy)

        def operations(state: CatalogueState) -> list[Operation]:
            if topic.full not in state.topics:
                raise errors.TopicNotFound(detail=f"{topic}: it was deleted")
            if check is not None and value is not None:
                own, above = self._own(topic), self._namespace(topic.namespace_name)
                check({**above, **own, policy: value})
            made = changes.set_topic_policy(topic.full, policy, value)
            return [made, *self.events_of(topic)]

        if self.topic_policy(topic, policy) != value:
            self._catalogue.commit(operations)
            self.tell_changes()

    def _check_may_have(self, topic: TopicName, policy: str) -> None:
        if not self._has_topic_policies:
            raise errors.NotAllowedError(
                detail=f"set {policy} of {topic}: topic_level_policies_enabled and "
                "system_topic_enabled must both be on; set it on the namespace"
            )
        check_is_not_of_the_system(topic, f"set {policy} of")
        if topic.full in self._volatile:
            raise errors.OperationNotSupported(
                detail=f"set {policy} of {topic}: a non-persistent topic without partitions is not "
                "kept, and neither are policies of its own; set it on the namespace"
            )
