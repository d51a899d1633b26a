"""Everything of pulsar.schema by its star import, and what records do by themselves."""

from pulsar.schema import *


class Point(Record):
    x = Integer()
    y = Integer(default=5)


class Line(Record):
    start = Point()
    points = Array(Point())
    labels = Map(String())
    note = String(default="-")
    ratio = Float(required=True)


def attempt(call):
    try:
        print(call())
    except Exception as error:
        print(f"{type(error).__name__}: {error}")


line = Line(start=Point(x=1), points=[Point(x=2, y=3)], labels={"a": "b"}, ratio=0.5)
print(line.start.x, line.start.y, line.points[0].y, line.labels, line.note, line.ratio)
print(Line.schema())
print(line == Line(start=Point(x=1), points=[Point(x=2, y=3)], labels={"a": "b"}, ratio=0.5))
print(line != Line(ratio=0.5))
print(JsonSchema(Point).decode(JsonSchema(Point).encode(Point(x=7))).x)
print(JsonSchema(Point).decode(b'{"x": 8, "y": 9}').y)
print(StringSchema().encode("text"), StringSchema().decode(b"text"))
print(BytesSchema().encode(b"raw"), str(BytesSchema()), str(StringSchema()))
attempt(lambda: Point(x="one"))
attempt(lambda: Line(points=[1]))
attempt(lambda: Line(labels={1: "b"}))
attempt(lambda: StringSchema().encode(b"bytes"))
attempt(lambda: BytesSchema().encode("text"))
print(schema.__name__, definition.__name__, schema_avro.__name__)
