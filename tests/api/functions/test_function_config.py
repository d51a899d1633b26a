"""Facts about the options of functions: what is refused, and what follows from them."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarx import ConsumerType, InitialPosition, errors
from pulsarx.functions.function_config import FunctionConfig


def config(**options: Any) -> FunctionConfig:
    return FunctionConfig(**{"name": "f", "inputs": ["in"], **options})


@pytest.mark.parametrize(
    "options",
    [
        {"inputs": []},
        {"inputs": "in"},
        {"name": ""},
        {"name": "a/b"},
        {"output": "in"},
        {"log_topic": "persistent://public/default/in"},
        {"inputs": [], "topics_pattern": "persistent://public/default/o.*", "output": "out"},
        {"processing_guarantees": "EXACTLY_ONCE"},
        {"retain_ordering": True, "retain_key_ordering": True},
        {"processing_guarantees": "EFFECTIVELY_ONCE", "retain_key_ordering": True},
        {"processing_guarantees": "EFFECTIVELY_ONCE", "auto_ack": False},
        {"processing_guarantees": "EFFECTIVELY_ONCE", "max_message_retries": 1},
        {"max_message_retries": 0},
        {"max_message_retries": 1, "retain_ordering": True},
        {"dead_letter_topic": "dead"},
        {"processing_guarantees": "ATMOST_ONCE", "timeout_ms": 20_000},
        {"parallelism": 0},
        {"parallelism": True},
        {"subs_position": "Middle"},
        {"user_config": []},
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        config(**options)


def test_topics_and_a_pattern_together_are_not_supported() -> None:
    with pytest.raises(errors.OperationNotSupported):
        config(topics_pattern="a.*")


def test_names_of_topics_and_tenants_are_checked() -> None:
    for options in ({"inputs": ["a/b"]}, {"tenant": "a b"}, {"namespace": ""}, {"output": "a/b"}):
        with pytest.raises(errors.InvalidTopicName):
            config(**options)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, ConsumerType.Shared),
        ({"retain_ordering": True}, ConsumerType.Failover),
        ({"retain_key_ordering": True}, ConsumerType.KeyShared),
        ({"processing_guarantees": "EFFECTIVELY_ONCE"}, ConsumerType.Failover),
    ],
)
def test_the_order_asked_for_makes_the_subscription(
    options: dict[str, Any], kind: ConsumerType
) -> None:
    assert config(**options).consumer_type == kind


def test_names_follow_from_the_function() -> None:
    made = config(tenant="t", namespace="n", subs_position="EARLIEST")
    assert made.subscription == "t/n/f"
    assert made.dead_letters == "persistent://t/n/f-DLQ"
    assert made.initial_position == InitialPosition.Earliest
    assert config(subs_name="mine").subscription == "mine"
    assert config(max_message_retries=2, dead_letter_topic="d").dead_letters == "d"


def test_an_input_that_is_named_twice_is_one() -> None:
    assert config(inputs=["a", "b", "a"], custom_serde_inputs={"b": None}).topics == ["a", "b"]
