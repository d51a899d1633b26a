"""Goes on with the transactions of clients of a network that the owner before has left open: their
messages are held back, and their acknowledgements pending, before anybody is served. Called when a
folder is opened whose log of transactions names some.

What cannot be taken up whole is aborted: a commit must never lose a part of it.
"""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx.broker import life_log
from pulsarx.broker.transactions.served_transaction import ServedTransaction
from pulsarx.broker.transactions.transaction_log import forget_left, read_left
from pulsarx.ground.attempt import attempt
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.transactions.broker_transaction import BrokerTransaction
    from pulsarx.broker.transactions.transaction_log import LeftTransaction

    Left = dict[int, LeftTransaction]


def take_over_log(runtime: Any) -> Left:
    """The transactions that go on, which this owner's log has from now on. Before readers learn
    that there is another owner. StorageError, NewerFormatError."""
    directory, epoch = runtime.directory, runtime.catalogue.epoch - 1
    left = read_left(directory.files, directory.catalogue_path, directory.folder_id, epoch)
    now_ms = runtime.clock.now_ms()
    going_on = {
        number: each
        for number, each in left.transactions.items()
        if not each.is_over(now_ms) and number not in runtime.catalogue.state.ended
    }
    runtime.held_entries.update(left.held)
    runtime.transaction_log.begin(going_on, left.held)
    if not going_on:
        forget_left(directory.files, directory.catalogue_path, epoch)
    return going_on


def take_up(runtime: Any, topic_of: Callable[[TopicName], Any]) -> None:
    """Have those open that were taken over. topic_of: opens a topic that exists."""
    left: Left = runtime.left_transactions
    runtime.left_transactions = {}
    coordinator = runtime.transactions
    taken: dict[int, ServedTransaction] = {}
    for number, each in left.items():
        made = taken[number] = ServedTransaction(runtime, number, each.timeout_ms, each.role)
        made.opened_ms = each.opened_ms
        for topic in each.topics:
            runtime.taken_up.setdefault(topic, {})[number] = made
    topics = {*runtime.taken_up, *(row["topic"] for each in left.values() for row in each.acks)}
    opened = {name: _open(runtime, topic_of, name) for name in sorted(topics)}
    for number, each in left.items():
        made = taken[number]
        for name in each.topics:
            _lose_by(made, opened[name])
        for row in each.acks:
            _lose_by(made, attempt(partial(_take_up_acks, opened[row["topic"]], made, row)))
        coordinator.take_up(made)
    forget_left(runtime.files, runtime.directory.catalogue_path, runtime.catalogue.epoch - 1)
    for made in taken.values():
        if made.lost:
            import logging

            logging.getLogger("pulsarx").warning(
                "transaction %s, which the owner before left open, is aborted: %s", made, made.lost
            )
            coordinator.end_late(made)
        else:
            life_log.info("transaction %s goes on", made)
    runtime.taken_up.clear()


def _open(runtime: Any, topic_of: Callable[[TopicName], Any], name: str) -> Any:
    """The topic; None: it was deleted. An Exception: why it cannot be opened."""
    if name not in runtime.catalogue.state.topics:
        return None
    found: list[Any] = []
    error = attempt(lambda: found.append(topic_of(TopicName.of(name))))
    return found[0] if error is None else error


def _take_up_acks(topic: Any, transaction: BrokerTransaction, row: dict[str, Any]) -> None:
    if isinstance(topic, Exception):
        raise topic
    for each in () if topic is None else topic.all_subscriptions():
        if each.record is not None and each.record.cursor_id == row["cursor_id"]:
            each.take_up_acks(transaction, row["individual"], row["cumulative"])


def _lose_by(transaction: BrokerTransaction, error: Any) -> None:
    if isinstance(error, Exception):
        transaction.lose(str(errors.detail_of(error) or error))
