from collections.abc import Callable

from pulsarx._pycore.message.message_id import MessageId
from pulsarx._pycore.wire.command_output import CommandOutput

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

class EntryAnswers:
    """The answers to the entries of one producer."""

    def __init__(
        self,
        in_flight: EntriesInFlight,
        producer_id: int,
        output: CommandOutput,
        otherwise: Callable[[int, Exception | None, MessageId | None, list[int] | None], object],
    ) -> None:
        """otherwise(sequence id, error, message id, kept): tells what is no plain receipt. Both are
        used by any thread, with the publisher's mutex held."""

    def begin(self, sequence_id: int, size: int) -> EntryAnswer:
        """The answer to an entry that has come, which is in flight until it is told."""

    def leave(self) -> None:
        """Give up the entries that are not answered: they may never be."""

class EntryAnswer:
    """The answer to one entry."""

    def tell(self, error: Exception | None, message_id: MessageId | None) -> None:
        """error: None where it is stored."""
