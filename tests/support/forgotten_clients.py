"""Clients that earlier tests forgot, which the collector finds and the background closes later: it
is not the doing of another test what they write, log and map."""

from __future__ import annotations

import gc

from pulsarx.broker import registry
from support.waiting import wait_until


def close_forgotten() -> None:
    """Return when no client is open in this process. None may be that somebody refers to."""
    wait_until(_none_is_open, "a client stays open that an earlier test has made")


def _none_is_open() -> bool:
    gc.collect()
    return not registry._registry and not registry._left_behind and gc.isenabled()
