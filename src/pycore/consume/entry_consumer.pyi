from collections.abc import Callable

from pulsarx._pycore.consume.consumer_core import ConsumerCore
from pulsarx._pycore.consume.consumer_host import ConsumerHost
from pulsarx._pycore.dispatch.connection_sink import ConnectionSink
from pulsarx._pycore.ground.locks import Lock
from pulsarx._pycore.wire.command_output import CommandOutput

class EntryConsumer(ConsumerCore):
    connection: object  # the same of all of one connection; before `watch`
    is_due: bool  # there may be something to send
    has_flowed: bool  # its client wants messages
    wake: Callable[[], object]  # marks it as due
    epoch: int  # of the last redelivery that its client asked for
    partition: int
    keeps_messages: bool
    acknowledging: Lock  # so that nothing is acknowledged behind a move
    is_behind: bool  # what it was sent is of before a move
    def __init__(
        self, sink: ConnectionSink, host: ConsumerHost, partition: int, keeps_messages: bool
    ) -> None:
        """keeps_messages: the topic does; else what is acknowledged or refused is gone anyway."""

    def flow(self, permits: int) -> None: ...
    def due(self) -> None:
        """There may be something to send. In any thread, and with mutexes held."""

    def take_entry(
        self,
    ) -> list[tuple[int, int, bytes, int, list[int] | None, int, int]] | None: ...
    def send_entries(
        self, output: CommandOutput, consumer_id: int
    ) -> list[tuple[int, int, bytes, int, list[int] | None, int, int]] | None:
        """Write a MESSAGE for each entry that there is to send, as far as permits and the output
        have room. None, or the next deliveries that are more than an entry."""

    def take_sent(self, ledger_id: int, entry_id: int) -> tuple[int, int, int] | None:
        """(ledger id, first message, messages) of an entry that was sent, which is forgotten; None:
        it is to be looked up."""

    def awaits_more(self) -> bool: ...
    def stall(self) -> None: ...
