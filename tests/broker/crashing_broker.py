"""A broker that dies at a chosen call, and the power cut that follows."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from pathlib import Path

from simulated_files import Crash, SimulatedFiles

from pulsarx._pycore.ground import file_system
from pulsarx.broker import registry


class SimulatedBroker(SimulatedFiles):
    """What the catalogue and the names of a whole folder go through."""

    def remember(self) -> None:
        """All that is there now is durable."""
        for path in sorted(Path(self.root).rglob("*")):
            self.is_durable(str(path))

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        if Path(target).parent.name == "cursors":  # whose bytes were flushed natively before
            self._contents[target].data = Path(target).read_bytes()
            self._contents[target].flushed = True


def dies_at(call: int, seed: int | None, folder: Path, act: Callable[[], object]) -> bool:
    """Act, and die at this call; False when it lived. Then the power fails (seed -1: not)."""
    simulated = SimulatedBroker(str(folder), crash_at=call)
    simulated.remember()
    whole = file_system.FileSystem
    file_system.FileSystem = lambda: simulated  # type: ignore[assignment]
    died = False
    try:
        act()
    except Crash:
        died = True
    finally:
        file_system.FileSystem = whole  # type: ignore[misc]
        for broker in registry._registry.values():
            broker.directory.close()
        registry._registry.clear()
        gc.collect()
    if seed != -1:
        simulated.power_cut(None if seed is None else random.Random(seed * 1000 + call))
    return died
