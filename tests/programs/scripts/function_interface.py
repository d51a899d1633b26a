"""A function of Pulsar Functions, called by hand as a unit test would."""

import os

import pulsar
from pulsar import Context, Function, IdentitySerDe, PickleSerDe, SerDe


class Exclamation(Function):
    def process(self, input, context):
        context.incr_counter(input, 1)
        return f"{input}{context.get_user_config_value('mark')}"


class Reversed(SerDe):
    def serialize(self, input):
        return input[::-1].encode()

    def deserialize(self, input_bytes):
        return input_bytes.decode()[::-1]


class Pretended(Context):
    def __init__(self):
        self.counters = {}

    def incr_counter(self, key, amount):
        self.counters[key] = self.counters.get(key, 0) + amount

    def get_user_config_value(self, key):
        return {"mark": "!"}.get(key)


client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
inputs = client.subscribe("words", "exclaim")
outputs = client.subscribe("exclaimed", "check")
producer = client.create_producer("words")
result = client.create_producer("exclaimed")
function, context, serde = Exclamation(), Pretended(), IdentitySerDe()
for word in ("pulsar", "rocks", "pulsar"):
    producer.send(serde.serialize(word))
    message = inputs.receive(timeout_millis=10000)
    result.send(serde.serialize(function.process(serde.deserialize(message.data()), context)))
    inputs.acknowledge(message)
    print(outputs.receive(timeout_millis=10000).data().decode())
print(sorted(context.counters.items()))
print(context.get_secret("x"), isinstance(context, Context), issubclass(Reversed, SerDe))
for value in (7, 2.5, 1 + 2j, "text", b"bytes"):
    print(serde.serialize(value), repr(serde.deserialize(serde.serialize(value))))
print(Reversed().serialize("abc"), Reversed().deserialize(b"cba"))
print(PickleSerDe().deserialize(PickleSerDe().serialize({"a": [1, None]})))
try:
    serde.serialize([1])
except TypeError as error:
    print("TypeError:", error)
client.close()
