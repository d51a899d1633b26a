"""Waits until consumers have done their work. For tests of programs whose consumers run in threads
of their own: listeners, workers, services."""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ground.locks import Event
from pulsarx.clock import Deadline, ManualClock
from pulsarx.testing.inspection import inspect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.client import Client
    from pulsarx.clock import Clock

LOOK_SECONDS = 0.002


def drain(client: Client, *topics: str, timeout_seconds: float = 10.0) -> None:
    """Wait until the subscriptions of these topics, or of all, have acknowledged all published
    messages, and the background work of the broker for it is done.

    A message in a batch that is still open was not published yet. The clock is not advanced: what
    waits for it (a delay, a negative acknowledgement) does not come. Any thread may call but that
    of a listener or callback; in asyncio: `await asyncio.to_thread(drain, client)`.

    Args:
        client: One that has the topics' folder open.
        *topics: Names; none: all topics.
        timeout_seconds: Seconds of real time.

    Raises:
        Timeout: Names what is not acknowledged by then.
        TopicNotFound: There is no topic of this name.
        OperationNotSupported: The client is read_only, and no other client of this process has the
            folder open.

    Example:
        from pulsarx.testing import drain

        client.subscribe("jobs", "worker", message_listener=lambda self, job: self.acknowledge(job))
        client.create_producer("jobs").send(b"one")
        drain(client, "jobs")
    """
    deadline = Deadline(timeout_seconds * 1000)
    if inspect(client).broker.read_only:
        raise errors.OperationNotSupported(
            detail="drain with a client opened read_only: the folder is not open in this process, "
            "so what is going on in the background of its owner is not known"
        )
    runtime = inspect(client).runtime
    while True:
        if isinstance(runtime.clock, ManualClock):
            runtime.clock.advance(0)  # returns when listeners and callbacks have
        inspect(client).settle()
        left = _backlogs(client, topics)
        if not left:
            return
        if deadline.expired():
            raise errors.Timeout(
                detail=f"drain: still unacknowledged after {timeout_seconds:g} s: "
                f"{'; '.join(left)}{_hint(runtime.clock)}"
            )
        Event().wait(LOOK_SECONDS)


def _backlogs(client: Client, topics: tuple[str, ...]) -> list[str]:
    """Say in words what each subscription has not acknowledged."""
    left = []
    for name in _parts(client, topics) if topics else _all_topics(client):
        try:
            subscriptions = client.admin.topics.stats(name)["subscriptions"]
        except errors.TopicNotFound:
            if topics:
                raise
            continue  # deleted meanwhile
        left += [
            f"{each['msg_backlog']} of {name} by {subscription!r} "
            f"(consumers: {len(each['consumers'])}, which have {each['unacked_messages']})"
            for subscription, each in subscriptions.items()
            if each["msg_backlog"]
        ]
    return left


def _parts(client: Client, topics: tuple[str, ...]) -> list[str]:
    return [part for topic in topics for part in client.get_topic_partitions(topic)]


def _all_topics(client: Client) -> list[str]:
    admin = client.admin
    namespaces = (
        namespace
        for tenant in admin.tenants.get_tenants()
        for namespace in admin.namespaces.get_namespaces(tenant)
    )
    return [name for namespace in namespaces for name in admin.topics.get_list(namespace)]


def _hint(clock: Clock) -> str:
    due_ms = clock.next_due_ms() if isinstance(clock, ManualClock) else None
    if due_ms is None:
        return ""
    return f". The clock stands still; what is due next comes in {due_ms - clock.now_ms()} ms"
