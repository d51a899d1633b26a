from __future__ import annotations

from typing import Any

import pytest
from aio_loops import LOOPS, Run, run_in


@pytest.fixture(params=LOOPS)
def run(request: Any) -> Run:
    """Runs a coroutine in a loop of each kind."""
    return run_in(request.param)
