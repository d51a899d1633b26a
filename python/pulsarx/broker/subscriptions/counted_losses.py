"""Counts what subscriptions lose, for the metrics of their folder. Made by Subscription."""

from __future__ import annotations

from pulsarx._pycore.dispatch.subscription_core import LossLog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.runtime import BrokerRuntime


class CountedLosses(LossLog):  # type: ignore[misc]  # compiled, without a stub
    """The LossLog of a subscription. It has its job run once for each loss."""

    __slots__ = ("runtime",)
    runtime: BrokerRuntime

    def run(self) -> None:
        self.runtime.note_damage()
        super().run()
