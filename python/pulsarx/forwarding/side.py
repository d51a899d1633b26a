"""The two sides of a forwarder, a folder and a cluster: topics, deduplication, and which one it
is."""

from __future__ import annotations

import os
from urllib.parse import quote_plus

from pulsarx import errors
from pulsarx._pycore.ground.file_system import FileSystem
from pulsarx._pycore.ground.locks import Event
from pulsarx.admin import Admin
from pulsarx.broker.folder.folder_marker import marker_read
from pulsarx.cluster import official
from pulsarx.forwarding.source import ClusterSource, FolderSource
from pulsarx.forwarding.target import ClusterTarget, FolderTarget
from pulsarx.topic_name import PARTITION_SUFFIX, TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.admin.http_channel import HttpChannel
    from pulsarx.client import Client
    from pulsarx.consuming.topics_pattern import TopicsPattern
    from pulsarx.options.authentication import Authentication
    from pulsarx.schema.schema import SchemaInfo

_LOOKS = 100  # whether a broker has taken a policy over
_PAUSE_SECONDS = 0.1


class FolderSide:
    """A folder, or memory. Any thread."""

    open_source = FolderSource
    open_target = FolderTarget
    is_cluster = False

    def __init__(self, client: Client) -> None:
        self.client: Client = client

    def identity(self) -> dict[str, Any]:
        url = self.client._url
        if url.folder is None:
            return {"memory": url.memory_name}
        return {"folder": marker_read(FileSystem(), os.path.realpath(url.folder))}

    @property
    def source_name(self) -> str:
        """Tells it from all others in the name of a producer."""
        return str(next(iter(self.identity().values())))

    def partitions(self, topic: str) -> int:
        """0: it has none, or is not there."""
        return _partitions(self.client.admin, topic)

    def is_there(self, topic: str) -> bool:
        return _is_there(self.client.admin, topic)

    def matching(self, pattern: TopicsPattern) -> dict[str, int]:
        """Return the topics of a pattern, and how many partitions each has."""
        return _matching(self.client.admin, pattern)

    def schema_of(self, topic: str, version: int) -> SchemaInfo:
        return self.client.admin.schemas.get_schema_info(topic, version)

    def prepare(self, topic: str, partitions: int) -> bool:
        """Make a topic to forward to, and have it deduplicate. True: it does."""
        _make(self.client.admin, topic, partitions)
        _have_deduplicated(self.client.admin, topic)
        return True

    def lag(self, topic: str, subscription: str) -> int | None:
        return _lag(self.client.admin, topic, subscription)


class ClusterSide:
    """A cluster, with the URL of its admin REST API or without. Any thread."""

    open_source = ClusterSource
    open_target = ClusterTarget
    is_cluster = True

    def __init__(
        self,
        client: Any,
        admin_url: str | None,
        authentication: Authentication | None,
        certificates: str | None,
    ) -> None:
        """client: one of a cluster. InvalidUrl: that of admin is none."""
        self.client: Any = client
        self._channel: HttpChannel | None = None
        self._admin: Admin | None = None
        if admin_url is not None:
            from pulsarx.admin.http_channel import HttpChannel

            self._channel = HttpChannel(admin_url, authentication, certificates)
            self._admin = Admin(self._channel)

    def identity(self) -> dict[str, Any]:
        """By its URL and, where its admin REST API can be asked, its name."""
        scheme, _, rest = self.client._url.text.partition("://")
        hosts, _, _ = rest.partition("/")
        found = {"url": f"{scheme}://{','.join(sorted(hosts.split(',')))}"}
        if self._channel is not None:
            found["clusters"] = ",".join(sorted(self._channel.json("/clusters")))
        return found

    @property
    def source_name(self) -> str:
        return str(self.identity()["url"])

    def partitions(self, topic: str) -> int:
        if self._admin is not None:
            return _partitions(self._admin, topic)
        asked = self.client._native.get_topic_partitions
        found = official.call(topic, asked, str(TopicName.of(topic)))
        return sum(1 for each in found if TopicName.of(each).partition_index >= 0)

    def is_there(self, topic: str) -> bool:
        return self._admin is None or _is_there(self._admin, topic)

    def matching(self, pattern: TopicsPattern) -> dict[str, int]:
        """Like that of a folder. OperationNotSupported: there is no admin URL."""
        if self._admin is None:
            raise errors.OperationNotSupported(
                detail=f"the topics of {pattern.text!r} in a cluster: which there are is told by "
                "its admin REST API; give admin_url (--admin-url)"
            )
        return _matching(self._admin, pattern)

    def schema_of(self, topic: str, version: int) -> SchemaInfo:
        asked = self.client._native.get_schema_info
        return official.schema_of(official.call(topic, asked, topic, version), version)

    def prepare(self, topic: str, partitions: int) -> bool:
        """Like that of a folder. False: whether it deduplicates is not known, without an admin
        URL."""
        if self._admin is None or self._channel is None:
            _check_partitions(topic, self.partitions(topic), partitions)
            return False
        _make(self._admin, topic, partitions)
        name = TopicName.of(topic)
        if partitions:
            name = name.partition(0)
        path = f"/{name.domain}/{name.namespace_name}/{quote_plus(name.local_name)}/stats"
        # The policy of a namespace may do, and who may not change one need not.
        if self._deduplicates(path):
            return True
        _have_deduplicated(self._admin, topic)
        pause = Event()
        for _ in range(_LOOKS):
            if self._deduplicates(path):
                return True
            pause.wait(_PAUSE_SECONDS)
        return False

    def _deduplicates(self, path: str) -> bool:
        """False: it is not known to. A topic that nobody has open takes a policy over when it is
        opened."""
        assert self._channel is not None
        try:
            return bool(self._channel.json(path).get("deduplicationStatus") == "Enabled")
        except errors.TopicNotFound:
            return False

    def lag(self, topic: str, subscription: str) -> int | None:
        return None if self._admin is None else _lag(self._admin, topic, subscription)


def _partitions(admin: Admin, topic: str) -> int:
    """0: it has none, or is not there."""
    try:
        return int(admin.topics.get_partitioned_topic_metadata(topic)["partitions"])
    except errors.TopicNotFound:
        return 0


def _is_there(admin: Admin, topic: str) -> bool:
    name = TopicName.of(topic)
    try:
        return bool(_partitions(admin, topic)) or name.full in admin.topics.get_list(
            name.namespace_name
        )
    except errors.TopicNotFound:  # the namespace
        return False


def _matching(admin: Admin, pattern: TopicsPattern) -> dict[str, int]:
    found = {}
    for each in admin.topics.get_list(pattern.namespace):
        name = TopicName.of(each)
        if pattern.matches(name):
            found[name.full] = 0
    for each in admin.topics.get_partitioned_topic_list(pattern.namespace):
        if pattern.matches(TopicName.of(each)):
            found[each] = _partitions(admin, each)
    return dict(sorted(found.items()))


def _make(admin: Admin, topic: str, partitions: int) -> None:
    """Make a target topic, or give it the partitions that it lacks."""
    topics = admin.topics
    if not _is_there(admin, topic):
        try:
            if partitions:
                topics.create_partitioned_topic(topic, partitions)
            else:
                topics.create_non_partitioned_topic(topic)
        except errors.NotAllowedError:
            pass  # another one was first
    there = _partitions(admin, topic)
    if partitions > there > 0:
        topics.update_partitioned_topic(topic, partitions)
        there = _partitions(admin, topic)
    _check_partitions(topic, there, partitions)


def _have_deduplicated(admin: Admin, topic: str) -> None:
    if admin.topics.get_deduplication(topic) is not True:
        admin.topics.set_deduplication(topic, enabled=True)


def _check_partitions(topic: str, there: int, wanted: int) -> None:
    if there != wanted:
        raise errors.NotAllowedError(
            detail=f"the target {topic} has {there} partitions, and the source has {wanted}: what "
            "was sent again after a failure might be stored in another partition once more. Make "
            f"the target with {wanted} partitions (0: without), or give admin_url (--admin-url), "
            "with which a topic that is not there is made"
        )


def _lag(admin: Admin, topic: str, subscription: str) -> int | None:
    try:
        found = admin.topics.stats(topic)["subscriptions"].get(subscription)
    except errors.TopicNotFound:
        return None
    return None if found is None else int(found["msg_backlog"])


def in_namespace(topic: str, namespace: str | None) -> str:
    """The topic of the same name in another namespace; None: itself."""
    if namespace is None:
        return topic
    name = TopicName.of(topic)
    return f"{name.domain}://{namespace}/{name.local_name}"


def partition_of(topic: str, index: int) -> str:
    """index: -1: the topic itself."""
    return topic if index < 0 else f"{topic}{PARTITION_SUFFIX}{index}"
