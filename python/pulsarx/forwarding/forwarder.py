"""Forwards the topics of a folder to a cluster or another folder, and of a cluster to a folder."""

from __future__ import annotations

import logging
import os
import re

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.latch import Latch
from pulsarx._pycore.ground.locks import Event, Lock
from pulsarx._pycore.ground.threads import OwnThread
from pulsarx.client import Client
from pulsarx.clock import Deadline
from pulsarx.cluster.cluster_client import ClusterClient
from pulsarx.consuming.topics_pattern import TopicsPattern
from pulsarx.enumerations import BatchingType, CompressionType, RegexSubscriptionMode
from pulsarx.forwarding.known_targets import KnownTargets
from pulsarx.forwarding.link import Link
from pulsarx.forwarding.side import ClusterSide, FolderSide, in_namespace, partition_of
from pulsarx.ground.attempt import attempt
from pulsarx.ground.closing import Closing
from pulsarx.options.argument_check import check_type
from pulsarx.options.service_url import leads_to_cluster
from pulsarx.topic_name import (
    TopicName,
    check_keeps_messages,
    check_namespace_name,
    check_subscription_name,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pulsarx.options.authentication import Authentication

    Place = Client | str | os.PathLike[str]
    Topics = str | re.Pattern[str] | Iterable[str | re.Pattern[str]]

logger: logging.Logger = logging.getLogger("pulsarx.forwarding")

_LOOK_SECONDS = 1.0  # between two looks for new topics and partitions
_CLUSTER_LOOK_SECONDS = 5.0  # which are requests
_OPERATION_SECONDS = 10
_LEAVING_SECONDS = 6.0  # for a link to end by itself


class Forwarder:
    """Forwards topics from `start` to `stop`, each in order and each message exactly once. A
    context manager. Any thread may call.

    The source keeps a subscription named `name` of each topic. A message is acknowledged there when
    the target has stored it, under a producer name and a sequence id by which its deduplication
    recognises it. So either side may be away, or be killed, and the forwarder, too.

    Example:
        import pulsarx

        with pulsarx.Forwarder("edge", "centre", "readings") as forwarder:
            print(forwarder.status())
    """

    def __init__(
        self,
        source: Place,
        target: Place,
        topics: Topics,
        *,
        name: str = "forward",
        admin_url: str | None = None,
        authentication: Authentication | None = None,
        tls_trust_certs_file_path: str | None = None,
        target_namespace: str | None = None,
        compression_type: CompressionType = CompressionType.NONE,
        batching_type: BatchingType = BatchingType.Default,
        at_least_once: bool = False,
        accept_target: bool = False,
    ) -> None:
        """Check what is to be forwarded. Nothing is opened before `start`.

        Args:
            source: A folder, the URL of a cluster, or a client of one of them.
            target: Another one; one of the two is a folder.
            topics: Names, and compiled patterns as subscribe takes them, which follow new topics.
                Those of a cluster need admin_url.
            name: The name of the subscriptions, and what the names of the producers begin with.
            admin_url: The admin REST API of the cluster, `http://host:8080`: by it topics are made
                and deduplication is enabled.
            authentication: Credentials for the cluster.
            tls_trust_certs_file_path: The authorities of the cluster's certificates (PEM).
            target_namespace: `tenant/namespace` of the topics at the target; None: as at the
                source.
            compression_type: How batches are compressed for the target.
            batching_type: KeyBased: a batch holds messages of one key, for Key_Shared consumers at
                the target.
            at_least_once: Forward to a target without deduplication, where a message may be stored
                twice after a failure.
            accept_target: Go on though the other side is another one than before, or has lost
                messages.

        Raises:
            ValueError: There is no topic, or an argument is of the wrong type.
            InvalidTopicName: A topic, pattern or namespace is none.
            InvalidConfiguration: name is no name of a subscription.
            OperationNotSupported: A topic is non-persistent, or both sides are clusters.
        """
        self.subscription: str = check_subscription_name(name)
        check_type(CompressionType, compression_type, "compression_type")
        check_type(BatchingType, batching_type, "batching_type")
        self.compression_type: CompressionType = compression_type
        self.batching_type: BatchingType = batching_type
        self.at_least_once: bool = bool(at_least_once)
        self._accept_target = bool(accept_target)
        if target_namespace is not None:
            check_namespace_name(target_namespace)
        self._target_namespace = target_namespace
        self._names, self._patterns = _chosen(topics)
        if _is_cluster(source) and _is_cluster(target):
            raise errors.OperationNotSupported(
                detail="forward from a cluster to a cluster: one of the two must be a folder"
            )
        self._given = (source, target)
        self._admin_url = admin_url
        self._authentication = authentication
        self._certificates = tls_trust_certs_file_path
        self.source: Any = None
        self.target: Any = None
        self._own_clients: list[Client] = []
        self._known: KnownTargets | None = None
        self._links: dict[str, Link] = {}
        self._counts: dict[str, int] = {}  # partitions of source topics
        self._unfound: dict[str, str] = {}  # errors of topics without a link, by name
        self._lags: dict[str, int | None] = {}  # of a cluster, by the last look
        self._lock = Lock()  # of what stands above
        self._admitted: dict[str, tuple[int, bool]] = {}
        self._admitting = Lock()
        self._stopping = False
        self._look = Event()
        self._looked = Event()  # for the last time
        self._over = Latch()
        self._thread: OwnThread | None = None
        self._starting = Lock()  # taken by calls of the control plane only
        self._begun = False
        self._closing = Closing()

    # Its life -------------------------------------------------------------------------------------

    def start(self) -> Forwarder:
        """Open both sides, and begin to forward. Only once. A cluster that is away is waited for.

        Returns:
            Itself.

        Raises:
            NotAllowedError: It was started before, or stopped; or both sides are one folder.
            FolderOwnedError: Another process has the folder, and does not share it.
            StorageError: The disk refuses.
            InvalidUrl: admin_url is none.
            ImportError: The package pulsar-client is missing.
        """
        control_plane.perform(self._start, (), lambda _: self._closing.finish(self._finish, None))
        return self

    def _start(self) -> None:
        with self._starting:
            if self._begun:
                raise errors.NotAllowedError(detail="the forwarder was started before, or stopped")
            self._begun = True
            try:
                self._open()
                return
            except BaseException as error:
                failure = error
        attempt(self.stop)
        raise failure

    def _open(self) -> None:
        self.source, self.target = map(self._side, self._given)
        folder = self.target if self.source.is_cluster else self.source
        if not self.target.is_cluster and not self.source.is_cluster:
            if self.source.identity() == self.target.identity():
                raise errors.NotAllowedError(
                    detail="both sides are the same folder: a topic would be forwarded to itself"
                )
        self._known = KnownTargets(folder.client, self.subscription)
        self._thread = OwnThread(self._direct, f"forwarder {self.subscription}")
        self._thread.start()

    def _side(self, given: Place) -> Any:
        client = given
        if not isinstance(client, Client):
            client = self._opened(client)
            self._own_clients.append(client)
        if not _is_cluster(client):
            return FolderSide(client)
        return ClusterSide(client, self._admin_url, self._authentication, self._certificates)

    def _opened(self, place: str | os.PathLike[str]) -> Client:
        if not _is_cluster(place):
            return Client(place)
        from pulsarx.enumerations import LoggerLevel
        from pulsarx.options.loggers import FileLogger

        return Client(
            place,
            authentication=self._authentication,
            tls_trust_certs_file_path=self._certificates,
            operation_timeout_seconds=_OPERATION_SECONDS,
            logger=FileLogger(LoggerLevel.Error, "/dev/stderr"),
        )

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is asked to stop, or all its topics have stopped by errors.

        Args:
            timeout: Seconds of real time; None: for ever.

        Returns:
            Whether it was; False when the time is over.

        Raises:
            InterruptedByKeyboard: Ctrl-C was pressed.
        """
        return self._over.wait(timeout)

    def stop(self) -> None:
        """Forward no more, and close. What is on its way is waited for some seconds; if there is no
        answer, the next start asks the target for it. A process that has one of the folders, and
        hangs, is not waited for longer either: what waits for it ends when it answers.

        Durability:
            What was forwarded is acknowledged at the source, and stored at the target.
        """
        self.ask_to_stop()
        if not self._closing.told:
            self._closing.close(self._finish, None)

    def ask_to_stop(self) -> None:
        """Begin nothing more; `stop` waits for the end."""
        self._stopping = True
        self._look.set()
        for each in list(self._links.values()):
            each.ask_to_stop()
        self._over.set()

    def _finish(self) -> None:
        with self._starting:
            self._begun = True
        self.ask_to_stop()
        self._await_links()
        # Calls that wait for a cluster which is away end with its client.
        for client in [each for each in self._own_clients if _is_cluster(each)]:
            attempt(client.shutdown)
        if self._thread is not None:
            # It makes no link any more; an admin REST API that is away may hold it for a minute.
            self._looked.wait(_LEAVING_SECONDS)
        for each in list(self._links.values()):
            each.ask_to_stop()
        left = self._await_links()
        if not left:
            self._close_folders()
            return
        # The process that has their folder hangs, or the admin REST API. They end when it answers.
        logger.warning("stopped while calls wait for an answer, of %s", ", ".join(left))
        closed = Event()

        def close() -> None:
            attempt(self._close_folders)
            closed.set()

        OwnThread(close, f"forwarder {self.subscription} closes").start()
        closed.wait(_LEAVING_SECONDS)

    def _await_links(self) -> list[str]:
        """Wait some seconds for links to end; the topics of those that did not."""
        deadline = Deadline(int(_LEAVING_SECONDS * 1000))
        left = []
        for topic, link in list(self._links.items()):
            if link.ended.wait(deadline.remaining_seconds()):
                link.join()
            else:
                left.append(topic)
        return left

    def _close_folders(self) -> None:
        failures = [attempt(each.close) for each in self._own_clients if not _is_cluster(each)]
        for failure in failures:
            if failure is not None:
                raise failure

    def __enter__(self) -> Forwarder:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.stop()
        else:  # the error of the block is the one to be told
            attempt(self.stop)

    # What it shows --------------------------------------------------------------------------------

    def status(self) -> dict[str, dict[str, Any]]:
        """Return for each topic, or each partition of it, or pattern whose topics cannot be told, a
        dict: "target", its topic there;
        "state": "forwarding", "waiting" for one of the sides, or "stopped" by an error that stays;
        "forwarded": messages since it was started; "lag": messages that are left, of a cluster by
        the last look of some seconds ago, None where it cannot be told; "last_error": a text, None
        when none is left.
        """
        with self._lock:
            links, unfound, lags = dict(self._links), dict(self._unfound), dict(self._lags)
        found = {}
        for topic, link in links.items():
            # A cluster is not asked while the caller waits.
            lag = lags.get(topic) if self.source.is_cluster else self._lag(topic)
            found[topic] = {"lag": lag, **link.status()}
        for topic, text in unfound.items():
            one = {"target": None, "state": "waiting", "forwarded": 0, "last_error": text}
            found.setdefault(topic, {**one, "lag": None})
        return found

    def _lag(self, topic: str) -> int | None:
        try:
            lag: int | None = self.source.lag(topic, self.subscription)
            return lag
        except errors.Interrupted:
            raise
        except errors.PulsarException as error:
            logger.debug("%s: its lag is not known: %r", topic, error)
            return None

    # The thread that looks for topics -------------------------------------------------------------

    def _direct(self) -> None:
        try:
            self._look_again_and_again()
        finally:
            self._looked.set()

    def _look_again_and_again(self) -> None:
        seconds = _CLUSTER_LOOK_SECONDS if self.source.is_cluster else _LOOK_SECONDS
        while not self._stopping:
            self._look_for_topics()
            if self.source.is_cluster:
                for topic in list(self._links):
                    try:
                        lag = self._lag(topic)
                    except Exception as error:  # an admin REST API may answer anything
                        logger.debug("%s: its lag is not known: %r", topic, error)
                        lag = None
                    with self._lock:
                        self._lags[topic] = lag
            if not self._patterns and self._links and not self._unfound:
                if all(each.is_stopped for each in self._links.values()):
                    self._over.set()
            self._look.wait(seconds)

    def _look_for_topics(self) -> None:
        for topic in self._names:
            try:
                self._found(topic, self.source.partitions(topic), False)
            except Exception as error:
                self._note_unfound(topic, error)
        for pattern in self._patterns:
            try:
                for topic, count in self.source.matching(pattern).items():
                    if topic not in self._names:
                        self._found(topic, count, True)
                self._unfound.pop(pattern.text, None)
            except Exception as error:
                self._note_unfound(pattern.text, error)

    def _found(self, topic: str, count: int, is_followed: bool) -> None:
        """A source topic is there, with so many partitions."""
        with self._lock:
            self._unfound.pop(topic, None)
            self._counts[topic] = count
        for index in range(count) if count else (-1,):
            self._begin(topic, index, is_followed)

    def _note_unfound(self, topic: str, error: Exception) -> None:
        text = f"{type(error).__name__}: {errors.detail_of(error)}"
        if self._unfound.get(topic) != text and not self._stopping:
            logger.warning("%s: it cannot be forwarded yet: %s", topic, text)
        with self._lock:
            self._unfound[topic] = text

    def _begin(self, topic: str, index: int, is_followed: bool) -> None:
        name = partition_of(topic, index)
        link = self._links.get(name)
        if link is not None and not (link.is_gone and link.ended.is_set()):
            return
        target = partition_of(in_namespace(topic, self._target_namespace), index)
        made = Link(self, name, target, is_followed)
        with self._lock:
            if self._stopping:
                return
            self._links[name] = made
        try:
            made.start()
        except BaseException:  # the next look makes another one
            with self._lock:
                del self._links[name]
            raise

    # What links ask for ---------------------------------------------------------------------------

    def admit(self, topic: str) -> bool:
        """Check and prepare the other side of a topic.

        Args:
            topic: It, or a partition of it.

        Returns:
            Whether the target is known to deduplicate.

        Raises:
            NotAllowedError: It is another one than before.
        """
        whole = TopicName.of(topic).whole.full
        with self._admitting:
            count = self._counts.get(whole, 0)
            done = self._admitted.get(whole)
            if done is not None and done[0] == count:
                return done[1]
            assert self._known is not None
            self._known.check(whole, self._other_side(), self._accept_target)
            target = in_namespace(whole, self._target_namespace)
            deduplicates = self.target.prepare(target, count)
            self._admitted[whole] = (count, deduplicates)
            return bool(deduplicates)

    def forget(self, topic: str) -> None:
        """Have the other side checked and prepared by the next `admit`.

        Args:
            topic: It, or a partition of it.
        """
        with self._admitting:
            self._admitted.pop(TopicName.of(topic).whole.full, None)

    def _other_side(self) -> dict[str, Any]:
        """The one whose identity the folder keeps."""
        side = self.source if self.source.is_cluster else self.target
        found: dict[str, Any] = side.identity()
        return found

    def producer_name(self, topic: str) -> str:
        """Return the name of the producer of a topic, which nobody else has.

        Args:
            topic: It, or a partition of it.
        """
        return f"{self.subscription}:{self.source.source_name}:{topic}"

    def note_fault(self, topic: str, text: str) -> None:
        """Have a topic refused by the next start.

        Args:
            topic: It, or a partition of it.
            text: Why.
        """
        assert self._known is not None
        self._known.note_fault(TopicName.of(topic).whole.full, self._other_side(), text)


def _is_cluster(place: Place) -> bool:
    if isinstance(place, Client):
        return isinstance(place, ClusterClient)
    return isinstance(place, str) and leads_to_cluster(place)


def _chosen(topics: Topics) -> tuple[list[str], list[TopicsPattern]]:
    given = [topics] if isinstance(topics, (str, re.Pattern)) else list(topics)
    names, patterns = [], []
    for each in given:
        if isinstance(each, re.Pattern):
            patterns.append(TopicsPattern(each, RegexSubscriptionMode.PersistentOnly))
            continue
        name = check_keeps_messages(TopicName.of(each))
        if name.partition_index >= 0:
            raise ValueError(f"{name} is a partition: name {name.partitioned_name}, all of it")
        names.append(name.full)
    if not given:
        raise ValueError("topics: name one at least")
    return names, patterns
