from pulsarx._pycore.ground.clock_core import ClockCore

class PublishMeter:
    """Counts what is published on a topic, for limits that are relative to it."""

    def __init__(self, clock: ClockCore) -> None: ...

class RateLimit:
    """A limit of messages and bytes a period. Any thread may call."""

    def __init__(self, clock: ClockCore) -> None: ...
    message_limit: int
    byte_limit: int
    period_ms: int
    limited_times: int
    def limit(
        self, messages: int, size: int, period_ms: int, meter: PublishMeter | None = None
    ) -> None: ...
