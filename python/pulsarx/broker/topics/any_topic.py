"""The topics that a broker has by name, but for partitioned ones: a name for type checkers."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from pulsarx.broker.topics.non_persistent_topic import NonPersistentTopic
    from pulsarx.broker.topics.topic import Topic

    AnyTopic: TypeAlias = Topic | NonPersistentTopic
