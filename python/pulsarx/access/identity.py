"""The proved identity of a client."""

from __future__ import annotations


class Identity:
    """A value. expires_ms: until when the proof holds; None: as long as the connection."""

    __slots__ = ("expires_ms", "role")

    def __init__(self, role: str, expires_ms: int | None = None) -> None:
        self.role: str = role
        self.expires_ms: int | None = expires_ms
