from collections.abc import Callable
from types import ModuleType
from typing import TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

class CollectorPaused:
    """A block in which the collector does not run; where no signal arrives."""

    def __enter__(self) -> None: ...
    def __exit__(self, kind: object, error: object, traceback: object) -> None: ...

def import_paused(name: str) -> ModuleType:
    """Import a module, and the collector does not run meanwhile."""

def call_paused(function: Callable[[*Ts], T], *arguments: *Ts) -> T:
    """Call a function, and the collector does not run meanwhile."""
