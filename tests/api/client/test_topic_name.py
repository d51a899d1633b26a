from __future__ import annotations

import pickle
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarx.errors import InvalidConfiguration, InvalidTopicName
from pulsarx.topic_name import TopicName, check_subscription_name


@pytest.mark.parametrize(
    ("written", "full"),
    [
        ("x", "persistent://public/default/x"),
        ("a/b/c", "persistent://a/b/c"),
        ("persistent://a/b/c", "persistent://a/b/c"),
        ("non-persistent://a/b/c", "non-persistent://a/b/c"),
        ("a-b.c:d=e_F9/n/größe mit blank", "persistent://a-b.c:d=e_F9/n/größe mit blank"),
        ("..", "persistent://public/default/.."),
    ],
)
def test_names_are_completed_as_pulsar_does(written: str, full: str) -> None:
    name = TopicName.of(written)
    assert str(name) == full
    assert TopicName.of(full) == name
    assert hash(TopicName.of(full)) == hash(name)


@pytest.mark.parametrize(
    "written",
    [
        "", " ", " x", "x ", "\tx", "a/b", "a/b/c/d", "/x", "x/", "a//c", "//x", "a/b/", "a/b/ ",
        "persistent://x", "persistent://a/b", "persistent://a/b/c/d", "persistent://", "://a/b/c",
        "topic://a/b/c", "Persistent://a/b/c", "a b/n/x", "a/n+/x", "ä/n/x", "../n/x", "a/./x",
        "x\0y", "x\ny", "x\x7f", "x\ud800", "y" * 40000, "a/b/ c",
    ],
)  # fmt: skip
def test_other_names_are_refused(written: str) -> None:
    with pytest.raises(InvalidTopicName):
        TopicName.of(written)


def test_a_name_that_is_no_text_is_a_value_error() -> None:
    for wrong in (None, 3, b"x", ["x"]):
        with pytest.raises(ValueError, match="topic name"):
            TopicName.of(wrong)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="subscription name"):
            check_subscription_name(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("local", "index"),
    [
        ("x-partition-0", 0),
        ("x-partition-12", 12),
        ("x-partition-2147483647", 2147483647),
        ("x-partition-2147483648", -1),
        ("x-partition-03", -1),
        ("x-partition--3", -1),
        ("x-partition-", -1),
        ("x-partition-+3", -1),
        ("x-partition-\u0663", -1),
        ("x-partition-3x", -1),
        ("x-partition-1-partition-2", 2),
        ("-partition-2", -1),
        ("x", -1),
    ],
)
def test_the_partition_suffix(local: str, index: int) -> None:
    name = TopicName.of(local)
    assert name.partition_index == index
    if index < 0:
        assert name.partitioned_name == str(name)
    else:
        assert f"{name.partitioned_name}-partition-{index}" == str(name)
        assert name.partition(index) is TopicName.of(str(name))


def test_parts() -> None:
    name = TopicName.of("non-persistent://t/n/x-partition-3")
    assert (name.domain, name.tenant, name.namespace) == ("non-persistent", "t", "n")
    assert (name.local_name, name.namespace_name) == ("x-partition-3", "t/n")
    assert name.partitioned_name == "non-persistent://t/n/x"
    assert name.whole is TopicName.of("non-persistent://t/n/x")
    assert name.whole.whole is name.whole
    assert not name.persistent
    with pytest.raises(InvalidTopicName):
        name.partition(-1)


@pytest.mark.parametrize(
    ("written", "is_system"),
    [
        ("__change_events", True),
        ("__change_events-partition-1", True),
        ("a__b", False),
        ("pulsar/system/__transaction_log_0", True),
        ("pulsar/system/resource-usage", True),
        ("pulsar/standalone/healthcheck", True),
        ("pulsar/standalone/other", False),
        ("t/n/healthcheck", False),
        ("orders__transaction_pending_ack", True),
    ],
)
def test_a_name_says_whether_it_is_the_system_s(written: str, is_system: bool) -> None:
    assert TopicName.of(written).is_system is is_system


def test_both_ways_to_write_a_name_are_one_object() -> None:
    assert TopicName.of("both-ways") is TopicName.of("persistent://public/default/both-ways")
    assert TopicName.of("persistent://a/b/ways") is TopicName.of("a/b/ways")


def test_a_name_does_not_change() -> None:
    name = TopicName.of("x")
    with pytest.raises(AttributeError):
        name.tenant = "y"
    with pytest.raises(AttributeError):
        del name.tenant
    assert pickle.loads(pickle.dumps(name)) == name


@pytest.mark.parametrize(
    "name", ["", "  ", "pulsar.dedup", "__compaction", "pulsar.repl.x", "a\0b"]
)
def test_reserved_and_empty_subscription_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidConfiguration):
        check_subscription_name(name)


def test_other_subscription_names_are_taken() -> None:
    for name in ("s", "a/b c", "pulsar.re", "__compaction2", "größe"):
        assert check_subscription_name(name) == name


@given(st.text())
def test_whatever_parses_parses_again_to_itself(text: str) -> None:
    try:
        name = TopicName.of(text)
    except InvalidTopicName:
        return
    assert TopicName.of(str(name)) == name
    assert str(name).count("/") == 4


def test_what_names_are_made_of_is_shared_and_does_not_stay_for_ever() -> None:
    """Python 3.12 keeps each text that was interned until the process ends."""
    written = "persistent://tenant-of-one/namespace-of-one/topic-of-one"
    first, second = (TopicName.of(f"{written}-partition-{index}") for index in (1, 2))
    for part in ("tenant", "namespace", "namespace_name", "partitioned_name"):
        text = getattr(first, part)
        assert getattr(second, part) is text
        other = text.encode().decode()
        assert other is not text
        assert sys.intern(other) is other  # there was no such yet
