"""Verbs about transactions: which are open, what they hold back, and aborting one."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.verbs.http import Http
from pulsarx.broker.verbs.verb import LOOKUP, SUPERUSER, verb
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.topics.topic import Topic
    from pulsarx.broker.transactions.broker_transaction import BrokerTransaction

    Json = dict[str, Any]

_PATH = "/admin/v3/transactions"
_ONE = "{most}/{least}"


@verb("transactions.get_transactions", needs=SUPERUSER,
    http=Http("GET", _PATH, "Get all open transactions, with their age and what they hold back.",
        answer="OpenTransactions"))  # fmt: skip
def get_transactions(broker: Broker) -> list[Json]:
    return [_open(broker, each) for each in _open_transactions(broker)]


@verb("transactions.get_transaction_metadata", needs=SUPERUSER,
    http=Http("GET", f"{_PATH}/transactionMetadata/{_ONE}", "Get an open transaction.",
        answer="TransactionMetadata"))  # fmt: skip
def get_transaction_metadata(broker: Broker, most: int, least: int) -> Json:
    """TransactionNotFound: it has ended, or never was."""
    return _metadata(_find(broker, most, least))


@verb("transactions.get_slow_transactions", needs=SUPERUSER,
    http=Http("GET", f"{_PATH}/slowTransactions/{{timeout_ms}}",
        "Get the open transactions with a longer timeout than that, in milliseconds.",
        more=("coordinatorId",), answer="SlowTransactions"))  # fmt: skip
def get_slow_transactions(broker: Broker, timeout_ms: int) -> dict[str, Json]:
    """By their timeouts, whatever their age, as in Pulsar."""
    found = _open_transactions(broker)
    return {str(each): _metadata(each) for each in found if each.timeout_ms > timeout_ms}


@verb("transactions.abort_transaction", needs=SUPERUSER,
    http=Http("POST", f"{_PATH}/abortTransaction/{_ONE}",
        "Abort an open transaction."))  # fmt: skip
def abort_transaction(broker: Broker, most: int, least: int) -> None:
    """TransactionNotFound: it has ended, or never was. InvalidTxnStatusError: it is being ended."""
    broker.runtime.transactions.abort(_find(broker, most, least))


@verb("transactions.list_transaction_coordinators", needs=SUPERUSER,
    http=Http("GET", f"{_PATH}/coordinators", "Get the coordinators of transactions: one.",
        answer="Coordinators"))  # fmt: skip
def list_transaction_coordinators(broker: Broker) -> list[Json]:
    return [{"id": broker.runtime.transactions.number}]


@verb("transactions.get_coordinator_stats", needs=SUPERUSER,
    http=Http("GET", f"{_PATH}/coordinatorStats", "Get what the coordinator has given out.",
        more=("coordinatorId",), answer="CoordinatorStats"))  # fmt: skip
def get_coordinator_stats(broker: Broker) -> dict[str, Json]:
    """By the number of the coordinator."""
    coordinator = broker.runtime.transactions
    found = [each.number for each in _open_transactions(broker)]
    stats = {
        "state": "Ready",
        "least_sig_bits": coordinator.next_number - 1,
        "low_water_mark": min(found) - 1 if found else 0,
        "ongoing_txn_size": len(found),
        "created_count": coordinator.created_count,
        "committed_count": coordinator.committed_count,
        "aborted_count": coordinator.aborted_count,
        "timeout_count": coordinator.timeout_count,
    }
    return {str(coordinator.number): stats}


@verb("transactions.get_transaction_buffer_stats", needs=LOOKUP,
    http=Http("GET", f"{_PATH}/transactionBufferStats/{{topic}}",
        "Get how far a topic may be read, and how many transactions have messages in it.",
        more=("lowWaterMarks", "segmentStats"), answer="TransactionBufferStats"))  # fmt: skip
def get_transaction_buffer_stats(broker: Broker, topic: TopicName) -> Json:
    """Counts are of the time since the topic was opened."""
    found = _topic(broker, topic)
    known = found.ledger.tail.transactions
    last = found.ledger.last_message_id()
    return {
        "state": "Ready",
        "max_read_position": f"{last.ledger_id()}:{last.entry_id()}",
        "ongoing_txn_size": 0 if known is None else len(known),
        "committed_txn_count": 0 if known is None else known.committed_count,
        "aborted_txn_count": 0 if known is None else known.aborted_count,
        "held_messages": 0 if known is None else known.held_messages(),
    }


@verb("transactions.get_transaction_in_buffer_stats", needs=LOOKUP,
    http=Http("GET", f"{_PATH}/transactionInBufferStats/{{topic}}/{_ONE}",
        "Get where the messages of a transaction begin in a topic.",
        answer="TransactionInBufferStats"))  # fmt: skip
def get_transaction_in_buffer_stats(
    broker: Broker, topic: TopicName, most: int, least: int
) -> Json:
    found = _topic(broker, topic)
    coordinator = broker.runtime.transactions
    transaction = coordinator.find(least) if most == coordinator.number else None
    known = found.ledger.tail.transactions
    start = None if known is None or transaction is None else known.start(transaction)
    is_aborted = most == coordinator.number and coordinator.was_committed(least) is False
    return {"start_position": _place(start), "aborted": is_aborted}


@verb("transactions.get_pending_ack_stats", needs=LOOKUP,
    http=Http("GET", f"{_PATH}/pendingAckStats/{{topic}}/{{name}}",
        "Get in how many transactions messages of a subscription are acknowledged.",
        more=("lowWaterMarks",), answer="PendingAckStats"))  # fmt: skip
def get_pending_ack_stats(broker: Broker, topic: TopicName, name: str) -> Json:
    """SubscriptionNotFound: there is none of this name."""
    subscription = _topic(broker, topic).subscriptions.get(name)
    if subscription is None:
        raise errors.SubscriptionNotFound(detail=f"there is no subscription {name} of {topic.full}")
    count = sum(subscription in each.subscriptions for each in _open_transactions(broker))
    return {"state": "Ready", "ongoing_txn_size": count}


def _topic(broker: Broker, name: TopicName) -> Topic:
    return broker.topic(name, create=False).require_kept("look for transactions")


def _find(broker: Broker, most: int, least: int) -> BrokerTransaction:
    coordinator = broker.runtime.transactions
    found = coordinator.find(least) if most == coordinator.number else None
    if found is None:
        raise errors.TransactionNotFound(
            detail=f"transaction ({most},{least}): it was never opened, or has ended"
        )
    return found


def _open_transactions(broker: Broker) -> list[BrokerTransaction]:
    """The oldest first."""
    coordinator = broker.runtime.transactions_if_any
    return [] if coordinator is None else coordinator.open_transactions()


def _metadata(transaction: BrokerTransaction) -> Json:
    """start_position: of its first message in a topic."""
    produced = {
        each.ledgers.name: {"start_position": _place(start), "aborted": False}
        for each in list(transaction.topics)
        if (start := each.start(transaction)) is not None
    }
    acknowledged: dict[str, dict[str, Json]] = {}
    for each in list(transaction.subscriptions):
        acknowledged.setdefault(each.topic.name, {})[each.name] = {}
    return {
        "txn_id": str(transaction),
        "status": "OPEN" if transaction.is_open else "ENDING",
        "open_timestamp": transaction.opened_ms,
        "timeout_at": transaction.timeout_ms,  # as Pulsar calls it
        "owner": transaction.role,
        "produced_partitions": produced,
        "acked_partitions": acknowledged,
    }


def _open(broker: Broker, transaction: BrokerTransaction) -> Json:
    """held_messages: by topic, those that readers do not see because of it."""
    held = {
        each.ledgers.name: each.held_messages()
        for each in list(transaction.topics)
        if each.oldest() is transaction
    }
    age_ms = max(broker.runtime.clock.now_ms() - transaction.opened_ms, 0)
    return {**_metadata(transaction), "age_ms": age_ms, "held_messages": held}


def _place(start: tuple[int, int] | None) -> str | None:
    return None if start is None else f"{start[0]}:{start[1]}"
