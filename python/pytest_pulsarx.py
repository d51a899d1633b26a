"""pytest fixtures for code that uses PulsarX; pytest finds them when PulsarX is installed.

A module beside the package: pytest imports it in every project, and PulsarX must not be loaded by
tests that do not use it.

fixture         what it is
pulsar_clock    a ManualClock at a fixed date: time passes when the test says so
pulsar_client   a Client on an empty broker in memory with that clock; closed after the test
"""

from __future__ import annotations

from itertools import count

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsarx import Client, ManualClock

_numbers = count(1)


@pytest.fixture
def pulsar_clock() -> ManualClock:
    """A clock that stands still until `pulsar_clock.advance(seconds)`, which fires all that is due
    before it returns."""
    from pulsarx import ManualClock

    return ManualClock()


@pytest.fixture
def pulsar_client(pulsar_clock: ManualClock, request: pytest.FixtureRequest) -> Iterator[Client]:
    """A client whose topics are in memory, empty and this test's own. Its clock is `pulsar_clock`;
    its randomness is seeded with the test's name, so every run of a test makes the same choices."""
    from pulsarx import Client
    from pulsarx.randomness import Randomness

    # Numbered, so that whatever a test before this one left open is another broker.
    url = f"memory:pytest-{next(_numbers)}"
    client = Client(url, clock=pulsar_clock, randomness=Randomness(request.node.nodeid))
    yield client
    client.shutdown()
