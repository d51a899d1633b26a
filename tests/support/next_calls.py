"""Does something at the very moment when the library calls one of its functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def before_the_next(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, step: Callable[[], object]
) -> None:
    """Take a step right before the next call of a function."""
    function = getattr(owner, name)

    def stepping(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(owner, name, function)
        step()
        return function(*arguments, **options)

    monkeypatch.setattr(owner, name, stepping)
