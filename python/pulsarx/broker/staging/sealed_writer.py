"""Writes a ledger file of its own, to be attached to a topic later: by any process, beside any
owner.

state     on disk                                left by
OPEN      `<path>.tmp`, grows                    seal, abort; a killed or forgotten writer leaves it
SEALED    `<path>`, whole; never changes         -
ABORTED   nothing                                -
"""

from __future__ import annotations

import os
from contextlib import suppress

from pulsarx import errors
from pulsarx._pycore.ground.file_system import FileSystem
from pulsarx._pycore.ledger.ledger_file import LedgerFile
from pulsarx._pycore.ledger.ledger_writer import LedgerWriter
from pulsarx._pycore.ledger.name_record import name_record_bytes
from pulsarx._pycore.ledger.published_ends import PublishedEnds
from pulsarx._pycore.ranges.entry_codec import encode_entry
from pulsarx._pycore.ranges.sealed_batches import SealedBatches
from pulsarx.broker.folder.storage_errors import storage_error
from pulsarx.clock import system_clock
from pulsarx.compression import compress
from pulsarx.randomness import Randomness
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.clock import Clock

TEMPORARY_SUFFIX = ".tmp"
LEDGER_SIZE_MAX = 64 << 30
BATCH_MESSAGES_MAX = 1000
BATCH_BYTES_MAX = 128 << 10
MESSAGE_SIZE_MAX = 5 << 20


class SealedLedger:
    """The facts that a commit must know of a sealed file. A value: compares, pickles, is JSON."""

    __slots__ = (
        "path", "uuid", "folder_id", "size", "file_size", "digest", "entry_count",
        "message_count", "first_publish_ms", "last_publish_ms",
    )  # fmt: skip

    def __init__(
        self,
        path: str,
        uuid: str,
        folder_id: str,
        size: int,
        file_size: int,
        digest: int,
        entry_count: int,
        message_count: int,
        first_publish_ms: int,
        last_publish_ms: int,
    ) -> None:
        self.path: str = path
        self.uuid: str = uuid  # 32 hex digits, as folder_id
        self.folder_id: str = folder_id  # of the data directory it was written for
        self.size: int = size  # where its entries end: what the catalogue calls size
        self.file_size: int = file_size  # with index and footer, and space given back behind them
        self.digest: int = digest  # of all entries, from the footer
        self.entry_count: int = entry_count
        self.message_count: int = message_count
        self.first_publish_ms: int = first_publish_ms
        self.last_publish_ms: int = last_publish_ms

    @staticmethod
    def of_file(path: str) -> SealedLedger:
        """The facts that the file itself says, footer and index verified.

        CorruptDataError: it is no sealed ledger. StorageError: it cannot be opened.
        """
        file = LedgerFile.open(path, 0)
        return _described(path, file.uuid.hex(), file.folder_id, file.summary())

    def document(self) -> dict[str, Any]:
        """The facts as JSON has them."""
        return {name: getattr(self, name) for name in self.__slots__}

    @staticmethod
    def of_document(document: dict[str, Any]) -> SealedLedger:
        return SealedLedger(**document)

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __reduce__(self) -> tuple[type[SealedLedger], tuple[Any, ...]]:
        return SealedLedger, self._values()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SealedLedger) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        return f"SealedLedger({self.path!r}, {self.message_count} messages, {self.size} bytes)"


class SealedLedgerWriter:
    """Writes one file. One thread at a time. As a context manager: aborted unless it was sealed."""

    def __init__(
        self,
        path: str,
        folder_id: str,
        uuid: bytes | None = None,
        *,
        topic: str | None = None,
        producer_name: str | None = None,
        batch_messages_max: int = BATCH_MESSAGES_MAX,
        batch_bytes_max: int = BATCH_BYTES_MAX,
        max_message_size: int = MESSAGE_SIZE_MAX,
        batch_by_key: bool = False,
        compression: int = 0,
        null_values: bool = True,
        schema_version: int | None = None,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
    ) -> None:
        """Create `<path>.tmp`. Its folder must be there, and path and `<path>.tmp` must not.

        folder_id: of the data directory the file is for. uuid: 16 bytes; None: random. topic: that
        it is for, which the file says; None: it does not.
        batch_by_key: batches of one key each, as Pulsar's key-based batching.
        compression: a CompressionType or its number. null_values: whether messages may have none.
        schema_version: of the topic, that all messages are of; None: of none.
        FolderError: the folder is not there. StorageError: the disk refused.
        InvalidConfiguration, ImportError: there is no such compression here.
        """
        _check_limit("batch_messages_max", batch_messages_max)
        _check_limit("batch_bytes_max", batch_bytes_max)
        _check_limit("max_message_size", max_message_size)
        compress(int(compression), b"")  # an unknown kind, or one whose package is missing
        self.path: str = os.path.abspath(path)
        self.folder_id = folder_id
        self.uuid: bytes = (randomness or Randomness()).uuid_bytes() if uuid is None else uuid
        self.state: str = "OPEN"
        self._temporary = self.path + TEMPORARY_SUFFIX
        self._files = FileSystem()
        _check_folder(self.path, folder_id)
        clock = clock or system_clock()
        self._clock, self._compression = clock, int(compression)
        self._null_values, self._message_size_max = null_values, max_message_size
        self._schema_version = b"" if schema_version is None else schema_version.to_bytes(8, "big")
        self._writer = self._create_file(clock.now_ms(), topic)
        try:
            self._producer_name = producer_name or f"sealed-{self.uuid.hex()}"
            self._batches = SealedBatches(
                self._writer,
                producer_name=self._producer_name,
                clock=clock,
                compress=compress,
                compression=int(compression),
                batch_messages_max=batch_messages_max,
                batch_bytes_max=batch_bytes_max,
                message_size_max=max_message_size,
                by_key=batch_by_key,
                null_values=null_values,
                schema_version=self._schema_version or None,
            )
        except BaseException:
            self.abort()
            raise

    def _create_file(self, now_ms: int, topic: str | None) -> LedgerWriter:
        slots = PublishedEnds.memory()  # its end concerns no reader
        folder_id, record = bytes.fromhex(self.folder_id), b""
        if topic is not None:
            name = str(TopicName.of(topic))
            record = name_record_bytes(topic=name, uuid=self.uuid, folder_id=folder_id)
        return LedgerWriter.create(
            self._temporary,
            ledger_id=0,
            uuid=self.uuid,
            folder_id=folder_id,
            name_record=record,
            created_ms=now_ms,
            entry_count_max=1 << 40,
            size_max=LEDGER_SIZE_MAX,
            publish_on_flush=False,
            zero_space=False,
            slots=slots,
            slot=slots.allocate(),
            flushed_later=True,
        )

    @property
    def message_count(self) -> int:
        """Taken so far."""
        return int(self._batches.row_count)

    @property
    def size(self) -> int:
        """Bytes stored so far, without the batches that are open."""
        return int(self._writer.end)

    def append(
        self,
        value: bytes | None,
        key: bytes | str | None = None,
        properties: dict[str, str] | None = None,
        event_timestamp: int | None = None,
        *,
        key_base64: bool = False,
    ) -> None:
        """Add a message. key_base64: the key is bytes, and this is their base64.

        MessageTooBig, ValueError, TypeError name its row; nothing was taken.
        """
        self._check_open()
        self._batches.add(value, key, properties, event_timestamp, key_base64)

    def append_single(
        self,
        value: bytes | None,
        key: bytes | str | None = None,
        properties: dict[str, str] | None = None,
        event_timestamp: int | None = None,
        *,
        ordering_key: bytes | str | None = None,
        deliver_at: int | None = None,
        key_base64: bool = False,
    ) -> None:
        """Add a message that is in no batch, as each has to be that has a time of delivery of its
        own (milliseconds since 1970). Errors as of append."""
        self._check_open()
        row = self._batches.row_count
        if value is None and not self._null_values:
            raise ValueError(f"row {row}: it has no value (None), which was not allowed")
        if len(value or b"") > self._message_size_max:
            raise errors.MessageTooBig(
                detail=f"row {row} has {len(value or b'')} bytes; that is over max_message_size",
                size=len(value or b""),
                max_size=self._message_size_max,
            )
        entry = encode_entry(
            value or b"",
            producer_name=self._producer_name,
            sequence_id=self._batches.take_sequence_id(),
            publish_time_ms=self._clock.now_ms(),
            key=key,
            ordering_key=ordering_key,
            properties=properties,
            event_time_ms=event_timestamp or 0,
            deliver_at_ms=deliver_at or 0,
            schema_version=self._schema_version,
            null_value=value is None,
            compression=self._compression,
            key_base64=key_base64,
        )
        self._batches.add_entry(entry, False)

    def append_arrow(
        self,
        data: Any,
        value: str = "value",
        *,
        key: str | None = None,
        properties: str | None = None,
        event_time: str | None = None,
    ) -> int:
        """Each row of a table or record batch; how many. Columns as of Producer.send_arrow.

        MessageTooBig, ValueError name the row of this table; those before it were taken.
        """
        self._check_open()
        return int(self._batches.add_table(data, value, key, properties, event_time))

    def append_entry(self, entry: bytes, *, mixed_keys: bool = True) -> None:
        """An entry as a Pulsar producer made it, byte for byte. CorruptDataError: it is none.

        mixed_keys: False: all messages of this batch have one key.
        """
        self._check_open()
        self._batches.add_entry(entry, mixed_keys)

    def seal(self, *, flush: bool = True) -> SealedLedger | None:
        """Finish the file and give it its name; None when there was no message, then no file.

        flush: file and name are on the device when this returns. Without, a power cut may take or
        tear the file, which its digest tells.
        StorageError: path exists (it is never replaced), or the disk refused; abort then.
        """
        self._check_open()
        self._batches.store_open()
        if self._writer.entry_count == 0:
            self.abort()
            return None
        summary = self._writer.seal(flush=False)
        if flush:
            self._writer.flush_sealed()
        self._writer.close()
        try:
            self._files.take_name(self._temporary, self.path)
            self.state = "SEALED"
            with suppress(FileNotFoundError):
                self._files.unlink(self._temporary)
            if flush:
                self._files.flush_directory(os.path.dirname(self.path))
        except OSError as error:
            raise errors.StorageError(
                detail=f"give {self._temporary} its name {self.path}: {error.strerror}. A file of "
                "that name is never replaced, and this one must not be removed while it is being "
                "written"
                if self.state == "OPEN"
                else f"make the name {self.path} durable: {error.strerror}. It must not be attached"
            ) from error
        return _described(self.path, self.uuid.hex(), self.folder_id, summary)

    def abort(self) -> None:
        """Remove what was written. May be called twice; a sealed file stays."""
        if self.state != "OPEN":
            return
        self.state = "ABORTED"
        self._writer.close()
        try:
            self._files.unlink(self._temporary)
        except FileNotFoundError:
            pass  # its folder was cleaned up
        except OSError as error:
            raise storage_error(f"remove {self._temporary}", error) from error

    def _check_open(self) -> None:
        if self.state != "OPEN":
            raise errors.AlreadyClosed(detail=f"the writer of {self.path} is {self.state}")

    def __enter__(self) -> SealedLedgerWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.abort()

    def __repr__(self) -> str:
        return f"SealedLedgerWriter({self.path!r}, {self.state})"


def _described(path: str, uuid: str, folder_id: str, summary: Any) -> SealedLedger:
    return SealedLedger(
        path,
        uuid,
        folder_id,
        summary.size,
        os.stat(path).st_size,
        summary.digest,
        summary.entry_count,
        summary.message_count,
        summary.first_publish_ms,
        summary.last_publish_ms,
    )


def _check_limit(name: str, value: int) -> None:
    if not 1 <= value < 1 << 29:
        raise ValueError(f"{name} is {value}; it must be from 1 to {(1 << 29) - 1}")


def _check_folder(path: str, folder_id: str) -> None:
    """Refuse what would only fail at the end."""
    if len(folder_id) != 32 or not set(folder_id) <= set("0123456789abcdef"):
        raise ValueError(f"folder_id is 32 hex digits, not {errors.shown(folder_id)}")
    parent = os.path.dirname(path)
    if not os.path.isdir(parent):
        raise errors.FolderError(
            detail=f"write {path} on {os.uname().nodename}: there is no folder {parent} (data "
            f"directory {folder_id}). Mount the same path wherever ledgers are written and attached"
        )
    if os.path.exists(path):
        raise errors.StorageError(
            detail=f"write {path}: it is there already, and is never replaced"
        )
