"""Facts about what is done with a message that was given up, whoever gives it up."""

from __future__ import annotations

import errno
import threading
from typing import Any

import pytest
from letter_desk import DLQ, Desk, NotingCore, received
from topic_reading import OpenClient, payloads, read_all, whole_topic

import pulsarx
from pulsarx import ConsumerDeadLetterPolicy, InitialPosition, MessageId, errors
from pulsarx.ground.client_owner import ClientOwner
from pulsarx.letters.letter_rules import LetterRules
from pulsarx.testing import inspect
from pulsarx.testing.faults import fault_plan

FULL = "persistent://public/default/"


def test_a_dead_letter_is_published_and_then_acknowledged(clocked_client: pulsarx.Client):
    desk = Desk(clocked_client)
    messages = received(clocked_client, b"one", b"two")
    desk.core.hand_over(messages)
    assert whole_topic(clocked_client, "t-s-DLQ") == [b"one", b"two"]
    assert (desk.core.acknowledged, desk.core.revived) == (messages, [])
    assert desk.core.max_redeliver_count == 2
    desk.close()


def test_a_dead_letter_says_where_it_came_from(clocked_client: pulsarx.Client):
    desk = Desk(clocked_client)
    [message] = received(
        clocked_client,
        b"one",
        properties={"mine": "kept"},
        partition_key="ada",
        ordering_key="order",
        event_timestamp=1234,
    )
    desk.core.hand_over([message])
    [letter] = read_all(clocked_client, "t-s-DLQ")
    place = message.message_id()
    origin = f"{place.ledger_id()}:{place.entry_id()}:-1:-1"
    assert letter.properties() == {
        "mine": "kept",
        "REAL_TOPIC": FULL + "t",
        "ORIGIN_MESSAGE_ID": origin,
        "ORIGIN_MESSAGE_IDY_TIME": origin,
        "REAL_SUBSCRIPTION": "s",
    }
    assert MessageId.from_text(letter.properties()["ORIGIN_MESSAGE_ID"]) == place
    assert (letter.partition_key(), letter.ordering_key()) == ("ada", "order")
    assert letter.event_timestamp() == 1234
    assert letter.producer_name() == FULL + "t-s-c-DLQ"
    desk.close()


def test_the_origin_of_a_message_in_a_batch_has_its_batch_index(clocked_client: pulsarx.Client):
    desk = Desk(clocked_client)
    with clocked_client.create_producer("t", batching_enabled=True) as producer:
        producer.send_many([b"one", b"two"])
    message = read_all(clocked_client)[1]
    desk.core.hand_over([message])
    [letter] = read_all(clocked_client, "t-s-DLQ")
    place = message.message_id()
    origin = f"{place.ledger_id()}:{place.entry_id()}:-1:1"
    assert letter.properties()["ORIGIN_MESSAGE_ID"] == origin
    assert letter.message_id().batch_index() == -1  # batching is off
    desk.close()


def test_no_key_no_event_time_and_no_value_stay_so(clocked_client: pulsarx.Client):
    desk = Desk(clocked_client)
    [message] = received(clocked_client, None)  # type: ignore[arg-type]
    desk.core.hand_over([message])
    [letter] = read_all(clocked_client, "t-s-DLQ")
    assert letter.has_null_value()
    assert (letter.partition_key(), letter.ordering_key(), letter.event_timestamp()) == ("", "", 0)
    desk.close()


def test_a_letter_of_a_letter_keeps_its_first_origin(clocked_client: pulsarx.Client):
    desk = Desk(clocked_client)
    first = {"REAL_TOPIC": "a", "ORIGIN_MESSAGE_ID": "1:2:3:4", "REAL_SUBSCRIPTION": "b"}
    desk.core.hand_over(received(clocked_client, b"one", properties=first))
    [letter] = read_all(clocked_client, "t-s-DLQ")
    assert first.items() <= letter.properties().items()
    desk.close()


def test_topic_and_initial_subscription_are_those_of_the_policy(clocked_client: pulsarx.Client):
    desk = Desk(clocked_client, ConsumerDeadLetterPolicy(1, "graves", "keeper"))
    assert FULL + "graves" not in clocked_client.admin.topics.get_list("public/default")
    desk.core.hand_over(received(clocked_client, b"one"))
    desk.close()
    keeper = clocked_client.subscribe("graves", "keeper")
    assert payloads(keeper) == [b"one"]


def test_an_initial_subscription_begins_at_the_first_message_and_is_left_alone_later(
    clocked_client: pulsarx.Client,
):
    with clocked_client.create_producer("graves") as producer:
        producer.send(b"before")
    desk = Desk(clocked_client, ConsumerDeadLetterPolicy(1, "graves", "keeper"))
    desk.core.hand_over(received(clocked_client, b"one"))
    desk.close()
    keeper = clocked_client.subscribe("graves", "keeper")
    assert payloads(keeper) == [b"before", b"one"]
    again = Desk(clocked_client, ConsumerDeadLetterPolicy(1, "graves", "keeper"))
    again.core.hand_over(received(clocked_client, b"two")[:1])  # while keeper has its consumer
    assert payloads(keeper) == [b"one"]
    again.close()


def test_two_consumers_of_one_name_both_publish(clocked_client: pulsarx.Client):
    first, second = Desk(clocked_client), Desk(clocked_client)
    messages = received(clocked_client, b"one", b"two")
    first.core.hand_over(messages[:1])
    second.core.hand_over(messages[1:])
    letters = read_all(clocked_client, "t-s-DLQ")
    assert [letter.data() for letter in letters] == [b"one", b"two"]
    names = [letter.producer_name() for letter in letters]
    assert names[0] == FULL + "t-s-c-DLQ"
    assert names[1].startswith(FULL + "t-s-c-") and len(names[1]) == len(names[0]) + 6
    first.close()
    second.close()


def test_a_full_disk_loses_no_letter(open_client: OpenClient, manual_clock: pulsarx.ManualClock):
    client = open_client(clock=manual_clock)
    desk = Desk(client)
    messages = received(client, b"one", b"two")
    with fault_plan() as plan:
        plan.fail("write", error=errno.ENOSPC, sticky=True)
        plan.fail("allocate", error=errno.ENOSPC, sticky=True)
        desk.core.hand_over(messages)
    assert (desk.core.acknowledged, desk.core.revived) == ([], messages)
    manual_clock.advance(1)
    desk.core.hand_over(messages)
    assert desk.core.acknowledged == messages
    assert whole_topic(client, "t-s-DLQ") == [b"one", b"two"]
    desk.close()


def test_a_producer_that_cannot_be_made_is_not_tried_at_once_again(
    clocked_client: pulsarx.Client,
    manual_clock: pulsarx.ManualClock,
    monkeypatch: pytest.MonkeyPatch,
):
    desk = Desk(clocked_client)
    messages = received(clocked_client, b"one", b"two", b"three")
    tried = []

    def refuse(_: object, topic: str, *__: object) -> None:
        tried.append(topic)
        raise errors.ConnectError(detail="not now")

    monkeypatch.setattr(ClientOwner, "create_letter_producer", refuse)
    desk.core.hand_over(messages)
    assert tried == [DLQ]
    manual_clock.advance(0.1)
    desk.core.hand_over(messages)
    assert tried == [DLQ, DLQ]
    monkeypatch.undo()
    desk.core.hand_over(messages)
    assert desk.core.acknowledged == []  # 200 ms from the second try
    manual_clock.advance(0.2)
    desk.core.hand_over(messages)
    assert desk.core.acknowledged == messages
    desk.close()


def test_one_message_that_cannot_be_published_holds_up_no_other(clocked_client: pulsarx.Client):
    class Refusing(NotingCore):
        def acknowledge(self, message: Any) -> None:
            if message.data() == b"bad":
                raise errors.UnknownError(detail="not this one")
            super().acknowledge(message)

    desk = Desk(clocked_client)
    core: Any = Refusing(inspect(clocked_client).settle)
    desk.dead.attach(core)
    messages = received(clocked_client, b"bad", b"good")
    core.hand_over(messages)
    assert core.acknowledged == messages[1:]
    assert core.revived == messages[:1]
    desk.close()


def test_after_closing_what_was_given_up_comes_back(clocked_client: pulsarx.Client):
    desk = Desk(clocked_client)
    messages = received(clocked_client, b"one", b"two")
    desk.core.hand_over(messages[:1])
    desk.close()
    desk.core.hand_over(messages[1:])
    assert (desk.core.acknowledged, desk.core.revived) == (messages[:1], messages[1:])
    assert whole_topic(clocked_client, "t-s-DLQ") == [b"one"]
    desk.close()


def test_what_waits_for_the_background_is_revived_when_the_consumer_closes_first(
    memory_client: pulsarx.Client,
):
    desk = Desk(memory_client)
    go_on = threading.Event()
    inspect(memory_client).post(go_on.wait)
    messages = received(memory_client, b"one")
    desk.core.sink.hand_over(desk.core.receiver, list(messages))
    desk.close()
    go_on.set()
    inspect(memory_client).settle()
    assert (desk.core.acknowledged, desk.core.revived) == ([], messages)


def test_what_a_forgotten_consumer_gave_up_comes_back(clocked_client: pulsarx.Client):
    desk = Desk(clocked_client)
    sink, receiver = desk.core.sink, desk.core.receiver
    del desk.core
    messages = received(clocked_client, b"one")
    sink.hand_over(receiver, list(messages))
    inspect(clocked_client).settle()
    assert receiver.revived == messages
    with pytest.raises(errors.TopicNotFound):
        clocked_client.admin.topics.stats("t-s-DLQ")
    desk.close()


def test_publishing_happens_in_the_background(memory_client: pulsarx.Client):
    desk = Desk(memory_client)
    threads = []
    acknowledge = desk.core.acknowledge
    desk.core.acknowledge = lambda message: (
        threads.append(threading.current_thread()),
        acknowledge(message),
    )[1]
    desk.core.hand_over(received(memory_client, b"one"))
    assert whole_topic(memory_client, "t-s-DLQ") == [b"one"]
    assert threads and threads[0] is not threading.current_thread()
    desk.close()


# Nothing sent there is lost -----------------------------------------------------------------------

FIVE_A_LEDGER = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=5)


def dead_letters(client: pulsarx.Client, desk: Desk, count: int) -> list[bytes]:
    contents = [b"%d" % number for number in range(count)]
    desk.core.hand_over(received(client, *contents))
    assert len(desk.core.acknowledged) == count
    inspect(client).topic("t-s-DLQ").trim()
    return contents


def test_without_any_subscription_dead_letters_stay(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock
):
    client = open_client(broker_options=FIVE_A_LEDGER, clock=manual_clock)
    contents = dead_letters(client, Desk(client), 23)
    manual_clock.advance(86_400)
    client.close()
    client = open_client(broker_options=FIVE_A_LEDGER, clock=manual_clock)
    late = client.subscribe("t-s-DLQ", "late", initial_position=InitialPosition.Earliest)
    assert payloads(late) == contents


def test_after_the_last_subscription_was_removed_dead_letters_stay_again(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock
):
    client = open_client(broker_options=FIVE_A_LEDGER, clock=manual_clock)
    client.subscribe("t-s-DLQ", "gone").unsubscribe()
    contents = dead_letters(client, Desk(client), 23)
    manual_clock.advance(86_400)
    assert whole_topic(client, "t-s-DLQ") == contents


def test_with_an_initial_subscription_they_stay_until_it_acknowledged_them(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock
):
    client = open_client(broker_options=FIVE_A_LEDGER, clock=manual_clock)
    desk = Desk(client, ConsumerDeadLetterPolicy(1, initial_subscription_name="keeper"))
    contents = dead_letters(client, desk, 23)
    keeper = client.subscribe("t-s-DLQ", "keeper")
    messages = [keeper.receive(60_000) for _ in contents]
    assert [message.data() for message in messages] == contents
    keeper.acknowledge_cumulative(messages[-1])
    keeper.close()
    inspect(client).settle()
    assert len(whole_topic(client, "t-s-DLQ")) <= 5
    desk.close()


# Names --------------------------------------------------------------------------------------------


def rules(topics: list[str], name: str = "s", retry: bool = False, *policy: Any) -> LetterRules:
    return LetterRules(topics, name, ConsumerDeadLetterPolicy(*(policy or (1,))).policy(), retry)


def test_names_are_made_of_the_parent_of_a_partition():
    found = rules(["t-partition-3"])
    assert found.dead_letter_topic("t-partition-3") == DLQ
    assert found.dead_letter_producer_name("t-partition-3", "c") == FULL + "t-s-c-DLQ"


def test_each_topic_has_its_own_dead_letter_topic_unless_retries_share_one():
    assert rules(["t", "u"]).dead_letter_topic("u") == FULL + "u-s-DLQ"
    shared = rules(["t", "u"], retry=True)
    assert shared.dead_letter_topic("u") == DLQ
    assert shared.retry_letter_topic == FULL + "t-s-RETRY"
    assert LetterRules(["t"], "s", None, True).max_redeliver_count == 16


@pytest.mark.parametrize("policy", [(1, "a b/c"), (1, " "), (1, "x://y"), (1, None, None, " ")])
def test_a_policy_that_names_no_topic_is_refused(policy: tuple[Any, ...]):
    with pytest.raises(errors.InvalidTopicName):
        rules(["t"], "s", True, *policy)


@pytest.mark.parametrize("name", [" ", "pulsar.dedup", "a\nb"])
def test_an_initial_subscription_that_has_no_name_is_refused(name: str):
    with pytest.raises(errors.InvalidConfiguration):
        rules(["t"], "s", False, 1, None, name)


def test_empty_names_are_names_that_were_not_given():
    found = rules(["t"], "s", True, 1, "", "", "")
    assert (found.dead_letter_topic("t"), found.initial_subscription_name) == (DLQ, "")


def test_a_subscription_whose_name_makes_no_topic_needs_names_in_the_policy():
    with pytest.raises(errors.InvalidTopicName, match="ConsumerDeadLetterPolicy"):
        rules(["t"], "a/b")
    assert rules(["t"], "a/b", False, 1, "graves").dead_letter_topic("t") == FULL + "graves"


@pytest.mark.parametrize(
    ("topics", "policy"),
    [
        (["t"], (1, "t")),
        (["t-partition-0"], (1, "t")),
        (["u", "t"], (1, None, None, "t")),
        (["t"], (1, "x", None, "x")),
        (["t"], (1, None, None, "t-s-DLQ")),
        ([], (1, "x")),
    ],
)
def test_letters_that_would_go_in_circles_are_refused(topics: list[str], policy: Any):
    with pytest.raises(errors.InvalidConfiguration):
        rules(topics, "s", True, *policy)


def test_letters_wait_until_each_is_settled(clocked_client: pulsarx.Client):
    """Without memory to revive one, the handler runs again: the others were forgotten by then."""
    desk = Desk(clocked_client)
    sink, receiver = desk.core.sink, desk.core.receiver
    del desk.core
    revive, failures = receiver.revive, [MemoryError()]

    def without_memory(message: Any) -> None:
        if receiver.revived and failures:
            raise failures.pop()
        revive(message)

    receiver.revive = without_memory
    messages = received(clocked_client, b"one", b"two", b"three")
    sink.hand_over(receiver, list(messages))
    inspect(clocked_client).settle()
    assert receiver.revived == messages
    assert not failures
    desk.close()
