"""Names and passwords, from a file of htpasswd."""

from __future__ import annotations

import hmac
import os
import re

from pulsarx import errors
from pulsarx._pycore.ground.file_system import open_descriptor
from pulsarx.access.identity import Identity
from pulsarx.ground.extras import optional_module

_BCRYPT = re.compile(rb"\$2[aby]\$(?:0[4-9]|[12][0-9]|3[01])\$[./A-Za-z0-9]{53}")
_PASSWORD_SIZE_MAX = 72  # bytes: bcrypt looks no further


class BasicUsers:
    """Any thread may call."""

    def __init__(self, path: str) -> None:
        """InvalidConfiguration: the file cannot be read, or has other hashes than those of bcrypt.
        ImportError: a package is missing."""
        self._bcrypt = optional_module("bcrypt", "serve", "authentication by passwords")
        self._hashes: dict[bytes, bytes] = {}
        try:
            with open(path, "rb", opener=open_descriptor) as file:
                lines = file.read().splitlines()
        except OSError as error:
            raise errors.InvalidConfiguration(detail=f"basic_auth_conf: {error}") from error
        for number, line in enumerate(lines, 1):
            name, _, found = line.strip().partition(b":")
            if not name or name.startswith(b"#"):
                continue
            if not _BCRYPT.fullmatch(found):
                raise errors.InvalidConfiguration(
                    detail=f"{path}, line {number}: only hashes of bcrypt are taken; make one with "
                    "htpasswd -B"
                )
            self._hashes[name] = found
        # Of nobody: asked for, so that it takes as long to refuse a name that is not there.
        self._nobody: bytes = next(iter(self._hashes.values()), b"$2b$12$" + b"." * 53)
        # What was right, by the name, so that it need not be checked anew: not the passwords, and
        # nothing that holds longer than this process.
        self._secret = os.urandom(32)
        self._remembered: dict[bytes, bytes] = {}

    def digest(self, data: bytes) -> bytes:
        """A digest that stands for a name and a password as long as this object lives."""
        return hmac.digest(self._secret, data, "sha256")

    def remembered(self, data: bytes) -> Identity | None:
        """The identity that was verified before, at once; None: verify it."""
        name = data.partition(b":")[0]
        known = self._remembered.get(name)
        if known is None or not hmac.compare_digest(known, self.digest(data)):
            return None
        return Identity(name.decode())

    def verify(self, data: bytes) -> Identity:
        """data: `name:password`. Takes as long as the hash wants it to. AuthenticationError: there
        is no such name, or its password is another one."""
        name, _, password = data.partition(b":")
        known = self._hashes.get(name)
        fits = (
            len(password) <= _PASSWORD_SIZE_MAX
            and b"\0" not in password
            and self._bcrypt.checkpw(password, known or self._nobody)
        )
        if known is None or not fits:
            raise errors.AuthenticationError(detail="unknown name, or wrong password")
        try:
            found = Identity(name.decode())
        except UnicodeDecodeError:
            raise errors.AuthenticationError(detail="the name is not UTF-8") from None
        self._remembered[name] = self.digest(data)
        return found
