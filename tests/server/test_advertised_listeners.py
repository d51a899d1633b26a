"""Where clients are led to that ask by the name of a listener, over both protocols."""

from __future__ import annotations

import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from peer import Peer
from served import Served

import pulsarx
from pulsarx import errors
from pulsarx.access.advertised_listeners import listeners_of
from pulsarx.rest import serve_http
from pulsarx.sessions.server import Server
from pulsarx.testing import inspect

BOTH = {"outside": ["pulsar://there:1", "pulsar+ssl://there:2"], "inside": "pulsar://[::1]:3"}


class Relay:
    """Another way to a port, as a router has: it carries bytes, and counts connections."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.target = 0
        self.connections = 0
        self._sockets = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):  # it is closed
            while True:
                near, _ = self._listener.accept()
                self.connections += 1
                far = socket.create_connection(("127.0.0.1", self.target))
                self._sockets += [near, far]
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        with suppress(OSError):
            while data := near.recv(1 << 16):
                far.sendall(data)
            far.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@pytest.fixture
def relay() -> Iterator[Relay]:
    made = Relay()
    yield made
    made.close()


def test_an_official_client_is_led_to_the_listener_of_its_name(
    relay: Relay, open_served: Callable[..., Served]
) -> None:
    pulsar: Any = pytest.importorskip("pulsar")
    listeners = {"outside": f"pulsar://127.0.0.1:{relay.port}"}
    served = open_served(service={"advertised_listeners": listeners})
    relay.target = served.service.port
    quiet = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    for name, led_there in ((None, False), ("outside", True)):
        client = pulsar.Client(served.service.service_url, listener_name=name, logger=quiet)
        consumer = client.subscribe("t", f"s-{name}")
        client.create_producer("t").send(b"x")
        assert consumer.receive(60_000).data() == b"x"
        assert bool(relay.connections) == led_there
        # It comes again by the same way when its consumer is closed.
        served.client.admin.topics.unload("t")
        client.create_producer("t").send(b"y")
        assert consumer.receive(60_000).data() == b"y"
        client.close()


@pytest.fixture
def server() -> Iterator[Server]:
    client = pulsarx.Client("memory:", durability="os")
    made = Server(inspect(client).broker, listeners=listeners_of(BOTH))
    yield made
    made.close()
    client.shutdown()


def test_a_lookup_answers_by_the_name(server: Server) -> None:
    peer = Peer(server, service_url="pulsar://here:1", service_url_tls="pulsar+ssl://here:2")
    peer.connect()
    for listener, urls in (
        (None, ("pulsar://here:1", "pulsar+ssl://here:2")),
        ("", ("pulsar://here:1", "pulsar+ssl://here:2")),
        ("outside", ("pulsar://there:1", "pulsar+ssl://there:2")),
        ("inside", ("pulsar://[::1]:3", None)),
    ):
        given = {} if listener is None else {"listener": listener}
        ((_, told, _),) = peer.say("LOOKUP", topic="t", request_id=1, **given)
        assert told["response"] == 1
        assert (told["service_url"], told["service_url_tls"]) == urls
    # As Pulsar 4.2: names differ by case, and one that is not there may come.
    ((_, told, _),) = peer.say("LOOKUP", topic="t", request_id=1, listener="Outside")
    assert (told["response"], told["error"]) == (2, 6)
    assert told["message"] == "the broker do not have Outside listener"


def test_a_closed_consumer_is_not_told_where_another_listener_is(server: Server) -> None:
    both = [Peer(server, service_url="pulsar://here:1") for _ in range(2)]
    for each in both:
        each.connect()
        each.subscribe()
    both[0].say("SEEK", consumer_id=0, request_id=6, publish_time=1)
    both[1].session.deliver()
    (closed,) = both[1].told
    assert (closed[0], closed[1]["service_url"]) == ("CLOSE_CONSUMER", None)


def asked(url: str, name: str, by_header: bool) -> tuple[int, Any]:
    place = f"{url}/lookup/v2/topic/persistent/public/default/t"
    headers = {"X-Pulsar-ListenerName": name} if by_header else {}
    query = "" if by_header else f"?listenerName={name}"
    request = urllib.request.Request(place + query, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


@pytest.mark.parametrize("by_header", [False, True])
def test_a_lookup_over_http_answers_by_the_name(by_header: bool) -> None:
    with (
        pulsarx.Client("memory:", durability="os") as client,
        serve_http(client, port=0, broker_port=7, advertised_listeners=BOTH) as http,
    ):
        status, found = asked(http.url, "outside", by_header)
        assert status == 200
        assert (found["brokerUrl"], found["nativeUrl"]) == ("pulsar://there:1",) * 2
        assert (found["brokerUrlTls"], found["brokerUrlSsl"]) == ("pulsar+ssl://there:2",) * 2
        status, found = asked(http.url, "inside", by_header)
        assert (found["brokerUrl"], found["brokerUrlTls"]) == ("pulsar://[::1]:3", "")
        assert asked(http.url, "", by_header)[1]["brokerUrl"] == "pulsar://127.0.0.1:7"
        # As Pulsar 4.2, but for the stack of its threads.
        status, found = asked(http.url, "other", by_header)
        assert (status, found["reason"]) == (500, "the broker do not have other listener")


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"": "pulsar://a:1"}, "the name ''"),
        ({" a": "pulsar://a:1"}, "the name ' a'"),
        ({"a": []}, "a has no URL"),
        ({"a": "there:1"}, "pulsar://host:port"),
        ({"a": "http://there:1"}, "pulsar://host:port or pulsar+ssl://host:port"),
        ({"a": "pulsar://there"}, "pulsar://host:port"),
        ({"a": "pulsar://there:0"}, "pulsar://host:port"),
        ({"a": "pulsar://there:70000"}, "pulsar://host:port"),
        ({"a": "pulsar://there:1/"}, "pulsar://host:port"),
        ({"a": "pulsar://me@there:1"}, "pulsar://host:port"),
        ({"a": "pulsar://one:1,two:2"}, "pulsar://host:port"),
        ({"a": "pulsar://th ere:1"}, "pulsar://host:port"),
        ({"a": "pulsar://[::x]:1"}, "pulsar://host:port"),
        ({"a": [7]}, "7; a: give pulsar://host:port"),
        ({"a": ["pulsar://a:1", "pulsar://a:2"]}, "a has pulsar://a:1 and pulsar://a:2"),
        ({"a": "pulsar://x:1", "b": "pulsar+ssl://x:1"}, "x:1 is that of a and of b"),
    ],
)
def test_what_can_lead_nowhere_is_refused(given: Any, complaint: str) -> None:
    with (
        pulsarx.Client("memory:", durability="os") as client,
        pytest.raises(pulsarx.InvalidConfiguration) as raised,
    ):
        serve_http(client, port=0, advertised_listeners=given)
    assert complaint in errors.detail_of(raised.value)
