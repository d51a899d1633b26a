# cython: language_level=3
"""EncryptionContext: how a message was encrypted, for consumers that ask and for decrypting it."""

from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport uint8_t, uint32_t

from pulsarx._core.byte_reader cimport ByteReader, byte_reader_block, byte_reader_start
from pulsarx._core.message_metadata cimport MessageMetadata, message_metadata_decode
from pulsarx._core.proto_field cimport proto_field_skip, proto_field_tag
from pulsarx._core.single_metadata cimport METADATA_BATCH
from pulsarx._core.status cimport STATUS_OK
from pulsarx._pycore.ground.raise_status cimport raise_status

cdef enum:
    TAG_KEYS = 0x6A              # field 13 of MessageMetadata, a block
    TAG_ALGORITHM = 0x72         # 14
    TAG_PARAM = 0x7A             # 15
    TAG_FIRST = 0x0A             # fields 1 to 3 of EncryptionKeys, and 1 and 2 of KeyValue
    TAG_SECOND = 0x12
    TAG_THIRD = 0x1A


class EncryptionKey:
    """The data key of a message, encrypted with one public key."""

    __slots__ = ("key", "metadata", "value")

    def __init__(self, key: str, value: bytes, metadata: dict) -> None:
        """Hold a data key.

        Args:
            key: The name of the public key.
            value: The data key, encrypted with it.
            metadata: What the producer's key reader said of the key.
        """
        self.key = key                   # the name of the public key
        self.value = value               # the encrypted data key
        self.metadata = metadata

    def __repr__(self) -> str:
        return (f"EncryptionKey(key={self.key}, value_len={len(self.value)}, "
                f"metadata={self.metadata})")


class EncryptionContext:
    """The metadata of an encrypted message that a program needs to decrypt it by itself."""

    __slots__ = ("_algorithm", "_batch_size", "_compression_type", "_failed", "_keys", "_param",
                 "_uncompressed_size")

    def __init__(self, bytes metadata not None, failed: bool = False) -> None:
        """Decode how a message was encrypted. `Message.encryption_context` makes it.

        Args:
            metadata: The metadata of the entry, encoded.
            failed: It was delivered as it is stored.

        Raises:
            CorruptDataError: The metadata cannot be read.
        """
        cdef const uint8_t* data = metadata
        cdef MessageMetadata found
        raise_status(message_metadata_decode(data, <uint32_t>len(metadata), &found), 0,
                     f"read {len(metadata)} bytes of metadata")
        self._keys, self._algorithm, self._param = encryption_fields(metadata)
        self._compression_type = <int>found.compression
        self._uncompressed_size = found.uncompressed_size
        self._batch_size = found.message_count if found.flags & METADATA_BATCH else -1
        self._failed = failed

    def keys(self) -> list:
        """Return the keys it was encrypted for."""
        return list(self._keys)

    def param(self) -> bytes:
        """Return the initialization vector of the cipher."""
        return self._param

    def algorithm(self) -> str:
        """Return the cipher's name as the producer gave it; `""` when it gave none, as Pulsar's
        do."""
        return self._algorithm

    def compression_type(self):
        """Return how the payload was compressed before it was encrypted."""
        from pulsarx.enumerations import CompressionType

        return CompressionType(self._compression_type)

    def uncompressed_message_size(self) -> int:
        """Return the bytes before compression; 0 when it was not compressed."""
        return self._uncompressed_size

    def batch_size(self) -> int:
        """Return how many messages were encrypted together; -1: it was no batch."""
        return self._batch_size

    def is_decryption_failed(self) -> bool:
        """Tell whether the message is as it is stored, because it could not be decrypted."""
        return self._failed

    def __repr__(self) -> str:
        return (f"EncryptionContext(algorithm={self._algorithm}, "
                f"compression_type={self.compression_type().name}, "
                f"uncompressed_message_size={self._uncompressed_size}, "
                f"is_decryption_failed={self._failed}, "
                f"keys=[{', '.join(map(str, self._keys))}])")


def encryption_fields(bytes metadata not None) -> tuple:
    """(keys, algorithm, param) of encoded metadata. CorruptDataError: they cannot be read."""
    cdef const uint8_t* data = metadata
    cdef ByteReader reader
    cdef const uint8_t* block = NULL
    cdef uint32_t size = 0
    cdef uint32_t tag = 0
    cdef int status = STATUS_OK
    keys = []
    algorithm = ""
    param = b""
    byte_reader_start(&reader, data, <size_t>len(metadata))
    while reader.at < reader.end and status == STATUS_OK:
        status = proto_field_tag(&reader, &tag)
        if status == STATUS_OK and (tag == TAG_KEYS or tag == TAG_ALGORITHM or tag == TAG_PARAM):
            status = byte_reader_block(&reader, &block, &size)
            if status != STATUS_OK:
                break
            if tag == TAG_KEYS:
                keys.append(key_of(block, size))
            elif tag == TAG_ALGORITHM:
                algorithm = text(block, size)
            else:
                param = block[:size]
        elif status == STATUS_OK:
            status = proto_field_skip(&reader, tag)
    raise_status(status, 0, f"read how a message is encrypted in {len(metadata)} bytes of metadata")
    return keys, algorithm, param


cdef object key_of(const uint8_t* data, uint32_t size):
    cdef list blocks = [b"", b""]
    cdef dict properties = {}
    read_blocks(data, size, blocks, properties)
    return EncryptionKey(blocks[0].decode("utf-8", "surrogateescape"), blocks[1], properties)


cdef int read_blocks(const uint8_t* data, uint32_t size, list blocks, dict properties) except -1:
    """Fields 1 and 2 into blocks, those of the messages in field 3 into properties; None: field 3
    is skipped."""
    cdef ByteReader reader
    cdef const uint8_t* block = NULL
    cdef uint32_t tag = 0
    cdef uint32_t block_size = 0
    cdef int status = STATUS_OK
    byte_reader_start(&reader, data, size)
    while reader.at < reader.end and status == STATUS_OK:
        status = proto_field_tag(&reader, &tag)
        if status != STATUS_OK:
            break
        if tag != TAG_FIRST and tag != TAG_SECOND and (tag != TAG_THIRD or properties is None):
            status = proto_field_skip(&reader, tag)
            continue
        status = byte_reader_block(&reader, &block, &block_size)
        if status != STATUS_OK:
            break
        if tag == TAG_THIRD:
            pair = [b"", b""]
            read_blocks(block, block_size, pair, None)
            properties[pair[0].decode("utf-8", "surrogateescape")] = pair[1].decode(
                "utf-8", "surrogateescape")
        else:
            blocks[0 if tag == TAG_FIRST else 1] = block[:block_size]
    raise_status(status, 0, f"read an encryption key of {size} bytes")
    return 0


cdef str text(const uint8_t* data, uint32_t size):
    return PyUnicode_DecodeUTF8(<const char*>data, size, "surrogateescape")
