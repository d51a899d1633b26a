"""Empty brokers for tests, each with a clock that stands still: what the pytest fixtures hand out,
and what a test makes itself where a fixture does not fit, as for each example of hypothesis."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import count

from pulsarx.client import Client
from pulsarx.clock import ManualClock
from pulsarx.randomness import Randomness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsarx.broker_options import BrokerOptions

_numbers = count(1)


class EmptyBroker:
    """A broker with its clock and a client. Further clients are opened by its URL."""

    def __init__(self, url: str, clock: ManualClock, client: Client) -> None:
        """Use `broker`.

        Args:
            url: The URL of the broker, for other clients of this process.
            clock: The clock of the broker and its clients.
            client: A client, which is open until the block ends.
        """
        self.url = url
        self.clock = clock
        self.client = client


@contextmanager
def broker(
    *,
    clock: ManualClock | None = None,
    seed: int | str | bytes = 0,
    options: BrokerOptions | None = None,
) -> Iterator[EmptyBroker]:
    """Open an empty broker in memory. Its client is closed at the end of the block; the broker ends
    with its last client.

    Args:
        clock: A ManualClock of the caller's; None: a new one.
        seed: The seed of its randomness, so that every run makes the same choices.
        options: Options of the broker; None: all as they are by themselves.

    Yields:
        The broker, with its clock and a client.
    """
    # Numbered, so that whatever was left open of the one before is another broker.
    url = f"memory:testing-{next(_numbers)}"
    clock = ManualClock() if clock is None else clock
    client = Client(url, clock=clock, randomness=Randomness(seed), broker_options=options)
    try:
        yield EmptyBroker(url, clock, client)
    finally:
        client.shutdown()


@contextmanager
def namespace(client: Client, tenant: str = "public") -> Iterator[str]:
    """Make a namespace that nobody else has, and delete it with its topics at the end of the block,
    whoever still uses them.

    Args:
        client: A client of the broker.
        tenant: The tenant it belongs to, which exists.

    Yields:
        The name, `tenant/namespace`.
    """
    name = f"{tenant}/testing-{next(_numbers)}"
    client.admin.namespaces.create_namespace(name)
    try:
        yield name
    finally:
        client.admin.namespaces.delete_namespace(name, force=True)
