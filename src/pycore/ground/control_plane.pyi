from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")

class ControlPlane:
    """Runs what must not be interrupted in threads that no signal enters. One a process."""

    def perform(
        self,
        function: Callable[..., Result],
        arguments: tuple[Any, ...] = (),
        give_back: Callable[[Result], object] | None = None,
    ) -> Result:
        """function(*arguments), in a control thread when the caller is the main thread.

        An interrupt while it waits is raised at once; the function runs to its end, and
        give_back(result) is called there when the caller has left.
        """

    def post(self, job: Callable[[], object]) -> int:
        """Have job() run soon, in a control thread; at any moment. What it raises is logged."""

    def load(self, name: str) -> int:
        """Import a module that is not loaded with the package, before the import statement that
        binds it: an import that a signal cuts off cannot be repeated in every case."""

    def hold(self) -> None:
        """Keep one thread ready until `let_go`: while the interpreter ends none can be started."""

    def let_go(self) -> None: ...
    @property
    def threads(self) -> int: ...

control_plane: ControlPlane
