"""Encryption of payloads from end to end, as Pulsar's C++ client does it. Anybody may call.

A producer encrypts the payload of each entry with AES-256 in GCM, under a random data key: 12
random bytes of initialization vector in the metadata (encryption_param), 16 of tag behind the
payload. The data key is encrypted with the RSA public key (OAEP with SHA-1) and goes into the
metadata as well (encryption_keys), so the broker never has it. It compresses before, and a batch
is one payload.

Needs the package cryptography, which is loaded with the first key reader that is used.
"""

from __future__ import annotations

import os
from functools import partial

from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx.enumerations import ConsumerCryptoFailureAction
from pulsarx.errors import CorruptDataError, CryptoError, detail_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx._pycore.message.encryption_context import EncryptionKey
    from pulsarx.clock import Clock
    from pulsarx.options.authentication import CryptoKeyReader

DATA_KEY_SIZE = 32
IV_SIZE = 12
TAG_SIZE = 16
RENEWED_AFTER_MS = 4 * 60 * 60 * 1000  # a data key
DATA_KEYS_KEPT = 1000  # that a consumer has decrypted, and as many that it could not

_HINT = (
    "encryption needs the package cryptography, which is not installed: "
    "pip install 'pulsarx[encryption]'"
)


class PayloadEncryption:
    """Encrypts what one producer sends. One thread at a time: the producer's mutex is held."""

    def __init__(
        self,
        key_reader: CryptoKeyReader,
        key_name: str,
        clock: Clock,
        topic_name: str,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """ImportError: cryptography is missing. A public key that cannot be read is said in the
        log: as in the official client, the producer is made, and what it sends fails."""
        self._aes, self._keys, _ = _load()
        self._key_reader = key_reader
        self._key_name = key_name.encode()
        self._clock = clock
        self._topic_name = topic_name
        self._random_bytes = random_bytes
        self._data_key: tuple[Any, bytes, int] | None = None  # cipher, metadata, when it was made
        try:
            self._data_key = self._make_data_key()
        except CryptoError as error:
            _logger().error(
                "%s: what this producer sends will fail: %s", topic_name, detail_of(error)
            )

    def __call__(self, payload: bytes) -> tuple[bytes, bytes]:
        """Fields 13 to 15 of the metadata, and the encrypted payload. CryptoError: there is no data
        key, because the public key cannot be read."""
        cipher, metadata, _ = self._current_data_key()
        iv = self._random_bytes(IV_SIZE)
        return metadata + _block(15, iv), cipher.encrypt(iv, payload, None)

    def _current_data_key(self) -> tuple[Any, bytes, int]:
        known = self._data_key
        if known is None:
            known = self._data_key = self._make_data_key()
        elif self._clock.now_ms() - known[2] >= RENEWED_AFTER_MS:
            try:
                known = self._make_data_key()
            except CryptoError as error:
                known = (known[0], known[1], self._clock.now_ms())
                _logger().error(
                    "%s: the data key is used for another four hours: %s",
                    self._topic_name,
                    detail_of(error),
                )
            self._data_key = known
        return known

    def _make_data_key(self) -> tuple[Any, bytes, int]:
        data_key = self._random_bytes(DATA_KEY_SIZE)
        public = self._keys.public(_read(self._key_reader.public_key_path, "public"))
        encrypted = self._keys.wrap(public, data_key)
        metadata = _block(13, _block(1, self._key_name) + _block(2, encrypted))
        return self._aes(data_key), metadata, self._clock.now_ms()


class PayloadDecryption:
    """Decrypts for one consumer or reader, and says what becomes of what it cannot decrypt. Any
    thread may call."""

    def __init__(
        self,
        key_reader: CryptoKeyReader | None,
        failure_action: ConsumerCryptoFailureAction,
    ) -> None:
        """key_reader: None to decrypt nothing. ImportError: cryptography is missing."""
        self.failure_action: int = int(failure_action)
        self._key_reader = key_reader
        self._ciphers: dict[bytes, Any] = {}  # of data keys, by what these are encrypted to
        self._private: _PrivateKey | None = None  # that was read last
        # What reading it for a data key gave, by what that was encrypted to.
        self._fetched: dict[bytes, _PrivateKey | CryptoError] = {}
        if key_reader is not None:
            self._aes, self._keys, self._invalid_tag = _load()

    def decrypt(self, metadata: bytes, payload: bytes, defers: bool = False) -> bytes:
        """Decrypt a payload; metadata: of its entry, encoded. CryptoError says why it cannot be.

        defers: a mutex is held. KeyWanted: call `fetch` of it without one, and this once more.
        """
        if self._key_reader is None:
            raise CryptoError(detail="this consumer has no crypto_key_reader")
        from pulsarx._pycore.message.encryption_context import encryption_fields

        try:
            keys, _, iv = encryption_fields(metadata)
        except CorruptDataError as error:
            raise CryptoError(detail=detail_of(error)) from error
        if len(iv) != IV_SIZE:
            raise CryptoError(detail=f"its encryption_param has {len(iv)} bytes, not {IV_SIZE}")
        if len(payload) < TAG_SIZE:
            raise CryptoError(
                detail=f"it has {len(payload)} bytes, and the tag alone has {TAG_SIZE}"
            )
        for each in keys:
            cipher = self._ciphers.get(each.value)
            if cipher is not None:
                try:
                    return cipher.decrypt(iv, payload, None)  # type: ignore[no-any-return]
                except self._invalid_tag:
                    continue
        cipher = self._decrypt_data_key(keys, defers)
        try:
            return cipher.decrypt(iv, payload, None)  # type: ignore[no-any-return]
        except self._invalid_tag:
            raise CryptoError(
                detail="the payload, or its tag, is not what was encrypted with its data key"
            ) from None

    def prepare(self, metadata: bytes) -> None:
        """KeyWanted: decrypting an entry of such metadata would raise it."""
        from pulsarx._pycore.message.encryption_context import encryption_fields

        try:
            keys, _, _ = encryption_fields(metadata)
        except CorruptDataError:
            return  # told when it is decrypted
        if self._key_reader is None or not keys or keys[0].value in self._fetched:
            return
        if not any(each.value in self._ciphers for each in keys):
            from pulsarx._pycore.message.entry_view import KeyWanted

            raise KeyWanted(partial(self._fetch, keys[0].value))

    def _decrypt_data_key(self, keys: list[EncryptionKey], defers: bool) -> Any:
        failure = "its metadata name no key"
        private = None
        if keys:
            private = self._take_fetched(keys[0].value) if defers else self._read_private_key()
        for each in keys:
            assert private is not None
            # An entry after the other has the data key of its producer.
            known = private.refused.get(each.value)
            if known is not None:
                failure = known
                continue
            try:
                data_key = self._keys.unwrap(private.key, each.value)
            except CryptoError as error:
                failure = detail_of(error)
                if len(each.value) == (private.key.key_size + 7) // 8:  # else it costs nothing
                    _keep(private.refused, each.value, failure)
                continue
            cipher = self._aes(data_key)
            _keep(self._ciphers, each.value, cipher)
            return cipher
        raise CryptoError(detail=failure)

    def _take_fetched(self, encrypted: bytes) -> _PrivateKey:
        found = self._fetched.pop(encrypted, None)
        if found is None:
            from pulsarx._pycore.message.entry_view import KeyWanted

            raise KeyWanted(partial(self._fetch, encrypted))
        if isinstance(found, CryptoError):
            raise found
        return found

    def _fetch(self, encrypted: bytes) -> None:
        """Read the private key for a data key."""
        try:
            found: _PrivateKey | CryptoError = self._read_private_key()
        except CryptoError as error:
            found = error
        _keep(self._fetched, encrypted, found)

    def _read_private_key(self) -> _PrivateKey:
        """It is checked when it is loaded, which takes much longer than to read it."""
        assert self._key_reader is not None
        pem = _read(self._key_reader.private_key_path, "private")
        known = self._private
        if known is None or known.pem != pem:
            known = self._private = _PrivateKey(pem, self._keys.private(pem))
        return known


class _PrivateKey:
    """The contents of the file of a private key, and which data keys it does not decrypt."""

    __slots__ = ("key", "pem", "refused")

    def __init__(self, pem: bytes, key: Any) -> None:
        self.pem = pem
        self.key = key
        self.refused: dict[bytes, str] = {}  # why, by what was encrypted


def _keep(kept: dict[bytes, Any], encrypted: bytes, found: Any) -> None:
    for oldest in list(kept)[: len(kept) - DATA_KEYS_KEPT + 1]:
        kept.pop(oldest, None)
    kept[encrypted] = found


# Shows what is stored, for those who look at a topic without consuming it.
AS_STORED = PayloadDecryption(None, ConsumerCryptoFailureAction.CONSUME)


class _Keys:
    """The steps on RSA keys; CryptoError says which one failed."""

    def __init__(self) -> None:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import padding, rsa

        self._padding = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None)
        self._rsa = rsa
        self._serialization = serialization
        self._refused = (ValueError, TypeError, UnsupportedAlgorithm)

    def public(self, pem: bytes) -> Any:
        return self._loaded("public", self._serialization.load_pem_public_key, pem)

    def private(self, pem: bytes) -> Any:
        load = self._serialization.load_pem_private_key
        return self._loaded("private", lambda text: load(text, None), pem)

    def _loaded(self, kind: str, load: Callable[[bytes], Any], pem: bytes) -> Any:
        try:
            found = load(pem)
        except self._refused as error:
            raise CryptoError(
                detail=f"the {kind} key is no PEM of a key without password"
            ) from error
        wanted = self._rsa.RSAPublicKey if kind == "public" else self._rsa.RSAPrivateKey
        if not isinstance(found, wanted):
            raise CryptoError(detail=f"the {kind} key is not one of RSA")
        return found

    def wrap(self, public: Any, data_key: bytes) -> bytes:
        try:
            return public.encrypt(data_key, self._padding)  # type: ignore[no-any-return]
        except self._refused as error:  # a key of few bits
            raise CryptoError(
                detail=f"the public key does not encrypt a data key: {error}"
            ) from error

    def unwrap(self, private: Any, encrypted: bytes) -> bytes:
        try:
            data_key: bytes = private.decrypt(encrypted, self._padding)
        except self._refused as error:
            raise CryptoError(
                detail="its data key was not encrypted for this private key"
            ) from error
        if len(data_key) != DATA_KEY_SIZE:
            raise CryptoError(detail=f"its data key has {len(data_key)} bytes, not {DATA_KEY_SIZE}")
        return data_key


def check_encryption_installed() -> None:
    """ImportError: cryptography is missing."""
    _load()


def _load() -> tuple[Any, _Keys, type[Exception]]:
    """The cipher, the keys, and what the cipher raises when the tag does not hold."""
    try:
        control_plane.load("cryptography.hazmat.primitives.ciphers.aead")
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        raise ImportError(_HINT) from error
    return AESGCM, _Keys(), InvalidTag


def _read(path: str, kind: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError) as error:  # ValueError: the path can be none
        raise CryptoError(detail=f"the {kind} key cannot be read: {error}") from error


def _block(field: int, data: bytes) -> bytes:
    """A protobuf field of bytes, whose number is below 16."""
    found = bytearray((field << 3 | 2,))
    size = len(data)
    while size >= 0x80:
        found.append(size & 0x7F | 0x80)
        size >>= 7
    found.append(size)
    return bytes(found) + data


def _logger() -> Any:
    import logging

    return logging.getLogger("pulsarx")
