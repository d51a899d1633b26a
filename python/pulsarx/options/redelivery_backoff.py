"""Backoffs: a message waits longer before each redelivery. User code makes them."""

from __future__ import annotations

from pulsarx.errors import shown
from pulsarx.options.argument_check import INT64_MAX, native_integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from pulsarx.options.members import RedeliveryBackoff


DELAY_MS_MAX = 1 << 56  # two million years: the sum with the time of day stays in bounds


class BoundedBackoff:
    """A backoff of the user's as the core calls it: whatever that does, it answers a delay."""

    __slots__ = ("_backoff", "_instead_ms")

    def __init__(self, backoff: RedeliveryBackoff, instead_ms: int) -> None:
        """instead_ms: the delay when the backoff fails."""
        self._backoff = backoff
        self._instead_ms = instead_ms

    def next(self, redelivery_count: int) -> int:
        """Return the next delay, from 0 to DELAY_MS_MAX. An exception and what is no int are
        logged."""
        try:
            delay_ms = self._backoff.next(redelivery_count)
            if isinstance(delay_ms, int):
                return max(0, min(delay_ms, DELAY_MS_MAX))
            raise TypeError(f"a redelivery backoff answered {shown(delay_ms)}; it must answer int")
        except Exception:
            import logging

            logging.getLogger("pulsarx").exception(
                "%r failed; the message waits %d ms", self._backoff, self._instead_ms
            )
            return self._instead_ms


class MultiplierRedeliveryBackoff:
    """The delay is multiplied with each redelivery, up to a bound. Immutable; a value.

    subscribe(nack_backoff=..., ack_timeout_backoff=...)
    """

    __slots__ = ("max_delay_ms", "min_delay_ms", "multiplier")

    min_delay_ms: int
    max_delay_ms: int
    multiplier: float

    def __init__(
        self, min_delay_ms: int = 10_000, max_delay_ms: int = 600_000, multiplier: float = 2
    ) -> None:
        """Say how long a message waits before it comes again.

        Args:
            min_delay_ms: Milliseconds before the first redelivery, 0 and more.
            max_delay_ms: Milliseconds at most.
            multiplier: How much longer each delay is; 1 and more.

        Raises:
            TypeError: An argument is no number.
            ValueError: One is out of these bounds, or max_delay_ms below min_delay_ms.
        """
        for name, value in (("min_delay_ms", min_delay_ms), ("max_delay_ms", max_delay_ms)):
            native_integer(value, name, -INT64_MAX - 1, INT64_MAX)
            if value < 0:
                raise ValueError(f"{name} must be 0 or more, not {shown(value)}")
        if max_delay_ms < min_delay_ms:
            raise ValueError(f"max_delay_ms {max_delay_ms} is below min_delay_ms {min_delay_ms}")
        if not isinstance(multiplier, (int, float)):
            raise TypeError(f"multiplier must be int or float, not {type(multiplier).__name__}")
        if not 1 <= multiplier <= INT64_MAX:  # neither is nan
            raise ValueError(f"multiplier must be a number from 1 up, not {shown(multiplier)}")
        put = object.__setattr__
        put(self, "min_delay_ms", int(min_delay_ms))
        put(self, "max_delay_ms", int(max_delay_ms))
        put(self, "multiplier", multiplier)

    def next(self, redelivery_count: int) -> int:
        """Return the milliseconds to wait when a message is asked for again. As in Pulsar's Java
        client.

        Args:
            redelivery_count: How often it was redelivered, as `Message.redelivery_count()` says it.

        Raises:
            TypeError: redelivery_count is no int.
        """
        native_integer(redelivery_count, "redelivery_count", -INT64_MAX - 1, INT64_MAX)
        if redelivery_count <= 0:
            return self.min_delay_ms
        try:
            grown = self.min_delay_ms * float(self.multiplier) ** redelivery_count
        except OverflowError:
            return self.max_delay_ms if self.min_delay_ms else 0
        return int(min(grown, self.max_delay_ms))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a MultiplierRedeliveryBackoff does not change: {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a MultiplierRedeliveryBackoff does not change: {name}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MultiplierRedeliveryBackoff):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __reduce__(self) -> tuple[object, tuple[int, int, float]]:
        return MultiplierRedeliveryBackoff, self._values()

    def __repr__(self) -> str:
        return (
            f"MultiplierRedeliveryBackoff(min_delay_ms={self.min_delay_ms}, "
            f"max_delay_ms={self.max_delay_ms}, multiplier={self.multiplier})"
        )

    def _values(self) -> tuple[int, int, float]:
        return self.min_delay_ms, self.max_delay_ms, self.multiplier
