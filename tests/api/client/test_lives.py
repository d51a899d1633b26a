"""How long producers, consumers and readers live that nobody refers to."""

from __future__ import annotations

import _thread
import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pulsarx
from pulsarx import ConsumerType, InitialPosition, MessageId, ProducerAccessMode, errors


@pytest.fixture
def client() -> Iterator[pulsarx.Client]:
    """Nothing is left to the collector of circles."""
    gc.collect()
    gc.disable()
    try:
        with pulsarx.Client("memory:") as client:
            client.admin.topics.create_partitioned_topic("p", 2)
            client.create_producer("t").close()
            yield client
    finally:
        gc.enable()


MAKE: dict[str, Callable[[pulsarx.Client], Any]] = {
    "consumer": lambda client: client.subscribe("t", "s"),
    "shared consumer": lambda client: client.subscribe("t", "s", ConsumerType.Shared),
    "consumer of partitions": lambda client: client.subscribe("p", "s"),
    "consumer of a list": lambda client: client.subscribe(["t", "p"], "s"),
    "consumer with letters": lambda client: client.subscribe(
        "t",
        "s",
        ConsumerType.Shared,
        dead_letter_policy=pulsarx.ConsumerDeadLetterPolicy(2),
        retry_enable=True,
    ),
    "intercepted consumer": lambda client: client.subscribe(
        "t", "s", interceptors=[pulsarx.ConsumerInterceptor()]
    ),
    "reader": lambda client: client.create_reader("t", MessageId.earliest),
    "exclusive producer": lambda client: client.create_producer(
        "t", access_mode=ProducerAccessMode.Exclusive
    ),
    "exclusive producer on partitions": lambda client: client.create_producer(
        "p", access_mode=ProducerAccessMode.Exclusive
    ),
    "reader of partitions": lambda client: client.create_reader("p", MessageId.earliest),
}
LEAVE: dict[str, Callable[[Any], Any]] = {
    "close": lambda member: member.close(),
    "unsubscribe": lambda member: member.unsubscribe(),
    "with": lambda member: member.__exit__(None, None, None),
}


@pytest.mark.parametrize("name", MAKE)
def test_they_live_as_long_as_their_client(client: pulsarx.Client, name: str) -> None:
    """They used to be closed when nobody referred to them, unlike those of the official client."""
    reference = weakref.ref(MAKE[name](client))
    gc.collect()
    member: Any = reference()
    assert member is not None
    assert member.is_connected()
    client.close()
    assert not member.is_connected()
    del member
    assert reference() is None


@pytest.mark.parametrize("leave", LEAVE)
@pytest.mark.parametrize("name", MAKE)
def test_closing_gives_the_memory_back(client: pulsarx.Client, name: str, leave: str) -> None:
    member = MAKE[name](client)
    if not hasattr(member, leave) and leave == "unsubscribe":
        pytest.skip("a reader or producer has no subscription")
    reference = weakref.ref(member)
    LEAVE[leave](member)
    del member
    assert reference() is None


def test_a_subscription_stays_taken_though_nobody_refers_to_its_consumer(
    client: pulsarx.Client,
) -> None:
    client.subscribe("t", "s")
    gc.collect()
    with pytest.raises(errors.ConsumerBusy):
        client.subscribe("t", "s")


def test_what_nobody_refers_to_goes_with_its_client_at_once(client: pulsarx.Client) -> None:
    """No circle keeps them: neither the consumer nor the folder of its client waits."""
    other = pulsarx.Client("memory:")
    references = [weakref.ref(MAKE[name](other)) for name in ("consumer", "reader")]
    del other
    assert [reference() for reference in references] == [None, None]
    client.subscribe("t", "s")


def test_a_consumer_keeps_what_it_needs_of_its_client(client: pulsarx.Client) -> None:
    consumer = pulsarx.Client("memory:alone").subscribe(
        "t", "s", initial_position=InitialPosition.Earliest
    )
    gc.collect()
    with pulsarx.Client("memory:alone") as other:
        other.create_producer("t").send(b"x")
        assert consumer.receive(60_000).data() == b"x"
    consumer.close()


def test_letters_are_published_though_nobody_refers_to_the_client(client: pulsarx.Client) -> None:
    consumer = pulsarx.Client("memory:").subscribe(
        "t",
        "s",
        ConsumerType.Shared,
        dead_letter_policy=pulsarx.ConsumerDeadLetterPolicy(1),
        negative_ack_redelivery_delay_ms=0,
        initial_position=InitialPosition.Earliest,
    )
    letters = client.subscribe("t-s-DLQ", "s", initial_position=InitialPosition.Earliest)
    client.create_producer("t").send(b"x")
    for _ in range(2):
        consumer.negative_acknowledge(consumer.receive(60_000))
    assert letters.receive(60_000).data() == b"x"
    consumer.close()
    gc.collect()  # letters are in a circle


def test_a_producer_is_let_go(client: pulsarx.Client) -> None:
    producer = client.create_producer("t", producer_name="one")
    reference = weakref.ref(producer)
    del producer
    client.create_producer("t", producer_name="one")
    assert reference() is None


def test_a_client_keeps_nothing_of_many_consumers_that_came_and_went(
    client: pulsarx.Client,
) -> None:
    references = []
    for _ in range(50):
        with client.subscribe("t", "s") as consumer, client.create_reader("t", MessageId.latest):
            references.append(weakref.ref(consumer))
    del consumer
    assert not any(reference() for reference in references)


@pytest.mark.parametrize("call", ["subscribe", "create_reader"])
def test_what_could_not_be_made_is_not_kept(
    client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """The client takes it as the last step."""
    kind = pulsarx.Consumer if call == "subscribe" else pulsarx.Reader
    references: list[Any] = []

    def refuse(self: Any) -> None:
        references.append(weakref.ref(self))
        raise MemoryError

    monkeypatch.setattr(kind, "start_listener", refuse)
    arguments = ("t", "s") if call == "subscribe" else ("t", MessageId.earliest)
    with pytest.raises(MemoryError):
        getattr(client, call)(*arguments)
    gc.collect()  # the traceback was in a circle
    assert references[0]() is None


def test_where_no_thread_can_be_started_for_a_listener_nothing_is_left(
    client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The subscription stayed taken, by a consumer that nobody had."""
    topics = client.admin.topics

    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    def listener(_: Any, message: Any) -> None:
        raise AssertionError(message)

    with monkeypatch.context() as patched:
        patched.setattr(_thread, "start_new_thread", refuse)
        with pytest.raises(RuntimeError, match="can't start"):
            client.subscribe("t", "s", message_listener=listener)
    assert topics.get_subscriptions("t") == []
    assert topics.stats("t")["subscriptions"] == {}
    client.subscribe("t", "s")


@pytest.mark.parametrize("name", MAKE)
def test_what_an_interrupted_caller_did_not_get_is_not_kept(
    client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    from pulsarx import client as home

    references: list[Any] = []
    control_plane = home.control_plane

    class Interrupted:
        """Leaves when the call has run, as one whose caller was interrupted."""

        def perform(self, function: Any, arguments: Any = (), give_back: Any = None) -> Any:
            made = control_plane.perform(function, arguments, give_back)
            if give_back is None:
                return made
            references.append(weakref.ref(made))
            control_plane.perform(give_back, (made,))
            raise KeyboardInterrupt

        def __getattr__(self, name: str) -> Any:
            return getattr(control_plane, name)

    with monkeypatch.context() as patched:
        patched.setattr(home, "control_plane", Interrupted())
        with pytest.raises(KeyboardInterrupt):
            MAKE[name](client)
    gc.collect()
    assert [reference() for reference in references] == [None]
    MAKE[name](client).close()
