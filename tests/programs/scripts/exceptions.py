"""Programs compare the text of errors."""

import os
import re

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))


def attempt(what, call):
    try:
        call()
        print(f"{what}: no error")
    except Exception as error:
        kind = type(error)
        print(f"{what}: {kind.__name__}: {error} ({kind.__mro__[1].__name__})")


consumer = client.subscribe("errors", "first")
producer = client.create_producer("errors", producer_name="only")
attempt("topic name", lambda: client.create_producer("one/two"))
attempt("empty topic", lambda: client.subscribe("", "s"))
attempt("scheme", lambda: client.create_producer("http://public/default/x"))
attempt("tenant", lambda: client.create_producer("persistent://nobody/here/x"))
attempt("timeout", lambda: consumer.receive(timeout_millis=10))
attempt("second consumer", lambda: client.subscribe("errors", "first"))
attempt("second producer", lambda: client.create_producer("errors", producer_name="only"))
attempt("topic type", lambda: client.subscribe(7, "s"))
attempt("subscription type", lambda: client.subscribe("errors", 7))
attempt("consumer type", lambda: client.subscribe("errors", "s", consumer_type="Shared"))
attempt("queue size", lambda: client.subscribe("errors", "s", receiver_queue_size="9"))
attempt("content", lambda: producer.send("text"))
attempt("key", lambda: producer.send(b"x", partition_key=7))
attempt("timeout type", lambda: consumer.receive(timeout_millis="10"))
attempt("pattern", lambda: client.subscribe(re.compile("nothing://.*"), "s"))
attempt("start", lambda: client.create_reader("errors", "earliest"))
attempt("unsubscribe", consumer.unsubscribe)
attempt("receive then", lambda: consumer.receive(timeout_millis=10))
producer.close()
attempt("send then", lambda: producer.send(b"x"))
attempt("service url", lambda: pulsar.Client(7))
print(issubclass(pulsar.Timeout, pulsar.PulsarException), issubclass(pulsar.Timeout, TimeoutError))
client.close()
