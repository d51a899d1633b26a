"""Facts about verbs over HTTP: the row above a function is the verb at every end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from administered import Administered

import pulsarx
from pulsarx import errors
from pulsarx.admin import Admin
from pulsarx.admin.http_forms import ANSWERS, BODIES
from pulsarx.admin.http_messages import message_shown, messages_read
from pulsarx.broker.verbs.http import Http
from pulsarx.broker.verbs.table import VERBS
from pulsarx.broker.verbs.verb import LOOKUP, TENANT_ADMIN, Verb
from pulsarx.message_id import MessageId
from pulsarx.rest import application
from pulsarx.rest.verb_routes import routes_of
from pulsarx.topic_name import TopicName


def mark(folder: Any, topic: TopicName, name: str, count: int, loud: bool, text: str) -> list[str]:
    """Stands for any verb that wants a path and a query."""
    if count > 9:
        raise errors.NotAllowedError(detail="more than 9")
    return [topic.full, name, str(count), str(loud), text]


def place(folder: Any, namespace: str, role: str, message_id: str) -> str:
    """Stands for any verb that wants a path and a body."""
    return f"{message_id}:{len(namespace)}:{len(role)}"


NEW = {
    "topics.mark": Verb(
        mark,
        needs=LOOKUP,
        reads=True,
        http=Http(
            "GET",
            "{topic}/subscription/{name}/mark/{count}",
            "Mark a topic.",
            query={"loud": "isLoud", "text": "said"},
            answer="names",
            refused=422,
        ),
    ),
    "namespaces.place": Verb(
        place,
        needs=TENANT_ADMIN,
        http=Http(
            "PUT",
            "/namespaces/{namespace}/place/{role}",
            "Place a role.",
            body="MessageId",
            argument="message_id",
            answer="integer",
        ),
    ),
}
MARKED = {"topic": "t", "name": "s/1 +%", "count": 3, "loud": True, "text": "x&y z"}


@pytest.fixture
def with_new_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if modules of verbs had the functions, with their rows above them."""
    for name, row in NEW.items():
        monkeypatch.setitem(VERBS, name, row)
    monkeypatch.setattr(application, "ROUTES", [*routes_of(NEW), *application.ROUTES])


def perform(admin: Admin, name: str, /, **arguments: Any) -> Any:
    return admin.topics._channel.perform(name, arguments)


def test_one_row_is_a_verb_at_every_end(
    with_new_rows: None, open_administered: Any, tmp_path: Path
) -> None:
    administered = open_administered(folder=tmp_path)
    admins = [administered.client.admin, Admin.at(tmp_path), Admin.at(administered.url)]
    answer = ["persistent://public/default/t", "s/1 +%", "3", "True", "x&y z"]
    assert [sorted(perform(each, "topics.mark", **MARKED)) for each in admins] == [
        sorted(answer)
    ] * 3
    found = MessageId(2, 7, 8, -1).to_text()
    told = [
        perform(each, "namespaces.place", namespace="public/default", role="r+ s", message_id=found)
        for each in admins
    ]
    assert told == [f"{found}:14:4"] * 3

    path = "/persistent/public/default/t/subscription/s/mark"
    assert administered.get(f"{path}/0?isLoud=true&said=x")[2:] == ["0", "True", "x"]
    described = administered.get("//openapi.json")["paths"]
    [(_, operation)] = [item for item in described.items() if "/mark/" in item[0]]
    assert operation["get"]["summary"] == "Mark a topic."
    names = [each["name"] for each in operation["get"]["parameters"]]
    assert names[-2:] == ["isLoud", "said"] and "subscription" in names


def test_what_is_wrong_is_told_alike_at_every_end(
    with_new_rows: None, administered: Administered
) -> None:
    admins = [administered.client.admin, Admin.at(administered.url)]
    for each in admins:
        with pytest.raises(errors.NotAllowedError, match="more than 9"):
            perform(each, "topics.mark", **{**MARKED, "count": 10})
        with pytest.raises(errors.InvalidTopicName, match="other://a/b/c"):
            perform(each, "topics.mark", **{**MARKED, "topic": "other://a/b/c"})
    path = "/persistent/public/default/t/subscription/s/mark"
    assert administered.ask("GET", f"{path}/10?said=x")[:2] == (422, {"reason": "more than 9"})
    assert administered.ask("GET", f"{path}/ten?said=x")[:2] == (
        412,
        {"reason": "count must be a whole number, not 'ten'"},
    )
    assert administered.ask("PUT", "/namespaces/public/default/place/r", [1])[:2] == (
        400,
        {"reason": "a message id is a JSON object with ledgerId and entryId"},
    )


@pytest.mark.parametrize("name", [each for each, row in VERBS.items() if row.http is not None])
def test_rows_name_what_is_there(name: str) -> None:
    """Forms that both ends know, and arguments that the verb has."""
    row: Any = VERBS[name]
    assert not row.http.answer or row.http.answer in ANSWERS
    assert not row.http.argument or row.http.body in BODIES
    assert {*row.http.query, row.http.argument or next(iter(row.kinds), "")} <= {*row.kinds, ""}


@pytest.mark.parametrize(
    "message_id",
    [
        pulsarx.MessageId.earliest,
        pulsarx.MessageId.latest,
        MessageId(-1, 5, 6, -1),
        MessageId(3, 5, 6, 2),
    ],
)
def test_ids_that_one_end_writes_the_other_reads(message_id: pulsarx.MessageId) -> None:
    text = message_id.to_text()
    form = BODIES["MessageId"]
    assert form.read(form.shown(text)) == text
    if message_id not in (pulsarx.MessageId.earliest, pulsarx.MessageId.latest):
        answer = ANSWERS["MessageId"]
        assert answer.read(answer.shown(text)) == text


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"data": None},
        {"data": "", "partition_key": "", "event_timestamp": 0},
        {"event_timestamp": 1 << 62, "properties": {}},
    ],
)
def test_messages_that_one_end_writes_the_other_reads(changed: dict[str, Any]) -> None:
    message = {
        "message_id": "7:8:2:1",
        "publish_timestamp": 1_700_000_000_123,
        "producer_name": "p",
        "data": "aGVsbG8=",
        "properties": {"a": "1", "\u00e9": '"\n'},
        "partition_key": "k",
        "ordering_key": "",
        "event_timestamp": 5,
        **changed,
    }
    payload, headers = message_shown(message)
    told = messages_read("t-partition-2", headers, payload)
    assert told == [message]
