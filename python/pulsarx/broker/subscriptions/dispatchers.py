"""Makes the dispatcher of a subscription, by the type its consumers ask for."""

from __future__ import annotations

from pulsarx._pycore.dispatch.compacted_dispatcher import CompactedDispatcher
from pulsarx._pycore.dispatch.hash_range_selector import HashRangeSelector
from pulsarx._pycore.dispatch.key_shared_dispatcher import KeySharedDispatcher
from pulsarx._pycore.dispatch.shared_dispatcher import SharedDispatcher
from pulsarx._pycore.dispatch.single_active_dispatcher import SingleActiveDispatcher
from pulsarx.broker.subscriptions.subscribe_request import DispatchLimits
from pulsarx.enumerations import ConsumerType, KeySharedMode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx._pycore.dispatch.entry_sink import Dispatcher
    from pulsarx._pycore.dispatch.subscription_core import SubscriptionCore
    from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.subscriptions.subscribe_request import SubscribeRequest
    from pulsarx.topic_name import TopicName

HASH_RANGE, CONSISTENT_HASHING, STICKY = 1, 2, 3  # SelectorKind of the core
SINGLE_ACTIVE = ("Exclusive", "Failover")
SELECTOR_NAMES = {
    HASH_RANGE: "auto-split hash range",
    CONSISTENT_HASHING: "consistent hashing",
    STICKY: "sticky ranges",
}


def selector_kind(request: SubscribeRequest, consistent_hashing: bool) -> int:
    policy = request.key_shared
    if policy is not None and policy.get_key_shared_mode() == KeySharedMode.Sticky:
        return STICKY
    return CONSISTENT_HASHING if consistent_hashing else HASH_RANGE


def dispatch_kind(request: SubscribeRequest, consistent_hashing: bool) -> tuple[Any, ...]:
    """The kind of dispatch, on which all consumers of a subscription must agree."""
    if request.type != ConsumerType.KeyShared:
        return (request.type_name, "compacted") if request.read_compacted else (request.type_name,)
    policy = request.key_shared
    out_of_order = policy is not None and policy.is_allow_out_of_order_delivery()
    return (request.type_name, selector_kind(request, consistent_hashing), out_of_order)


def make_dispatcher(
    core: SubscriptionCore,
    ledgers: ManagedLedger,
    name: TopicName,
    runtime: BrokerRuntime,
    kind: tuple[Any, ...],
    partition_index: int,
) -> Dispatcher:
    """name: of the topic. kind: of dispatch_kind."""
    topic = name.full
    limit, tail = runtime.decompressed_size_max, ledgers.tail
    if kind[0] in SINGLE_ACTIVE:
        exclusive = kind[0] == "Exclusive"
        if len(kind) == 2:
            return CompactedDispatcher(
                core, tail, topic, limit, exclusive, partition_index, ledgers
            )
        return SingleActiveDispatcher(core, tail, topic, limit, exclusive, partition_index)
    limits = DispatchLimits(runtime.options, runtime.policies.of_topic(name).messages)
    if kind[0] == "Shared":
        return SharedDispatcher(core, tail, topic, limit, limits)
    _, selector, out_of_order = kind
    return KeySharedDispatcher(
        core, tail, topic, limit, limits, HashRangeSelector(selector), not out_of_order,
        runtime.options.key_shared_spread_keyless,
    )  # fmt: skip
