"""What the tests of encryption share: keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from encryption_steps import KeyFiles


@pytest.fixture(scope="session")
def key_files(tmp_path_factory: pytest.TempPathFactory) -> KeyFiles:
    """Makes pairs of keys, by name."""
    from encryption_steps import KeyFiles  # a package that may be missing

    return KeyFiles(tmp_path_factory.mktemp("keys"))
