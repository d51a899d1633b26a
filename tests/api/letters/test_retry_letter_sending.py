"""Facts about what `reconsume_later` publishes, whoever received the message."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from letter_desk import RETRY, Desk, received
from topic_reading import OpenClient, read_all, whole_topic

import pulsarx
from pulsarx import ConsumerDeadLetterPolicy, errors
from pulsarx.letters.reconsuming import check_reconsume_arguments
from pulsarx.testing.faults import fault_plan

FULL = "persistent://public/default/"


def later(desk: Desk, message: Any, delay_ms: int = 0, properties: Any = None) -> None:
    check_reconsume_arguments(message, delay_ms, properties)
    desk.retry.reconsume_later(desk.core, message, delay_ms, properties)


def test_a_message_goes_to_the_retry_topic_and_is_acknowledged(clocked_client: pulsarx.Client):
    desk = Desk(clocked_client, retry=True)
    [message] = received(
        clocked_client,
        b"one",
        properties={"mine": "kept"},
        partition_key="ada",
        ordering_key="order",
        event_timestamp=1234,
    )
    later(desk, message, 3000)
    assert desk.core.acknowledged == [message]
    [letter] = read_all(clocked_client, "t-s-RETRY")
    place = message.message_id()
    origin = f"{place.ledger_id()}:{place.entry_id()}:-1:-1"
    assert letter.properties() == {
        "mine": "kept",
        "REAL_TOPIC": FULL + "t",
        "ORIGIN_MESSAGE_ID": origin,
        "ORIGIN_MESSAGE_IDY_TIME": origin,
        "REAL_SUBSCRIPTION": "s",
        "RECONSUMETIMES": "1",
        "DELAY_TIME": "3000",
    }
    assert letter.data() == b"one"
    assert (letter.partition_key(), letter.ordering_key()) == ("ada", "order")
    assert letter.event_timestamp() == 1234
    assert letter.topic_name() == RETRY
    desk.close()


def test_retries_are_counted_and_custom_properties_win_over_all_but_the_count(
    clocked_client: pulsarx.Client,
):
    desk = Desk(clocked_client, retry=True)
    told = {
        "RECONSUMETIMES": "1",
        "DELAY_TIME": "1",
        "REAL_TOPIC": "first",
        "ORIGIN_MESSAGE_ID": "1:0:-1:0",
        "a": "old",
    }
    [message] = received(clocked_client, b"one", properties=told)
    custom = {"a": "new", "custom-key-1": "v", "RECONSUMETIMES": "77", "DELAY_TIME": "x"}
    later(desk, message, 5, custom)
    [letter] = read_all(clocked_client, "t-s-RETRY")
    found = letter.properties()
    assert (found["RECONSUMETIMES"], found["DELAY_TIME"]) == ("2", "5")
    assert (found["a"], found["custom-key-1"]) == ("new", "v")
    assert (found["REAL_TOPIC"], found["ORIGIN_MESSAGE_ID"]) == ("first", "1:0:-1:0")
    assert custom["RECONSUMETIMES"] == "77"
    desk.close()


def test_one_retry_too_many_goes_to_the_dead_letter_topic(clocked_client: pulsarx.Client):
    desk = Desk(clocked_client, retry=True)  # max_redeliver_count 2
    [message] = received(clocked_client, b"one", properties={"RECONSUMETIMES": "2"})
    later(desk, message, 60_000)
    [letter] = read_all(clocked_client, "t-s-DLQ")
    assert letter.properties()["RECONSUMETIMES"] == "3"
    assert letter.properties()["DELAY_TIME"] == "60000"
    assert desk.core.acknowledged == [message]
    with pytest.raises(errors.TopicNotFound):
        clocked_client.admin.topics.stats("t-s-RETRY")
    desk.close()


@pytest.mark.parametrize("text", ["", "two", "-1", "1.5", "٣", "9" * 100])
def test_a_count_that_somebody_else_wrote_and_is_no_number_counts_as_none(
    clocked_client: pulsarx.Client, text: str
):
    desk = Desk(clocked_client, retry=True)
    [message] = received(clocked_client, b"one", properties={"RECONSUMETIMES": text})
    later(desk, message)
    [letter] = read_all(clocked_client, "t-s-RETRY")
    assert letter.properties()["RECONSUMETIMES"] == "1"
    desk.close()


def test_the_policy_names_the_retry_topic(clocked_client: pulsarx.Client):
    policy = ConsumerDeadLetterPolicy(1, retry_letter_topic="again")
    desk = Desk(clocked_client, policy, retry=True)
    later(desk, received(clocked_client, b"one")[0])
    assert whole_topic(clocked_client, "again") == [b"one"]
    desk.close()


def test_a_failure_is_raised_and_the_message_comes_back_at_once(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock
):
    client = open_client(clock=manual_clock)
    desk = Desk(client, retry=True)
    [message] = received(client, b"one")
    with fault_plan() as plan, pytest.raises(errors.StorageFullError):
        plan.fail("write", error=errno.ENOSPC, sticky=True)
        plan.fail("allocate", error=errno.ENOSPC, sticky=True)
        later(desk, message)
    assert (desk.core.acknowledged, desk.core.revived) == ([], [message])
    manual_clock.advance(60)
    later(desk, message)
    assert whole_topic(client, "t-s-RETRY") == [b"one"]
    assert desk.core.acknowledged == [message]
    desk.close()


@pytest.mark.parametrize("delay_ms", [-1, 1.5, "3", None, 2**63, 10**30])
def test_a_delay_that_is_none_is_a_value_error(clocked_client: pulsarx.Client, delay_ms: Any):
    [message] = received(clocked_client, b"one")
    with pytest.raises(ValueError, match="delay_ms"):
        check_reconsume_arguments(message, delay_ms, None)


@pytest.mark.parametrize("properties", [{"a": 1}, {1: "a"}])
def test_custom_properties_are_text(clocked_client: pulsarx.Client, properties: Any):
    [message] = received(clocked_client, b"one")
    with pytest.raises(TypeError, match="properties"):
        check_reconsume_arguments(message, 0, properties)


def test_an_id_has_no_content_to_publish_again(clocked_client: pulsarx.Client):
    [message] = received(clocked_client, b"one")
    with pytest.raises(TypeError, match="Message"):
        check_reconsume_arguments(message.message_id(), 0, None)
