"""A client that stands where `pulsarx.Client` does in the tests of the API: its broker is in this
process, and everything it asks for goes there as bytes."""

from __future__ import annotations

from typing import Any

from client_connection import ClientConnection
from pipe import Pipe
from remote_client import RemoteClient

from pulsarx.client import Client
from pulsarx.clock import ManualClock
from pulsarx.sessions.server import Server
from pulsarx.testing import inspect


class BorderClient(RemoteClient):
    """Opens the broker as a Client would, with the same arguments, and a connection to it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        inner = Client(*arguments, **options)
        broker = inspect(inner).broker
        server = Server(broker)

        def connect(given: Any) -> ClientConnection:
            pipe = Pipe(server, given.operation_timeout_seconds)
            if isinstance(given.clock, ManualClock):
                given.clock.settles(pipe)
                given.clock.settles(server.completions.jobs)
            self._pipe = pipe  # which the clock refers to weakly
            return pipe.connection

        self._inner, self._server = inner, server
        try:
            super().__init__(*arguments, connect=connect, **options)
        except BaseException:
            inner.shutdown()
            raise
        self._connect = _connected
        self._broker = broker  # for `inspect`

    def _subscribe(self, options: Any) -> Any:
        consumer: Any = super()._subscribe(options)
        consumer.dispatcher = Behind(self, consumer)
        return consumer

    def _take_leave(self) -> None:
        try:
            super()._take_leave()
        finally:
            self._server.close()
            self._inner.shutdown()


class Behind:
    """What tests check of the dispatcher at the other end."""

    def __init__(self, client: Any, consumer: Any) -> None:
        self._inspection = inspect(client)
        self._topic, self._name = consumer.topic(), consumer.subscription_name()

    def check(self) -> Any:
        topic = self._inspection.topic(self._topic)
        found = [each for each in topic.all_subscriptions() if each.name == self._name]
        return [text for each in found for text in each.dispatcher.check()]


def _connected(_: Any) -> ClientConnection:
    raise AssertionError("a client connects once")
