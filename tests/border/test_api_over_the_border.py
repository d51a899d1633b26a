"""The tests of the API once more, with a client whose calls go to the broker as bytes.

border_list.py says which modules. What is left out is marked `border`, left_out.py says why.
"""

from __future__ import annotations

import pytest
from adopted import adopt
from border_client import BorderClient
from border_list import MODULES

import pulsarx


@pytest.fixture(autouse=True)
def _over_the_border(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulsarx, "Client", BorderClient)


pytest.register_assert_rewrite(*MODULES)
for each in MODULES:
    adopt(each, globals())
