"""The options of format("pulsarx"): one table, and how their texts are read. For data_source.

Names are Spark's for Kafka and the Pulsar connector's where they mean the same; upper and lower
case do not matter. An option that does not exist, or not for what it is given to, is an error with
the nearest name when the query is planned.
"""

from __future__ import annotations

import os

from pulsarx import errors
from pulsarx.broker.offload.store_url import store_of
from pulsarx.spark.cluster_url import READ_ALONE, is_cluster, is_store
from pulsarx.spark.given_filter import filters_of
from pulsarx.spark.value_choice import (
    CORRUPT_RECORD,
    FORMATS,
    JSON,
    JSON_OPTIONS,
    MODES,
    PERMISSIVE,
    SCHEMA,
    check_format,
    rules_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from pulsarx.tables.json_rules import JsonRules

BATCH, STREAM, SINK, STREAM_SINK = "read", "readStream", "write", "writeStream"
_READS = (BATCH, STREAM)
_SINKS = (SINK, STREAM_SINK)
_ALL = _READS + _SINKS
_SIZE_SUFFIXES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
COMPRESSIONS = ("none", "lz4", "zlib", "zstd", "snappy")
HASHINGS = ("JavaStringHash", "Murmur3_32Hash", "BoostHash")
DAY_SECONDS = 86_400
LEASE_DAYS_MAX = 30  # as the owner allows


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty")
    return text.strip()


def _file_path(text: str) -> str:
    plain = _text(text)
    if not os.path.isabs(plain):
        raise ValueError("it must be an absolute path, for the tasks read it, too")
    return plain


def _names(text: str) -> list[str]:
    found = [each.strip() for each in text.split(",") if each.strip()]
    if not found:
        raise ValueError("it names nothing; write names with commas between them")
    return found


def _flag(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("it must be true or false")
    return text.strip().lower() == "true"


def _count(text: str) -> int:
    """At least 1."""
    if not text.strip().isascii() or not text.strip().isdigit() or int(text) < 1:
        raise ValueError("it must be a whole number from 1 up")
    return int(text)


def _number(text: str) -> int:
    """At least 0."""
    if not text.strip().isascii() or not text.strip().isdigit() or int(text) >= 1 << 63:
        raise ValueError("it must be a whole number from 0 up")
    return int(text)


def _size(text: str) -> int:
    """Bytes, as 1048576, 64m, 1GB or 1GiB."""
    import re

    found = re.fullmatch(r"(\d{1,18})\s*(?:([kmgt]?)(?:i?b)?)", text.strip().lower(), re.ASCII)
    if found is None:
        raise ValueError("it must be a number of bytes, as 1048576 or 64m")
    size = int(found[1]) * _SIZE_SUFFIXES[found[2]]
    if size < 1:
        raise ValueError("it must be at least 1 byte")
    return size


def _duration_ms(text: str) -> int:
    """Milliseconds of 15m, 30s, 500ms; a plain number is milliseconds."""
    plain = text.strip().lower()
    digits = plain.rstrip("smhind ")
    unit = plain[len(digits) :].strip()
    factors = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000}
    if not digits.isascii() or not digits.isdigit() or unit not in factors:
        raise ValueError("it must be a duration, as 15m, 30s or 500ms")
    return int(digits) * factors[unit]


def _time_ms(text: str) -> int:
    """Milliseconds since 1970, or an ISO time that says its zone."""
    plain = text.strip()
    if plain.isascii() and plain.isdigit():
        return _number(plain)
    from datetime import datetime

    try:
        found = datetime.fromisoformat(plain)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise ValueError(
            "it must be milliseconds since 1970, or a time with its zone as 2026-01-31T12:00:00Z; "
            "for times by topic there are the options ...OffsetsByTimestamp"
        )
    return max(round(found.timestamp() * 1000), 0)


def _zone(text: str) -> str:
    from pulsarx.tables.json_times import zone_of

    zone_of(text.strip())
    return text.strip()


def _time_format(text: str) -> str:
    from pulsarx.tables.json_times import JsonTimes

    JsonTimes(timestamp_format=text)
    return text


def _locale(text: str) -> str:
    if text.strip().lower().replace("_", "-") not in ("en", "en-us"):
        raise ValueError("names of months and days are read in English alone: en-US")
    return "en-US"


def _offsets(text: str) -> str | dict[str, Any]:
    """earliest, latest, or places by topic."""
    plain = text.strip()
    if plain.lower() in ("earliest", "latest"):
        return plain.lower()
    from pulsarx.spark.given_offsets import offsets_by_topic

    if plain[:1] not in ("{", "["):
        raise ValueError(
            "it must be earliest, latest, or offsets as JSON by topic; a time goes into "
            "startingTimestamp, or by topic into startingOffsetsByTimestamp"
        )
    return offsets_by_topic(plain)


def _times(text: str) -> dict[str, int]:
    """Milliseconds since 1970 by topic."""
    from pulsarx.spark.given_offsets import by_topic

    return by_topic(text, lambda given: _time_ms(str(given)))


def _lease_seconds(text: str) -> int:
    found = _number(text)
    if found > LEASE_DAYS_MAX * DAY_SECONDS:
        raise ValueError(f"it must be at most {LEASE_DAYS_MAX * DAY_SECONDS}, which is 30 days")
    return found


def _selector(text: str) -> str | None:
    from pulsarx.options.members import check_selector

    try:
        return check_selector(text) or None
    except errors.InvalidConfiguration as error:
        raise ValueError(errors.detail_of(error)) from None


def _pattern(text: str) -> str:
    import re

    try:
        re.compile(_text(text))
    except re.error as error:
        raise ValueError(f"it is no regular expression: {error}") from None
    return text


def _root(text: str) -> str:
    from pulsarx.options.service_url import parse_service_url

    plain = text.strip()
    if is_cluster(plain):
        return plain
    if found_store := store_of(plain):
        return found_store
    if ":" not in plain and not plain.startswith(("/", "~")):
        # It would be another place in each of Spark's processes.
        raise ValueError(f"it must be an absolute path; this may be {os.path.abspath(plain)}")
    found = parse_service_url(_text(text)).folder
    if found is None:
        raise ValueError(
            "it must be a folder, pulsar://host:port of a cluster, or the URL of an object store"
        )
    # As it was given: a link may lead elsewhere on another host.
    return os.path.abspath(found)


def _one_of(*names: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        for name in names:
            if text.strip().lower() == name.lower():
                return name
        raise ValueError(f"it must be one of {', '.join(names)}")

    return read


#  name                      read as        default    where          meaning
OPTIONS: list[tuple[str, Any, Any, tuple[str, ...], str]] = [
    ("root", _root, None, _ALL,
     "the data directory: one path on the driver and every executor; or pulsar:// of a cluster; or "
     "the URL of an object store, of which the history is read"),
    ("adminUrl", _text, None, _ALL, "of a cluster: its admin REST API, http://host:port"),
    ("token", _text, None, _ALL, "of a cluster: proves who we are"),
    ("tlsTrustCertsFilePath", _text, None, _ALL,
     "of a cluster: the authorities of its certificates, one path on every host"),
    ("authPluginClassName", _text, None, _ALL,
     "of a cluster: how it is proved who we are: Pulsar's class for Java, or token, basic, oauth2, "
     "tls"),
    ("authParams", _text, None, _ALL, "of a cluster: the parameters of authPluginClassName"),
    ("tlsCertificateFilePath", _file_path, None, _ALL,
     "of a cluster: our certificate (PEM), one path on every host"),
    ("tlsKeyFilePath", _file_path, None, _ALL,
     "of a cluster: its key (PEM), one path on every host"),
    ("tlsAllowInsecureConnection", _flag, False, _ALL, "of a cluster: take any certificate of it"),
    ("tlsHostnameVerificationEnable", _flag, True, _ALL,
     "of a cluster: its certificates must be of its hosts"),
    ("topic", _text, None, _ALL, "one topic, with all its partitions; where a sink writes"),
    ("topics", _names, None, _READS, "several topics, with commas between them"),
    ("topicsPattern", _pattern, None, _READS, "topics whose full name matches, also later ones"),
    ("columns", _names, None, (*_READS, SINK),
     "which columns are there, in this order; default all; of a write no others"),
    ("startingOffsets", _offsets, None, _READS,
     "earliest (default of read), latest (default of readStream), JSON by topic"),
    ("endingOffsets", _offsets, None, (BATCH,), "latest (default), or JSON by topic"),
    ("startingOffsetsByTimestamp", _times, None, _READS, "JSON by topic: from the first message "
     "published then or later; the end where there is none"),
    ("endingOffsetsByTimestamp", _times, None, (BATCH,), "JSON by topic: up to that message"),
    ("startingTimestamp", _time_ms, None, _READS, "from messages published then, ms or ISO"),
    ("endingTimestamp", _time_ms, None, (BATCH,), "up to messages published before then"),
    ("failOnDataLoss", _flag, True, _READS, "whether messages that retention took are an error"),
    ("minPartitions", _count, 0, _READS, "so many Spark partitions at least"),
    ("maxBytesPerPartition", _size, 128 << 20, _READS, "bytes of a file for one Spark partition"),
    ("maxRecordsPerPartition", _count, None, _READS, "messages for one Spark partition"),
    ("leaseSeconds", _lease_seconds, DAY_SECONDS // 24, _READS,
     "how long retention spares what a job was planned to read; 0: not at all"),
    ("filterPushdown", _flag, False, (BATCH,),
     "comparisons of columns of messages are applied where they are read; the session must allow "
     "it, too"),
    ("where", filters_of, (), (BATCH,),
     "messages that are read: comparisons of their columns, with AND between them"),
    ("selector", _selector, None, _READS,
     "messages that are read: a condition on their properties, key and times, as a JMS selector"),
    ("sealedOnly", _flag, False, _READS,
     "leave out what is still being written: for other hosts than the owner's"),
    ("valueFormat", _one_of(*FORMATS), FORMATS[0], _ALL,
     "raw: value is the payload; string; json, avro, schema: columns of its fields"),
    ("valueSchema", _text, None, _ALL,
     "of valueFormat avro: the definition; of json, for reading: a Spark schema as JSON, or use "
     ".schema()"),
    ("mode", _one_of(*MODES), None, _READS,
     "values that cannot be decoded: FAILFAST (default), PERMISSIVE, DROPMALFORMED"),
    ("timeZone", _zone, None, _READS,
     "of JSON: the zone of times that name none, as Europe/Paris; UTC without it"),
    ("timestampFormat", _time_format, None, _READS,
     "of JSON: how timestamps are written, as a pattern of Java: dd/MM/yyyy HH:mm:ss"),
    ("timestampNTZFormat", _time_format, None, _READS, "of JSON: the same of timestamp_ntz"),
    ("dateFormat", _time_format, None, _READS, "of JSON: the same of dates"),
    ("enableDateTimeParsingFallback", _flag, None, _READS,
     "of JSON: times that are not in the given format are read without one; default: false where "
     "a format is given"),
    ("locale", _locale, None, _READS, "of JSON: the language of names of months: en-US alone"),
    ("allowComments", _flag, None, _READS, "of JSON: comments as in Java; default false"),
    ("allowUnquotedFieldNames", _flag, None, _READS, "of JSON: default false"),
    ("allowSingleQuotes", _flag, None, _READS, "of JSON: default true"),
    ("allowNumericLeadingZeros", _flag, None, _READS, "of JSON: 007; default false"),
    ("allowNonNumericNumbers", _flag, None, _READS,
     "of JSON: NaN and Infinity, in quotes, too; default true"),
    ("allowBackslashEscapingAnyCharacter", _flag, None, _READS, "of JSON: default false"),
    ("allowUnquotedControlChars", _flag, None, _READS,
     "of JSON: characters below the space in texts; default false"),
    ("columnNameOfCorruptRecord", _text, CORRUPT_RECORD, _READS,
     "of mode PERMISSIVE: the column of values that cannot be decoded"),
    ("waitForTopic", _flag, False, (STREAM,), "begin without topics that are not there yet"),
    ("maxBytesPerTrigger", _size, None, (STREAM,), "about so many bytes a micro-batch"),
    ("maxEntriesPerTrigger", _count, None, (STREAM,), "entries a micro-batch"),
    ("maxMessagesPerTrigger", _count, None, (STREAM,), "messages a micro-batch"),
    ("minMessagesPerTrigger", _count, None, (STREAM,), "wait for so many messages"),
    ("minEntriesPerTrigger", _count, None, (STREAM,), "wait for so many entries"),
    ("maxTriggerDelay", _duration_ms, 15 * 60_000, (STREAM,), "but no longer than this"),
    ("subscription", _text, None, (STREAM,),
     "a durable subscription that holds retention and follows what was committed"),
    ("subscriptionInitialPosition", _one_of("earliest", "latest"), None, (STREAM,),
     "where the subscription and with it the stream begins, if there is none of that name"),
    ("compression", _one_of(*COMPRESSIONS), "none", _SINKS, ", ".join(COMPRESSIONS)),
    ("hashingScheme", _one_of(*HASHINGS), HASHINGS[0], _SINKS, "how a key chooses its partition"),
    ("txnAppId", _text, None, (SINK,), "name of the application; a txnVersion is written once"),
    ("txnVersion", _number, None, (SINK,), "ascending number of the write in its application"),
    ("txnConflict", _one_of("error", "ignore"), "error", _SINKS,
     "a txnVersion, or batch, that was written with other messages, or before a later one"),
    ("deduplicate", _flag, False, (STREAM_SINK,),
     "of a cluster: what a repeated batch has sent before is not sent again"),
    ("batchingType", _one_of("Default", "KeyBased"), "Default", _SINKS,
     "of a cluster: KeyBased: the messages of an entry have one key, for Key_Shared subscriptions"),
    ("createTopic", _flag, None, _SINKS, "whether a topic that is not there is created"),
    ("maxLedgerBytes", _size, 1 << 30, _SINKS, "a task begins another ledger behind these"),
    ("maxMessageSize", _size, 5 << 20, _SINKS, "the largest value; max_message_size of the topic"),
    ("nullValues", _one_of("error", "allow"), "error", _SINKS, "messages without a value"),
    ("onSmallFiles", _one_of("warn", "error", "ignore"), "warn", _SINKS,
     "many tasks write ledgers of less than 1 MiB"),
    ("mergeSmallLedgers", _flag, True, _SINKS,
     "the files of small ledgers are merged after every hundredth batch, or txnVersion"),
    ("flush", _flag, True, _SINKS, "whether data is on the device before it is attached"),
]  # fmt: skip
# Never shown, not even if they are wrong.
_SECRETS = ("token", "authParams")
_OF_CREDENTIALS = (
    "token", "tlsTrustCertsFilePath", "authPluginClassName", "authParams", "tlsCertificateFilePath",
    "tlsKeyFilePath", "tlsAllowInsecureConnection", "tlsHostnameVerificationEnable",
)  # fmt: skip
_CLIENT, _ADMIN = "pulsar.client.", "pulsar.admin."
_ALIASES = {
    "service.url": "root",
    "admin.url": "adminUrl",
    "predefinedsubscription": "subscription",
    "startingtime": "startingTimestamp",
    "endingtime": "endingTimestamp",
    "waitingfornonexistedtopic": "waitForTopic",
    # As the Pulsar connector hands options to its clients.
    **{
        f"{prefix}{name}".lower(): name
        for name in _OF_CREDENTIALS[1:]
        for prefix in (_CLIENT, _ADMIN)
    },
}
# What Spark itself adds.
_SPARKS = frozenset(("checkpointlocation", "queryname"))
_ROOT_HINT = "Give the data directory as option root, and call load() and save() without a path"
_SERVICE_HINT = "Give the data directory as option root, or pulsar://host:port of a cluster"
_TOPIC_HINT = "Name the topics with option topic, topics or topicsPattern"
_TABLE_HINTS = {
    BATCH: "Spark loses the options of what CREATE TABLE ... USING pulsarx makes; use CREATE "
    "TEMPORARY VIEW ... USING pulsarx OPTIONS (...)",
    SINK: "Spark loses the options of tables, so neither insertInto, INSERT INTO nor CREATE TABLE "
    '... AS SELECT can write; use df.write.format("pulsarx").options(...).mode("append").save()',
}
_INFERRED = "No schema is inferred from values: give .schema(...), or option valueSchema"
_ONE_DOCUMENT = "Each message is one document, of however many lines"
_WRITTEN = "Values are written with all fields, in one line"
_NO_VARIANTS = "There are no columns of variants: read raw, and use parse_json"
_HINTS = {
    "path": _ROOT_HINT,
    "paths": _ROOT_HINT,
    "kafka.bootstrap.servers": _SERVICE_HINT,
    "provider": _TABLE_HINTS[BATCH],
    "subscribe": _TOPIC_HINT,
    "assign": _TOPIC_HINT,
    "subscribepattern": "Name the topics with option topicsPattern",
    "maxoffsetspertrigger": "Use maxMessagesPerTrigger",
    "minoffsetspertrigger": "Use minMessagesPerTrigger",
    "includeheaders": "The column __messageProperties is always there",
    "subscriptionprefix": "Name a subscription with option subscription",
    "groupidprefix": "Name a subscription with option subscription",
    "startingoffsetsbytimestampstrategy": "Where no message is that new, reading begins at the end",
    "allowdifferenttopicschemas": "Read topics of different schemas one by one, or with "
    "valueFormat raw",
    "pulsar.client.usetls": "Write pulsar+ssl:// in front of the host in root",
    "samplingratio": _INFERRED,
    "primitivesasstring": _INFERRED + "; a column of string has what stands there",
    "prefersdecimal": _INFERRED + "; a column may be decimal",
    "dropfieldifallnull": _INFERRED,
    "infertimestamp": _INFERRED,
    "multiline": _ONE_DOCUMENT,
    "linesep": _ONE_DOCUMENT,
    "encoding": "JSON is UTF-8: read raw, and decode other encodings",
    "charset": "JSON is UTF-8: read raw, and decode other encodings",
    "timeformat": "There are no columns of type time: read string, and cast",
    "singlevariantcolumn": _NO_VARIANTS,
    "explodeembeddedarray": _NO_VARIANTS,
    "useunsaferow": "Rows come as Arrow",
    "ignorenullfields": _WRITTEN,
    "pretty": _WRITTEN,
    "sortkeys": _WRITTEN,
    "writenonasciicharacterascodepoint": _WRITTEN,
    "avroschema": "Give the definition as option valueSchema, with valueFormat avro",
}

_KEY_STORES = ("usekeystore", "tlstruststore", "tlskeystore", "sslprovider")
_KEY_STORES_HINT = (
    "Key stores of Java are not read: give PEM files as tlsTrustCertsFilePath, "
    "tlsCertificateFilePath and tlsKeyFilePath"
)
_PREFIX_HINT = (
    "Of the options that the Pulsar connector hands to its clients there are "
    f"{', '.join(_CLIENT + name for name in _OF_CREDENTIALS[1:])}"
)

_TABLE = {row[0].lower(): row for row in OPTIONS}


class Options:
    """Options read and checked. A value: attributes by the names of the table."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    @property
    def of_cluster(self) -> bool:
        """Whether root is a Pulsar cluster and no folder."""
        return is_cluster(self.root)

    @property
    def rules(self) -> JsonRules | None:
        """How JSON is written, where something is said of it."""
        return rules_of(self._values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(name) from None


def read_options(given: Mapping[str, str], use: str) -> Options:
    """ValueError: an option that is not there, or not like that; the text says what to change."""
    values: dict[str, Any] = {row[0]: row[2] for row in OPTIONS}
    seen = set()
    if "provider" in given:  # of CREATE TABLE; before what else comes with it
        raise ValueError(_unknown("provider"))
    for name, text in given.items():
        plain = name.lower()
        if plain in _SPARKS:
            continue
        row = _TABLE.get(_ALIASES.get(plain, plain).lower())
        if row is None:
            raise ValueError(_unknown(name))
        if use not in row[3]:
            raise ValueError(f"{_where(use)}: option {row[0]} is for {', '.join(row[3])} only")
        try:
            value = row[1](str(text))
        except Exception as error:
            shown = "not shown" if row[0] in _SECRETS else f"{text!r:.200}"
            raise ValueError(f"{_where(use)}: option {row[0]} is {shown}: {error}") from error
        if row[0] in seen and not (value == values[row[0]] and _is_of_admin(row[0], given)):
            raise ValueError(f"{_where(use)}: option {row[0]} is given twice, once as {name}")
        seen.add(row[0])
        values[row[0]] = value
    _check_together(values, frozenset(seen), use)
    return Options(values)


def _is_of_admin(name: str, given: Mapping[str, str]) -> bool:
    """Whether it is given for the admin API, too: the same is then the same."""
    return f"{_ADMIN}{name}".lower() in (each.lower() for each in given)


def json_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of JSON that are given as an argument, read. ValueError as read_options;
    names are taken in any case."""
    names = {each.lower(): each for each in (*JSON_OPTIONS, "locale", "columnNameOfCorruptRecord")}
    found: dict[str, Any] = {}
    for name, value in given.items():
        known = names.get(name.lower())
        if known is None:
            hint = _HINTS.get(name.lower())
            raise ValueError(
                f"json_options has no {name}. {hint or 'It has ' + ', '.join(names.values())}"
            )
        try:
            found[known] = _TABLE[known.lower()][1](str(value))
        except Exception as error:
            raise ValueError(f"json_options: {known} is {value!r:.200}: {error}") from error
    return found


def of_stream(given: Mapping[str, str]) -> bool:
    """Whether one of them can only be meant for readStream."""
    names = [_ALIASES.get(name.lower(), name).lower() for name in given]
    return any(_TABLE[name][3] == (STREAM,) for name in names if name in _TABLE)


def _check_together(values: dict[str, Any], given: frozenset[str], use: str) -> None:
    flaw = (
        _flaw_of_topics(values, given, use)
        or _flaw_of_place(values, given, use)
        or _flaw_of_places(values, given, use)
        or _flaw_of_values(values, given, use)
        or _flaw_of_triggers(values, given)
        or _flaw_of_subscription(values, given)
    )
    if use == SINK and "txnConflict" in given and "txnAppId" not in given:
        flaw = "txnConflict needs txnAppId and txnVersion"
    if values["createTopic"] and values["topic"] is None:
        flaw = "createTopic needs option topic; topics of the column __topic must be there"
    if len({"txnAppId", "txnVersion"} & given) == 1:
        flaw = "txnAppId and txnVersion go together"
    if flaw:
        raise ValueError(f"{_where(use)}: {flaw}")


def _flaw_of_topics(values: dict[str, Any], given: frozenset[str], use: str) -> str:
    if values["root"] is None:
        # As Spark reads a table of its catalogue, and writes it.
        told = "" if given else _TABLE_HINTS.get(use, "")
        hint = f". {told}" if told else ""
        return f"option root is missing: the path of the data directory{hint}"
    if use in _READS:
        named = sorted({"topic", "topics", "topicsPattern"} & given)
        if len(named) != 1:
            said = " and ".join(named) or "none of them"
            return f"give one of topic, topics, topicsPattern; given is {said}"
        if values["waitForTopic"] and values["topicsPattern"] is not None:
            return "a topicsPattern always waits for topics; leave waitForTopic away"
    return ""


_ONLY_CLUSTERS = ("adminUrl", *_OF_CREDENTIALS, "deduplicate", "batchingType")
EPOCH_MAX = (1 << 31) - 1  # of sequence ids
_COUNTS = "a cluster tells entries and no messages before they are read; use {}"
_BROKERS = "the brokers of a cluster do it as they are configured"
_WITHOUT_FILES = {  # of a cluster; why, or what to use
    "maxMessagesPerTrigger": _COUNTS.format("maxEntriesPerTrigger"),
    "minMessagesPerTrigger": _COUNTS.format("minEntriesPerTrigger"),
    "maxRecordsPerPartition": _COUNTS.format("maxBytesPerPartition"),
    "leaseSeconds": "nothing leases messages there; keep them by retention of the namespace",
    "subscription": "keep messages by retention of the namespace; the checkpoint is what counts",
    "filterPushdown": "leave filters to Spark",
    "where": "leave filters to Spark",
    "selector": "leave filters to Spark",
    "sealedOnly": "all that is confirmed is read from brokers",
    "txnConflict": "other rows of a version are refused there, as far as they are told",
    "maxLedgerBytes": _BROKERS,
    "onSmallFiles": _BROKERS,
    "mergeSmallLedgers": _BROKERS,
    "flush": _BROKERS,
}


_WITHOUT_FOLDER = {  # of an object store; why
    "leaseSeconds": "nothing leases what is there",
    "sealedOnly": "all that is there is sealed",
}


def _flaw_of_place(values: dict[str, Any], given: frozenset[str], use: str) -> str:
    """Say which option does not fit the root: one that is for folders alone, or for clusters
    alone."""
    if not is_cluster(values["root"]):
        of_store = is_store(values["root"])
        if of_store and use != BATCH:
            return f"root is an object store: {READ_ALONE}"
        for name in _WITHOUT_FOLDER if of_store else ():
            if name in given:
                return f"option {name} does not work on an object store: {_WITHOUT_FOLDER[name]}"
        wrong = [name for name in _ONLY_CLUSTERS if name in given]
        place = "an object store" if of_store else "a folder"
        return f"option {wrong[0]} is for a cluster, and root is {place}" if wrong else ""
    for name, hint in _WITHOUT_FILES.items():
        if name in given:
            return f"option {name} does not work on a cluster: {hint}"
    if values["adminUrl"] is None:
        return "a cluster needs option adminUrl, too: its admin REST API, http://host:port"
    from pulsarx.admin.http_channel import HttpChannel

    try:
        HttpChannel(values["adminUrl"])
    except errors.InvalidUrl as error:
        return f"option adminUrl: {errors.detail_of(error)}"
    from pulsarx.spark.cluster_credentials import credentials_of

    try:
        values["credentials"] = credentials_of(values)
    except ValueError as error:
        return str(error)
    if (values["txnVersion"] or 0) > EPOCH_MAX:
        return f"txnVersion on a cluster is at most {EPOCH_MAX}, for sequence ids carry it"
    return ""


def _flaw_of_values(values: dict[str, Any], given: frozenset[str], use: str) -> str:
    from pulsarx.spark.topic_columns import column_names

    value_format = values["valueFormat"]
    try:
        if values["columns"] is not None:
            if use in _READS and value_format in ("raw", "string"):
                column_names(values["columns"])
            values["columns"] = tuple(values["columns"])
        if use in _READS:
            check_format(value_format, values["mode"], values["valueSchema"])
            for name in ("locale", *JSON_OPTIONS):
                if values[name] is not None and value_format not in (JSON, SCHEMA):
                    return f"{name} is about JSON; valueFormat is {value_format}"
            if "columnNameOfCorruptRecord" in given and values["mode"] != PERMISSIVE:
                return f"columnNameOfCorruptRecord needs mode {PERMISSIVE}"
    except ValueError as error:
        return str(error)
    return ""


def _flaw_of_places(values: dict[str, Any], given: frozenset[str], use: str) -> str:
    for edge in ("starting", "ending"):
        names = [f"{edge}{each}" for each in ("Offsets", "OffsetsByTimestamp", "Timestamp")]
        both = [name for name in names if name in given]
        if len(both) > 1:
            return f"give {' or '.join(both)}, not both"
    if use == BATCH and values["startingOffsets"] == "latest":
        return "startingOffsets latest leaves nothing to read; use earliest, or a place by topic"
    if values["endingOffsets"] == "earliest":
        return "endingOffsets earliest leaves nothing to read; use latest, or a place by topic"
    start, end = values["startingTimestamp"], values["endingTimestamp"]
    if start is not None and end is not None and start >= end:
        return f"startingTimestamp {start} is not before endingTimestamp {end}"
    return ""


def _flaw_of_triggers(values: dict[str, Any], given: frozenset[str]) -> str:
    if "maxTriggerDelay" in given and not {"minMessagesPerTrigger", "minEntriesPerTrigger"} & given:
        return "maxTriggerDelay needs minMessagesPerTrigger or minEntriesPerTrigger"
    for what in ("Messages", "Entries"):
        least, most = values[f"min{what}PerTrigger"], values[f"max{what}PerTrigger"]
        if least is not None and most is not None and least > most:
            return f"min{what}PerTrigger {least} is over max{what}PerTrigger {most}"
    return ""


def _flaw_of_subscription(values: dict[str, Any], given: frozenset[str]) -> str:
    """Refuse two different places: the subscription begins where the stream does."""
    if "subscriptionInitialPosition" not in given:
        return ""
    if "subscription" not in given:
        return "subscriptionInitialPosition needs option subscription"
    wanted = values["subscriptionInitialPosition"]
    for name in ("startingOffsets", "startingOffsetsByTimestamp", "startingTimestamp"):
        if name in given and values[name] != wanted:
            return (
                f"subscriptionInitialPosition {wanted} contradicts {name} {values[name]}: the "
                f"subscription begins where the stream does. Give {name} alone"
            )
    return ""


def _unknown(name: str) -> str:
    import difflib

    hint = _HINTS.get(name.lower())
    if hint is not None:
        return f'format("pulsarx"): there is no option {name}. {hint}'
    prefix, _, rest = name.lower().rpartition(".")
    if f"{prefix}." in (_CLIENT, _ADMIN):
        hint = _KEY_STORES_HINT if rest.startswith(_KEY_STORES) else _PREFIX_HINT
        return f'format("pulsarx"): there is no option {name}. {hint}'
    known = {**{low: row[0] for low, row in _TABLE.items()}, **_ALIASES}
    near = difflib.get_close_matches(name.lower(), known, 1, 0.5)
    asked = f"; did you mean {known[near[0]]}?" if near else "."
    return (
        f'format("pulsarx"): there is no option {name}{asked} '
        f"Options: {', '.join(row[0] for row in OPTIONS)}"
    )


def _where(use: str) -> str:
    return f'{use}.format("pulsarx")'
