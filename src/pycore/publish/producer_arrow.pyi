from collections.abc import Callable, Sequence
from typing import Any

from pulsarx._pycore.message.message_id import MessageId
from pulsarx._pycore.publish.producer_core import ProducerCore

def send_rows_of(
    producer: ProducerCore,
    data: Any,
    value: str,
    key: str | None,
    properties: str | None,
    event_time: str | None,
) -> MessageId | None: ...
def send_arrow_routed(
    producers: Sequence[ProducerCore],
    choose: Callable[[str | None], int],
    run_rows: int,
    data: Any,
    value: str,
    key: str | None,
    properties: str | None,
    event_time: str | None,
) -> MessageId | None: ...
