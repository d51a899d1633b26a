"""Facts about what a call leaves to be done without the mutex, where something raises meanwhile: in
the main thread it is a signal handler, in one that is told of it, or in the log. What is left is
done by the next call."""

from __future__ import annotations

import gc
import logging
from pathlib import Path
from typing import Any

import pytest
from encryption_steps import KeyFiles, encrypting
from peer import Peer, names

import pulsarx
from pulsarx import (
    ConsumerCryptoFailureAction,
    ConsumerDeadLetterPolicy,
    ConsumerType,
    InitialPosition,
    MessageId,
)
from pulsarx._pycore.dispatch.position_sink import SinkEvents
from pulsarx.sessions.server import Server
from pulsarx.wire.commands import EARLIEST, KEY_SHARED, SHARED

PATIENCE_MS = 20_000


class RaisedError(Exception):
    """What a handler raises."""


class Raising:
    """Raises the next time that it is called, where it was armed."""

    def __init__(self) -> None:
        self.is_armed = False
        self.calls = 0

    def __call__(self, *_: object) -> bool:
        self.calls += 1
        if self.is_armed:
            self.is_armed = False
            raise RaisedError
        return True


@pytest.fixture
def raising() -> Raising:
    return Raising()


def attached(server: Server, subscription: str, kind: int = SHARED, wake: Any = None) -> Peer:
    """A consumer at the other end of a connection."""
    made = Peer(server, wake)
    made.connect()
    made.say(
        "SUBSCRIBE",
        topic="t",
        subscription=subscription,
        type=kind,
        consumer_id=0,
        request_id=1,
        initial_position=EARLIEST,
    )
    made.say("FLOW", consumer_id=0, permits=100)
    made.woken.clear()
    return made


def subscribe(client: pulsarx.Client, **options: Any) -> Any:
    return client.subscribe(
        "t",
        "s",
        ConsumerType.Shared,
        initial_position=InitialPosition.Earliest,
        negative_ack_redelivery_delay_ms=0,
        **options,
    )


def test_who_was_not_woken_is_woken_by_the_next_call(
    client: pulsarx.Client, server: Server, raising: Raising
) -> None:
    consumer = subscribe(client)
    producer = client.create_producer("t")
    producer.send(b"0")
    producer.send(b"1")
    first, second = consumer.receive(PATIENCE_MS), consumer.receive(PATIENCE_MS)
    waiting = attached(server, "s")
    attached(server, "other", wake=raising)  # the last one that came is told first
    waiting.session.deliver()  # it was told of what it is not to have
    waiting.woken.clear()
    raising.is_armed = True
    with pytest.raises(RaisedError):
        consumer.negative_acknowledge(first)
    assert not waiting.woken.is_set()
    consumer.acknowledge(second)  # which makes nothing receivable
    assert waiting.woken.is_set()


def test_dead_letters_are_handed_over_whatever_raises_behind_them(
    client: pulsarx.Client, server: Server, raising: Raising, tmp_path: Path
) -> None:
    """First one that is woken raises, then the log, in front of which they are handed over."""
    consumer = subscribe(
        client,
        crypto_failure_action=ConsumerCryptoFailureAction.CONSUME,
        dead_letter_policy=ConsumerDeadLetterPolicy(1, "letters"),
    )
    with client.create_producer("t") as producer:
        producer.send(b"dead")
        consumer.negative_acknowledge(consumer.receive(PATIENCE_MS))
        assert consumer.receive(PATIENCE_MS).redelivery_count() == 1
        producer.send(b"alive")
        consumer.receive(PATIENCE_MS)
    attached(server, "other", wake=raising)
    raising.is_armed = True
    with pytest.raises(RaisedError):
        consumer.redeliver_unacknowledged_messages()
    with encrypting(client, KeyFiles(tmp_path)()) as producer:
        producer.send(b"stored")
    logger = logging.getLogger("pulsarx")
    logger.addFilter(raising)
    raising.is_armed = True
    try:
        with pytest.raises(RaisedError):
            consumer.receive_many(2, PATIENCE_MS)
    finally:
        logger.removeFilter(raising)
    letters = client.create_reader("letters", MessageId.earliest)
    assert letters.read_next(PATIENCE_MS).data() == b"dead"


def test_who_was_not_told_that_it_is_inactive_is_told_by_the_next_call(
    client: pulsarx.Client, raising: Raising
) -> None:
    def make(name: str) -> Any:
        return client.subscribe("t", "s", ConsumerType.Failover, consumer_name=name)

    active, other = make("a"), make("b")
    client.create_producer("t").send(b"x")
    message = active.receive(PATIENCE_MS)
    events = SinkEvents()
    events.wake = raising
    other.receiver.set_events(events, -1)
    other.dispatcher.leave(other.receiver)
    other.dispatcher.settled()
    other.dispatcher.join(other.receiver)
    raising.is_armed = True
    with pytest.raises(RaisedError):
        other.dispatcher.settled()
    assert raising.calls == 1
    active.acknowledge(message)
    assert raising.calls == 2


# Who leaves ---------------------------------------------------------------------------------------


def crowds() -> set[int]:
    """Numbers of the objects that tell the consumers of a subscription."""
    gc.collect()
    return {id(each) for each in gc.get_objects() if type(each).__name__ == "ConsumerCrowd"}


@pytest.mark.parametrize("kind", [SHARED, KEY_SHARED])
@pytest.mark.parametrize("how", ["closed", "hung up"])
def test_a_consumer_leaves_though_one_that_it_has_told_raises(
    client: pulsarx.Client,
    server: Server,
    raising: Raising,
    kind: int,
    how: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It stayed attached for ever, with what it had, and its subscription was told of messages as
    long as the topic was open."""
    before = crowds()
    client.create_producer("t").close()
    leaving = attached(server, "s", kind)
    staying = attached(server, "s", kind, raising)
    with client.create_producer("t") as producer:
        producer.send(b"x", partition_key="k")
    assert leaving.woken.is_set()  # so that another one is told in its place
    staying.session.deliver()  # it was told of that as well, and is told anew once it has looked
    raising.is_armed = True
    # A record that pytest keeps has the frames of what was raised, and so the consumer.
    monkeypatch.setattr(logging.getLogger("pulsarx"), "disabled", True)
    if how == "closed":
        leaving.say("CLOSE_CONSUMER", consumer_id=0, request_id=2)
    else:
        leaving.session.close()
    assert not raising.is_armed
    (subscription,) = client.admin.topics.stats("t")["subscriptions"].values()
    assert len(subscription["consumers"]) == 1
    staying.session.deliver()
    assert "MESSAGE" in names(staying.told)
    (crowd,) = crowds() - before
    staying.session.close()
    of_kind = ConsumerType.Shared if kind == SHARED else ConsumerType.KeyShared
    client.subscribe("t", "s", of_kind).unsubscribe()
    del leaving, staying, subscription
    assert crowd not in crowds()
