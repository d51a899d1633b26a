"""What the tests of encryption share: keys."""

from __future__ import annotations

import pytest
from encryption_steps import KeyFiles


@pytest.fixture(scope="session")
def key_files(tmp_path_factory: pytest.TempPathFactory) -> KeyFiles:
    """Makes pairs of keys, by name."""
    return KeyFiles(tmp_path_factory.mktemp("keys"))
