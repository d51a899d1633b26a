"""The processing guarantees of Pulsar Functions; see FunctionConfig."""

from __future__ import annotations

ATLEAST_ONCE = "ATLEAST_ONCE"
ATMOST_ONCE = "ATMOST_ONCE"
EFFECTIVELY_ONCE = "EFFECTIVELY_ONCE"
MANUAL = "MANUAL"
GUARANTEES = (ATLEAST_ONCE, ATMOST_ONCE, EFFECTIVELY_ONCE, MANUAL)
