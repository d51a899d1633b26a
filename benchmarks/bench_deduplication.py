"""Publishing on a topic with deduplication, against one without: the same messages, in turn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from measurement import Measurement
from topic_in_folder import DrainBefore, TopicInFolder, payloads


def bench_deduplicated_send(measurement: Measurement, scratch: Path) -> None:
    messages = payloads(measurement.sizes.messages, 100)
    plain = TopicInFolder(scratch / "plain")
    deduplicated = TopicInFolder(scratch / "deduplicated")
    deduplicated.client.admin.topics.set_deduplication("measured", True)

    def sending(topic: TopicInFolder) -> Callable[[], None]:
        producer = topic.producer

        def path() -> None:
            send = producer.send_async
            for message in messages:
                send(message, None)
            producer.flush()

        return path

    with plain, deduplicated:
        drains = [DrainBefore(each, len(messages)) for each in (plain, deduplicated)]
        measurement.pairs(
            "deduplicated_send",
            sending(plain),
            sending(deduplicated),
            before=lambda: [drain() for drain in drains],
            names=("without deduplication", "with it"),
        )
