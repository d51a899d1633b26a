"""Watching which topics of a namespace match a pattern, as a broker of Pulsar 4.2 answers it."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from peer import Peer, names

from pulsarx.sessions import topic_list_watch
from pulsarx.sessions.linear_pattern import LinearPattern
from pulsarx.sessions.topic_answers import topics_hash

HEAD = "persistent://public/default/"


def verb(peer: Peer, name: str, **arguments: Any) -> list[Any]:
    told = peer.say("VERB", verb=name, arguments=json.dumps(arguments), request_id=99)
    assert not any(each[1].get("error") for each in told), told
    return [each for each in told if each[0] != "VERB_RESPONSE"]


def made(peer: Peer, name: str) -> list[Any]:
    return verb(peer, "topics.create_non_partitioned_topic", topic=name)


def watch(peer: Peer, pattern: str = HEAD + "w-.*", **values: Any) -> Any:
    values = {"watcher_id": 9, "namespace": "public/default", "request_id": 4, **values}
    (told,) = peer.say("WATCH_TOPIC_LIST", topics_pattern=pattern, **values)
    return told[:2]


def test_the_hash_is_that_of_pulsar() -> None:
    """As a broker of 4.2.4 said it."""
    assert topics_hash([]) == "00000000"
    assert topics_hash([HEAD + "w-two"]) == "6a685dc3"
    found = ["w-two", "w-part-partition-1", "w-one", "w-part-partition-0"]
    assert topics_hash(HEAD + each for each in found) == "3f86d6ad"


@pytest.mark.parametrize("pattern", [HEAD + "w-.*", "public/default/w-.*", "^public/default/w-.*"])
def test_those_there_are_come_first(peer: Peer, pattern: str) -> None:
    for name in ("w-two", "w-one", "other", "non-persistent://public/default/w-np"):
        made(peer, name)
    verb(peer, "topics.create_partitioned_topic", topic="w-p", partitions=2)
    name, told = watch(peer, pattern)
    expected = [HEAD + each for each in ("w-one", "w-p-partition-0", "w-p-partition-1", "w-two")]
    assert name == "WATCH_TOPIC_LIST_SUCCESS"
    assert (told["topics"], told["watcher_id"]) == (expected, 9)
    assert told["topics_hash"] == topics_hash(expected)
    assert watch(peer, pattern, topics_hash=told["topics_hash"])[1]["topics"] == []


def test_what_comes_and_goes_is_told(peer: Peer) -> None:
    watch(peer)
    ((name, told, _),) = made(peer, "w-one")
    assert (name, told["watcher_id"], told["new_topics"]) == (
        "WATCH_TOPIC_UPDATE", 9, [HEAD + "w-one"],
    )  # fmt: skip
    assert told["topics_hash"] == topics_hash([HEAD + "w-one"])
    assert made(peer, "other") == []
    ((_, told, _),) = verb(peer, "topics.create_partitioned_topic", topic="w-p", partitions=1)
    assert told["new_topics"] == [HEAD + "w-p-partition-0"]
    ((_, told, _),) = verb(peer, "topics.update_partitioned_topic", topic="w-p", partitions=2)
    assert told["new_topics"] == [HEAD + "w-p-partition-1"]
    ((_, told, _),) = verb(peer, "topics.delete", topic="w-one", force=False)
    assert (told["new_topics"], told["deleted_topics"]) == ([], [HEAD + "w-one"])


def test_a_topic_made_from_another_connection_wakes_the_watch(peer: Peer) -> None:
    watch(peer)
    other = peer.another()
    peer.woken.clear()
    other.say("PRODUCER", topic="w-one", producer_id=0, request_id=0)
    assert peer.woken.is_set()
    assert names(peer.say("PING")) == ["WATCH_TOPIC_UPDATE", "PONG"]


def test_after_its_end_nothing_is_told(peer: Peer) -> None:
    watch(peer)
    assert names(peer.say("WATCH_TOPIC_LIST_CLOSE", request_id=5, watcher_id=9)) == ["SUCCESS"]
    assert names(peer.say("WATCH_TOPIC_LIST_CLOSE", request_id=5, watcher_id=9)) == ["SUCCESS"]
    assert made(peer, "w-one") == []


def test_a_namespace_that_is_not_there_has_no_topics(peer: Peer) -> None:
    name, told = watch(peer, "no/such/.*", namespace="no/such")
    assert (name, told["topics"], told["topics_hash"]) == (
        "WATCH_TOPIC_LIST_SUCCESS", [], "00000000",
    )  # fmt: skip


def test_a_name_is_matched_when_it_comes_and_not_again(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10):
        made(peer, f"other-{number}")
    watch(peer)
    matched: list[str] = []
    matches = LinearPattern.matches

    def noted(self: LinearPattern, name: str) -> bool:
        matched.append(name.rpartition("/")[2])
        return matches(self, name)

    monkeypatch.setattr(LinearPattern, "matches", noted)
    made(peer, "w-one")
    verb(peer, "topics.create_partitioned_topic", topic="w-p", partitions=1)
    ((_, told, _),) = verb(peer, "topics.update_partitioned_topic", topic="w-p", partitions=2)
    assert told["new_topics"] == [HEAD + "w-p-partition-1"]
    assert matched == ["w-one", "w-p-partition-0", "w-p-partition-1"]


def test_more_than_a_watch_remembers_are_told_all_the_same(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_list_watch, "NEWS_MAX", 3)
    made(peer, "w-deleted")
    watch(peer)
    other = peer.another()
    names_of_new = [f"w-{number}" for number in range(5)]
    for name in names_of_new:
        made(other, name)
    verb(other, "topics.delete", topic="w-deleted", force=False)
    (told, _) = peer.say("PING")
    assert told[1]["new_topics"] == [HEAD + each for each in names_of_new]
    assert told[1]["deleted_topics"] == [HEAD + "w-deleted"]


def test_a_watch_keeps_no_names_that_do_not_match(peer: Peer) -> None:
    for number in range(300):
        made(peer, f"other-{number}")
    watch(peer)  # what is made with the first
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(90):
            watch(peer, watcher_id=number + 10)
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert kept < 90 * 300 * 50  # a name in a dictionary takes 100 bytes


@pytest.mark.parametrize(
    "pattern",
    ["[", "(?=x).*", r"(a)\1", "x" * 2000, "(.{0,30}a.{0,30}){16}"],
)
def test_what_is_no_pattern_is_refused(peer: Peer, pattern: str) -> None:
    name, told = watch(peer, HEAD + pattern)
    assert (name, told["error"]) == ("ERROR", 17)


@pytest.mark.parametrize(
    "pattern",
    [r"[a-z+*?]+-\d{2}\.x", r"w\(\)\+\?\*-.*", "(w|v)-[0-9]+", "(a+)+b", "a?a?a?a?b", r"\Qw.\E.*"],
)
def test_patterns_that_people_write_are_taken(peer: Peer, pattern: str) -> None:
    assert watch(peer, HEAD + pattern)[0] == "WATCH_TOPIC_LIST_SUCCESS"


def test_a_connection_has_only_so_many(peer: Peer) -> None:
    for number in range(100):
        watch(peer, watcher_id=number)
    name, told = watch(peer, watcher_id=100)
    assert (name, told["error"]) == ("ERROR", 22)


def test_a_list_that_is_known_is_not_sent_again(peer: Peer) -> None:
    made(peer, "a")
    ask = {"namespace": "public/default", "request_id": 4}
    (told,) = peer.say("GET_TOPICS_OF_NAMESPACE", **ask)
    known = told[1]["topics_hash"]
    assert (told[1]["changed"], known) == (True, topics_hash([HEAD + "a"]))
    (told,) = peer.say("GET_TOPICS_OF_NAMESPACE", topics_hash=known, **ask)
    assert (told[1]["changed"], told[1]["topics"]) == (False, [])
