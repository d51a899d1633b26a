"""Credentials are checked where they are made; a broker without authentication ignores them."""

import os

import pulsar

URL = os.environ.get("PULSAR_URL", "pulsar://localhost:6650")


def attempt(what, call):
    try:
        print(f"{what}: {type(call()).__name__}")
    except Exception as error:
        print(f"{what}: {type(error).__name__}: {error}")


attempt("token", lambda: pulsar.AuthenticationToken("abc"))
attempt("token of a function", lambda: pulsar.AuthenticationToken(lambda: "abc"))
attempt("token of a number", lambda: pulsar.AuthenticationToken(7))
attempt("tls", lambda: pulsar.AuthenticationTLS("cert.pem", "key.pem"))
attempt("basic", lambda: pulsar.AuthenticationBasic("ada", "secret"))
attempt("basic of nothing", lambda: pulsar.AuthenticationBasic())
attempt("not credentials", lambda: pulsar.Client(URL, authentication="abc"))
client = pulsar.Client(URL, authentication=pulsar.AuthenticationToken("abc"))
consumer = client.subscribe("gate", "guard")
client.create_producer("gate").send(b"passed")
print(consumer.receive(timeout_millis=10000).data())
client.close()
