"""Checks the schema of a consumer with the topics it reads. Calls of the control plane."""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx.broker.topics.partitioned_topic import partition_count_of, partition_names
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.broker import Broker
    from pulsarx.broker.read_only_broker import ReadOnlyBroker
    from pulsarx.schema.schema import SchemaInfo


class ConsumerSchema:
    """The schema of one consumer, which has one or several topics; None: it reads bytes.

    Checked before anything is made, registered when all is: so a refused consumer leaves nothing.
    """

    def __init__(
        self, broker: Broker | ReadOnlyBroker, topics: list[TopicName], info: SchemaInfo | None
    ) -> None:
        """IncompatibleSchema: a topic has another one. ValueError: it is malformed."""
        self._broker = broker
        self._info = info
        self._to_register: list[TopicName] = []
        if info is not None:
            names = dict.fromkeys(each.partitioned_name for each in topics)
            for each in map(TopicName.of, names):
                if broker.schemas.check_consumer(each, info, partial(self._is_idle, each)):
                    self._to_register.append(each)

    def _is_idle(self, name: TopicName) -> bool:
        while True:
            self._broker.refresh()
            state = self._broker.catalogue.state
            if name.full not in state.topics and name.full not in self._broker.volatile:
                return True
            count = partition_count_of(state, name)
            names = map(TopicName.of, partition_names(name, count)) if count else [name]
            try:
                return all(self._broker.topic(each, create=False).is_idle() for each in names)
            except errors.TopicNotFound:
                pass  # it was deleted, or unloaded, since it was found

    def register(self, read_only: bool = False) -> None:
        """Register it on the topics that were idle; a topic that has got a schema meanwhile is
        compared with it. As the constructor. read_only: nothing may be changed."""
        if self._info is None or read_only:
            return
        for each in self._to_register:
            if self._broker.schemas.check_consumer(each, self._info, lambda: True):
                self._broker.schemas.register(each, self._info)
