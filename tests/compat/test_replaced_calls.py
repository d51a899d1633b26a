"""Programs that replace methods of the official client's classes, and reach into its objects."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Program = Callable[[str], list[str]]

pytestmark = pytest.mark.standard

INSTALL = "import pulsarx; pulsarx.install_as_pulsar(root='memory:')\nimport pulsar\n"
OPEN = "client = pulsar.Client('pulsar://localhost')\n"


def test_a_tracing_library_sees_what_is_sent_and_received(program: Program):
    """Nothing happened: the methods of the core stood in front of those that were replaced."""
    told = program(
        INSTALL
        + """
send, send_async = pulsar.Producer.send, pulsar.Producer.send_async
receive, acknowledge = pulsar.Consumer.receive, pulsar.Consumer.acknowledge
read_next = pulsar.Reader.read_next

def traced_send(producer, content, properties=None, **named):
    print("send", producer._producer.topic())
    return send(producer, content, properties={"span": "1"}, **named)

def traced_send_async(producer, content, callback, **named):
    print("send_async")
    send_async(producer, content, callback, **named)

def traced_receive(consumer, timeout_millis=None):
    message = receive(consumer, timeout_millis=timeout_millis)
    print("receive", message.properties(), consumer._consumer.topic())
    return message

def traced_acknowledge(consumer, message):
    print("acknowledge")
    acknowledge(consumer, message)

def traced_read_next(reader, timeout_millis=None):
    print("read_next")
    return read_next(reader, timeout_millis)

pulsar.Producer.send, pulsar.Producer.send_async = traced_send, traced_send_async
pulsar.Consumer.receive, pulsar.Consumer.acknowledge = traced_receive, traced_acknowledge
pulsar.Reader.read_next = traced_read_next
client = pulsar.Client("pulsar://localhost")
consumer = client.subscribe("t", "s")
producer = client.create_producer("t")
producer.send(b"one")
consumer.acknowledge(consumer.receive(60_000))
producer.send_async(b"two", None)
producer.flush()
reader = client.create_reader("t", pulsar.MessageId.earliest)
print(reader.read_next().data(), isinstance(producer, pulsar.Producer), producer)
client.close()
"""
    )
    topic = "persistent://public/default/t"
    assert told == [
        f"send {topic}",
        f"receive {{'span': '1'}} {topic}",
        "acknowledge",
        "send_async",
        "read_next",
        f"b'one' True Producer(topic='{topic}', name='standalone-1-0', open=True)",
    ]


@pytest.mark.parametrize("topic", ["'t'", "['t', 'u']", "'parted'"])
def test_every_kind_of_consumer_and_producer_has_what_was_replaced(program: Program, topic: str):
    told = program(
        INSTALL
        + OPEN
        + f"""
client.admin.topics.create_partitioned_topic("parted", 2)
receive, send = pulsar.Consumer.receive, pulsar.Producer.send
class Nothing(pulsarx.ConsumerInterceptor): pass
for interceptors in (None, [Nothing()]):
    pulsar.Consumer.receive = lambda *a: print("received") or receive(*a)
    pulsar.Producer.send = lambda *a: print("sent") or send(*a)
    consumer = client.subscribe({topic}, "s", interceptors=interceptors)
    client.create_producer("parted" if {topic} == "parted" else "t").send(b"one")
    print(consumer.receive(60_000).data())
    pulsar.Consumer.receive, pulsar.Producer.send = receive, send
    consumer.close()
"""
    )
    assert told == ["sent", "received", "b'one'"] * 2


def test_what_is_put_back_is_used_again(program: Program):
    told = program(
        INSTALL
        + OPEN
        + """
from unittest import mock
with mock.patch.object(pulsar.Producer, "send", return_value="sent"):
    print(client.create_producer("t").send(b"one"))
print(client.create_producer("t").send(b"one").entry_id())
"""
    )
    assert told == ["sent", "0"]


def test_a_listener_and_its_refusal_of_receive_stay(program: Program):
    told = program(
        INSTALL
        + OPEN
        + """
receive, read_next = pulsar.Consumer.receive, pulsar.Reader.read_next
pulsar.Consumer.receive = lambda *a: receive(*a)
pulsar.Reader.read_next = lambda *a: read_next(*a)
for call in (
    client.subscribe("t", "s", message_listener=print).receive,
    client.create_reader("t", pulsar.MessageId.latest, reader_listener=print).read_next,
):
    try:
        call(0)
    except pulsar.InvalidConfiguration as error:
        print(error)
"""
    )
    assert told == ["Pulsar error: InvalidConfiguration"] * 2


def test_what_a_replaced_call_asks_of_the_native_consumer_is_not_replaced(program: Program):
    told = program(
        INSTALL
        + OPEN
        + """
pulsar.Consumer.receive = lambda consumer, ms=None: consumer._consumer.receive(ms)
consumer = client.subscribe("t", "s")
client.create_producer("t").send(b"one")
print(consumer.receive(60_000).data())
"""
    )
    assert told == ["b'one'"]


def test_a_test_double_of_a_program_is_refused_what_it_does_not_have(program: Program):
    told = program(
        INSTALL
        + """
class Double(pulsar.Consumer):
    def receive(self, timeout_millis=None):
        return super().receive(timeout_millis)
try:
    Double().receive()
except NotImplementedError:
    print("refused")
"""
    )
    assert told == ["refused"]


def test_what_members_are_made_of_can_be_reached(program: Program):
    told = program(
        INSTALL
        + OPEN
        + """
consumer, producer = client.subscribe("t", "s"), client.create_producer("t")
reader = client.create_reader("t", pulsar.MessageId.earliest)
print(consumer._client is client, reader._client is client, client._consumers == [consumer, reader])
producer._producer.send(pulsar._pulsar.MessageBuilder().content(b"one").build())
print(reader._reader.read_next(60_000).data(), type(producer._schema).__name__)
print(client._client.get_topic_partitions("t"), producer._client.get_topic_partitions("t"))
consumer._consumer.unsubscribe()
consumer._client.close()
"""
    )
    topic = "['persistent://public/default/t']"
    assert told == ["True True True", "b'one' BytesSchema", f"{topic} {topic}"]


def test_an_object_that_took_over_the_attributes_of_another_is_that_one(program: Program):
    """As libraries do that add coroutines. Its calls raised NotImplementedError without a word."""
    told = program(
        INSTALL
        + OPEN
        + """
def taken_over(kind, member):
    mine = type("Mine", (kind,), {}).__new__(type("Mine", (kind,), {}))
    mine.__dict__.update(member.__dict__)
    return mine

first = client.create_producer("t")
producer = taken_over(pulsar.Producer, first)
consumer = taken_over(pulsar.Consumer, client.subscribe("t", "s"))
several = taken_over(pulsar.Consumer, client.subscribe(["u", "v"], "s"))
reader = taken_over(pulsar.Reader, client.create_reader("t", pulsar.MessageId.earliest))
producer.send(b"one")
message = consumer.receive(60_000)
consumer.acknowledge(message)
print(message.data(), reader.read_next(60_000).data(), producer.topic() == consumer.topic())
print(several.topic(), consumer.is_connected(), reader.is_connected())
for member in (producer, consumer, several, reader):
    member.close()
try:
    consumer.receive(0)
except pulsar.AlreadyClosed as error:
    print(error)
print(client._consumers, client.create_producer("t", "p").send(b"two") is None)
client.subscribe("t", "s").close()
"""
    )
    assert told == [
        "b'one' b'one' True",
        "persistent://public/default/u,persistent://public/default/v True True",
        "Pulsar error: AlreadyClosed",
        "[] False",
    ]


def test_an_object_whose_original_is_gone_says_what_to_keep(program: Program):
    told = program(
        INSTALL
        + OPEN
        + """
class Mine(pulsar.Producer):
    pass

mine = Mine.__new__(Mine)
original = client.create_producer("t")
mine.__dict__.update(original.__dict__)
original.close()
del original
try:
    mine.send(b"x")
except TypeError as error:
    print(error)
"""
    )
    (line,) = told
    assert line.startswith("an object of Mine cannot be used") and "keep what the client" in line


def test_ids_and_messages_have_the_native_ones(program: Program):
    told = program(
        INSTALL
        + OPEN
        + """
consumer = client.subscribe("t", "s", start_message_id_inclusive=True)
first = client.create_producer("t").send(b"one")
message = consumer.receive(60_000)
consumer.acknowledge(message._message)
place = (first.partition(), first.ledger_id(), first.entry_id(), first.batch_index())
consumer.seek(pulsar.MessageId(*place)._msg_id)
print(message._message.data(), consumer.receive(60_000).data())
"""
    )
    assert told == ["b'one' b'one'"]
