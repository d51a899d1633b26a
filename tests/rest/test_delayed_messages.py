"""Routes about messages that wait for their time, and about single messages by id and index: asked
by hand, and by `Admin.at` of the URL."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from administered import Administered

from pulsarx import ConsumerType, MessageId, errors
from pulsarx.admin import Admin
from pulsarx.clock import ManualClock

T = "/persistent/public/default/t"
HOUR = timedelta(hours=1)
HOUR_MS = 3_600_000


@pytest.fixture
def three(open_administered: Any) -> tuple[Administered, list[MessageId]]:
    """A message an hour late, twice, and one at once; subscriptions a and b."""
    found: Administered = open_administered(ManualClock(1_000_000))
    for name in ("a", "b"):
        found.client.subscribe("t", name, ConsumerType.Shared).close()
    with found.client.create_producer("t") as producer:
        ids = [producer.send(b"m%d" % each, deliver_after=HOUR) for each in range(2)]
        ids.append(producer.send(b"at once"))
    return found, ids


def place_of(message_id: MessageId) -> str:
    return f"{message_id.ledger_id()}:{message_id.entry_id()}:-1"


def test_what_waits_is_listed_and_cancelled(three: Any) -> None:
    administered, ids = three
    path = f"{T}/subscription/a/delayed"
    due = 1_000_000 + HOUR_MS
    waiting = [{"message_id": each.to_text(), "deliver_at": due} for each in ids[:2]]
    assert administered.get(path) == waiting
    assert administered.get(f"{path}?count=1") == waiting[:1]
    assert administered.get(f"{path}?count=1&behind={place_of(ids[0])}") == waiting[1:]
    assert administered.ask("DELETE", f"{path}/{place_of(ids[0])}").body == ["a"]
    assert administered.get(path) == waiting[1:]
    assert administered.ask("DELETE", f"{T}/delayed/{place_of(ids[0])}").body == ["b"]
    assert administered.ask("DELETE", f"{T}/delayed/{place_of(ids[1])}").body == ["a", "b"]
    assert administered.get(path) == []
    for gone in (f"{path}/{place_of(ids[1])}", f"{T}/delayed/{place_of(ids[2])}"):
        assert administered.ask("DELETE", gone).status == 412
    for missing in (f"{T}/subscription/c/delayed", "/persistent/public/default/x/delayed/1:1:-1"):
        method = "GET" if missing.endswith("delayed") else "DELETE"
        assert administered.ask(method, missing).status == 404


def test_an_admin_of_the_url_does_the_same(three: Any) -> None:
    administered, ids = three
    topics = Admin.at(administered.url).topics
    assert [each.message_id() for each in topics.get_delayed_messages("t", "a")] == ids[:2]
    (second,) = topics.get_delayed_messages("t", "a", behind=ids[0])
    assert (second.message_id(), second.deliver_at()) == (ids[1], 1_000_000 + HOUR_MS)
    assert topics.cancel_message("t", ids[0], "b") == ["b"]
    assert topics.cancel_message("t", ids[0]) == ["a"]
    with pytest.raises(errors.NotAllowedError, match="acknowledged already"):
        topics.cancel_message("t", ids[0])


def test_a_message_is_had_by_index_and_id(three: Any) -> None:
    administered, ids = three
    topics = Admin.at(administered.url).topics
    for index, each in enumerate(ids):
        assert topics.get_message_id_by_index("t", index) == each
    with pytest.raises(errors.NotAllowedError):
        topics.get_message_id_by_index("t", 3)
    found = topics.get_message_by_id("t", ids[1])
    assert found is not None and (found.data(), found.message_id()) == (b"m1", ids[1])
    assert topics.get_message_by_id("t", MessageId(-1, ids[0].ledger_id(), 99, -1)) is None
    with pytest.raises(errors.TopicNotFound):
        topics.get_message_by_id("none", ids[0])


def test_one_message_of_a_batch_is_had_by_its_id(administered: Administered) -> None:
    with administered.client.create_producer("t", batching_enabled=True) as producer:
        for each in range(3):
            producer.send_async(b"%d" % each, None)
        producer.flush()
    topics = Admin.at(administered.url).topics
    last = administered.client.admin.topics.get_last_message_id("t")
    place = (last.ledger_id(), last.entry_id())
    for index in range(3):
        found = topics.get_message_by_id("t", MessageId(-1, *place, index))
        assert found is not None and found.data() == b"%d" % index
    assert topics.get_message_by_id("t", MessageId(-1, *place, 3)) is None


def test_the_index_of_a_message_is_a_number(administered: Administered) -> None:
    administered.client.create_producer("t").send(b"x")
    assert administered.get(f"{T}/getMessageIdByIndex?index=0")["entryId"] == 0
    for index in ("-1", "x", ""):
        assert administered.ask("GET", f"{T}/getMessageIdByIndex?index={index}").status == 412
