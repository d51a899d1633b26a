"""iceoryx2, which stores nothing: a copy in shared memory and, to wait for it, an event. The floor
of a hand-over between processes."""

from __future__ import annotations

import ctypes
from pathlib import Path

import iceoryx2 as iox2
from peers.peer import Talker

SIZE = 1024


class Talk(Talker):
    name = "iceoryx2 with events, nothing stored"
    between = ("processes",)
    bound = True

    def __init__(self, address: str, speaks_first: bool) -> None:
        iox2.set_log_level(iox2.LogLevel.Error)
        self.node = iox2.NodeBuilder.new().create(iox2.ServiceType.Ipc)
        sends, hears = ("there", "back") if speaks_first else ("back", "there")
        there, back = self._service(address, sends), self._service(address, hears)
        self.publisher = there.publisher_builder().initial_max_slice_len(SIZE).create()
        self.subscriber = back.subscriber_builder().create()
        self.notifier = self._event(address, sends).notifier_builder().create()
        self.listener = self._event(address, hears).listener_builder().create()

    def _builder(self, address: str, way: str) -> iox2.ServiceBuilder:
        return self.node.service_builder(iox2.ServiceName.new(f"{Path(address).name}/{way}"))

    def _service(self, address: str, way: str) -> iox2.PortFactoryPublishSubscribe:
        service = self._builder(address, way).publish_subscribe(iox2.Slice[ctypes.c_uint8])
        return service.open_or_create()

    def _event(self, address: str, way: str) -> iox2.PortFactoryEvent:
        return self._builder(address, way + "/event").event().open_or_create()

    def send(self, payload: bytes) -> None:
        sample = self.publisher.loan_slice_uninit(len(payload))
        ctypes.memmove(sample.payload_ptr, payload, len(payload))
        sample.assume_init().send()
        self.notify()

    def receive(self) -> bytes:
        while True:
            sample = self.subscriber.receive()
            if sample is not None:
                payload = sample.payload()
                found = ctypes.string_at(sample.payload_ptr, payload.len())
                sample.delete()
                return found
            self.wait()

    def notify(self) -> None:
        self.notifier.notify()

    def wait(self) -> None:
        self.listener.blocking_wait()


class Polling(Talk):
    name = "iceoryx2 polled, nothing stored"

    def notify(self) -> None:
        pass

    def wait(self) -> None:
        pass
