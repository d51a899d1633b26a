"""Pulsar Functions: the interfaces that a function is written against."""
