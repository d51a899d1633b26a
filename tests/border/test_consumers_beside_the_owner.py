"""The tests of the API's consumers once more, with consumers beside the owner of the folder.

guest_list.py says which modules. What is left out is marked `guest`, left_out.py says why.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from adopted import adopt
from guest_client import GuestClient, advance, attach, forget_folders, settle_all, settled
from guest_list import MODULES

import pulsarx
from pulsarx.consuming import subscribing
from pulsarx.consuming.topic_consumer import TopicConsumer
from pulsarx.testing.inspection import Inspection

pytestmark = pytest.mark.standard


@pytest.fixture(autouse=True)
def _beside_the_owner(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(pulsarx, "Client", GuestClient)
    monkeypatch.setattr(subscribing, "_attach", attach)
    monkeypatch.setattr(pulsarx.ManualClock, "advance", advance)
    monkeypatch.setattr(Inspection, "settle", settle_all)
    # They give what has come, and the tests count on all that was published.
    for name in ("receive_many", "receive_arrow"):
        call = getattr(TopicConsumer, name)
        monkeypatch.setattr(TopicConsumer, name, settled(call), raising=False)
    yield
    forget_folders()


pytest.register_assert_rewrite(*MODULES)
for each in MODULES:
    adopt(each, globals())
