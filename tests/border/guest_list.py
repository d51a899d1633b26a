"""Which modules of the API tests run once more with consumers beside the owner, and which of their
tests cannot."""

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

# Why: patterns of names of tests, with their parameters or without.
LEFT_OUT: dict[str, list[str]] = {
    "it changes the inside of the consumer, or of the ledgers, of the owner's process": [
        "test_exclusive__ctrl_c_while_an_entry_is_decompressed_loses_nothing",
        "test_seek__a_seek_to_the_end_while_a_ledger_is_opened_goes_there",
        "test_patterns__a_new_topic_that_is_unloaded_meanwhile_is_taken_up",
        "test_patterns__a_topic_that_is_deleted_while_they_are_attached_is_passed_over",
        "test_multi_topics__a_topic_that_goes_while_they_are_attached_is_made_anew",
        "test_multi_topics__a_topic_that_sends_the_consumer_away_leaves_it_the_others",
    ],
    "what was in memory is in a folder here, and is still there": [
        "test_exclusive__no_entry_outlives_its_client",
        "test_exclusive__a_non_durable_subscription_is_made_anew_when_its_consumer_was_forgotten",
    ],
    "a consumer that is forgotten is closed by a command, some time later": [
        "test_consumer__a_forgotten_consumer_leaves_its_subscription",
        "test_exclusive__a_forgotten_consumer_leaves*",
        "test_failover__a_forgotten_active_consumer_is_followed_by_the_next",
        "test_key_shared__a_forgotten_consumer_s_keys_go_on",
        "test_multi_topics__a_forgotten_consumer_gives_its_topics_back",
        "test_shared__a_forgotten_consumer_leaves",
    ],
    "messages go to who has room when they are published, and come some time later": [
        "test_chunking__columns_hold_messages_in_chunks",
        "test_read_compacted__what_compaction_removed_is_no_backlog_once_it_was_passed",
        "test_read_compacted__what_was_compacted_away_at_the_begin_of_the_topic_is_no_backlog",
        "test_consumer__batch_receive_stops_at_its_bytes",
        "test_key_shared__a_leaver_s_messages_come_before_the_later_ones_of_their_key",
        "test_key_shared__a_refusal_costs_the_same_however_much_is_queued",
        "test_key_shared__one_by_one_what_lies_in_the_queue_is_taken_back",
        "test_listener__a_listener_with_much_to_do_lets_others_have_the_thread",
        "test_multi_topics__it_takes_from_its_topics_in_turn",
        "test_receive_async__a_message_that_is_there_comes_at_once[*",
        "test_shared_receiving__columns_hold_what_messages_hold",
        "test_shared__a_consumer_without_a_queue_gets_one_message_when_it_asks",
        "test_zero_queue__who_asks_no_more_is_given_nothing[*take_now]",
        "test_zero_queue__who_asks_no_more_is_given_nothing[*cancelled future]",
    ],
    "statistics count what was sent, not what was received": [
        "test_delayed_delivery__it_needs_no_permit_before_its_time",
        "test_look_ahead__reading_stops_when_so_many_messages_wait",
        "test_negative_acknowledgement__permits_and_counts_stay_exact",
        "test_redelivery__permits_are_whole_afterwards",
        "test_shared__a_batch_is_split_by_permits",
        "test_shared__permits_and_priority_levels_decide_as_in_the_documents",
    ],
    "what lies in the queue of a consumer is not taken out when another one acknowledges it": [
        "test_failover__what_the_former_active_one_still_does_counts_but_refuses_nothing",
        "test_look_ahead__what_was_acknowledged_in_the_queue_does_not_hide_what_lies_far_behind",
        "test_shared__an_acknowledgement_takes_a_message_out_of_the_queue_of_another",
        "test_shared_acknowledgement__before_it_was_ever_read_it_is_never_delivered",
        "test_shared_acknowledgement__what_a_leaver_received_may_be_acknowledged_by_the_next",
        "test_shared_receiving__columns_skip_what_was_acknowledged_in_the_queue",
        "test_shared_receiving__dead_ones_are_handed_over_by_every_way_of_receiving[take_now-*",
    ],
    "it asks the clock before the owner has heard of a negative acknowledgement": [
        "test_redelivery_backoff__a_message_that_is_refused_comes_again_as_the_table_says",
    ],
}
