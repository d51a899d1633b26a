"""What tests of encryption do again and again."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import pulsarx
from pulsarx import CryptoKeyReader, InitialPosition
from pulsarx._pycore.ranges.entry_codec import crc32c
from pulsarx.testing import inspect

OAEP = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None)


class KeyFiles:
    """Pairs of RSA keys in files, by name; each is made once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[str, CryptoKeyReader] = {}

    def __call__(self, name: str = "mine") -> CryptoKeyReader:
        if name not in self._made:
            self._made[name] = write_keys(self._folder / name)
        return self._made[name]


def write_keys(path: Path) -> CryptoKeyReader:
    """A new pair in `path`.public and `path`.private."""
    key = rsa.generate_private_key(65537, 2048)
    public, private = path.with_suffix(".public"), path.with_suffix(".private")
    public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return CryptoKeyReader(str(public), str(private))


def encrypting(client: pulsarx.Client, keys: CryptoKeyReader, topic: str = "t", **more: Any) -> Any:
    return client.create_producer(topic, encryption_key="key", crypto_key_reader=keys, **more)


def batching(client: pulsarx.Client, keys: CryptoKeyReader, topic: str = "t", **more: Any) -> Any:
    more.setdefault("batching_max_publish_delay_ms", 86_400_000)
    return encrypting(client, keys, topic, batching_enabled=True, **more)


def send_batch(producer: Any, payloads: list[bytes], **each: Any) -> None:
    for payload in payloads:
        producer.send_async(payload, None, **each)
    producer.flush()


def subscribe(
    client: pulsarx.Client, keys: CryptoKeyReader | None = None, name: str = "s", **more: Any
) -> Any:
    more.setdefault("initial_position", InitialPosition.Earliest)
    topic = more.pop("topic", "t")
    return client.subscribe(topic, name, crypto_key_reader=keys, **more)


def decrypted_by_hand(message: Any, keys: CryptoKeyReader) -> bytes:
    """What a program makes of a message that was delivered as it is stored."""
    context = message.encryption_context()
    private: Any = serialization.load_pem_private_key(
        Path(keys.private_key_path).read_bytes(), None
    )
    data_key = private.decrypt(context.keys()[0].value, OAEP)
    return AESGCM(data_key).decrypt(context.param(), message.data(), None)


class Forged:
    """An entry as another client may have written it: everything about it may be wrong."""

    def __init__(self, keys: CryptoKeyReader, plain: bytes = b"forged") -> None:
        public: Any = serialization.load_pem_public_key(Path(keys.public_key_path).read_bytes())
        self.data_key = bytes(range(32))
        self.param: bytes | None = bytes(12)
        self.payload = AESGCM(self.data_key).encrypt(bytes(12), plain, None)
        self.value = public.encrypt(self.data_key, OAEP)
        self.keys = block(13, block(1, b"key") + block(2, self.value))
        self.fields = b""
        self.sequence_id = 0
        self._public = public

    def wrap(self, data_key: bytes) -> None:
        """Another data key, of any size."""
        self.keys = block(13, block(1, b"key") + block(2, self._public.encrypt(data_key, OAEP)))

    def store(self, client: pulsarx.Client, topic: str = "t") -> Any:
        client.create_producer(topic).close()
        return inspect(client).append_entry(topic, self.encoded())

    def encoded(self) -> bytes:
        metadata = block(1, b"other") + number(2, self.sequence_id) + number(3, 1)
        metadata += self.fields + self.keys
        if self.param is not None:
            metadata += block(15, self.param)
        checked = struct.pack(">I", len(metadata)) + metadata + self.payload
        return struct.pack(">HI", 0x0E01, crc32c(checked)) + checked


def number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def block(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
