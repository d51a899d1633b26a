"""Facts about the redelivery backoff; the tables are those of Pulsar's concepts of messaging."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from support.consumer_types import ALL_TYPES

import pulsarx
from pulsarx import ConsumerType, MultiplierRedeliveryBackoff

NEGATIVE_ACKNOWLEDGEMENT = """
Redelivery count	Redelivery delay
1	1 seconds
2	2 seconds
3	4 seconds
4	8 seconds
5	16 seconds
6	32 seconds
7	60 seconds
8	60 seconds
"""
ACKNOWLEDGEMENT_TIMEOUT = """
Redelivery count	Redelivery delay
1	10 + 1 seconds
2	10 + 2 seconds
3	10 + 4 seconds
4	10 + 8 seconds
5	10 + 16 seconds
6	10 + 32 seconds
7	10 + 60 seconds
8	10 + 60 seconds
"""


def rows(table: str) -> list[tuple[int, str]]:
    lines = (line.split("\t") for line in table.strip().splitlines()[1:])
    return [(int(count), delay) for count, delay in lines]


def of_the_tables() -> MultiplierRedeliveryBackoff:
    return MultiplierRedeliveryBackoff(min_delay_ms=1000, max_delay_ms=60 * 1000, multiplier=2)


@pytest.mark.parametrize(("redelivery", "delay"), rows(NEGATIVE_ACKNOWLEDGEMENT))
def test_the_table_for_negative_acknowledgement(redelivery: int, delay: str):
    """The first redelivery is of a message that was redelivered 0 times."""
    assert f"{of_the_tables().next(redelivery - 1) // 1000} seconds" == delay


@pytest.mark.parametrize(("redelivery", "delay"), rows(ACKNOWLEDGEMENT_TIMEOUT))
def test_the_table_for_the_acknowledgement_timeout(redelivery: int, delay: str):
    """The backoff begins when the timeout of 10 seconds is over."""
    assert f"10 + {of_the_tables().next(redelivery - 1) // 1000} seconds" == delay


def refused_and_waited(consumer: Any, clock: pulsarx.ManualClock, refuse: bool) -> list[float]:
    """Seconds from each time a message was received until it came again, eight times."""
    waited = []
    for count in range(8):
        message = consumer.receive(0)
        assert message.redelivery_count() == count
        if refuse:
            consumer.negative_acknowledge(message)
        received_ms = clock.now_ms()
        while not consumer.has_message():
            due_ms = clock.next_due_ms()
            assert due_ms is not None
            clock.advance((due_ms - clock.now_ms()) / 1000)
        waited.append((clock.now_ms() - received_ms) / 1000)
    return waited


@pytest.mark.guest(left_out="the clock is asked too early")
@pytest.mark.parametrize("consumer_type", ALL_TYPES)
def test_a_message_that_is_refused_comes_again_as_the_table_says(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, consumer_type: Any
):
    consumer = clocked_client.subscribe("t", "s", consumer_type, nack_backoff=of_the_tables())
    clocked_client.create_producer("t").send(b"one")
    waited = refused_and_waited(consumer, manual_clock, refuse=True)
    assert [f"{seconds:g} seconds" for seconds in waited] == [
        delay for _, delay in rows(NEGATIVE_ACKNOWLEDGEMENT)
    ]


@pytest.mark.parametrize("consumer_type", ALL_TYPES)
def test_a_message_that_is_not_acknowledged_in_time_comes_again_as_the_table_says(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, consumer_type: Any
):
    """Up to the tick of a second later."""
    consumer = clocked_client.subscribe(
        "t",
        "s",
        consumer_type,
        unacked_messages_timeout_ms=10_000,
        ack_timeout_backoff=of_the_tables(),
    )
    clocked_client.create_producer("t").send(b"one")
    waited = refused_and_waited(consumer, manual_clock, refuse=False)
    for seconds, (_, delay) in zip(waited, rows(ACKNOWLEDGEMENT_TIMEOUT), strict=True):
        wanted = sum(int(part) for part in delay.removesuffix(" seconds").split(" + "))
        assert wanted <= seconds <= wanted + 1


def test_the_defaults_are_ten_seconds_ten_minutes_and_two():
    backoff = MultiplierRedeliveryBackoff()
    assert backoff == MultiplierRedeliveryBackoff(10_000, 600_000, 2)
    assert [backoff.next(count) for count in range(8)] == [
        10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 600_000, 600_000,
    ]  # fmt: skip


@pytest.mark.parametrize("count", [0, -1, -(2**40)])
def test_before_the_first_redelivery_it_is_the_least(count: int):
    assert of_the_tables().next(count) == 1000


@pytest.mark.parametrize("count", [100, 5000, 2**31, 2**63 - 1])
def test_however_often_it_is_at_most_the_most(count: int):
    assert of_the_tables().next(count) == 60_000
    assert MultiplierRedeliveryBackoff(0, 60_000, 2).next(count) == 0
    assert MultiplierRedeliveryBackoff(5, 60_000, 1).next(count) == 5


def test_a_multiplier_may_have_a_fraction():
    backoff = MultiplierRedeliveryBackoff(1000, 5000, 1.5)
    assert [backoff.next(count) for count in range(5)] == [1000, 1500, 2250, 3375, 5000]


@pytest.mark.parametrize(
    "given",
    [(-1, 10, 2), (10, 9, 2), (1, -1, 2), (1, 10, 0.99), (1, 10, 0), (1, 10, -2),
     (1, 10, float("nan")), (1, 10, float("inf"))],
)  # fmt: skip
def test_values_that_make_no_sense_are_value_errors(given: tuple[Any, ...]):
    with pytest.raises(ValueError, match=r"min_delay_ms|max_delay_ms|multiplier"):
        MultiplierRedeliveryBackoff(*given)


@pytest.mark.parametrize("given", [("1", 10, 2), (1, 10.5, 2), (1, 10, "2"), (None, 10, 2)])
def test_values_of_wrong_types_are_type_errors(given: tuple[Any, ...]):
    with pytest.raises(TypeError, match=r"min_delay_ms|max_delay_ms|multiplier"):
        MultiplierRedeliveryBackoff(*given)


def test_a_redelivery_count_is_an_integer():
    with pytest.raises(TypeError, match="redelivery_count"):
        of_the_tables().next(1.5)  # type: ignore[arg-type]


def test_it_is_a_value_that_does_not_change():
    backoff = of_the_tables()
    with pytest.raises(AttributeError, match="min_delay_ms"):
        backoff.min_delay_ms = 5
    with pytest.raises(AttributeError, match="multiplier"):
        del backoff.multiplier
    assert backoff == of_the_tables() and hash(backoff) == hash(of_the_tables())
    assert backoff != MultiplierRedeliveryBackoff()
    assert (backoff == 5) is False
    assert eval(repr(backoff)) == backoff
    assert copy.deepcopy(backoff) == pickle.loads(pickle.dumps(backoff)) == backoff


class Broken:
    """A backoff of the user's that fails in some way."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __repr__(self) -> str:
        return f"Broken({self.answer!r})"

    def next(self, redelivery_count: int) -> int:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]


BROKEN = [ZeroDivisionError(), None, "1", 1.5]


@pytest.mark.parametrize("answer", BROKEN, ids=repr)
@pytest.mark.parametrize("consumer_type", ALL_TYPES)
def test_a_failing_backoff_of_an_ack_timeout_is_as_none(
    clocked_client: pulsarx.Client,
    manual_clock: pulsarx.ManualClock,
    consumer_type: ConsumerType,
    answer: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The message, and all whose timeout came with its, used to wait for ever."""
    options: dict[str, Any] = {"ack_timeout_backoff": Broken(answer)}
    options["unacked_messages_timeout_ms"] = 1000
    consumer = clocked_client.subscribe("t", "s", consumer_type, **options)
    clocked_client.create_producer("t").send_many([b"0", b"1", b"2"])
    assert len(consumer.receive_many(3)) == 3
    manual_clock.advance(3)
    assert [each.data() for each in consumer.receive_many(3, 0)] == [b"0", b"1", b"2"]
    assert "Broken" in caplog.text


@pytest.mark.parametrize("answer", BROKEN, ids=repr)
@pytest.mark.parametrize("consumer_type", ALL_TYPES)
def test_a_failing_nack_backoff_is_as_none(
    clocked_client: pulsarx.Client,
    manual_clock: pulsarx.ManualClock,
    consumer_type: ConsumerType,
    answer: Any,
) -> None:
    options: dict[str, Any] = {"nack_backoff": Broken(answer)}
    options["negative_ack_redelivery_delay_ms"] = 5000
    consumer = clocked_client.subscribe("t", "s", consumer_type, **options)
    clocked_client.create_producer("t").send(b"0")
    consumer.negative_acknowledge(consumer.receive(0))
    manual_clock.advance(4.999)
    assert consumer.receive_many(1, 0) == []
    manual_clock.advance(0.001)
    assert consumer.receive(0).redelivery_count() == 1


@pytest.mark.parametrize("consumer_type", ALL_TYPES)
@pytest.mark.parametrize(
    "options",
    [
        {"negative_ack_redelivery_delay_ms": 2**63 - 1},
        {"nack_backoff": MultiplierRedeliveryBackoff(2**63 - 1, 2**63 - 1)},
        {"nack_backoff": Broken(2**80)},
        {"unacked_messages_timeout_ms": 2**63 - 1},
    ],
    ids=str,
)
def test_the_longest_delays_are_long(
    clocked_client: pulsarx.Client,
    manual_clock: pulsarx.ManualClock,
    consumer_type: ConsumerType,
    options: dict[str, Any],
) -> None:
    """Their sum with the time of day used to overflow: they were over at once."""
    consumer = clocked_client.subscribe("t", "s", consumer_type, **options)
    clocked_client.create_producer("t").send(b"0")
    message = consumer.receive(0)
    if "unacked_messages_timeout_ms" not in options:
        consumer.negative_acknowledge(message)
    manual_clock.advance(100 * 365 * 86400)
    assert consumer.receive_many(1, 0) == []
    consumer.acknowledge(message)
