from collections.abc import Callable

from pulsarx._pycore.message.message_id import MessageId
from pulsarx._pycore.wire.command_output import CommandOutput
from pulsarx._pycore.wire.command_takers import SendTaker

class EntriesInFlight:
    """Bytes of entries of one connection that are not answered. Any thread."""

    size: int
    size_max: int
    def __init__(self, size_max: int, wake: Callable[[], object]) -> None:
        """wake: called when the connection may be read again; in any thread, and with mutexes
        held."""

    @property
    def is_full(self) -> bool:
        """Whether so much is in flight that nothing more should be read."""

class EntryAnswers(SendTaker):
    """The base of a producer at the other end of a connection: the answers to its entries."""

    producer_id: int
    def answer_over(
        self, in_flight: EntriesInFlight, producer_id: int, output: CommandOutput
    ) -> None:
        """Answer over this connection, as this producer."""

    def begin_answer(self, sequence_id: int, size: int) -> EntryAnswer:
        """The answer to an entry that has come, which is in flight until it is told."""

    def give_up_answers(self) -> None:
        """Give up the entries that are not answered: they may never be."""

class EntryAnswer:
    """The answer to one entry."""

    def tell(self, error: Exception | None, message_id: MessageId | None) -> None:
        """error: None where it is stored."""
