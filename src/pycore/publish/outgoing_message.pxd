"""Checks what a caller gives to send and turns it into the structs of the core. For producer_core
alone; needs the GIL."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from pulsarx._core.single_metadata cimport PropertyView, SingleMetadata

cdef struct PropertyScratch:
    PropertyView* views                  # owned
    Py_ssize_t capacity

cdef int outgoing_describe(SingleMetadata* metadata, PropertyScratch* scratch, object key,
                           object ordering_key,
                           object properties, object event_timestamp, object sequence_id) except -1
"""Fill metadata with pointers into the given objects, which the caller keeps alive until it is
encoded.

ValueError: a wrong type, TypeError: a property that is not str, as the official client. An empty
    key is no key.
"""

cdef object outgoing_content(object schema, object content, SingleMetadata* metadata)
"""The payload as bytes; None marks metadata as a message without a value."""

cdef int64_t outgoing_deliver_at(object clock, object deliver_at, object deliver_after) except? -1
"""Milliseconds since 1970, 0 for neither."""

cdef bytes outgoing_replicate_to(object replication_clusters, object disable_replication)
"""Fields of the metadata that name the clusters a message is for; None for no such wish.

ValueError: a wrong type, TypeError: a cluster that is not str.
"""
