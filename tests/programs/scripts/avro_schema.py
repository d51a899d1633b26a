"""Records as Avro, read as the class of the consumer."""

import os
from enum import Enum

import pulsar
from pulsar.schema import Array, AvroSchema, Double, Long, Map, Record, String


class Side(Enum):
    BUY = 1
    SELL = 2


class Venue(Record):
    code = String()
    country = String()


class Trade(Record):
    symbol = String()
    price = Double()
    size = Long()
    side = Side
    venue = Venue()
    tags = Array(String())
    fees = Map(Double())


client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
consumer = client.subscribe("trades", "ledger", schema=AvroSchema(Trade))
producer = client.create_producer("trades", schema=AvroSchema(Trade))
producer.send(
    Trade(
        symbol="XYZ",
        price=12.5,
        size=100,
        side=Side.SELL,
        venue=Venue(code="XETR", country="DE"),
        tags=["late", "block"],
        fees={"clearing": 0.25},
    )
)
message = consumer.receive(timeout_millis=10000)
trade = message.value()
print(trade.symbol, trade.price, trade.size, trade.side, trade.tags, trade.fees)
print(trade.venue.code, trade.venue.country)
print(len(message.data()), "bytes")
consumer.acknowledge(message)
client.close()
