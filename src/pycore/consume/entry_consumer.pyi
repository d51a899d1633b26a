from pulsarx._pycore.consume.consumer_core import ConsumerCore
from pulsarx._pycore.consume.consumer_host import ConsumerHost
from pulsarx._pycore.dispatch.connection_sink import ConnectionSink

class EntryConsumer(ConsumerCore):
    def __init__(self, sink: ConnectionSink, host: ConsumerHost) -> None: ...
    def flow(self, permits: int) -> None: ...
    def take_entry(
        self,
    ) -> list[tuple[int, int, bytes, int, list[int] | None, int, int]] | None: ...
