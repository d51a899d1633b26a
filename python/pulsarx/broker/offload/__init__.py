"""Sealed ledgers in an object store. See `topic_offload`."""
