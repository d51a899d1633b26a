"""`pulsarx produce`: publishes messages from arguments, files and lines."""

from __future__ import annotations

from pulsarx.cli.command import command, topic_argument
from pulsarx.cli.declared import File, UsageError, Whole, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pulsarx.cli.folder import Folder
    from pulsarx.message_id import MessageId
    from pulsarx.producer import Producer

_AT_ONCE = 1000  # messages that are flushed together


@command("pulsarx produce orders -m '{\"id\": 1}' -s '' -k customer-7")
@topic_argument
@option("-m", "--messages", multiple=True, help="Messages, with the separator between them.")
@option(
    "-s",
    "--separator",
    default=",",
    show_default=True,
    help="The separator of --messages; '': one message.",
)
@option("-f", "--files", multiple=True, help="Files, commas between them: a message each.")
@option("-l", "--lines", type=File(), help="A file, a message each line; - is standard input.")
@option(
    "-n",
    "--num-produce",
    "times",
    type=Whole(min=1),
    default=1,
    show_default=True,
    help="How many times to send each of --messages and --files.",
)
@option("-k", "--key", help="The key of the messages.")
@option("-p", "--properties", multiple=True, help="Properties: k1=v1,k2=v2.")
@option("-db", "--disable-batching", is_flag=True, help="No batches: an entry for each message.")
@option(
    "-c",
    "--chunking",
    is_flag=True,
    api="chunking_enabled",
    help="Send messages larger than an entry in chunks.",
)
@option(
    "--create-folder",
    "make_folder",
    is_flag=True,
    help="Make the folder if it does not exist, as pulsarx init does.",
)
def produce(
    folder: Folder,
    topic: str,
    messages: tuple[str, ...],
    separator: str,
    files: tuple[str, ...],
    lines: Any,
    times: int,
    key: str | None,
    properties: tuple[str, ...],
    disable_batching: bool,
    chunking: bool,
    make_folder: bool,
) -> None:
    """Publish messages; a topic that does not exist is created.

    As pulsar-client produce; --lines is ours. Prints how many there were and the id of the last
    one. What was published when it fails stays, and is told.
    """
    payloads = [*_texts(messages, separator), *_contents(files)] * times
    if not payloads and lines is None:
        raise UsageError("give --messages, --files or --lines")
    beside = _properties(properties)
    if make_folder:
        folder.make()
    total = None if lines is not None else len(payloads)
    done, last = 0, None
    with folder.connected("produce") as client:
        producer = client.create_producer(topic, chunking_enabled=chunking)
        try:
            with folder.output.progress("Publishing", total) as advance:
                for several in _in_groups(payloads, lines):
                    if disable_batching or chunking:
                        for each in several:
                            last = producer.send(each, beside, key)
                            done += 1
                    else:
                        last = _send_together(producer, several, beside, key)
                        done += len(several)
                    advance(len(several))
        except BaseException:
            if done:
                folder.output.note(f"{done} messages had been published")
            raise
        name = producer.topic()
    folder.output.record(
        {
            "topic": name,
            "messages": done,
            "message_id": None if last is None else last.to_text(),
        }
    )


def _send_together(
    producer: Producer, payloads: list[bytes], properties: dict[str, str] | None, key: str | None
) -> MessageId:
    count = len(payloads)
    return producer.send_many(
        payloads,
        keys=None if key is None else [key] * count,
        properties=None if properties is None else [properties] * count,
    )[-1]


def _texts(messages: tuple[str, ...], separator: str) -> Iterator[bytes]:
    for text in messages:
        for each in text.split(separator) if separator else [text]:
            yield each.encode("utf-8", "surrogateescape")


def _contents(files: tuple[str, ...]) -> Iterator[bytes]:
    for name in (each for text in files for each in text.split(",")):
        try:
            with open(name, "rb") as file:
                yield file.read()
        except OSError as error:
            raise UsageError(f"{name}: {error.strerror}", "--files") from None


def _properties(pairs: tuple[str, ...]) -> dict[str, str] | None:
    found = {}
    for pair in (each for text in pairs for each in text.split(",")):
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"{pair!r}: write key=value", "--properties")
        found[name] = value
    return found or None


def _in_groups(payloads: list[bytes], lines: Any) -> Iterator[list[bytes]]:
    for start in range(0, len(payloads), _AT_ONCE):
        yield payloads[start : start + _AT_ONCE]
    several: list[bytes] = []
    for line in lines or ():
        several.append(line.removesuffix(b"\n").removesuffix(b"\r"))
        if len(several) == _AT_ONCE:
            yield several
            several = []
    if several:
        yield several
