"""The pattern of a consumer of all topics whose names match: which topics it means."""

from __future__ import annotations

import re

from pulsarx import errors
from pulsarx.enumerations import RegexSubscriptionMode
from pulsarx.topic_name import TopicName, check_entity_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulsarx.broker.broker import Broker

DOMAINS = ("persistent://", "non-persistent://")


class TopicsPattern:
    """A checked pattern. Any thread; what it leaves out is said before it is used.

    The namespace stands in it literally, before the last slash; without a slash it is
    `public/default`. The rest must match the whole name of a topic in it, without the suffix of a
    partition. A domain in front is ignored: the mode decides.
    """

    __slots__ = ("_domains", "_left_out", "_local", "_no_endings", "_start", "namespace", "text")

    def __init__(self, pattern: re.Pattern[str], mode: RegexSubscriptionMode) -> None:
        """InvalidTopicName: the part before the last slash is no namespace."""
        if not isinstance(pattern.pattern, str):
            raise TypeError(f"topic={errors.shown(pattern)}: a pattern of text (str), not of bytes")
        self.text: str = pattern.pattern
        # Without a namespace it stands behind that one, as if that were written.
        text = self.text.removeprefix("^") if "/" in self.text else self.text
        for domain in DOMAINS:
            text = text.removeprefix(domain)
        namespace, slash, local = text.rpartition("/")
        tenant, _, name = namespace.partition("/")
        if slash:
            try:
                check_entity_name("tenant", tenant)
                check_entity_name("namespace", name)
            except errors.InvalidTopicName as error:
                raise errors.InvalidTopicName(
                    detail=f"topic={pattern!r}: before its last slash stands {namespace!r}, which "
                    f"must be one tenant/namespace: {errors.detail_of(error)}"
                ) from None
        if not local:
            raise errors.InvalidTopicName(
                detail=f"topic={pattern!r}: it has no pattern for topics; write .* for all of a "
                "namespace"
            )
        self.namespace: str = namespace if slash else "public/default"
        # As in Pulsar the whole name is matched, so a `^` behind the namespace never is.
        self._start = len(self.namespace) + 1
        try:
            self._local = re.compile(local, pattern.flags)
        except re.error as error:
            raise errors.InvalidTopicName(
                detail=f"topic={pattern!r}: what follows its last slash is no pattern: {error}"
            ) from None
        self._left_out: frozenset[str] = frozenset()
        self._no_endings: tuple[str, ...] = ()
        self._domains = {
            RegexSubscriptionMode.PersistentOnly: ("persistent",),
            RegexSubscriptionMode.NonPersistentOnly: ("non-persistent",),
            RegexSubscriptionMode.AllTopics: ("persistent", "non-persistent"),
        }[mode]

    def leave_out(self, names: Iterable[str]) -> None:
        """Mean no topic of these names."""
        self._left_out = frozenset(names)

    def leave_out_letters_of(self, subscription_name: str) -> None:
        """Mean no topic whose name is that of letters of a subscription: they would come back."""
        self._no_endings = (f"-{subscription_name}-DLQ", f"-{subscription_name}-RETRY")

    @property
    def non_persistent_namespace(self) -> str | None:
        """The namespace whose non-persistent topics match; None: none do."""
        return self.namespace if "non-persistent" in self._domains else None

    def topics_of(self, broker: Broker) -> list[TopicName]:
        """The topics there are that are meant, by name."""
        names = [*broker.runtime.catalogue.state.topics, *broker.runtime.volatile]
        return sorted(filter(self.matches, map(TopicName.of, names)), key=str)

    def matches(self, name: TopicName) -> bool:
        """Whether a topic is meant; a partition is not, its partitioned topic is. Names that begin
        with `__` are the system's."""
        return (
            name.namespace_name == self.namespace
            and name.domain in self._domains
            and name.partition_index < 0
            and not name.local_name.startswith("__")
            and not name.local_name.endswith(self._no_endings)
            and name.full not in self._left_out
            and self._local.fullmatch(f"{self.namespace}/{name.local_name}", self._start)
            is not None
        )
