"""Facts about policies; values and errors probed on the official client 3.13.0."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarx.enumerations import KeySharedMode
from pulsarx.options.consumer_policies import (
    ConsumerBatchReceivePolicy,
    ConsumerDeadLetterPolicy,
    ConsumerKeySharedPolicy,
)

STICKY = KeySharedMode.Sticky


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ((1, 0, 0), (1, 0, 0)),
        ((0, 0, 5), (-1, 10_485_760, 5)),
        ((-1, 10, 100), (-1, 10, 100)),
        ((100, 10, 50), (100, 10, 50)),
    ],
)
def test_batch_receive_policy(given: tuple[int, int, int], kept: tuple[int, int, int]) -> None:
    policy = ConsumerBatchReceivePolicy(*given).policy()
    found = (policy.getMaxNumMessages(), policy.getMaxNumBytes(), policy.getTimeoutMs())
    assert found == kept


@pytest.mark.parametrize("given", [(0, 0, 0), (-1, -1, -1)])
def test_a_batch_receive_policy_needs_a_bound(given: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="At least one of"):
        ConsumerBatchReceivePolicy(*given)


@pytest.mark.parametrize("given", [(1.5, 1, 1), ("1", 1, 1), (1, None, 1), (2**31, 1, 1)])
def test_a_batch_receive_policy_of_wrong_types_is_a_type_error(given: Any) -> None:
    with pytest.raises(TypeError):
        ConsumerBatchReceivePolicy(*given)


def test_dead_letter_policy() -> None:
    bare = ConsumerDeadLetterPolicy(1)
    assert (bare.max_redeliver_count, bare.dead_letter_topic, bare.initial_subscription_name) == (
        1,
        "",
        "",
    )
    full = ConsumerDeadLetterPolicy(3, "t", "s")
    assert full.dead_letter_topic == full.policy().getDeadLetterTopic() == "t"
    assert full.initial_subscription_name == full.policy().getInitialSubscriptionName() == "s"
    assert full.policy().getMaxRedeliverCount() == 3
    assert full.retry_letter_topic == ""
    retrying = ConsumerDeadLetterPolicy(3, retry_letter_topic="r")
    assert retrying.retry_letter_topic == retrying.policy().getRetryLetterTopic() == "r"


@pytest.mark.parametrize("count", [None, 0, -1])
def test_a_dead_letter_policy_needs_a_count(count: Any) -> None:
    with pytest.raises(ValueError, match="max_redeliver_count"):
        ConsumerDeadLetterPolicy(count)


@pytest.mark.parametrize("given", [("a",), (1.5,), (1, 5), (1, "t", 5), (1, "t", "s", 5)])
def test_a_dead_letter_policy_of_wrong_types_is_a_type_error(given: Any) -> None:
    with pytest.raises(TypeError):
        ConsumerDeadLetterPolicy(*given)


@pytest.mark.parametrize(
    "ranges",
    [[(0, 65535)], [(0, 10), (11, 20)], [(20, 30), (0, 10)], [(3, 3)], [[1, 2]]],
)
def test_sticky_ranges_keep_their_order(ranges: Any) -> None:
    policy = ConsumerKeySharedPolicy(STICKY, False, ranges)
    assert policy.sticky_ranges == [tuple(pair) for pair in ranges]
    assert policy.key_shared_mode is STICKY
    policy.sticky_ranges.append((1, 1))
    assert len(policy.sticky_ranges) == len(ranges)


@pytest.mark.parametrize(
    "ranges",
    [None, [], [(0, 65536)], [(-1, 3)], [(0, 10), (10, 20)], [(0, 100), (5, 6)], [(5, 3)]],
)
def test_impossible_sticky_ranges_are_value_errors(ranges: Any) -> None:
    with pytest.raises(ValueError):
        ConsumerKeySharedPolicy(STICKY, False, ranges)


@pytest.mark.parametrize("ranges", [5, [5], [(1,)], [("a", "b")], [(1.0, 2)]])
def test_sticky_ranges_of_wrong_types_are_type_errors(ranges: Any) -> None:
    with pytest.raises(TypeError):
        ConsumerKeySharedPolicy(STICKY, False, ranges)


def test_key_shared_policy_by_default_splits_by_itself() -> None:
    policy = ConsumerKeySharedPolicy()
    assert policy.key_shared_mode is KeySharedMode.AutoSplit
    assert policy.allow_out_of_order_delivery is False
    assert policy.sticky_ranges == []
    assert ConsumerKeySharedPolicy(allow_out_of_order_delivery=True).allow_out_of_order_delivery
    with pytest.raises(TypeError):
        ConsumerKeySharedPolicy(1)  # type: ignore[arg-type]
