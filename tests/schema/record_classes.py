"""Record classes of every shape. `official_client.json` holds what the official client makes of
them: their definitions, its answer to each value of VALUES, and the records of RECORDS encoded.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from pulsarx.schema import (
    Array,
    Boolean,
    Bytes,
    CustomEnum,
    Double,
    Float,
    Integer,
    Long,
    Map,
    Null,
    Record,
    String,
)


class Color(Enum):
    red = 1
    green = 2
    blue = 3


class Fruit(Enum):
    apple = "an apple"
    pear = "a pear"


class Plain(Record):
    a = String()
    b = Integer()
    c = Long()
    d = Float()
    e = Double()
    f = Boolean()
    g = Bytes()
    h = Null()


class Required(Record):
    a = String(required=True)
    b = Integer(required=True)
    c = Long(required=True)
    d = Float(required=True)
    e = Double(required=True)
    f = Boolean(required=True)
    h = Null(required=True)


class Defaults(Record):
    a = String(default="x")
    b = Integer(default=1)
    c = Long(default=2)
    d = Float(default=1.5)
    e = Double(default=2.5)
    f = Boolean(default=True)
    g = Bytes(default=b"ab")


class RequiredWithDefaults(Record):
    a = String(required=True, default="x")
    b = Integer(required=True, default=1)
    f = Boolean(required=True, default=False)
    d = Double(default=0.5, required=True)


class DefaultsInDefinition(Record):
    a = String(required_default=True)
    b = Integer(default=3, required_default=True)
    c = Boolean(required_default=True, required=True)
    d = String("text", True, True)


class Enumerated(Record):
    a = CustomEnum(Color)
    b = CustomEnum(Color, required=True)
    c = CustomEnum(Color, default=Color.green)
    e = CustomEnum(Color, required_default=True)


class EnumeratedDirectly(Record):
    a = Color
    b = Color


class Inner(Record):
    x = String()
    y = Integer()


class Middle(Record):
    z = Inner()
    w = Long(required=True)


class Nested(Record):
    i = Inner()
    j = Inner(required=True)
    k = Inner(required_default=True)


class Deep(Record):
    a = Array(Map(Array(Middle())))
    b = Middle()


class Arrays(Record):
    a = Array(String())
    b = Array(Integer(), required=True)
    c = Array(Inner())
    d = Array(Inner())
    e = Array(Array(Long()))
    h = Array(Map(Double()))
    i = Array(Boolean(), required_default=True)


class Maps(Record):
    a = Map(String())
    b = Map(Integer(), required=True)
    c = Map(Inner())
    e = Map(Map(Long()))
    h = Map(Array(Inner()))


class ArraysOfEnumerations(Record):
    g = Array(CustomEnum(Color))
    h = Map(CustomEnum(Color))


class Namespaced(Record):
    _avro_namespace = "com.example"
    a = String()
    b = Inner()


class InNamespace(Record):
    _avro_namespace = "x.y"
    a = Integer()


class SeveralNamespaces(Record):
    _avro_namespace = "com.z"
    a = InNamespace()
    b = InNamespace()
    c = Array(InNamespace())
    d = CustomEnum(Color)


class Sorted(Record):
    _sorted_fields = True
    z = String()
    a = Integer()
    m = Inner()


class Base(Record):
    a = String()
    b = Integer(required=True)


class Child(Base):
    c = Long()
    a = Integer()


class Empty(Record):
    pass


class ByClass(Record):
    a = Inner


CLASSES: list[Any] = [
    Plain, Required, Defaults, RequiredWithDefaults, DefaultsInDefinition, Enumerated,
    EnumeratedDirectly, Inner, Middle, Nested, Deep, Arrays, Maps, ArraysOfEnumerations, Namespaced,
    InNamespace, SeveralNamespaces, Sorted, Base, Child, Empty, ByClass,
]  # fmt: skip
CHECKED: list[Any] = [
    Plain,
    Required,
    Defaults,
    Enumerated,
    EnumeratedDirectly,
    Nested,
    Arrays,
    Maps,
]
# Expressions, so that both clients are given values of their own classes.
VALUES = [
    "None", "1", "2**31", "1.5", "'x'", "b'b'", "True", "[]", "{}", "[1]", "['a']", "{'a': 1}",
    "{1: 'a'}", "Color.red", "Fruit.apple", "Inner()", "object", "[None]", "{'a': None}",
    "['a', 1]", "[Inner()]", "{'a': Inner()}", "[[1]]", "{'a': {'b': 1}}",
]  # fmt: skip
RECORDS: dict[str, Any] = {
    "nothing given": lambda: Plain(),
    "everything given": lambda: Plain(a="s", b=1, c=2, d=1.5, e=2.5, f=True, g=b"ab"),
    "integers for floats": lambda: Plain(a='sä\n"', b=-1, c=2**40, d=1, e=2, f=False),
    "defaults": lambda: Defaults(a="y"),
    "nested": lambda: Nested(i=Inner(x="1", y=2), j=Inner()),
    "nested as dicts": lambda: Nested(i={"x": "1", "y": 2}, j={"x": "3"}),
    "nested is None": lambda: Nested(i=None, j=Inner(x="q")),
    "deep": lambda: Deep(a=[{"m": [Middle(z=Inner(x="ü"), w=5)]}], b=Middle(w=7)),
    "arrays": lambda: Arrays(
        a=["x", "y"], b=[1, 2], c=[Inner(x="a", y=2)], d=[], e=[[1], [2, 3]], h=[{"a": 1.5}]
    ),
    "items as dicts": lambda: Arrays(c=[{"x": "1"}], b=[]),
    "maps": lambda: Maps(
        a={"x": "y"}, b={"q": 1}, c={"i": Inner(x="a")}, e={"m": {"n": 3}}, h={"z": [Inner(y=3)]}
    ),
    "enumerations": lambda: Enumerated(a=Color.red, b=Color.blue),
    "enumerations by name and value": lambda: Enumerated(a="red", b=2),
    "enumerations by class": lambda: EnumeratedDirectly(a=Color.red, b=Color.blue),
    "namespaces": lambda: SeveralNamespaces(
        a=InNamespace(a=1), c=[InNamespace(a=2)], d=Color.green
    ),
    "an inner record in the namespace of its outer": lambda: Namespaced(a="x", b=Inner(x="y")),
    "sorted": lambda: Sorted(z="z", a=1, m=Inner(y=1)),
    "a child": lambda: Child(a=1, c=3),
    "empty": lambda: Empty(),
}
