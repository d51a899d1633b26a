"""Names and passwords, from a file of htpasswd."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.access.identity import Identity
from pulsarx.extras import optional_module

_BCRYPT = ("$2y$", "$2b$", "$2a$")
_PASSWORD_SIZE_MAX = 72  # bytes: bcrypt looks no further


class BasicUsers:
    """Any thread may call."""

    def __init__(self, path: str) -> None:
        """InvalidConfiguration: the file cannot be read, or has other hashes than those of bcrypt.
        ImportError: a package is missing."""
        self._bcrypt = optional_module("bcrypt", "serve", "authentication by passwords")
        self._hashes: dict[bytes, bytes] = {}
        try:
            with open(path, "rb") as file:
                lines = file.read().splitlines()
        except OSError as error:
            raise errors.InvalidConfiguration(f"basic_auth_conf: {error}") from error
        for number, line in enumerate(lines, 1):
            name, _, found = line.strip().partition(b":")
            if not name or name.startswith(b"#"):
                continue
            if not found.startswith(tuple(each.encode() for each in _BCRYPT)) or len(found) != 60:
                raise errors.InvalidConfiguration(
                    f"{path}, line {number}: only hashes of bcrypt are taken; make one with "
                    "htpasswd -B"
                )
            self._hashes[name] = found
        # Of nobody: asked for, so that it takes as long to refuse a name that is not there.
        self._nobody: bytes = next(iter(self._hashes.values()), b"$2b$12$" + b"." * 53)

    def verify(self, data: bytes) -> Identity:
        """data: `name:password`. AuthenticationError: there is no such name, or its password is
        another one."""
        name, _, password = data.partition(b":")
        known = self._hashes.get(name)
        fits = (
            len(password) <= _PASSWORD_SIZE_MAX
            and b"\0" not in password
            and self._bcrypt.checkpw(password, known or self._nobody)
        )
        if known is None or not fits:
            raise errors.AuthenticationError("unknown name, or wrong password")
        try:
            return Identity(name.decode())
        except UnicodeDecodeError:
            raise errors.AuthenticationError("the name is not UTF-8") from None
