"""The tests of the API's consumers once more, with consumers beside the owner of the folder.

Which modules, and which of their tests are left out and why, is in guest_list.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from adopted import adopt
from guest_client import GuestClient, advance, attach, forget_folders, settle_all
from guest_list import MODULES

import pulsarx
from pulsarx.consuming import subscribing
from pulsarx.testing.inspection import Inspection

pytestmark = pytest.mark.standard


@pytest.fixture(autouse=True)
def _beside_the_owner(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(pulsarx, "Client", GuestClient)
    monkeypatch.setattr(subscribing, "_attach", attach)
    monkeypatch.setattr(pulsarx.ManualClock, "advance", advance)
    monkeypatch.setattr(Inspection, "settle", settle_all)
    yield
    forget_folders()


pytest.register_assert_rewrite(*MODULES)
for each in MODULES:
    adopt(each, globals())
