"""Facts about how many transactions there may be, and for how long."""

from __future__ import annotations

import pytest

import pulsarx
from pulsarx import BrokerOptions, errors


def test_one_more_than_may_be_open_is_refused() -> None:
    options = BrokerOptions(max_active_transactions_per_coordinator=1)
    with pulsarx.Client("memory:", broker_options=options) as client:
        first = client.new_transaction()
        with pytest.raises(errors.NotAllowedError, match="max_active_transactions_per_coordinator"):
            client.new_transaction()
        first.commit()
        client.new_transaction().abort()


def test_a_timeout_above_the_highest_is_refused() -> None:
    options = BrokerOptions(max_transaction_timeout_in_seconds=10)
    with pulsarx.Client("memory:", broker_options=options) as client:
        client.new_transaction(timeout_millis=10_000)
        with pytest.raises(ValueError, match="max_transaction_timeout_in_seconds allows 10 s"):
            client.new_transaction(timeout_millis=10_001)


def test_clients_of_the_folder_open_them_where_those_of_a_network_may_not() -> None:
    options = BrokerOptions(transaction_coordinator_enabled=False)
    with pulsarx.Client("memory:", broker_options=options) as client:
        client.new_transaction().commit()
