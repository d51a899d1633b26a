"""`pulsar.functions`."""
