"""Facts about verbs: the row above a function declares one, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pulsarx
from pulsarx import errors
from pulsarx.broker.verbs.table import VERBS
from pulsarx.broker.verbs.verb import IN_NAMESPACE, LOOKUP, SUPERUSER, TENANT_ADMIN, Verb, verb
from pulsarx.topic_name import TopicName

Ask = Callable[..., Any]


@pytest.fixture
def ask(memory_client: pulsarx.Client) -> Ask:
    channel: Any = memory_client.admin.topics._channel

    def perform(verb: str, /, **arguments: Any) -> Any:
        return channel.perform(verb, arguments)

    return perform


def test_arguments_are_those_of_the_function() -> None:
    def look(folder: Any, topic: TopicName, many: list[str], text: str = "", more: int = 0) -> None:
        pass

    found = Verb(look, needs=LOOKUP)
    assert found.kinds == {"topic": TopicName, "many": list, "text": str, "more": int}
    assert found.optional == {"text", "more"}


def test_a_verb_without_what_it_needs_is_none() -> None:
    declare: Any = verb
    with pytest.raises(TypeError, match="needs"):
        declare("tests.nothing")
    with pytest.raises(KeyError, match="anything"):
        declare("tests.nothing", needs="anything")(lambda folder: None)
    assert "tests.nothing" not in VERBS


@pytest.mark.parametrize("needs", [LOOKUP, IN_NAMESPACE, TENANT_ADMIN])
def test_a_verb_is_about_what_its_check_asks_for(needs: str) -> None:
    def look(folder: Any, job: str) -> None:
        pass

    with pytest.raises(TypeError, match=f"look needs {needs}, and has no"):
        Verb(look, needs=needs)


def test_an_argument_that_nobody_can_give_makes_no_verb() -> None:
    def look(folder: Any, place: tuple[int, int]) -> None:
        pass

    with pytest.raises(TypeError, match="place is tuple"):
        Verb(look, needs=SUPERUSER)


def test_names_of_topics_are_parsed_and_refused_once_for_all(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def look(folder: Any, topic: TopicName) -> str:
        seen.append(topic)
        return topic.full

    monkeypatch.setitem(VERBS, "tests.look", Verb(look, needs=LOOKUP, reads=True))
    assert ask("tests.look", topic="t") == "persistent://public/default/t"
    assert seen == [TopicName.of("t")]
    with pytest.raises(errors.InvalidTopicName, match="other://a/b/c"):
        ask("tests.look", topic="other://a/b/c")
    with pytest.raises(ValueError, match="topic must be str of 1 to 32767 characters, not 7"):
        ask("tests.look", topic=7)
    assert len(seen) == 1


@pytest.mark.parametrize("name", [each for each, row in VERBS.items() if "topic" in row.kinds])
def test_every_verb_of_a_topic_refuses_what_is_no_name(ask: Ask, name: str) -> None:
    values: dict[type, Any] = {str: "x", int: 1, bool: False, list: [], dict: {"x": 1}}
    row = VERBS[name]
    given = {
        each: values.get(kind, "other://a/b/c")
        for each, kind in row.kinds.items()
        if each not in row.optional
    }
    with pytest.raises(errors.InvalidTopicName):
        ask(name, **given)
