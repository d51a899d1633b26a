"""The exceptions under the name that the official client has for their module; any program may
import them from here, from `pulsarx` or from `pulsarx.errors`: they are the same classes.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx.errors import *  # noqa: F403

__all__ = errors.__all__
