"""The greatest number of connections that a service may hold.

Each takes a file descriptor, of which a process has so many. Topics need some as well: where
connections took them all, nobody could publish any more, in this process too.
"""

from __future__ import annotations

_UNLIMITED = 1 << 20


def connections_max() -> int:
    """Half as many as the process may have files open now (RLIMIT_NOFILE)."""
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    found = _UNLIMITED if soft == resource.RLIM_INFINITY else soft
    return max(1, found // 2)
