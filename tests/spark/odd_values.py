"""Odd values of JSON, and the schemas that they are read by: what from_json of Spark gives for each
is what PulsarX gives (test_odd_values)."""

from __future__ import annotations

# Columns, by the reader that has a row of them in one way. The native one ...
NATIVE = {
    "i": "int", "l": "bigint", "d": "double", "b": "boolean", "s": "string", "bin": "binary",
    "day": "date", "at": "timestamp", "ntz": "timestamp_ntz", "li": "array<int>",
    "ls": "array<string>", "st": "struct<a: int, s: string>",
    "lst": "array<struct<a: int, at: timestamp>>",
}  # fmt: skip
# ... that of PyArrow ...
ARROW = {
    "i": "int", "l": "bigint", "d": "double", "s": "string", "at": "timestamp",
    "by": "tinyint", "sh": "smallint", "f": "float", "d9": "decimal(9,2)",
    "st": "struct<a: int, s: string>", "d38": "decimal(38,18)", "d5": "decimal(5,0)",
    "std": "struct<d: decimal(4,2), by: tinyint, st: struct<day: date>>",
    "ll": "array<array<int>>",
}  # fmt: skip
# ... and the one for what is odd.
SINGLE = {
    "i": "int", "l": "bigint", "d": "double", "s": "string", "by": "tinyint", "f": "float",
    "m": "map<string, int>", "ms": "map<string, string>", "ml": "map<string, array<int>>",
    "mst": "map<string, struct<a: int>>",
}  # fmt: skip
SCHEMAS = {"native": NATIVE, "arrow": ARROW, "single": SINGLE}
_NESTED_COLUMNS = {"li", "ls", "st", "lst", "std", "ll", "m", "ms", "ml", "mst", "s", "i"}
_TEXT_COLUMNS = {"s", "d", "f", "i", "b", "d9", "d38", "d5", "st", "ls", "m", "ms"}
_TIME_COLUMNS = {"day", "at", "ntz"}
_NUMBER_COLUMNS = {"i", "l", "d", "s", "b", "at", "ntz", "by", "sh", "f", "d9", "d38", "d5", "li"}

NUMBERS = [
    "0",
    "-0",
    "1",
    "-1",
    "1.0",
    "-1.0",
    "1.5",
    "0.0",
    "-0.0",
    "127",
    "128",
    "200",
    "255",
    "256",
    "-128",
    "-129",
    "32767",
    "32768",
    "65535",
    "-32769",
    "2147483647",
    "2147483648",
    "-2147483648",
    "-2147483649",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "123456789012345678901234567890",
    "1e2",
    "1E2",
    "1e+2",
    "1e-2",
    "1e0",
    "100e-2",
    "1e308",
    "1e309",
    "1e400",
    "-1e400",
    "1e-400",
    "5e-324",
    "3.4028235e38",
    "3.5e38",
    "1e39",
    "1e-46",
    "0.1",
    "0.30000000000000004",
    "16777217",
    "9007199254740993",
    "123456789.123456789",
    "0.005",
    "0.015",
    "0.004999",
    "1234567.89",
    "12345678.9",
    "99999.4",
    "99999.5",
    "100000",
    "0.123456789012345678",
    "0.1234567890123456785",
    "12345678901234567890.123456789012345678",
    "123456789012345678901.5",
    "1e37",
    "1e20",
    "1e19",
    "01",
    "00",
    "-01",
    "+1",
    ".5",
    "-.5",
    "1.",
    "1.e2",
    "1e",
    "1e+",
    "--1",
    "-",
    "+",
    "0x1F",
    "1_0",
    "1f",
    "1L",
    "NaN",
    "-NaN",
    "Infinity",
    "+Infinity",
    "-Infinity",
    "INF",
    "-INF",
    "+INF",
    "nan",
    "inf",
    "1359626400",
    "1359626400000",
    "1359626400.5",
    "-62135596800",
    "253402300800",
    "9223372036854",
    "9223372036855",
    "15736",
    "2.2250738585072014e-308",
    "1.7976931348623157e308",
    "12345678901234567e5",
    "1e10",
    "1e7",
    "1e-3",
    "1e-5",
    "100.0",
    "123456789012.5",
]

LITERALS = [
    "true",
    "false",
    "null",
    "True",
    "FALSE",
    "nul",
    "tru",
    "truex",
    "None",
    "undefined",
    "[]",
    "{}",
    "[1]",
    "[null]",
]

NESTED = (
    '{"a":"\\ud83d"}',
    "[1,2,3]",
    '[1,"x",3]',
    '[1,{"b":5},3]',
    "[1,[2],3]",
    "[1.0]",
    '["a",1,true,null,{"b":[1.10]}]',
    "[1,]",
    "[,1]",
    "[1 2]",
    "[1",
    '[[1],[2,"x"],[3]]',
    "[[1],null]",
    '[{"a":1},null,{"a":"x"},{"a":3}]',
    '[{"a":1},2]',
    '[{"at":"2013-01-31T10:00:00Z"},{"at":"soon"},{"at":1}]',
    '{"a":1}',
    '{"a":1,"b":2}',
    '{"a":"1","s":"t"}',
    '{"a":1,"s":{"x": [1.10, "é"] }}',
    '{"a":1,"a":2}',
    '{"a":null,"s":null}',
    '{"a":1,"s":2,}',
    "{,}",
    '{"a"}',
    '{"a":}',
    '{"a" 1}',
    '{"A":1}',
    '{"":1}',
    '{"a":[1,2]}',
    '{"a":[1,"x"],"b":[3]}',
    '{"a":{"a":1},"b":{"a":"x"},"c":{"a":3}}',
    '{"a":tru,"s":"t"}',
    '{"d":1.5,"by":1,"st":{"day":"2013-01-31"}}',
    '{"d":1000,"by":1,"st":{"day":"soon"}}',
    '{"d":1.555}',
    '{"st":{"day":1}}',
    '{"st":[]}',
    '{"by":200}',
    '{"a":1',
    '{"a":1]',
    "{1:2}",
    '{"a":1,,"s":"t"}',
)

TEXTS = tuple(
    f'"{each}"'
    for each in (
        "",
        " ",
        "a",
        "é水🐟",
        "1",
        "1.0",
        " 1",
        "1 ",
        "-1",
        "+1",
        "01",
        "1e2",
        "1,000",
        "1,5",
        "0x1F",
        "true",
        "false",
        "null",
        "NaN",
        "nan",
        "Infinity",
        "-Infinity",
        "+Infinity",
        "INF",
        "+INF",
        "-INF",
        "inf",
        "1.10",
        "1.105",
        "1.115",
        "-1.105",
        "12345678.9",
        "123456789",
        "99999.5",
        "1e400",
        ".5",
        "1.",
        "١",
        r"\u00e9",
        r"\ud83d\ude00",
        r"\ud83d",
        r"\ude00",
        r"\ud83dx",
        r"\u0000",
        r"\"\\\/\b\f\n\r\t",
        r"\x",
        r"\u12",
        r"\u12g4",
        r"\'",
        "'",
        "tab\there",
        "line\nbreak",
        "\x7f",
        "\u2028",
        "\ufeff",
        "\x01",
        "AQID",
        "AQI=",
        "AQI",
        "A",
        "A===",
        "AQ==AQ",
        "A Q I D",
        "_-8=",
        "é===",
    )
)

TIMES = tuple(
    f'"{each}"'
    for each in (
        "2013-01-31",
        "2013-1-3",
        "2013-01",
        "2013",
        "13-01-31",
        "2013-02-30",
        "2013-13-01",
        "2013-00-01",
        "2013-01-31T",
        "2013-01-31 ",
        " 2013-01-31",
        "2013-01-31x",
        "2013-01-31T10:00:00Z",
        "2013/01/31",
        "31.01.2013",
        "20130131",
        "0001-01-01",
        "0000-01-01",
        "-0001-01-01",
        "-2013-01-31",
        "+2013-01-31",
        "9999-12-31",
        "10000-01-01",
        "+10000-01-01",
        "294247-01-10",
        "1582-10-10",
        "1500-02-29",
        "12013-01-31",
        "2013-01-31T10",
        "2013-01-31T10Z",
        "2013-01-31T10:00",
        "2013-01-31T10:00Z",
        "2013-01-31T10:00:00",
        "2013-01-31 10:00:00",
        "2013-01-31 10:00:00Z",
        "2013-01-31 10:00:00 Z",
        "2013-01-31 10:00:00  Z",
        "2013-01-31T10:00:00.1Z",
        "2013-01-31T10:00:00.123Z",
        "2013-01-31T10:00:00.123456Z",
        "2013-01-31T10:00:00.123456789Z",
        "2013-01-31T10:00:00.1234567890123",
        "2013-01-31T10:00:00.",
        "2013-01-31T10:00:00.Z",
        "2013-01-31T10:00:00z",
        "2013-01-31t10:00:00Z",
        "2013-1-3 1:2:3",
        "2013-01-31T24:00:00Z",
        "2013-01-31T23:59:60Z",
        "2013-01-31T25:00:00Z",
        "2013-01-31T10:60:00Z",
        "2013-01-31T10:00:00+01:00",
        "2013-01-31T10:00:00+0100",
        "2013-01-31T10:00:00+01",
        "2013-01-31T10:00:00+1",
        "2013-01-31T10:00:00+1:00",
        "2013-01-31T10:00:00-01:30",
        "2013-01-31T10:00:00+18:00",
        "2013-01-31T10:00:00+19:00",
        "2013-01-31T10:00:00+01:00:30",
        "2013-01-31T10:00:00-00:00",
        "2013-01-31T10:00:00UTC",
        "2013-01-31T10:00:00 GMT+1",
        "2013-01-31T10:00:00 UTC+01:00",
        "2013-01-31T10:00:00 UT+1",
        "2013-01-31T10:00:00 Europe/Paris",
        "2013-01-31T10:00:00[Europe/Paris]",
        "2013-01-31T10:00:00 PST",
        "2013-01-31T10:00:00 europe/paris",
        "2013-01-31T10:00:00 Nowhere/Town",
        "2013-01-31T10:00:00 CET",
        "2013-01-31T10:00:00+01:00[Europe/Paris]",
        "2013-03-31T02:30:00",
        "2013-10-27T02:30:00",
        "10:00:00Z x",
        "2013-01-31 10:00:00 AM",
        "Thu Jan 31 10:00:00 UTC 2013",
        "1359626400",
        "15736",
        "-1",
        "now",
        "epoch",
        "today",
        "2013-W05-4",
        "2013-031",
        "2013-01-31T10:00:00,5Z",
        "2013-01-31T10-00-00",
        "2013-01-31T10:00:00GMT+02:00",
        "2013-01-31GMT+02:00",
        "2013-01-31T10:00:00.5 +0530",
        "2013-01-31-08:00",
        "2013-01-31T100:00:00",
        "2013-01-31 10:00:00\\u0000",
        "2013-01-31T10:00:00Z\\n",
    )
)

# Whole documents. Bytes, since some are no text.
DOCUMENTS: tuple[bytes, ...] = (
    b"",
    b" ",
    b"\n\t ",
    b"null",
    b" null ",
    b"true",
    b"1",
    b'"x"',
    b"[]",
    b"[1]",
    b'[{"i":1}]',
    b"{}",
    b" {} ",
    b"{",
    b"}",
    b'{"i":1',
    b'{"i":1,',
    b'{"i":1,}',
    b'{"i":1}}',
    b'{"i":1} x',
    b'{"i":1}{"i":2}',
    b'{"i":1}\n{"i":2}',
    b'{"i":1},',
    b'{"i":1} // c',
    b'{"i":1/* c */}',
    b'# c\n{"i":1}',
    b'/* c */ {"i":1}',
    b'{/*c*/"i"/*c*/:/*c*/1}',
    b"{'i':1}",
    b"{'s':'x'}",
    b"{'s':'it\\'s'}",
    b'{"s":\'a"b\'}',
    b"{i:1}",
    b"{i:1,s:'x'}",
    b"{$i_1:1,i:2}",
    b'{"i":1,"i":2}',
    b'{"i":1,"i":"x"}',
    b'{"i":"x","i":2}',
    b'{"i":1,"i":null}',
    b'{"I":1}',
    b'{"i ":1}',
    b'{"\\u0069":1}',
    b'{"s":"a","s":"b","st":{"a":1,"a":2}}',
    b'{"i":1,"x":tru}',
    b'{"i":1,"x":"\t"}',
    b'{"i":1,"x":01}',
    b'{"i":1,"x":NaN}',
    b'{"i":1,"x":-Infinity,"l":2}',
    b'{"i":1,"x":-NaN,"l":2}',
    b'{"d":1.5,"x":{"q":[Inf]}}',
    b'{"d":1.5,"x":[1,-Inf]}',
    b'{"d":1.5,"x":"-NaN, \\"-Inf"}',
    b'{"d":-0.0,"x":NaN}',
    b'{"d":-0.0,"x":-0}',
    b'{"i":1,"x":[1,2,{"y":[]}],"l":2}',
    b'{"i":1,"st":{"a":tru},"l":2}',
    b'{"i":1,"st":{"a":1,"s":"\t"},"l":2}',
    b'{"i":1,"s":"\t","l":2}',
    b'{"i":1,"s":"\\x","l":2}',
    b'{"i":1,"l":"2","d":3}',
    b'{"i":"1","l":2,"d":3}',
    b'{"i":1,"li":[1,"x",3],"l":2}',
    b'{"i":1,"lst":[{"a":1},{"a":"x"}],"l":2}',
    b'{"i":1,"st":5,"l":2}',
    b'{"i":1,"st":[{"a":1}],"l":2}',
    b'{"i":1,"li":{"a":[1]},"l":2}',
    b'{"i":{"i":7},"l":2}',
    b'{"i":[{"l":7}],"l":2}',
    b'{"i":1,"s":"\xff","l":2}',
    b'{"i":1,"x":"\xff","l":2}',
    b'{"i":1,"s":"\xc3","l":2}',
    b'{"i":1,"s":"\xed\xa0\x80"}',
    b'{"i":1,"s":"\xf0\x9f\x90"}',
    b'{"i":1,"s":"\xc0\x80"}',
    b'{"\xff":1,"i":1}',
    b"\xff\xfe{\x00}\x00",
    b'\xef\xbb\xbf{"i":1}',
    b'{"i":1,"s":"\x00","l":2}',
    b'{"i":1}\x00',
    b'\x00{"i":1}',
    b'{"i":1,\x0c"l":2}',
    b'{"i":1,\xc2\xa0"l":2}',
    b'{"i":1,\xe2\x80\xa8"l":2}',
    b'{"i":1;"l":2}',
    b'{"i"=1}',
    b'{"i":1 "l":2}',
    b'{"i":,"l":2}',
    b'{"i":1,,"l":2}',
    b'{,"i":1}',
    b'{"i"}',
    b'{"i":}',
    b"{1:1}",
    b"{null:1}",
    b'{"":1,"i":1}',
    b"{}[]",
    b"nul",
    b"NaN",
    b'{"i":' + b"1" * 999 + b"}",
    b'{"d":' + b"1" * 999 + b"}",
    b'{"d":' + b"1" * 1001 + b"}",
    b'{"d":0.' + b"1" * 1001 + b"}",
    b'{"x":' + b"1" * 1001 + b',"i":1}',
    b'{"x":' + b"[" * 200 + b"]" * 200 + b',"i":1}',
    b'{"x":' + b"[" * 999 + b"]" * 999 + b',"i":1}',
    b'{"x":' + b"[" * 1000 + b"]" * 1000 + b',"i":1}',
    b'{"i":1,"x":' + b"[" * 70 + b"}",
    b'{"s":' + b'{"a":' * 100 + b"1" + b"}" * 100 + b',"i":1}',
    b'{"s":"' + b"x" * 100000 + b'"}',
    b'{"' + b"k" * 5000 + b'":1,"i":1}',
    b'{"' + b"k" * 50001 + b'":1,"i":1}',
    b'{"s":{"b" : 1.10 , "a":[ 1e2,-0,null,true,"\\u00e9\\n\\/"],"c":{}} ,"i":1}',
    b'{"s":1.10}',
    b'{"s":1E400}',
    b'{"s":-0}',
    b'{"s":123456789012345678901234567890}',
    b'{"s":0.1e-7}',
    b'{"s":[NaN,1]}',
    b'{"s":NaN}',
    b"{'s':['a',\"b\"]}",
    b'{"s":{"a":1,"a":2}}',
    b'{"s":"\\ud83d"}',
    b'{"s":["\\ud83d"]}',
    b'{"s":[1,tru],"i":1}',
    b'{"i":1,"s":[1,2}',
    b'{"s":{"\\u0000":"\\u001f\\u2028\x7f"}}',
    b'{"st":null,"i":1}',
    b'{"st":{},"i":1}',
    b'{"st":"","i":1}',
    b'{"li":"","i":1}',
    b'{"lst":[{},null,{"a":null}],"i":1}',
    b'{"i":1,"l":2,"d":3,"b":true,"s":"x","day":"2013-01-31","at":"2013-01-31T10:00:00Z","ntz":"2013-01-31T10:00:00"}',
    b'{"day":"2013-01-31","at":"2013-01-31T10:00:00","ntz":"2013-01-31T10:00:00Z","i":1}',
    b'{"at":"soon","day":"2013-01-31","i":1}',
    b'{"i":1.0,"l":1}',
    b'{"i":1,"d":1e400}',
    b'{"i":1,"b":"true"}',
    b'{"i":1,"b":0}',
)
OTHER_DOCUMENTS: tuple[bytes, ...] = (
    b'{"m":{"a":1,"a":2},"by":1}',
    b'{"m":{"a":"x","b":1},"by":1}',
    b'{"m":{"a":null},"by":1}',
    b'{"m":null,"by":1}',
    b'{"ms":{"a":1,"b":[1, 2],"c":null,"":"x"},"by":1}',
    b'{"ml":{"a":[1,"x",2],"b":[3]},"by":1}',
    b'{"mst":{"a":{"a":1},"b":{"a":"x"}},"by":1}',
    b'{"m":{"a":1},"m":{"b":2}}',
    b'{"m":{"a":tru},"by":1}',
    b"{'m':{'a':1}}",
    b'{"by":1,"sh":"x","f":0.1}',
    b'{"by":1,"d9":12345678.9,"f":0.1}',
    b'{"std":{"d":1.5,"by":300,"st":{"day":"2013-01-31"}},"by":1}',
    b'{"ll":[[1,"x"],[2]],"by":1}',
    b'{"by":1,"f":0.1} x',
    b'{"by":1,"s":"\xff"}',
    b'{"by":1,"by":2}',
    b"",
    b"null",
    b"[]",
    b'{"m":{"\\u0061":1},"by":1}',
    b'{"m":{"a":1.0},"by":1}',
    b'{"by":1,"x":"\\ud83d"}',
    b'{"f":1e39,"by":1}',
)


_BINARY = ('"AQID"', '"AQI="', '"A"', '"a"', '""', '" "', '"é"', "1", "true", "[]", "null")
_DAYS = ("0", "15736", "-1", "1.5", "1e3", "2147483648", "true", "null")


def documents(columns: dict[str, str]) -> list[bytes]:
    """Each value in the columns that it is for, and the documents."""
    groups = (
        (NUMBERS, _NUMBER_COLUMNS),
        (LITERALS, columns.keys() - {"bin", "day"}),
        (NESTED, _NESTED_COLUMNS),
        (TEXTS, _TEXT_COLUMNS),
        (TIMES, _TIME_COLUMNS),
        (_BINARY, {"bin"}),
        (_DAYS, {"day"}),
    )
    found = [
        f'{{"{name}":{value}}}'.encode()
        for values, names in groups
        for value in values
        for name in columns
        if name in names
    ]
    found += DOCUMENTS
    if "by" in columns:
        found += OTHER_DOCUMENTS
    return list(dict.fromkeys(found))


def _in(name: str, values: str) -> list[bytes]:
    return [f'{{"{name}":{value}}}'.encode() for value in values.split()]


# What differs from from_json, and why: these documents, and no other ones.
DIFFERENCES: dict[str, list[bytes]] = {
    "a column of binary has the text in UTF-8, as it is written; from_json takes it for base64": [
        b'{"bin":"AQID"}',
        b'{"bin":"AQI="}',
        b'{"bin":"A"}',
        b'{"bin":"a"}',
        b'{"bin":" "}',
        '{"bin":"é"}'.encode(),
    ],
    "a date may be days since 1970, as Avro has it": [
        *_in("day", "0 15736 -1"),
        b'{"std":{"st":{"day":1}}}',
    ],
    "a column of text has a number as it stands there; from_json as Java writes a double": [
        *_in(
            "s",
            "1e2 1E2 1e+2 1e-2 1e0 100e-2 1e308 1e309 1e400 -1e400 1e-400 5e-324 3.4028235e38 "
            "3.5e38 1e39 1e-46 123456789.123456789 12345678.9 0.123456789012345678 "
            "0.1234567890123456785 12345678901234567890.123456789012345678 "
            "123456789012345678901.5 1e37 1e20 1e19 NaN Infinity +Infinity -Infinity -INF +INF "
            "1359626400.5 2.2250738585072014e-308 1.7976931348623157e308 12345678901234567e5 1e10 "
            "1e7 1e-3 1e-5 123456789012.5 1.10 1E400 0.1e-7",
        ),
        b'{"s":["a",1,true,null,{"b":[1.10]}]}',
        b'{"ls":["a",1,true,null,{"b":[1.10]}]}',
        '{"s":{"a":1,"s":{"x": [1.10, "é"] }}}'.encode(),
        '{"st":{"a":1,"s":{"x": [1.10, "é"] }}}'.encode(),
        '{"ms":{"a":1,"s":{"x": [1.10, "é"] }}}'.encode(),
        b'{"s":{"b" : 1.10 , "a":[ 1e2,-0,null,true,"\\u00e9\\n\\/"],"c":{}} ,"i":1}',
        b'{"s":[NaN,1]}',
    ],
    "a decimal is exact or malformed; from_json rounds it": [
        *_in(
            "d5",
            "1.5 1e-2 1e-400 5e-324 1e-46 0.1 0.30000000000000004 0.005 0.015 0.004999 99999.4 "
            "0.123456789012345678 0.1234567890123456785 2.2250738585072014e-308 1e-3 1e-5 "
            '"1.10" "1.105" "1.115" "-1.105" ".5"',
        ),
        *_in(
            "d9",
            "1e-400 5e-324 1e-46 0.30000000000000004 0.005 0.015 0.004999 0.123456789012345678 "
            "0.1234567890123456785 2.2250738585072014e-308 1e-3 1e-5 "
            '"1.105" "1.115" "-1.105"',
        ),
        *_in("d38", "1e-400 5e-324 1e-46 0.1234567890123456785 2.2250738585072014e-308"),
        b'{"std":{"d":1.555}}',
    ],
    "a number that is too large is malformed; from_json makes another one of it": [
        *_in("by", "128 200 255"),
        b'{"std":{"by":200}}',
        *_in("at", "9223372036854775807 9007199254740993 9223372036855"),
    ],
    "half a surrogate pair is malformed; from_json has a question mark": [
        *_in("s", '"\\ud83d" "\\ude00" "\\ud83dx"'),
        b'{"ms":{"a":"\\ud83d"}}',
    ],
    "bytes that are no UTF-8 are malformed; from_json has marks for them": [
        b'{"i":1,"s":"\xff","l":2}',
        b'{"i":1,"x":"\xff","l":2}',
        b'{"i":1,"s":"\xc3","l":2}',
        b'{"i":1,"s":"\xed\xa0\x80"}',
        b'{"i":1,"s":"\xf0\x9f\x90"}',
        b'{"i":1,"s":"\xc0\x80"}',
        b'{"\xff":1,"i":1}',
        b'{"by":1,"s":"\xff"}',
    ],
    "something behind the object is malformed; from_json does not look there": [
        b'{"i":1}}',
        b'{"i":1} x',
        b'{"i":1}{"i":2}',
        b'{"i":1}\n{"i":2}',
        b'{"i":1},',
        b'{"i":1} // c',
        b'{"i":1}\x00',
        b"{}[]",
        b'{"by":1,"f":0.1} x',
    ],
    "a zone may stand behind hours or minutes, and be more than 18 hours from UTC": [
        *_in("at", '"2013-01-31T10Z" "2013-01-31T10:00Z" "2013-01-31T10:00:00+19:00"'),
    ],
}

# Documents by options of from_json.
_QUOTES = (b"{'i':1}", b"{'s':'x'}", b"{\"s\":'x'}", b'{"s":"it\\\'s"}', b"{\"i\":1,'x':2}")
_ODD_NUMBERS = (
    *_in("d", 'NaN Infinity -INF +INF "NaN" "-Infinity" "+INF" 1 -NaN'),
    *_in("x", "NaN -Infinity -NaN"),
    b'{"d":1.5,"x":NaN}',
    b'{"d":1.5,"x":{"q":[Infinity]}}',
)
_ZONED = tuple(
    f'{{"at":"{each}","day":"2013-01-31"}}'.encode()
    for each in ("2013-01-31T10:00:00Z", "2013-01-31 10:00:00", "2013-07-31T10:00:00", "2013-01-31")
)
_FORMATTED = (
    b'{"at":1359626400}',
    b'{"at":1.5}',
    *(f'{{"{name}":"{each}"}}'.encode()
    for name in ("at", "ntz", "day")
    for each in (
        "31/01/2013 10:20:30", "31/1/2013 10:20:30", "31/02/2013 10:20:30", "31/01/2013", "15736",
        "31/01/2013 10:20:30 ", " 31/01/2013", "2013-01-31", "2013-01-31T10:20:30Z", "",
        "31.01.2013",
        "2013-01-31GMT", "2013-01-31T10:20:30GMT+02:00", "31/01/2013 24:00:00", "1/01/2013",
    )),
)  # fmt: skip
_OTHER_ZONES = ("EST", "EDT", "IST", "HST", "europe/paris", "Eastern Standard Time")
_ZONES = (
    *_OTHER_ZONES, "Z", "z", "UTC", "utc", "GMT", "UT", "CET", "+02:00", "+0200", "+02", "+2",
    "+02:00:30", "GMT+02:00", "gmt+02:00", "GMT+02:00:30", "GMT+2", "GMT+02", "GMT-08:00", "GMT0",
    "UTC+02:00", "UTC+2", "UT+02:00", "UTC+0200", "Europe/Paris", "America/Port-au-Prince",
    "EST5EDT", "Nowhere/Town", "Etc/GMT+5", "Etc/GMT-5", "Etc/GMT", "GMT-0", "UTC0",
)  # fmt: skip
_YEARS = (
    "1", "13", "013", "0013", "2013", "02013", "12013", "+2013", "+12013", "+02013", "-1", "-013",
    "-2013", "-12013", "0", "-0", "0000", "-0000", "120130",
)  # fmt: skip


def _hours(pattern: str) -> list[str]:
    found = (
        "2013-01-31 " + pattern.replace("HH", hour).replace("hh", half).replace("a", side)
        for hour in ("00", "01", "12", "13", "24")
        for half in ("00", "01", "11", "12", "13")
        for side in ("am", "PM")
    )
    return list(dict.fromkeys(found))


OPTION_SETS: list[tuple[dict[str, str], tuple[bytes, ...]]] = [
    (
        {"allowComments": "true"},
        (
            b'{"i":1/* c */}', b'/* c */ {"i":1}', b'{/*c*/"i"/*c*/:/*c*/1}', b'// c\n{"i":1}',
            b'{"i":1 // c\n}', b'{"i":1} // c', b'# c\n{"i":1}', b'{"i":1/* c }', b'{"i":1 / 2}',
            b'{"i":/**/1,/***/"l":/*\n*/2}', b'{"s":"/* x */"}', b"// c", b"/* c */",
        ),
    ),
    (
        {"allowUnquotedFieldNames": "true"},
        (
            b"{i:1}", b"{i:1,s:'x'}", b"{$i_1:1,i:2}", b"{i :1}", b"{1:2,i:1}", b"{a-b:1,i:1}",
            b"{i}",
            '{é:1,i:1}'.encode(), b"{:1}", b"{i:x}", b"{st:{a:1}}", b'{"i":1,}', b"{,i:1}",
        ),
    ),
    ({"allowSingleQuotes": "false"}, _QUOTES),
    ({"allowSingleQuotes": "true"}, _QUOTES),
    (
        {"allowNumericLeadingZeros": "true"},
        (*_in("i", "01 00 007 -01 0 00.5 0 1"), *_in("d", "01 00.5 -007.5 00e1"), b'{"s":007}'),
    ),
    ({"allowNonNumericNumbers": "false"}, _ODD_NUMBERS),
    ({"allowNonNumericNumbers": "true"}, _ODD_NUMBERS),
    (
        {"allowBackslashEscapingAnyCharacter": "true"},
        (b'{"s":"\\x"}', b'{"s":"\\q\\\'\\0"}', b'{"s":"\\u12"}', b'{"\\i":1}', b'{"s":"\\'),
    ),
    (
        {"allowUnquotedControlChars": "true"},
        (b'{"s":"a\tb"}', b'{"s":"\x00\x01\n"}', b'{"a\tb":1,"i":1}', b'{"i":1,\x0c"l":2}'),
    ),
    ({"timeZone": "America/New_York"}, _ZONED),
    ({"timeZone": "+05:30"}, _ZONED),
    ({"timestampFormat": "dd/MM/yyyy HH:mm:ss"}, _FORMATTED),
    ({"timestampNTZFormat": "dd/MM/yyyy HH:mm:ss"}, _FORMATTED),
    ({"dateFormat": "dd/MM/yyyy"}, _FORMATTED),
    (
        {
            "timestampFormat": "dd/MM/yyyy HH:mm:ss",
            "dateFormat": "dd/MM/yyyy",
            "enableDateTimeParsingFallback": "true",
        },
        _FORMATTED,
    ),
    ({"enableDateTimeParsingFallback": "false"}, _FORMATTED),
    (
        {
            "dateFormat": "d MMM yyyy",
            "timestampFormat": "d MMMM yyyy hh:mm a XXX",
            "locale": "en-US",
        },
        (
            b'{"day":"3 Jan 2013"}', b'{"day":"03 Jan 2013"}', b'{"day":"3 Foo 2013"}',
            b'{"day":"3 jan 2013"}', b'{"at":"31 January 2013 12:00 PM +02:00"}',
            b'{"at":"31 January 2013 13:00 PM +02:00"}', b'{"at":"31 January 2013 12:00 PM Z"}',
        ),
    ),
    (
        {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "timeZone": "Europe/Paris"},
        tuple(
            f'{{"at":"{each}"}}'.encode()
            for each in (
                "2013-01-31T10:00:00", "2013-01-31T10:00:00.123", "2013-01-31T10:00:00.123Z",
                "2013-01-31T10:00:00+01:00", "2013-01-31T10:00:00.1Z", "2013-01-31T10:00:00.1234Z",
                "2013-1-31T10:00:00", "2013-01-31T10:00:00+0100", "2013-01-31T10:00:00+01",
            )
        ),
    ),
    *(
        (
            {"timestampFormat": pattern, "timeZone": "Europe/Paris"},
            tuple(f'{{"at":"{each}"}}'.encode() for each in texts),
        )
        for pattern, *texts in (
            ("yyyyMMdd", "20130131", "2013131", "20130231", "2013013", "201301310"),
            ("yyyy-MM-dd HH:mm:ss.SSSSSS", "2013-01-31 10:00:00.123456", "2013-01-31 10:00:00.1",
             "2013-01-31 10:00:00", "2013-01-31 10:00:00.1234567", "2013-01-31 9:00:00.1"),
            ("M/d/yyyy h:mm a", "1/31/2013 1:05 PM", "01/31/2013 12:05 am", "1/31/2013 0:05 PM",
             "1/31/2013 13:05", "1/31/13 1:05 PM", "1/31/2013 1:5 PM"),
            ("dd-MMM-yy", "31-Jan-13", "31-JAN-99", "31-January-13", "1-Jan-13", "31-Jan-2013"),
            ("yyyy-MM-dd'T'HH:mm:ssZ", "2013-01-31T10:00:00+0100", "2013-01-31T10:00:00Z",
             "2013-01-31T10:00:00+01:00", "2013-01-31T10:00:00"),
            ("yyyy-MM-dd HH:mm VV", "2013-01-31 10:00 Asia/Tokyo", "2013-01-31 10:00 Z",
             "2013-01-31 10:00 +01:00", "2013-01-31 10:00 Nowhere/Town",
             "2013-03-31 02:30 Europe/Paris"),
            ("yyyy-MM-dd HH:mmx", "2013-01-31 10:00+01", "2013-01-31 10:00Z",
             "2013-01-31 10:00+0130"),
            ("yyyy", "2013", "13", "02013", "+2013", "-2013", "0000", "12013"),
            ("HH:mm:ss", "10:00:00", "24:00:00", "1:00:00"),
            ("'Day' d 'of' MMMM, yyyy", "Day 1 of March, 2013", "day 01 OF march, 2013",
             "Day 1 of Mar, 2013"),
            ("yyyy-MM-dd HH:mm a", *_hours("HH:05 a")),
            ("yyyy-MM-dd hh:mm", *_hours("hh:05")),
            ("yyyy-MM-dd a", "2013-01-31 am", "2013-01-31 PM"),
            ("yyyy-MM-dd HH hh", *_hours("HH hh")),
            ("yyyy-MM-dd HH hh a", *_hours("HH hh a")),
            ("yyyy-MM-dd HH:ss hh a", *_hours("HH:06 hh a")),
            ("yyyy-MM-dd HH:ss a", *_hours("HH:06 a")),
            ("yyyy-MM-dd HH:mm:SSS hh", *_hours("HH:05:007 hh")),
            *(
                (f"yyyy-MM-dd HH:mm {letters}", *(f"2013-07-31 10:00 {zone}" for zone in _ZONES))
                for letters in ("z", "zzzz", "VV", "O", "ZZZZ")
            ),
            ("y-M-d H:m:s", "2013-001-031 01:002:0003", "13-1-31 1:2:3", "-1-1-31 1:2:3"),
            *(("y" * count, *_YEARS) for count in (1, 4, 5)),
            ("yyyyMMdd", "+120130131", "120130131", "-20130131"),
        )
    ),
    *(
        (
            {"dateFormat": f"yyyy-MM-dd {pattern}"},
            tuple(f'{{"day":"2013-01-31 {each}"}}'.encode() for each in texts),
        )
        for pattern, *texts in (
            ("HH:mm:ss", "24:00:00", "23:60:00", "23:59:60", "23:59:59"),
            ("hh:mm a", "13:34 pm", "12:34 pm", "00:10 am", "11:60 am"),
            ("z", "Z", "GMT+02:00", "+02:00", "+0200", "Europe/Paris", "Nowhere/Town"),
        )
    ),
    *(
        (
            {"dateFormat": pattern},
            tuple(f'{{"day":"{each}{rest}"}}'.encode() for each in _YEARS),
        )
        for pattern, rest in (("yyy-MM-dd", "-01-31"), ("yyyy", ""))
    ),
]  # fmt: skip

# The same of the documents by options.
FORMAT_DIFFERENCES: dict[str, list[bytes]] = {
    "a zone in a format is an offset, UTC, GMT or a region as the tz database has it; from_json "
    "takes it in lower case, too, and behind z what is short or long for it": [
        *(f'{{"at":"2013-07-31 10:00 {zone}"}}'.encode() for zone in _OTHER_ZONES),
    ],
}
