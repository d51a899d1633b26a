"""The arguments of `Consumer.reconsume_later`, and how they are refused."""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.message.message import Message
from pulsarx.options.argument_check import check_properties

# A century: what is beyond is a unit mixed up, and the sum with the time of day stays in bounds.
DELAY_MS_MAX = 100 * 366 * 86_400_000


def check_reconsume_arguments(message: object, delay_ms: object, properties: object) -> None:
    """TypeError: no Message. ValueError: no delay, or a negative one."""
    if not isinstance(message, Message):
        raise TypeError(
            "reconsume_later takes the received Message, whose content it publishes again, "
            f"not a {type(message).__name__}"
        )
    if not isinstance(delay_ms, int):
        raise ValueError(
            f"delay_ms must be int, not {type(delay_ms).__name__}: {errors.shown(delay_ms)}"
        )
    if delay_ms < 0:
        raise ValueError(f"delay_ms is {errors.shown(delay_ms)}; it must not be negative")
    if delay_ms > DELAY_MS_MAX:
        raise ValueError(
            f"delay_ms is {errors.shown(delay_ms)}; at most {DELAY_MS_MAX}, a hundred years"
        )
    check_properties(properties)


def refuse_reconsuming() -> errors.InvalidConfiguration:
    return errors.InvalidConfiguration(
        detail="reconsume_later needs a consumer that is subscribed to its retry topic as well: "
        "subscribe(..., retry_enable=True)"
    )
