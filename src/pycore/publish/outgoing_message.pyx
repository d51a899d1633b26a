# cython: language_level=3
"""Body of outgoing_message.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Realloc
from libc.stdint cimport int64_t, uint8_t, uint32_t

from pulsarx import errors
from pulsarx._core.single_metadata cimport (
    METADATA_EVENT_TIME, METADATA_KEY_BASE64, METADATA_NULL_VALUE, METADATA_ORDERING_KEY,
    METADATA_PARTITION_KEY, METADATA_PROPERTIES, PropertyView, SingleMetadata,
)

cdef enum:
    REPLICATE_TO_TAG = 0x3A      # of MessageMetadata: field 7, a block

cdef bytes NO_OTHER_CLUSTER = b"__local__"    # as Pulsar's clients write it


class BytesKey(str):
    """The base64 text of a key that is bytes."""

    __slots__ = ()


class BytesOrderingKey(bytes):
    """An ordering key that is bytes; the official client takes text alone."""

    __slots__ = ()


cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL


cdef const uint8_t* utf8(object text, str name, uint32_t* size) except NULL:
    cdef Py_ssize_t length
    cdef const char* data
    if not isinstance(text, str):
        raise ValueError(f"Argument {name} is expected to be either None or of type 'str'")
    data = PyUnicode_AsUTF8AndSize(text, &length)
    size[0] = <uint32_t>length
    return <const uint8_t*>data


cdef int whole_number(object value, str name) except -1:
    if not isinstance(value, int):
        raise ValueError(f"Argument {name} is expected to be either None or of type 'int'")
    if value < 0 or value >= 1 << 63:
        raise ValueError(f"{name} is {value}; it must be within 0..2^63-1")
    return 0


cdef int event_time(object value) except -1:
    if not isinstance(value, int):
        raise ValueError(
            "Argument event_timestamp is expected to be either None or of type 'int'")
    if value < 0 or value >= 1 << 64:
        raise TypeError(f"event_timestamp is {value}; it must be within 0..2^64-1")
    return 0


cdef int outgoing_describe(SingleMetadata* metadata, PropertyScratch* scratch, object key,
                           object ordering_key,
                           object properties, object event_timestamp, object sequence_id) except -1:
    if key is not None:
        metadata.partition_key = utf8(key, "partition_key", &metadata.partition_key_size)
        if metadata.partition_key_size:
            metadata.flags |= METADATA_PARTITION_KEY
            if type(key) is BytesKey:
                metadata.flags |= METADATA_KEY_BASE64
    if ordering_key is not None:
        if type(ordering_key) is BytesOrderingKey:
            metadata.ordering_key = <const uint8_t*>PyBytes_AS_STRING(ordering_key)
            metadata.ordering_key_size = <uint32_t>PyBytes_GET_SIZE(ordering_key)
        else:
            metadata.ordering_key = utf8(ordering_key, "ordering_key",
                                         &metadata.ordering_key_size)
        if metadata.ordering_key_size:
            metadata.flags |= METADATA_ORDERING_KEY
    if properties is not None:
        if not isinstance(properties, dict):
            raise ValueError(
                "Argument properties is expected to be either None or of type 'dict'")
        if properties:
            describe_properties(metadata, scratch, <dict>properties)
    if event_timestamp is not None:
        event_time(event_timestamp)
        metadata.event_time_ms = event_timestamp
        if event_timestamp:
            metadata.flags |= METADATA_EVENT_TIME
    if sequence_id is not None:
        whole_number(sequence_id, "sequence_id")
        metadata.sequence_id = sequence_id
    return 0


cdef int describe_properties(SingleMetadata* metadata, PropertyScratch* scratch,
                             dict properties) except -1:
    cdef Py_ssize_t count = len(properties)
    cdef Py_ssize_t at = 0
    cdef PropertyView* grown
    if count > scratch.capacity:
        grown = <PropertyView*>PyMem_Realloc(scratch.views, count * sizeof(PropertyView))
        if grown == NULL:
            raise MemoryError(f"{count} properties")
        scratch.views = grown
        scratch.capacity = count
    for name, value in properties.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(
                f"property {errors.shown(name)}: {errors.shown(value)}: both must be str")
        scratch.views[at].key = utf8(name, "property", &scratch.views[at].key_size)
        scratch.views[at].value = utf8(value, "property", &scratch.views[at].value_size)
        at += 1
    metadata.properties = scratch.views
    metadata.property_count = <uint32_t>count
    metadata.flags |= METADATA_PROPERTIES
    return 0


cdef object outgoing_content(object schema, object content, SingleMetadata* metadata):
    if content is None:
        metadata.flags |= METADATA_NULL_VALUE
        return None
    cdef object data = schema.encode(content)
    if type(data) is bytes:
        return data
    if not isinstance(data, bytes):
        raise ValueError(f"Argument data is expected to be of type 'bytes' and not "
                         f"'{type(data).__name__}'")
    return bytes(data)


cdef int64_t outgoing_deliver_at(object clock, object deliver_at, object deliver_after) except? -1:
    if deliver_at is not None:
        whole_number(deliver_at, "deliver_at")
        return deliver_at
    return clock.deliver_at_ms(deliver_after)


cdef bytes outgoing_replicate_to(object replication_clusters, object disable_replication):
    cdef list fields = []
    if replication_clusters is not None and not isinstance(replication_clusters, list):
        raise ValueError(
            "Argument replication_clusters is expected to be either None or of type 'list'")
    if not isinstance(disable_replication, bool):
        raise ValueError("Argument disable_replication is expected to be of type 'bool' "
                         f"and not '{type(disable_replication).__name__}'")
    for cluster in replication_clusters or ():
        if not isinstance(cluster, str):
            raise TypeError(f"replication_clusters: {errors.shown(cluster)} must be str")
        fields.append(replicate_to_field(cluster.encode()))
    if disable_replication:
        return replicate_to_field(NO_OTHER_CLUSTER)
    return b"".join(fields) or None


cdef bytes replicate_to_field(bytes cluster):
    cdef Py_ssize_t size = PyBytes_GET_SIZE(cluster)
    cdef list start = [REPLICATE_TO_TAG]
    while size >= 0x80:
        start.append(size & 0x7F | 0x80)
        size >>= 7
    start.append(size)
    return bytes(start) + cluster
