"""Facts about objects of the API that were made by `__new__` alone, as what copies objects does."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path

import pytest

import pulsarx

# Each member is taken, and called with up to three arguments. `run` is the thread of a clock.
PROGRAM = """
import importlib, sys
module, name = sys.argv[1:]
kind = getattr(importlib.import_module(module), name)
try:
    made = kind.__new__(kind)
except TypeError as error:
    sys.exit(0 if name in str(error) else f"{name}: {error}")
for member in dir(kind):
    if member in ("__class__", "__init__", "__new__", "__init_subclass__", "run"):
        continue
    print(member, flush=True)
    try:
        found = getattr(made, member)
    except Exception:
        continue
    for count in range(4):
        try:
            found(*[None] * count)
        except Exception:
            continue
"""
KINDS = [
    ("pulsarx.producing.topic_producer", "TopicProducer"),
    ("pulsarx.producing.partitioned_producer", "PartitionedProducer"),
    ("pulsarx.consuming.topic_consumer", "TopicConsumer"),
    ("pulsarx.consuming.multi_topics_consumer", "MultiTopicsConsumer"),
    ("pulsarx.consuming.partitioned_reader", "PartitionedReader"),
    ("pulsarx", "Message"),
    ("pulsarx", "MessageId"),
    ("pulsarx.clock", "SystemClock"),
    ("pulsarx.clock", "ManualClock"),
    ("pulsarx", "EncryptionContext"),
    ("pulsarx._pycore.message.encryption_context", "EncryptionKey"),
    ("pulsarx._pycore.arrow.arrow_export", "ArrowMessages"),
]


@pytest.mark.parametrize(("module", "name"), KINDS)
def test_no_call_of_an_object_that_was_not_initialised_ends_the_process(
    module: str, name: str
) -> None:
    """Methods of producers, consumers, messages and columns read the memory of nothing."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, module, name], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.stdout.split()[-1:], done.stderr)


def test_producers_consumers_and_messages_cannot_be_copied(folder: Path) -> None:
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "s")
        producer = client.create_producer("t")
        producer.send(b"x")
        message = consumer.receive(60_000)
        for each in (producer, consumer, message):
            with pytest.raises(TypeError):
                copy.copy(each)
        assert message.data() == b"x"
        producer.send(b"y")
