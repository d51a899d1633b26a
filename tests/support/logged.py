"""What was logged."""

from __future__ import annotations

import pytest


def lines(caplog: pytest.LogCaptureFixture, *words: str) -> list[str]:
    texts = [record.getMessage() for record in caplog.records]
    return [text for text in texts if all(word in text for word in words)]
