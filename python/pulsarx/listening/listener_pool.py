"""The threads of a client that run what its users gave it: listeners, futures, consumer events.

A thread sleeps until a job is posted; posting takes no lock, so it is allowed with a mutex held.
"""

from __future__ import annotations

from pulsarx._pycore.ground.work_pool import SerialWork, WorkPool

__all__ = ["ListenerPool", "SerialWork", "log_exception"]

ListenerPool = WorkPool  # at most `message_listener_threads` of them


def log_exception(text: str, *arguments: object) -> None:
    """Log a text with the traceback of what is being handled."""
    import logging

    logging.getLogger("pulsarx").error(text, *arguments, exc_info=True)
