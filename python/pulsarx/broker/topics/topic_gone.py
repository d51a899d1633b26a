"""The error that callers are told whose topic has gone since they found it."""

from __future__ import annotations

from pulsarx import errors


class TopicGone(errors.TopicNotFound):
    """It was deleted, or unloaded: another topic may have its name by now. Look for it again."""
