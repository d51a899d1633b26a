"""Which modules of the API tests run once more over the border."""

from __future__ import annotations

# Below tests/api.
MODULES = [
    "producing.test_access_modes",
    "producing.test_chunking",
    "producing.test_deduplication",
    "producing.test_message_builder",
    "producing.test_message_sizes",
    "producing.test_batching",
    "producing.test_compression",
    "producing.test_key_based_batching",
    "producing.test_producer",
    "producing.test_send_many",
    "consuming.test_acknowledgement",
    "consuming.test_batch_receive",
    "consuming.test_consumer",
    "consuming.test_listener",
    "consuming.test_reader",
    "consuming.test_receive_async",
    "consuming.test_seek",
    "schemas.test_schemas",
    "subscriptions.test_delayed_delivery",
    "subscriptions.test_exclusive",
    "subscriptions.test_failover",
    "subscriptions.test_key_shared",
    "subscriptions.test_negative_acknowledgement",
    "subscriptions.test_non_durable",
    "subscriptions.test_redelivery",
    "subscriptions.test_selectors",
    "subscriptions.test_shared",
    "subscriptions.test_shared_acknowledgement",
    "topics.test_deletion",
    "topics.test_ending",
    "topics.test_statistics",
]
