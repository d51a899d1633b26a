from collections.abc import Callable
from typing import Any

from pulsarx._pycore.ground.clock_core import ClockCore
from pulsarx._pycore.ground.rate_limit import PublishMeter, RateLimit
from pulsarx._pycore.ledger.open_transactions import TransactionCore
from pulsarx._pycore.publish.entry_answers import EntryAnswer, EntryAnswers
from pulsarx._pycore.publish.entry_publisher import EntryPublisher
from pulsarx._pycore.publish.producer_sequences import ProducerSequences
from pulsarx.errors import PulsarException

class EntryIntake(EntryAnswers):
    """Publishes the entries of one producer at the other end of a connection. Any thread."""

    publisher: EntryPublisher
    is_open: bool  # what comes is published, and answered
    is_gated: bool  # what comes is for the subclass: something waits

    def __init__(
        self,
        publisher: EntryPublisher,
        decompress: Callable[[int, bytes, int, int], bytes],
        compress: Callable[[int, bytes], bytes],
        entry_size_max: int,
        decompressed_size_max: int,
        before_chunks: Callable[[], object] | None = None,
        clock: ClockCore | None = None,
    ) -> None: ...
    def went_on_from(self, sequence_id: int) -> None: ...
    def last_sequence_id(self) -> int: ...
    def chunked_message_rate(self) -> float: ...
    def publish(
        self,
        entry: bytes,
        callback: Callable[[Any, Any], object] | EntryAnswer,
        transaction: TransactionCore | None = None,
    ) -> None:
        """Publish one entry as it is; see the pyx."""

    def leave(self, transaction: Any, committed: bool) -> None: ...
    def settle(self) -> None: ...
    def flush(self) -> None: ...
    def shut(self) -> None:
        """Like flush; what comes from now on is not published, and not answered."""

    def deduplicate(
        self,
        sequences: ProducerSequences | None,
        catch_up: Callable[[], object] | None = None,
    ) -> None: ...
    def fence(self, reason: str, kind: type[PulsarException] = ...) -> None:
        """Publish nothing from now on."""

    def limit_rate(self, limit: RateLimit | None, meter: PublishMeter | None) -> None: ...
    def waits_until(self) -> int: ...
    def limit_delay(self, delay_max_ms: int) -> None: ...
    def abandon(self) -> None: ...
