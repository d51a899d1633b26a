"""The place of an operation in Pulsar's admin REST API: a description that client and server
read."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Http:
    """A value. The service makes a route of it (`rest/verb_routes`), and who asks over HTTP a
    request (`admin/http_channel`); where that is not all, each has a function of its own for the
    verb."""

    __slots__ = (
        "answer", "argument", "body", "invalid", "method", "missing", "more", "path", "query",
        "refused", "summary",
    )  # fmt: skip

    def __init__(
        self,
        method: str,
        path: str,
        summary: str,
        *,
        query: Mapping[str, str] | None = None,
        more: tuple[str, ...] = (),
        body: str | None = None,
        argument: str = "",
        answer: str = "",
        refused: int = 409,
        missing: int = 404,
        invalid: int = 412,
    ) -> None:
        """path: behind /admin/v2, with arguments in braces; {topic} is a path of its own. query:
        what the query calls arguments; more: other names that the service heeds in it. body: the
        form of the body, argument: which one it is. answer: the form of the answer; none: nothing
        is answered. Forms are those of `admin/http_forms`. Statuses of errors: refused, of a
        NotAllowedError; missing, of a TopicNotFound; invalid, of a ValueError."""
        self.method: str = method
        self.path: str = path
        self.summary: str = summary
        self.query: Mapping[str, str] | dict[str, str] = query or {}
        self.more: tuple[str, ...] = more
        self.body: str | None = body
        self.argument: str = argument
        self.answer: str = answer
        self.refused: int = refused
        self.missing: int = missing
        self.invalid: int = invalid
