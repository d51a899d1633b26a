"""Facts about the schemas of consumers in processes that do not own the folder: they are refused
where a consumer of the owner's process is."""

from __future__ import annotations

from typing import Any

import pytest

import pulsarx
from pulsarx import errors
from pulsarx.schema import AutoConsumeSchema, JsonSchema, Record, String, StringSchema

pytestmark = pytest.mark.standard


class Order(Record):
    item = String()


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
@pytest.mark.parametrize("used_by", ["producer", "consumer"])
def test_a_topic_that_is_used_without_a_schema_gets_none_by_a_consumer(
    client: pulsarx.Client, domain: str, used_by: str
) -> None:
    """Beside the owner, one that nothing was published to did."""
    topic = f"{domain}://public/default/t"
    uses: Any = (
        client.create_producer(topic) if used_by == "producer" else client.subscribe(topic, "u")
    )
    with pytest.raises(errors.IncompatibleSchema, match="in use without a schema"):
        client.subscribe(topic, "s", schema=JsonSchema(Order))
    assert client.admin.schemas.get_all_schemas(topic) == []
    uses.close()
    client.subscribe(topic, "s", schema=JsonSchema(Order))
    assert len(client.admin.schemas.get_all_schemas(topic)) == 1


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
def test_a_consumer_of_any_schema_leaves_its_topic_open_to_one(
    client: pulsarx.Client, domain: str
) -> None:
    topic = f"{domain}://public/default/t"
    client.subscribe(topic, "any", schema=AutoConsumeSchema())
    client.subscribe(topic, "s", schema=StringSchema())
    assert len(client.admin.schemas.get_all_schemas(topic)) == 1
