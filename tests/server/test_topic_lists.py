"""Watching which topics of a namespace match a pattern, as a broker of Pulsar 4.2 answers it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from peer import Peer, names

from pulsarx.server.topic_answers import topics_hash

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


@pytest.mark.parametrize(
    "pattern",
    ["[", "(?=x).*", r"(a)\1", "x" * 2000],
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
