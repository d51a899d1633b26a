"""A row of the table of routes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.rest.call import Call


class Route:
    """A value. function(call) gives what is answered as JSON, an Answer, a Stream, or None: 204,
    nothing."""

    __slots__ = (
        "answer", "body", "function", "invalid", "method", "missing", "path", "query", "refused",
        "summary",
    )  # fmt: skip

    def __init__(
        self,
        method: str,
        path: str,
        function: Callable[[Call], Any],
        summary: str,
        *,
        query: tuple[str, ...] = (),
        body: str | None = None,
        refused: int = 409,
        missing: int = 404,
        invalid: int = 412,
        answer: str = "application/json",
    ) -> None:
        """path: with its variable parts in braces. query: the names it heeds. body: what the body
        is, for the description. Statuses of errors: refused, of a NotAllowedError; missing, of a
        TopicNotFound; invalid, of a ValueError. answer: its media type."""
        self.method: str = method
        self.path: str = path
        self.function: Callable[[Call], Any] = function
        self.summary: str = summary
        self.query: tuple[str, ...] = query
        self.body: str | None = body
        self.refused: int = refused
        self.missing: int = missing
        self.invalid: int = invalid
        self.answer: str = answer

    @property
    def group(self) -> str:
        """Under which name the description lists it."""
        parts = self.path.split("/")
        return "topics" if parts[3:4] == ["{domain}"] else parts[3] if len(parts) > 3 else "broker"
