from collections import deque
from collections.abc import Callable
from typing import Any

class WhenForgotten:
    """Kept by what may be forgotten; posts the job, which must not refer to it, when it is gone."""

    def __init__(
        self, post: Callable[[Callable[[], object]], object], job: Callable[[], object]
    ) -> None:
        """post: of a JobQueue, or of the control plane."""

    def cancel(self) -> None:
        """Forget the job, because the object was closed."""

class PostLater:
    """Posts a job whatever it is called with: for callbacks of weak references."""

    def __init__(
        self,
        post: Callable[[Callable[[], object]], object],
        job: Callable[[], object],
        noted: deque[Any] | None = None,
        item: object = None,
    ) -> None:
        """noted: what gets the item, before the job is posted."""

    def __call__(self, _: object) -> None: ...
