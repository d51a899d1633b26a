from collections.abc import Callable

from pulsarx._pycore.ground.rate_counter import RateCounter
from pulsarx._pycore.message.entry_target import EntryFanOut
from pulsarx._pycore.publish.completion_queue import CompletionQueue
from pulsarx._pycore.publish.entry_publisher import EntryPublisher

class NonPersistentPublisher(EntryPublisher):
    """Publishes on a topic that keeps nothing. Any thread may call."""

    def __init__(
        self,
        fan_out: EntryFanOut,
        completions: CompletionQueue,
        decompress: Callable[[int, bytes, int, int], bytes],
        decompressed_size_max: int,
    ) -> None: ...
    drops: RateCounter
