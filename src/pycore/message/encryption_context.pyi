from pulsarx.enumerations import CompressionType

class EncryptionKey:
    key: str
    value: bytes
    metadata: dict[str, str]
    def __init__(self, key: str, value: bytes, metadata: dict[str, str]) -> None:
        """Hold a data key.

        Args:
            key: The name of the public key.
            value: The data key, encrypted with it.
            metadata: What the producer's key reader said of the key.
        """

class EncryptionContext:
    def __init__(self, metadata: bytes, failed: bool = False) -> None:
        """Decode how a message was encrypted. `Message.encryption_context` makes it.

        Args:
            metadata: The metadata of the entry, encoded.
            failed: It was delivered as it is stored.

        Raises:
            CorruptDataError: The metadata cannot be read.
        """
    def keys(self) -> list[EncryptionKey]:
        """Return the keys it was encrypted for."""
    def param(self) -> bytes:
        """Return the initialization vector of the cipher."""
    def algorithm(self) -> str:
        """Return the cipher's name as the producer gave it; `""` when it gave none, as Pulsar's
        do."""
    def compression_type(self) -> CompressionType:
        """Return how the payload was compressed before it was encrypted."""
    def uncompressed_message_size(self) -> int:
        """Return the bytes before compression; 0 when it was not compressed."""
    def batch_size(self) -> int:
        """Return how many messages were encrypted together; -1: it was no batch."""
    def is_decryption_failed(self) -> bool:
        """Tell whether the message is as it is stored, because it could not be decrypted."""

def encryption_fields(metadata: bytes) -> tuple[list[EncryptionKey], str, bytes]: ...
