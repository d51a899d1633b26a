"""What the tests of encryption share: keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pulsarx
from pulsarx import CryptoKeyReader

if TYPE_CHECKING:
    from encryption_steps import KeyFiles
    from topic_reading import OpenClient


@pytest.fixture(scope="session")
def key_files(tmp_path_factory: pytest.TempPathFactory) -> KeyFiles:
    """Makes pairs of keys, by name."""
    from encryption_steps import KeyFiles  # a package that may be missing

    return KeyFiles(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def keys(key_files: KeyFiles) -> CryptoKeyReader:
    return key_files()


@pytest.fixture
def client(open_client: OpenClient, manual_clock: pulsarx.ManualClock) -> pulsarx.Client:
    return open_client(clock=manual_clock)
