"""The examples in docstrings run as they stand, and the calls that are used most have one. Help
about an object is that about its class."""

from __future__ import annotations

import ast
import asyncio
import inspect
import pydoc
import subprocess
import sys
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from docstring_faults import examples
from public_api import public_api

import pulsarx
from pulsarx import aio

EXAMPLES = {each.name: found[0] for each in public_api() if (found := examples(each.doc))}
MOST_USED = [
    "pulsarx.Client",
    "pulsarx.Client.create_producer",
    "pulsarx.Client.subscribe",
    "pulsarx.Client.create_reader",
    "pulsarx.Client.create_table_view",
    "pulsarx.Client.read_table",
    "pulsarx.Client.admin",
    "pulsarx.Client.close",
    "pulsarx.Producer.send",
    "pulsarx.Producer.send_async",
    "pulsarx.Producer.send_many",
    "pulsarx.Producer.flush",
    "pulsarx.Producer.close",
    "pulsarx.Consumer.receive",
    "pulsarx.Consumer.receive_many",
    "pulsarx.Consumer.batch_receive",
    "pulsarx.Consumer.acknowledge",
    "pulsarx.Consumer.acknowledge_cumulative",
    "pulsarx.Consumer.negative_acknowledge",
    "pulsarx.Consumer.seek",
    "pulsarx.Consumer.close",
    "pulsarx.Reader.read_next",
    "pulsarx.TableView.get",
    "pulsarx.ManualClock.advance",
    "pulsarx.admin.Admin.at",
    "pulsarx.admin.Topics.get_list",
    "pulsarx.admin.Topics.create_partitioned_topic",
    "pulsarx.admin.Topics.create_subscription",
    "pulsarx.admin.Topics.delete",
    "pulsarx.admin.Topics.stats",
    "pulsarx.admin.Namespaces.create_namespace",
    "pulsarx.aio.Client.open",
    "pulsarx.aio.Client.create_producer",
    "pulsarx.aio.Client.subscribe",
    "pulsarx.aio.Client.create_reader",
    "pulsarx.aio.Producer.send",
    "pulsarx.aio.Consumer.receive",
    "pulsarx.aio.Consumer.batch_receive",
    "pulsarx.aio.Consumer.acknowledge",
    "pulsarx.aio.Consumer.seek",
    "pulsarx.aio.Reader.read_next",
    "pulsarx.testing.drain",
    "pulsarx.testing.messages",
    "pytest_pulsarx.pulsar_client",
]


def test_the_calls_that_are_used_most_have_an_example():
    assert not set(MOST_USED) - set(EXAMPLES)


def test_there_are_examples_of_asyncio():
    assert "await" in EXAMPLES["pulsarx.aio.Producer.send"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
):
    """Where a text takes them for granted there are a client, a producer, and a consumer whose
    topic has ten messages."""
    monkeypatch.chdir(tmp_path)
    code = compile(EXAMPLES[name], name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if name.startswith("pulsarx.aio."):
        asyncio.run(run_in_loop(code))
        return
    if "install_as_pulsar" in EXAMPLES[name]:  # which changes the process
        subprocess.run([sys.executable, "-c", EXAMPLES[name]], check=True)
        return
    with pulsarx.Client("memory:examples") as client:
        given: dict[str, Any] = {
            "pulsarx": pulsarx,
            "client": client,
            "consumer": client.subscribe("orders", "billing"),
            "producer": client.create_producer("orders"),
        }
        publish(client)
        exec(code, given)
    for test in [each for own, each in given.items() if own.startswith("test_")]:
        parameters = inspect.signature(test).parameters
        test(**{each: request.getfixturevalue(each) for each in parameters})


async def run_in_loop(code: CodeType) -> None:
    client = await aio.Client.open("memory:")
    try:
        given: dict[str, Any] = {
            "pulsarx": pulsarx,
            "client": client,
            "consumer": await client.subscribe("orders", "billing"),
            "producer": await client.create_producer("orders"),
        }
        publish(client._client)
        found = eval(code, given)
        if inspect.iscoroutine(found):
            await found
    finally:
        await client.close()


def publish(client: pulsarx.Client) -> None:
    with client.create_producer("orders") as producer:
        producer.send_many([b"one", *(b"%d" % number for number in range(2, 11))])


@pytest.mark.parametrize("topic", ["orders", "parts"])
def test_help_about_an_object_says_what_its_class_says(
    memory_client: pulsarx.Client, topic: str
) -> None:
    """The calls of the core, in C, say nothing in their place."""
    memory_client.admin.topics.create_partitioned_topic("parts", 2)
    members = [
        (pulsarx.Producer, memory_client.create_producer(topic)),
        (pulsarx.Consumer, memory_client.subscribe(topic, "billing")),
    ]
    for kind, member in members:
        for name, declared in vars(kind).items():
            if not name.startswith("_") and inspect.isfunction(declared):
                found = inspect.getdoc(getattr(member, name))
                assert found == inspect.getdoc(declared), f"{kind.__name__}.{name}"
    assert "Args:\n" in pydoc.render_doc(members[0][1].send, renderer=pydoc.plaintext)


def test_help_about_a_reader_says_how_long_it_waits(memory_client: pulsarx.Client) -> None:
    reader = memory_client.create_reader("orders", pulsarx.MessageId.earliest)
    assert "real milliseconds" in (inspect.getdoc(reader.read_next) or "")
