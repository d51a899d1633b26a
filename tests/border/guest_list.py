"""Which modules of the API tests run once more with consumers beside the owner."""

from __future__ import annotations

# Below tests/api.
MODULES = [
    "compaction.test_compaction",
    "compaction.test_read_compacted",
    "consuming.test_acknowledgement",
    "consuming.test_batch_receive",
    "consuming.test_consumer",
    "consuming.test_ids_of_several",
    "consuming.test_listener",
    "consuming.test_look_ahead",
    "consuming.test_multi_partitions",
    "consuming.test_multi_topics",
    "consuming.test_new_ledgers",
    "consuming.test_patterns",
    "consuming.test_receive_async",
    "consuming.test_seek",
    "consuming.test_topic_priorities",
    "consuming.test_zero_queue",
    "letters.test_dead_letter",
    "letters.test_retry_letter",
    "policies.test_message_ttl",
    "producing.test_chunking",
    "subscriptions.test_ack_timeout",
    "subscriptions.test_delayed_delivery",
    "subscriptions.test_exclusive",
    "subscriptions.test_failover",
    "subscriptions.test_key_shared",
    "subscriptions.test_negative_acknowledgement",
    "subscriptions.test_non_durable",
    "subscriptions.test_redelivery",
    "subscriptions.test_redelivery_backoff",
    "subscriptions.test_shared",
    "subscriptions.test_shared_acknowledgement",
    "subscriptions.test_shared_receiving",
]
