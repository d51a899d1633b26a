"""Why tests of the API are left out where they run once more: each says so by a marker beside it,
`@pytest.mark.border(left_out="several topics")` or `@pytest.mark.guest(...)`, with one of these
names. `of="*topics*"` leaves out what has such parameters alone."""

from __future__ import annotations

REASONS = {
    "several topics": (
        "several topics and partitioned topics are not supported yet over a connection"
    ),
    "letters and read-only clients": (
        "letters and read-only clients are not supported over a connection"
    ),
    "a topic is made first": (
        "a topic is looked up, and made, before the broker is told what is wanted of it"
    ),
    "forgotten consumers": "a consumer that is forgotten is closed by a command, some time later",
    "more than is pending at most": (
        "more than max_pending_messages are published without waiting for a receipt"
    ),
    "overdue acknowledgements, columns": (
        "timeouts of acknowledgements and columns are not supported yet over a connection"
    ),
    "counts of chunks": "the broker counts no messages in chunks that come over a connection",
    "deduplication turned on": (
        "a client is told what is known under its name when it comes, and not when it is turned on"
    ),
    "batches wait at the client": (
        "what waits in a batch is at the client, and goes out when it would have gone"
    ),
    "verbs of an owner": "verbs over a connection are those of an owner",
    "dead letters": "dead letters are not supported yet over a connection",
    "fenced producers learn it late": (
        "the client learns that its producer was fenced or closed when it sends"
    ),
    "codes of errors": "an error code of the protocol stands for several classes of errors",
    "compacted topics": "compacted topics are not read over a connection here",
    "clients that come again": (
        "a client that subscribes again gives what it did the first time, and is not refused for it"
    ),
    "negative acknowledgements": (
        "a negative acknowledgement has no answer, and an id in a batch must say how large that is"
    ),
    "due one by one": (
        "the broker sends what becomes due when it does, and does not wait for what else may"
    ),
    "last id in a batch": (
        "the last id that is told has no place in its batch, so a reader cannot begin with it yet"
    ),
    "sent before acknowledged": (
        "what was sent to a consumer before it was acknowledged elsewhere waits there"
    ),
    "counts of what was sent": (
        "redeliveries and statistics count what was sent, not what was received"
    ),
    "whole batches": "a batch goes whole to a consumer that has any permit, as in Pulsar",
    "everything comes back": (
        "on Exclusive and Failover a negative acknowledgement brings back everything, as in Pulsar"
    ),
    "the client keeps the delay": (
        "the client keeps the delay: until it is over the broker takes the message for received"
    ),
    "tuples in JSON": "JSON knows lists and no tuples",
    "readers read ahead": (
        "a reader is a non-durable subscription at the broker, and has read ahead"
    ),
    "permits without a queue": "without a queue a permit is out as soon as a message was asked for",
    "the inside is changed": (
        "it changes the inside of the consumer or interrupts the broker itself"
    ),
    "too many frames": "a hundred thousand messages, of which each is a frame",
    "the owner's inside is changed": (
        "it changes the inside of the consumer, or of the ledgers, of the owner's process"
    ),
    "memory is a folder": "what was in memory is in a folder here, and is still there",
    "messages come later": (
        "messages go to who has room when they are published, and come some time later"
    ),
    "statistics of what was sent": "statistics count what was sent, not what was received",
    "queues keep what was acknowledged": (
        "what lies in the queue of a consumer is not taken out when another one acknowledges it"
    ),
    "the clock is asked too early": (
        "it asks the clock before the owner has heard of a negative acknowledgement"
    ),
}
