"""Facts about receive_async: futures of messages."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError, Future, as_completed
from typing import Any

import pytest
from subscription_steps import earliest, publish_batched, publish_plain
from topic_reading import numbers, payloads

import pulsarx
from pulsarx import InitialPosition, errors

WAIT = 30


@pytest.fixture(params=["one topic", "two topics"])
def consumer(request: pytest.FixtureRequest, memory_client: pulsarx.Client) -> Any:
    topic = "t" if request.param == "one topic" else ["t", "u"]
    return memory_client.subscribe(topic, "s", initial_position=InitialPosition.Earliest)


@pytest.mark.guest(left_out="messages come later")
@pytest.mark.border(left_out="several topics", of="*topics*")
def test_a_message_that_is_there_comes_at_once(
    consumer: Any, memory_client: pulsarx.Client
) -> None:
    publish_plain(memory_client, 1)
    future = consumer.receive_async()
    assert isinstance(future, Future)
    assert future.done()
    assert future.result().data() == b"0"


@pytest.mark.border(left_out="several topics", of="*topics*")
def test_futures_are_served_in_the_order_they_were_asked_for(
    consumer: Any, memory_client: pulsarx.Client
) -> None:
    futures = [consumer.receive_async() for _ in range(20)]
    assert not any(future.done() for future in futures)
    publish_plain(memory_client, 20)
    assert [future.result(WAIT).data() for future in futures] == numbers(20)


@pytest.mark.border(left_out="several topics", of="*topics*")
def test_cancelling_loses_nothing(consumer: Any, memory_client: pulsarx.Client) -> None:
    futures = [consumer.receive_async() for _ in range(4)]
    assert futures[0].cancel()
    assert futures[2].cancel()
    assert futures[2].cancel()
    publish_plain(memory_client, 3)
    assert [futures[at].result(WAIT).data() for at in (1, 3)] == numbers(2)
    assert payloads(consumer) == [b"2"]
    with pytest.raises(CancelledError):
        futures[0].result()
    assert set(as_completed(futures, WAIT)) == set(futures)
    assert not futures[1].cancel()


@pytest.mark.border(left_out="several topics", of="*topics*")
def test_cancelling_all_leaves_everything_to_receive(
    consumer: Any, memory_client: pulsarx.Client
) -> None:
    for future in [consumer.receive_async() for _ in range(5)]:
        assert future.cancel()
    publish_plain(memory_client, 3)
    assert payloads(consumer) == numbers(3)


@pytest.mark.border(left_out="several topics", of="*topics*")
def test_cancelling_while_messages_come_loses_and_doubles_nothing(
    consumer: Any, memory_client: pulsarx.Client
) -> None:
    count = 3000
    publisher = threading.Thread(target=publish_batched, args=(memory_client, count))
    publisher.start()
    found: list[bytes] = []
    while len(found) < count:
        first, second = consumer.receive_async(), consumer.receive_async()
        if not first.cancel():
            found.append(first.result(WAIT).data())
        if not second.cancel():
            found.append(second.result(WAIT).data())
    publisher.join(WAIT)
    assert found == numbers(count)


@pytest.mark.border(left_out="several topics", of="*topics*")
def test_callbacks_run_in_a_listener_thread_and_may_ask_again(
    consumer: Any, memory_client: pulsarx.Client
) -> None:
    found: list[bytes] = []
    threads: set[str] = set()
    done = threading.Event()

    def take(future: Future[Any]) -> None:
        found.append(future.result().data())
        threads.add(threading.current_thread().name)
        consumer.acknowledge(future.result())
        if len(found) == 5:
            done.set()
        else:
            consumer.receive_async().add_done_callback(take)

    first = consumer.receive_async()
    first.add_done_callback(take)
    publish_plain(memory_client, 5)
    assert done.wait(WAIT)
    assert found == numbers(5)
    assert threads == {"pulsarx-listener-1"}


@pytest.mark.border(left_out="several topics", of="*topics*")
def test_a_callback_may_call_the_client_back_from_another_consumers_future(
    consumer: Any, memory_client: pulsarx.Client
) -> None:
    answered = memory_client.create_producer("answers")
    future = consumer.receive_async()
    future.add_done_callback(lambda done: answered.send(done.result().data()))
    answers = earliest_of(memory_client, "answers")
    publish_plain(memory_client, 1)
    assert answers.receive(WAIT * 1000).data() == b"0"


def earliest_of(client: pulsarx.Client, topic: str) -> Any:
    return client.subscribe(topic, "s", initial_position=InitialPosition.Earliest)


@pytest.mark.border(left_out="several topics", of="*topics*")
@pytest.mark.parametrize("end", ["close", "unsubscribe", "client"])
def test_futures_that_wait_when_it_ends_get_already_closed(
    consumer: Any, memory_client: pulsarx.Client, end: str
) -> None:
    futures = [consumer.receive_async() for _ in range(3)]
    {"close": consumer.close, "unsubscribe": consumer.unsubscribe, "client": memory_client.close}[
        end
    ]()
    for future in futures:
        assert isinstance(future.exception(WAIT), errors.AlreadyClosed)
    with pytest.raises(errors.AlreadyClosed):
        consumer.receive_async()


def test_a_receiver_queue_of_0_may_be_asked_for_a_future(memory_client: pulsarx.Client) -> None:
    consumer = earliest(memory_client, receiver_queue_size=0)
    future = consumer.receive_async()
    publish_plain(memory_client, 1)
    assert future.result(WAIT).data() == b"0"
