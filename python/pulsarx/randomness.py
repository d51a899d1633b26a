"""Random names, ids and partitions. Any layer may use it."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from random import Random

TOKEN_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"


class Randomness:
    """Random numbers, of the operating system or of a seed. Any thread may use it.

    With a seed the answers are the same in every run, and in every process forked from this one.
    """

    def __init__(self, seed: int | str | bytes | None = None) -> None:
        if seed is not None and not isinstance(seed, (int, str, bytes)):
            raise ValueError(f"seed must be int, str, bytes or None, not {type(seed).__name__}")
        self._seed = seed
        self._random: Random | None = None
        if seed is not None:
            from random import Random

            self._random = Random(seed)

    def uuid_bytes(self) -> bytes:
        """16 bytes of a random (version 4) UUID."""
        made = bytearray(self._bits(128).to_bytes(16, "big"))
        made[6] = made[6] & 0x0F | 0x40
        made[8] = made[8] & 0x3F | 0x80
        return bytes(made)

    def integer(self, below: int) -> int:
        """Each of 0 .. below - 1 is as likely as the others."""
        if below < 1:
            raise ValueError(f"there is no integer from 0 up and below {below}")
        bit_count = (below - 1).bit_length()
        while True:  # fewer than two turns on average
            drawn = self._bits(bit_count)
            if drawn < below:
                return drawn

    def token(self, characters: int) -> str:
        """Make a text of random lower-case letters and digits: 10 of them are 51 random bits."""
        return "".join(TOKEN_ALPHABET[self.integer(36)] for _ in range(characters))

    def _bits(self, count: int) -> int:
        if self._random is not None:
            return self._random.getrandbits(count)
        size = (count + 7) // 8
        return int.from_bytes(os.urandom(size), "big") >> (size * 8 - count)

    def __repr__(self) -> str:
        return f"Randomness({'' if self._seed is None else repr(self._seed)})"
