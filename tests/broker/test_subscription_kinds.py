"""Every kind of subscription has words, which the refusal of another kind needs."""

from __future__ import annotations

import pytest

from pulsarx import ConsumerType
from pulsarx.broker.subscriptions.dispatchers import dispatch_kind
from pulsarx.broker.subscriptions.subscribe_request import SubscribeRequest
from pulsarx.broker.subscriptions.subscription import described


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("kind", list(ConsumerType.__members__.values()))
def test_each_kind_of_subscription_is_described(kind: ConsumerType, compacted: bool):
    """Of Shared with is_read_compacted, as a server may be asked for, it was a ValueError."""
    request = SubscribeRequest("s", kind, None, "c", lambda: (0, 0), read_compacted=compacted)
    for consistent in (False, True):
        text = described(dispatch_kind(request, consistent))
        assert text.startswith(request.type_name)
        if kind != ConsumerType.KeyShared:
            assert ("is_read_compacted" in text) == compacted
