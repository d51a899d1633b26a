"""Draws the pictures of docs/concepts out of real runs: each function runs a program on a folder in
memory, whose clock stands still, and draws what it saw. A test draws them again and compares.

    .venv/bin/python tools/draw_concepts.py
"""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from drawing import COLOURS, FAINT, INK, LINE, PAPER, Drawing

import pulsarx
import pulsarx.hashing
from pulsarx import ConsumerType, MultiplierRedeliveryBackoff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

PICTURES = Path(__file__).resolve().parent.parent / "docs/concepts/pictures"
KEYS = ("dee", "hal", "kim", "leo")
WIDTH = 480


def subscription_types() -> str:
    """Who receives each of eight messages, by the type of the subscription."""
    drawing = Drawing(WIDTH, 446, "Which consumer receives which message, by subscription type")
    keys = [KEYS[number % 4] for number in range(8)]
    left, step = 110, 45
    drawing.text(16, 27, "published")
    _keyed_boxes(drawing, left, 10, step, list(enumerate(keys)))
    y = 66
    for kind in ("Exclusive", "Failover", "Shared", "KeyShared"):
        drawing.line(16, y - 16, WIDTH - 16, y - 16)
        drawing.text(16, y + 2, kind, bold=True)
        y += 12
        for name, numbers in _received_by_type(getattr(ConsumerType, kind), keys).items():
            drawing.text(16, y + 17, name, fill=FAINT)
            if numbers is None:
                drawing.text(left, y + 17, "refused: ConsumerBusy", fill=FAINT)
            else:
                drawing.line(left, y + 12, left + 8 * step - 8, y + 12)
                numbered = [(number, keys[number]) for number in numbers]
                _keyed_boxes(drawing, left, y, step, numbered)
            y += 30
        y += 24
    return drawing.svg()


def _received_by_type(kind: ConsumerType, keys: list[str]) -> dict[str, list[int] | None]:
    """The numbers of the messages that each consumer is given; None: it was refused."""
    with pulsarx.Client("memory:", clock=pulsarx.ManualClock()) as client:
        consumers: dict[str, Any] = {}
        for name in ("worker-1", "worker-2"):
            try:
                consumers[name] = client.subscribe("orders", "sub", kind, consumer_name=name)
            except pulsarx.ConsumerBusy:
                consumers[name] = None
        producer = client.create_producer("orders")
        for number, key in enumerate(keys):
            producer.send(b"%d" % number, partition_key=key)
        return {
            name: consumer
            and [int(each.data()) for each in consumer.receive_many(8, timeout_millis=0)]
            for name, consumer in consumers.items()
        }


def _keyed_boxes(
    drawing: Drawing, left: int, y: int, step: int, messages: list[tuple[int, str]]
) -> None:
    for number, key in messages:
        colour = COLOURS[KEYS.index(key)]
        drawing.box(left + number * step, y, 38, 24, colour, label=f"{number} {key[0]}")


def key_ranges() -> str:
    """How the slots of the keys are shared out while consumers come and go."""
    drawing = Drawing(WIDTH, 312, "Hash ranges of a Key_Shared subscription while consumers join")
    drawing.text(16, 28, "who has which slots, 0 to 65535", bold=True)
    names, left, whole = ("worker-1", "worker-2", "worker-3"), 130, WIDTH - 130 - 16
    for row, (event, ranges) in enumerate(_ranges_by_event()):
        y = 52 + row * 52
        drawing.text(16, y + 20, event, fill=FAINT)
        for begin, end, name in ranges:
            x, width = left + begin / 65536 * whole, (end - begin) / 65536 * whole
            label = name if width > 70 else name.removeprefix("worker-")
            drawing.box(x, y, width - 2, 30, COLOURS[names.index(name)], label=label)
    y = 52 + 4 * 52 + 24
    for key in KEYS:
        x = left + pulsarx.hashing.key_shared_slot(key) / 65536 * whole
        drawing.pointer(x, y - 12)
        drawing.text(x, y + 4, key, anchor="middle", size=13)
    return drawing.svg()


def _ranges_by_event() -> Iterator[tuple[str, list[tuple[int, int, str]]]]:
    with pulsarx.Client("memory:", clock=pulsarx.ManualClock()) as client:

        def join(name: str) -> Any:
            return client.subscribe("orders", "sub", ConsumerType.KeyShared, consumer_name=name)

        def ranges() -> list[tuple[int, int, str]]:
            stats: Any = client.admin.topics.stats("orders")
            return [tuple(each) for each in stats["subscriptions"]["sub"]["hash_ranges"]]

        kept = []
        for number in (1, 2, 3):
            kept.append(join(f"worker-{number}"))
            yield f"worker-{number} joins", ranges()
        kept[1].close()
        yield "worker-2 leaves", ranges()


def batch_acknowledgement() -> str:
    """What of a batch comes again when some of its messages were acknowledged."""
    drawing = Drawing(WIDTH, 206, "Acknowledgements inside a batch, and what is delivered again")
    acknowledged, again, batch, backlog = _acknowledge_in_batch()
    drawing.text(16, 30, "one entry, a batch of six messages", bold=True)
    for index in range(6):
        x = 124 + index * 57
        done = index in acknowledged
        drawing.box(x, 46, 50, 34, LINE if done else COLOURS[0], label=str(index),
            label_fill=INK if done else PAPER)  # fmt: skip
        if done:
            drawing.text(x + 25, 98, "acked", size=13, fill=FAINT, anchor="middle")
        if index in again:
            drawing.box(x, 122, 50, 34, COLOURS[0], label=str(index))
    drawing.text(16, 68, f"entry {batch}")
    drawing.text(16, 136, "delivered")
    drawing.text(16, 154, "again")
    drawing.text(124, 188, f"backlog of the subscription: {backlog} messages", fill=FAINT, size=13)
    return drawing.svg()


def _acknowledge_in_batch() -> tuple[list[int], list[int], str, int]:
    """The indices that were acknowledged, those that came again, the entry, the backlog."""
    with pulsarx.Client("memory:", clock=pulsarx.ManualClock()) as client:
        consumer = client.subscribe("orders", "sub")
        producer = client.create_producer("orders", batching_enabled=True, batching_max_messages=6)
        for number in range(6):
            producer.send_async(b"%d" % number, None)
        producer.flush()
        messages = consumer.receive_many(6, timeout_millis=0)
        acknowledged = [0, 2, 3]
        for index in acknowledged:
            consumer.acknowledge(messages[index])
        consumer.close()
        stats: Any = client.admin.topics.stats("orders")
        consumer = client.subscribe("orders", "sub")
        again = [each.message_id().batch_index() for each in consumer.receive_many(6, 0)]
        first = messages[0].message_id()
        entry = f"{first.ledger_id()}:{first.entry_id()}"
        return acknowledged, again, entry, stats["subscriptions"]["sub"]["msg_backlog"]


def ledger_and_cursor() -> str:
    """A topic's ledgers, and where the cursor of a subscription stands in them."""
    drawing = Drawing(WIDTH, 224, "Ledgers of a topic, and the cursor of a subscription")
    ledgers, done, mark, gone = _ledgers_and_cursor()
    drawing.text(16, 30, "a topic of twelve messages; ledgers of four entries", bold=True)
    first = min(gone + [each for each, _, _ in ledgers])
    for ledger in gone:
        x = 16 + (ledger - first) * 154
        drawing.box(x, 88, 142, 56, PAPER, stroke=LINE, dashed=True)
        drawing.text(x + 71, 121, f"ledger {ledger}: deleted", fill=FAINT, anchor="middle")
    for ledger, entries, state in ledgers:
        x = 16 + (ledger - first) * 154
        drawing.box(x, 88, 142, 56, "#f2f5f8", stroke=LINE)
        drawing.text(x + 6, 164, f"ledger {ledger}, {state}", size=13, fill=FAINT)
        for entry in range(entries):
            is_done = (ledger, entry) in done
            drawing.box(x + 6 + entry * 33, 100, 30, 32, LINE if is_done else COLOURS[0],
                label=str(entry), label_fill=INK if is_done else PAPER)  # fmt: skip
            if (ledger, entry) == mark:
                drawing.pointer(x + 21 + entry * 33, 96)
                drawing.text(x + 21 + entry * 33, 78, "mark-delete position", anchor="middle",
                    size=13)  # fmt: skip
    drawing.box(16, 188, 20, 20, LINE)
    drawing.text(44, 203, "acknowledged", size=13)
    drawing.box(170, 188, 20, 20, COLOURS[0])
    drawing.text(198, 203, "in the backlog", size=13)
    return drawing.svg()


def _ledgers_and_cursor() -> tuple[
    list[tuple[int, int, str]], set[tuple[int, int]], tuple[int, int], list[int]
]:
    """Ledgers as id, entries and state; acknowledged places; the mark-delete position; the ids of
    ledgers that were deleted."""
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=4)
    clock = pulsarx.ManualClock()
    with pulsarx.Client("memory:", clock=clock, broker_options=options) as client:
        consumer = client.subscribe("orders", "sub", ConsumerType.Shared)
        producer = client.create_producer("orders")
        ids = [producer.send(b"%d" % number) for number in range(12)]
        messages = consumer.receive_many(12, timeout_millis=0)
        done = set()
        for number in (0, 1, 2, 3, 4, 6, 8):
            consumer.acknowledge(messages[number])
            done.add((ids[number].ledger_id(), ids[number].entry_id()))
        clock.advance(seconds=120)  # when what is acknowledged everywhere is looked for
        stats: Any = client.admin.topics.stats("orders")
        ledgers = [(each["ledger_id"], each["entries"], each["state"]) for each in stats["ledgers"]]
        mark_ledger, mark_entry = stats["subscriptions"]["sub"]["mark_delete_position"]
        there = {each for each, _, _ in ledgers}
        gone = sorted({each.ledger_id() for each in ids} - there)
        return ledgers, done, (mark_ledger, mark_entry), gone


def timers() -> str:
    """When a delayed message, a negatively acknowledged one and a forgotten one are delivered."""
    drawing = Drawing(WIDTH, 300, "When messages are delivered: delays, backoff, timeouts")
    left, second = 124, 21
    for at in range(0, 17, 2):
        drawing.line(left + at * second, 50, left + at * second, 236, width=0.7)
        drawing.text(left + at * second, 258, str(at), anchor="middle", size=13, fill=FAINT)
    drawing.text(left + 8 * second, 282, "seconds on the clock", anchor="middle", fill=FAINT)
    drawing.text(16, 30, "when each message is delivered", bold=True)
    rows = {
        "delayed": _deliveries(_delayed),
        "refused": _deliveries(_refused),
        "forgotten": _deliveries(_forgotten),
    }
    for row, (label, moments) in enumerate(rows.items()):
        y = 84 + row * 60
        drawing.text(16, y + 5, label)
        drawing.line(left, y, left + 16 * second, y)
        for moment in moments:
            drawing.box(
                left + moment * second - 11, y - 12, 22, 24, COLOURS[row], label=f"{moment:g}"
            )
    return drawing.svg()


def _deliveries(use: Callable[[Any, Any], Any]) -> list[float]:
    """At which seconds a message is delivered, in sixteen of them."""
    clock = pulsarx.ManualClock()
    with pulsarx.Client("memory:", clock=clock) as client:
        begin_ms = clock.now_ms()
        consumer, then = use(client, client.create_producer("orders"))
        times = []
        for _ in range(33):
            for message in consumer.receive_many(1, timeout_millis=0):
                times.append((clock.now_ms() - begin_ms) / 1000)
                then(message)
            clock.advance(seconds=0.5)
        return times


def _delayed(client: Any, producer: Any) -> Any:
    consumer = client.subscribe("orders", "sub", ConsumerType.Shared)
    producer.send(b"later", deliver_after=timedelta(seconds=5))
    return consumer, consumer.acknowledge


def _refused(client: Any, producer: Any) -> Any:
    backoff = MultiplierRedeliveryBackoff(min_delay_ms=1000, max_delay_ms=60_000, multiplier=2)
    consumer = client.subscribe("orders", "sub", ConsumerType.Shared, nack_backoff=backoff)
    producer.send(b"refused")
    return consumer, consumer.negative_acknowledge


def _forgotten(client: Any, producer: Any) -> Any:
    consumer = client.subscribe(
        "orders", "sub", ConsumerType.Shared, unacked_messages_timeout_ms=10_000
    )
    producer.send(b"forgotten")
    return consumer, lambda message: None


PICTURE_OF = {
    "subscription-types.svg": subscription_types,
    "key-ranges.svg": key_ranges,
    "batch-acknowledgement.svg": batch_acknowledgement,
    "ledger-and-cursor.svg": ledger_and_cursor,
    "timers.svg": timers,
}


def outputs() -> dict[Path, str]:
    """Each picture as it should be."""
    return {PICTURES / name: draw() for name, draw in PICTURE_OF.items()}


def main() -> int:
    PICTURES.mkdir(exist_ok=True)
    for path, text in outputs().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
