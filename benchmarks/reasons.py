"""Why a figure is missed where it was measured, and what would reach it. For report."""

from __future__ import annotations

# What a message of 100 bytes costs in C, copied, summed and written in blocks of 128 KiB: 22 ns
# into allocated space that is in no page cache yet, 12 into pages that another thread has written.
_FRESH_PAGES = (
    "half of the time is the kernel's. Nine tenths of the space is in the page cache by then, "
    "written with zeros by the preparer, which makes a write twice as cheap (without, a message of "
    "a list takes 45 ns in the place of 34); but the two writers wait for the inode's lock in "
    "turn, 4 ns of a message. Pieces of 256 KiB, a preparer that lets an entry pass first, and one "
    "that reads the space in the place of writing it (no lock, nothing to write back; 41 ns) were "
    "tried: none was better. Ledger files that are used again would have their pages, and need no "
    "zeros; but who has one mapped in another process, or a backup that is a second name of it, "
    "would see it change, and nothing tells the owner of them"
)

_COLUMNS = (
    "what a column costs beyond decoding is Spark's: of 130 ns a row for six more columns, "
    "decoding them is 9; Java turns each into its own rows, about 35 ns for a name, an id or a "
    "map. The ratio was nearer to the limit when both sides were slower: freezing the heap of "
    "workers took the same off one column as off seven"
)

_PUBLISHED_BYTES = (
    "what 10 KiB cost: of 5 µs a message 3 are `pwrite`'s, into pages that are not in memory yet "
    "(`sync`: and `fdatasync`'s, which writes them); the rest is the copy into the batch and its "
    "checksum. The official client copies as much into a socket, but into memory that was just "
    "used, and its other costs do not grow. Ledger files that are used again would come nearer: "
    "see send_many for why they are not"
)
_RECEIVED_BYTES = (
    "what the bytes cost: the checksum of a batch is a fifth of the time at 1 KiB and half of it "
    "at 10 KiB, the first look at mapped pages and the copy for `data` most of the rest. It runs "
    "in the widest registers (AVX-512, VPCLMULQDQ): 65 GB/s from the cache, 38 from memory, where "
    "the bytes are. Asking for lines a page ahead was tried: a tenth of the checksum in a loop of "
    "its own, nothing in receiving"
)
_COPIED = (
    "{first}. Beside the same copy, checksum and `pwrite` in C, a message is 2 to 3 ns of encoding "
    "and {more}. Several batches in one `pwritev` would take a tenth where a call has several: the "
    "loop in C takes 16.5 ns with blocks of 512 KiB and 21.5 with 128 into fresh pages, 10.8 and "
    "12.8 into others. Summing while it copies would take 1 ns: the checksum is 4 % of a list"
)

REASONS: dict[str, str] = {
    "transaction": (
        "two flushes one after the other, of the message and of the record of the end, where a "
        "durable send has one; two calls that no signal may interrupt go to another thread and "
        "back, 70 µs (none from a thread that is not the main one: 3.4 times there); the rest is "
        "Python, 90 µs. With a commit of the catalogue an end, and a flush a send, it was 8.9. One "
        "flush would need the record in the ledger of the messages, or both flushed at once and "
        "each record proven by its ledgers at recovery"
    ),
    "transaction_many": (
        "four flushes where the same without takes three, and 100 acknowledgements that are noted "
        "as pending first, 41 µs in the place of 7"
    ),
    "between_processes": (
        "to the owner two threads are woken, that of the connection, which publishes, and the one "
        "that receives, as many as for the socket's byte there and back; from the owner it is one. "
        "Where the system places the threads it may give them a core that sleeps, and the socket's "
        "byte the waker's own: 30 to 60 µs against 5"
    ),
    "official_send_async_1024": (
        "of 1.7 µs a message 1.1 are the kernel's, which writes the pages in `fdatasync`; with "
        "durability `os` it is met"
    ),
    "real_pulsar_send_async_1024": "as official_send_async_1024",
    "official_send_async_10240_os": _PUBLISHED_BYTES,
    "official_send_async_10240": "as official_send_async_10240_os",
    "real_pulsar_send_async_10240": "as official_send_async_10240_os",
    "official_receive_1024_os": _RECEIVED_BYTES,
    "official_receive_1024": "as official_receive_1024_os",
    "official_receive_10240_os": "as official_receive_1024_os",
    "official_receive_10240": "as official_receive_1024_os",
    "real_pulsar_receive_1024": "as official_receive_1024_os",
    "real_pulsar_receive_10240": "as official_receive_1024_os",
    "send_many": (
        f"{_FRESH_PAGES}. The rest is encoding (4 ns), the checksum (1 ns) and a "
        "`MessageId` for each message (8 ns with its list). Ids made when they are looked at would "
        "take some of it."
    ),
    "send_arrow": f"{_FRESH_PAGES}. About 8 ns a row are ours.",
    "copied_send": _COPIED.format(
        first="a call of Python for each message is as much as all that the loop does",
        more="a call with its mutex, 18 ns",
    ),
    "copied_send_many": _COPIED.format(first=_FRESH_PAGES, more="its id, 8 ns"),
    "copied_send_arrow": _COPIED.format(first=_FRESH_PAGES, more="taking its column apart, 5 ns"),
    "copied_send_many_kib": _COPIED.format(first=_FRESH_PAGES, more="its id, 8 ns"),
    "copied_send_arrow_kib": _COPIED.format(
        first=_FRESH_PAGES, more="taking its column apart, 5 ns"
    ),
    "dispatch_key_shared_many": (
        "a message of several keys goes its own way: found and hashed (200 instructions), sent to "
        "the owner of its key (160), taken (250), and acknowledged on its own (450), where an "
        "Exclusive consumer takes runs and acknowledges a list by one record: 1,430 instructions "
        "with both calls against 630. 1,800 before: read twice, each key looked for in a table "
        "three times, a mutex of the system for each acknowledgement. Acknowledging what lies in "
        "one record together was tried: no gain, as the record is in the nearest cache. What is "
        "left waits for memory: states of keys and messages that others used between"
    ),
    "receive_arrow": (
        "it lies at the limit, and the spread reaches over it; fresh memory for the columns is the "
        "larger part."
    ),
    "receive_many": "it lies at the limit, and the spread reaches over it.",
    "send_key": "it lies at the limit, and the spread reaches over it.",
    "acknowledge_random": (
        "in order it is all in the nearest cache; in disorder each acknowledgement meets a "
        "cold line of the bitmap and one of the mapped tail (with its address translation), and "
        "every 65,536 records a fold waits for the device. Asking for both lines before the "
        "mutex is taken would gain some."
    ),
    "kib_send_many": (
        "a payload is copied once into its batch (40 ns) and once into the kernel; the C "
        "loop sums and "
        "writes one buffer that is in the cache. `pwritev` from the payloads themselves "
        "costs about "
        "as much for each piece as the copy. Several batches in one `pwrite` would gain 10 %."
    ),
    "create_topics": (
        "of 0.4 ms a topic 0.25 are the kernel's, which makes a file for the commit of the "
        "catalogue: ext4 looks longer for a free inode where many files were deleted just before, "
        "as each turn does. The rest is Python's"
    ),
    "kib_send": "as kib_send_many, and a Python call for each message.",
    "kib_cold": (
        "as kib_send_many; besides, a thread makes the next ledger ready meanwhile (a file, a "
        "commit of the catalogue, four flushes), on two cores beside the preparer."
    ),
    "serve_durable": (
        "half of what is above the device is two ways over loopback. The rest is two hand-overs: "
        "the thread of all sockets gives what it has read to one that may wait for the device, as "
        "a flush there would hold up every other connection, and that one is woken for it, 10 to "
        "15 µs. It answers the socket itself. A thread for each connection that reads its own "
        "socket would spare the hand-over, at a stack for each of thousands"
    ),
    "durable_threads": (
        "the first thread that comes flushes at once, so sixteen threads settle into two "
        "groups that "
        "take turns, about eight sends a flush. Letting the flush wait for the others "
        "was tried and "
        "cost more than it gave. A send of sixteen takes 22 µs of processor time, most of it the "
        "kernel's, which with two cores is 7.7 at best. Without the GIL it is 7.1 where it is 6.7 "
        "with (docs/design/threads.md)."
    ),
    "import_and_open": (
        "in instructions it is 2.31 times a bare interpreter, of which importing `threading` (with "
        "functools and collections) is 0.39, and each of sixty modules 0.006 before anything in it "
        "runs; but what is loaded for the first time misses the caches, maps pages (nine of ten "
        "for Python's objects, not for the library) and waits for six flushes, each of which a "
        "power cut makes necessary. Locks and threads of `_thread` in all that "
        "opening loads would reach it. Then the first import of `threading` must be the main "
        "thread's, for whichever thread comes first is the main one to it (CPython 3.11), and "
        "everything behind opening is imported in control threads, also what answers another "
        "process while the main thread sleeps."
    ),
    "spark_topic_uds": (
        "pairs of queries differ by a seventh, so few of them say little: runs of 21 and 41 gave "
        "0.82 to 0.90 in one hour, 161 gave 0.86 and 0.88. What is beyond the ceiling is decoding: "
        "bytes come from main memory (9 ns of a core a message), their pages are mapped (5), and "
        "messages are found and copied (8). The plan takes as long as the ceiling's own. The "
        "ceiling runs in workers whose heap PulsarX has frozen: in a session without PulsarX it "
        "takes a seventh more of the processors' time, as much as `read_topic`."
    ),
    "spark_source_uds": "it lies at the limit, and the spread reaches over it.",
    "spark_columns_uds": _COLUMNS,
    "spark_topic_columns_tcp": _COLUMNS,
    "spark_topic_columns_uds": _COLUMNS,
}
