"""What still answers after a close."""

import os

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))


def attempt(what, call):
    try:
        print(f"{what}: {call()}")
    except Exception as error:
        print(f"{what}: {type(error).__name__}: {error}")


consumer = client.subscribe("doors", "keeper")
producer = client.create_producer("doors")
reader = client.create_reader("doors", pulsar.MessageId.earliest)
producer.send(b"open")
print(consumer.is_connected(), producer.is_connected(), reader.is_connected())
message = consumer.receive(timeout_millis=10000)
attempt("producer", producer.close)
attempt("producer again", producer.close)
attempt("send", lambda: producer.send(b"x"))
attempt("flush", producer.flush)
attempt("consumer", consumer.close)
attempt("acknowledge", lambda: consumer.acknowledge(message))
attempt("receive", lambda: consumer.receive(timeout_millis=10))
attempt("reader", reader.close)
attempt("read", lambda: reader.read_next(timeout_millis=10))
print(message.data(), message.topic_name())
attempt("client", client.close)
attempt("client again", client.close)
attempt("subscribe", lambda: client.subscribe("doors", "keeper"))
attempt("create", lambda: client.create_producer("doors"))
