from collections.abc import Callable

class WhenForgotten:
    """Kept by what may be forgotten; posts the job, which must not refer to it, when it is gone."""

    def __init__(
        self, post: Callable[[Callable[[], object]], object], job: Callable[[], object]
    ) -> None:
        """post: of a JobQueue, or of the control plane."""

    def cancel(self) -> None:
        """Forget the job, because the object was closed."""

class PostLater:
    """As a callback of weak references: posts a job, whatever it is called with."""

    def __init__(
        self, post: Callable[[Callable[[], object]], object], job: Callable[[], object]
    ) -> None: ...
    def __call__(self, _: object) -> None: ...
